//! The store's modules as far as the gate knows them.

pub mod memtable;

/// What the models do with the gate: its own functions are the store's alone.
pub mod act {
    use super::memtable::barrier::FreezeBarrier;
    use super::memtable::layers::{Layers, Roots};

    #[derive(Debug)]
    pub struct Passage(FreezeBarrier);

    impl Passage {
        pub fn over(roots: u64) -> Self {
            Self(FreezeBarrier::new(&Layers::over(Roots(roots))))
        }

        /// Reads with a snapshot; gives its roots, what was read, and whether that can be believed.
        pub fn read<R>(&self, read: impl FnOnce() -> R) -> (u64, R, bool) {
            let snapshot = self.0.snapshot();
            let found = read();
            (snapshot.roots.0, found, snapshot.is_current())
        }

        /// The end of a checkpoint: these roots count, and blocks of those before are used again by `reuse`.
        pub fn succeed(&self, roots: u64, reuse: impl FnOnce()) {
            self.0.close().change(|layers| layers.roots = Roots(roots));
            self.0.about_to_reuse();
            reuse();
        }

        /// Works inside.
        pub fn pass<R>(&self, work: impl FnOnce(u64) -> R) -> R {
            let layers = self.0.pass();
            work(layers.roots.0)
        }

        /// Works while nobody is inside.
        pub fn exclude<R>(&self, work: impl FnOnce() -> R) -> R {
            let _closed = self.0.close();
            work()
        }
    }
}
