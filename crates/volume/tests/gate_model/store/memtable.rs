//! The room of the memtable as far as its barrier knows it.

#[path = "../../../src/store/memtable/barrier.rs"]
pub mod barrier;

/// What changed; here it only tells itself from others.
#[derive(Debug)]
pub struct Overlay(pub u64);

impl Overlay {
    pub fn new() -> Self {
        Self(0)
    }
}

pub mod layers {
    use super::Overlay;
    use std::sync::Arc;

    /// Which trees they are.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct Roots(pub u64);

    #[derive(Clone, Debug)]
    pub struct Layers {
        pub active: Arc<Overlay>,
        pub frozen: Option<Arc<Overlay>>,
        pub roots: Roots,
    }

    impl Layers {
        pub fn over(roots: Roots) -> Self {
            Self {
                active: Arc::new(Overlay::new()),
                frozen: None,
                roots,
            }
        }
    }
}
