//! The context in which a thread frees memory: within a store it must not enter that store again.

use std::cell::Cell;
use std::marker::PhantomData;

thread_local! {
    static DEPTH: Cell<u32> = const { Cell::new(0) };
}

/// What a pass may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Context {
    /// Everything.
    Anywhere,
    /// The thread is within a store, and may hold its locks or block other threads: it may free
    /// only what does not need the store.
    WithinStore,
}

impl Context {
    /// The context of this thread.
    #[must_use]
    pub fn now() -> Self {
        match DEPTH.get() {
            0 => Self::Anywhere,
            _ => Self::WithinStore,
        }
    }

    /// Its flags, as the kernel's trace shows them.
    #[must_use]
    pub fn flags(self) -> &'static str {
        match self {
            Self::Anywhere => "GFP_KERNEL",
            Self::WithinStore => "GFP_NOFS",
        }
    }
}

/// Marks this thread as within a store until it is dropped. They nest.
#[derive(Debug)]
#[must_use = "it ends when it is dropped"]
pub struct WithinStore(PhantomData<*const ()>);

/// Marks this thread as within a store: shrinkers that need a store then defer their work.
pub fn within_store() -> WithinStore {
    DEPTH.set(DEPTH.get() + 1);
    WithinStore(PhantomData)
}

impl Drop for WithinStore {
    fn drop(&mut self) {
        DEPTH.set(DEPTH.get() - 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_within_a_store_until_the_first_of_nested_guards_ends() {
        assert_eq!(Context::now(), Context::Anywhere);
        let outer = within_store();
        drop(within_store());
        assert_eq!(Context::now(), Context::WithinStore);
        let other = std::thread::spawn(Context::now).join().unwrap();
        assert_eq!(other, Context::Anywhere);
        drop(outer);
        assert_eq!(Context::now(), Context::Anywhere);
    }
}
