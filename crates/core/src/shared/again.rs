//! Files that are looked at again although no change was told.
//!
//! Not every change is told by a store that tells of changes ([`Coherence::Told`](crate::store::Coherence::Told)).
//! Files that are open are read, so of these no change may be missed for long. A front end that keeps their pages has them looked at
//! again from time to time.

use super::Asks;
use crate::FileSystem;
use crate::node::Node;
use crate::types::{Errno, Result};

impl FileSystem {
    /// Asks the store for an inode, unless it was asked as lately as for inodes of which no changes are told. If the inode has changed the
    /// observer is told. Had that been missed, because no change was told?
    ///
    /// # Errors
    /// `ESTALE`: there is no such inode any more. `EIO` when the file system was revoked; what the store answers.
    pub fn look_again(&self, node: &Node) -> Result<bool> {
        let core = &self.core;
        core.alive()?;
        let Some(shared) = core.shared().filter(|shared| shared.coherence.is_dated()) else {
            return Ok(false);
        };
        let checked = shared.coherence.checked(node.ino());
        if shared.coherence.is_recent(&checked, shared.now()) {
            return Ok(false);
        }
        let believed = shared.coherence.holds(&checked, shared.now());
        let changed = core.ask_again(shared, node.inode(), Asks::Core)?;
        Ok(changed && believed)
    }

    /// As [`look_again`](Self::look_again), before an inode is opened by its number.
    ///
    /// # Errors
    /// `ESTALE`: the inode has changed, and no change was told. The caller looks the name up again and
    /// opens what it leads to then. The kernel does so once only, so for a second each lookup asks
    /// the store: what it finds can be opened even if its name is gone by then.
    pub fn look_before_open(&self, node: &Node) -> Result<()> {
        if !self.look_again(node)? {
            return Ok(());
        }
        if let Some(shared) = self.core.shared() {
            shared.coherence.note_gone(shared.now());
        }
        Err(Errno::ESTALE)
    }
}
