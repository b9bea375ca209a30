//! Opening of files: the store keeps an open inode the same, whatever happens to its names.

use super::ThroughStore;
use crate::node::Node;
use crate::types::{Caller, Ino, Result};

impl ThroughStore<'_> {
    /// Opens an inode in the store: for writing, or if others may change the store. Returns whether
    /// it did.
    ///
    /// # Errors
    /// `ESTALE`: it has gone, so the lookup has to be repeated. Errors of the store.
    pub(crate) fn open(self, who: &Caller, node: &Node, writes: bool) -> Result<bool> {
        self.core.alive()?;
        if !writes && !self.shared.coherence.is_dated() {
            return Ok(false);
        }
        let opened = self.store.open(who, node.ino(), writes);
        opened.map_err(|error| self.core.or_gone(error))?;
        Ok(true)
    }

    /// Ends what [`open`](Self::open) began.
    pub(crate) fn close(self, ino: Ino, writes: bool) {
        self.store.close(ino, writes);
    }
}
