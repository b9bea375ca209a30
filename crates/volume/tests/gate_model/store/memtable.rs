//! The memtable as far as the barrier uses it.

#[path = "../../../src/store/memtable/barrier.rs"]
pub mod barrier;

/// A memtable that only has an identity.
#[derive(Debug)]
pub struct Memtable(pub u64);

impl Memtable {
    pub fn new() -> Self {
        Self(0)
    }
}

pub mod layers {
    use super::Memtable;
    use std::sync::Arc;

    /// Identifies the trees.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct Roots(pub u64);

    #[derive(Clone, Debug)]
    pub struct Layers {
        pub active: Arc<Memtable>,
        pub frozen: Option<Arc<Memtable>>,
        pub roots: Roots,
    }

    impl Layers {
        pub fn over(roots: Roots) -> Self {
            Self {
                active: Arc::new(Memtable::new()),
                frozen: None,
                roots,
            }
        }
    }
}
