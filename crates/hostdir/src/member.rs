//! What the store takes of the memory that it shares with the core.

use holdfast_core::budget::{Class, Member, Usage};
use std::sync::Arc;

use crate::host::Host;
use crate::told::Told;

/// Counts places, numbers that were dealt, and what is watched, as inodes: they come and go with those.
pub(crate) struct Places(pub(crate) Arc<Host>);

impl Member for Places {
    fn usage(&self) -> Usage {
        let watches = self.0.told.as_ref().map_or(0, Told::bytes);
        let bytes = self.0.places.bytes() + self.0.numbers.bytes() + watches;
        Usage::NONE.with(Class::Inodes, bytes)
    }

    fn limit(&self, _all: u64, _own: u64) {}
}
