//! Revalidation of inodes although no change was reported.
//!
//! A store that reports changes ([`Coherence::Notified`](crate::store::Coherence::Notified)) does
//! not report all of them. An open file is being read, so a change of it must not be missed for
//! long. A front end that keeps the pages of open files revalidates these files from time to time.

use super::Asks;
use crate::FileSystem;
use crate::node::Node;
use crate::shared::ask_for_attributes;
use crate::types::{Errno, Result};

impl FileSystem {
    /// Asks the store for an inode, unless it was asked within the validity of inodes without
    /// notifications. If the inode has changed, the observer is notified. Returns whether the
    /// change had been missed: no notification came.
    ///
    /// # Errors
    /// `ESTALE`: the inode does not exist any more. `EIO` when the file system was revoked; errors
    /// of the store.
    pub fn revalidate(&self, node: &Node) -> Result<bool> {
        let core = &self.core;
        core.alive()?;
        let Some(shared) = core.shared().filter(|shared| shared.coherence.is_dated()) else {
            return Ok(false);
        };
        let checked = shared.coherence.checked(node.ino());
        if shared.coherence.is_recent(&checked, shared.present()) {
            return Ok(false);
        }
        let believed = shared.coherence.holds(&checked, shared.present());
        let changed = ask_for_attributes(core, shared, node.inode(), Asks::Core)?;
        Ok(changed && believed)
    }

    /// Like [`revalidate`](Self::revalidate), before an inode is opened by its number.
    ///
    /// # Errors
    /// `ESTALE`: the inode has changed, and no change was reported. The caller repeats the lookup
    /// and opens the result. The kernel does so only once, so for a second each lookup asks the
    /// store: the inode it finds can be opened even if its name is gone by then.
    pub fn look_before_open(&self, node: &Node) -> Result<()> {
        if !self.revalidate(node)? {
            return Ok(());
        }
        if let Some(shared) = self.core.shared() {
            shared.coherence.note_gone(shared.now());
        }
        Err(Errno::ESTALE)
    }
}
