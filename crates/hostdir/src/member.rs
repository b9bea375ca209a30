//! Memory of the store within the budget that it shares with the core.

use holdfast_core::budget::{Class, Member, Usage};

use crate::host::Host;
use crate::watcher::Watcher;

/// Counts places, assigned numbers and watches as inodes: they have the lifetime of inodes.
impl Member for Host {
    fn usage(&self) -> Usage {
        let watches = self.watcher.as_ref().map_or(0, Watcher::bytes);
        let bytes = self.places.bytes() + self.numbers.bytes() + watches;
        Usage::NONE.with(Class::Inodes, bytes)
    }

    fn limit(&self, _all: u64, _own: u64) {}
}
