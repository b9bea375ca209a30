//! Where a thread is when it frees memory: within a store it may not enter that store again.

use std::cell::Cell;
use std::marker::PhantomData;

thread_local! {
    static DEPTH: Cell<u32> = const { Cell::new(0) };
}

/// What a pass may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Context {
    /// Whatever is needed.
    Anywhere,
    /// The thread is within a store, and may hold its locks or be what others wait for: nothing that the store has to be told of.
    WithinStore,
}

impl Context {
    /// Where this thread is.
    #[must_use]
    pub fn now() -> Self {
        match DEPTH.get() {
            0 => Self::Anywhere,
            _ => Self::WithinStore,
        }
    }

    /// As the kernel's trace shows it.
    #[must_use]
    pub fn flags(self) -> &'static str {
        match self {
            Self::Anywhere => "GFP_KERNEL",
            Self::WithinStore => "GFP_NOFS",
        }
    }
}

/// Until it is dropped, this thread is within a store. They nest.
#[derive(Debug)]
#[must_use = "it ends when it is dropped"]
pub struct WithinStore(PhantomData<*const ()>);

/// From now on this thread is within a store: what would need one is owed by those that ask for it.
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
