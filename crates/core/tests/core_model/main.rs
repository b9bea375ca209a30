//! Parts of the core under every interleaving, compiled here once more with loom's atomics and locks (`primitive`).

#[path = "../../src/late.rs"]
mod late;
mod order;
mod primitive;
mod syncs;
#[path = "../../src/turns.rs"]
mod turns;

/// What the modules call errors.
mod types {
    pub(crate) type Result<T> = std::result::Result<T, &'static str>;
}
