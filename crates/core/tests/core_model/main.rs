//! Parts of the core under every interleaving, compiled with loom's atomics and locks
//! (`primitive`).

#[path = "../../src/lazytime.rs"]
mod lazytime;
#[path = "../../src/log_order.rs"]
mod log_order;
mod order;
mod primitive;
mod syncs;

/// The error type of the modules.
mod types {
    pub(crate) type Result<T> = std::result::Result<T, &'static str>;
}
