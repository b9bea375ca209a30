//! What the store takes of the memory that it shares with the core.

use holdfast_core::budget::{Class, Member, Usage};
use std::sync::Arc;

use crate::host::Host;

/// Counts places, and numbers that were dealt, as inodes: they come and go with those.
pub(crate) struct Places(pub(crate) Arc<Host>);

impl Member for Places {
    fn usage(&self) -> Usage {
        Usage::NONE.with(
            Class::Inodes,
            self.0.places.bytes() + self.0.numbers.bytes(),
        )
    }

    fn limit(&self, _all: u64, _own: u64) {}
}
