//! Events to be passed on.

use rustix::fs::inotify::ReadFlags;
use std::collections::HashMap;
use std::mem::take;

use super::own::{Key, Owned};

/// Events to be passed on, merged by name.
#[derive(Default)]
pub(super) struct Queue {
    waiting: HashMap<Key, ReadFlags>,
    /// Events were lost.
    pub(super) missed: bool,
    /// Operations under way.
    pub(super) own: Vec<Owned>,
    pub(super) last: u64,
}

impl Queue {
    pub(super) fn put(&mut self, key: Key, what: ReadFlags) {
        let own = self.own.iter_mut();
        let mut causing = own.filter_map(|own| own.causes(&key, what).then_some(own));
        match causing.next() {
            Some(own) => own.caused.push((key, what)),
            None => self.wait(key, what),
        }
    }

    /// Adds an event to be passed on.
    pub(super) fn wait(&mut self, key: Key, what: ReadFlags) {
        *self.waiting.entry(key).or_insert(ReadFlags::empty()) |= what;
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty() && !self.missed
    }

    pub(super) fn take(&mut self) -> (bool, HashMap<Key, ReadFlags>) {
        (take(&mut self.missed), take(&mut self.waiting))
    }
}
