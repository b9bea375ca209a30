//! Parts of the page cache under every interleaving, compiled here once more with loom's atomics
//! and locks (`primitive`).

#[path = "../../src/reclaim/deferral.rs"]
mod deferral;
mod owing;
mod primitive;
#[path = "../../src/memory/wakeup.rs"]
mod wakeup;
mod waking;

/// In every order with up to three preemptions, unless LOOM_MAX_PREEMPTIONS says otherwise.
fn model(threads: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = builder.preemption_bound.or(Some(3));
    builder.check(threads);
}
