//! The store's modules as far as the barrier uses them.

pub mod memtable;

/// The barrier's functions for the models: its own are private to the store.
pub mod act {
    use super::memtable::barrier::FreezeBarrier;
    use super::memtable::layers::{Layers, Roots};

    #[derive(Debug)]
    pub struct Passage(FreezeBarrier);

    impl Passage {
        pub fn over(roots: u64) -> Self {
            Self(FreezeBarrier::new(&Layers::over(Roots(roots))))
        }

        /// Reads with a snapshot; returns its roots, what was read, and whether that is valid.
        pub fn read<R>(&self, read: impl FnOnce() -> R) -> (u64, R, bool) {
            let snapshot = self.0.snapshot();
            let found = read();
            (snapshot.roots.0, found, snapshot.is_current())
        }

        /// The end of a checkpoint: installs these roots; `reuse` overwrites blocks of those
        /// before.
        pub fn succeed(&self, roots: u64, reuse: impl FnOnce()) {
            self.0.close().change(|layers| layers.roots = Roots(roots));
            self.0.about_to_reuse();
            reuse();
        }

        /// Works inside the barrier.
        pub fn pass<R>(&self, work: impl FnOnce(u64) -> R) -> R {
            let layers = self.0.pass();
            work(layers.roots.0)
        }

        /// Works with the barrier closed.
        pub fn exclude<R>(&self, work: impl FnOnce() -> R) -> R {
            let _closed = self.0.close();
            work()
        }
    }
}
