//! Two slots, dealt to the threads of the model in turn.

use crate::thread_slot::thread_slot;

pub(crate) struct PerCore<T> {
    slots: [T; 2],
}

impl<T> PerCore<T> {
    pub(crate) fn new(init: impl Fn() -> T) -> Self {
        Self {
            slots: [init(), init()],
        }
    }

    pub(crate) fn mine(&self) -> &T {
        &self.slots[thread_slot() % 2]
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.slots.iter()
    }
}
