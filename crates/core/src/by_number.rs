//! Uses that were turned into numbers, and are given back by number: a kernel's, of a mount.
//!
//! They are counted by the inode while it is in memory, else beside (`evictions.rs`).

use crate::FileSystem;
use crate::file_system::Core;
use crate::inode::Numbered as _;
use crate::types::Ino;

/// Looks for uses by number that are left, at most.
const FORGET_ROUNDS: u32 = 4;

impl FileSystem {
    /// Gives back `count` uses that [`Node::into_raw`](crate::Node::into_raw) turned into a number.
    ///
    /// More than were taken are ignored: a front end's kernel is not believed.
    pub fn forget(&self, ino: Ino, count: u64) {
        if let Some(freeing) = self.core.evictions.forget(&self.core.index, ino, count) {
            self.core.end(freeing);
        }
        if self.core.coherence.is_some() {
            self.core.let_go_unless_known(ino);
        }
    }

    /// Was a use of this inode turned into a number ([`Node::into_raw`](crate::Node::into_raw)) that was not given back? Never
    /// `false` of one that is used so throughout.
    #[must_use]
    pub fn is_known_by_number(&self, ino: Ino) -> bool {
        self.core.evictions.may_be_held(&self.core.index, ino)
    }

    /// Shows every inode of which a use was turned into a number ([`Node::into_raw`](crate::Node::into_raw)) that was not given back, in memory or
    /// not, with the number of such uses; one that many threads use at the moment may be shown without any. What leaves memory or comes
    /// back meanwhile may be shown twice.
    pub fn each_known_by_number(&self, mut visit: impl FnMut(Ino, u64)) {
        // What comes back meanwhile was shown before, and what goes is afterwards.
        self.core.evictions.each(&mut visit);
        let held = self.core.held_in_memory();
        held.into_iter().for_each(|(ino, uses)| visit(ino, uses));
        self.core.evictions.each(&mut visit);
    }

    /// Gives back all uses that were turned into numbers: for when the front end that had them is gone.
    pub fn forget_all(&self) {
        // Again, for what went from memory, or came back, between one look and the other. Counts that reached their maximum
        // stay for ever.
        for _ in 0..FORGET_ROUNDS {
            let away = self.core.evictions.forget_all();
            let held = self.core.held_in_memory();
            for (ino, _) in &held {
                self.forget(*ino, u64::MAX);
            }
            if away == 0 && held.is_empty() {
                break;
            }
        }
    }
}

impl Core {
    /// Inodes in memory that may be used by number, and how often.
    fn held_in_memory(&self) -> Vec<(Ino, u64)> {
        let mut held = Vec::new();
        self.scan_inodes((0, u64::MAX), &mut |inode| {
            if inode.may_have_raw_uses() == Some(true) {
                held.push((inode.ino(), inode.raw_uses().unwrap_or(0)));
            }
        });
        held
    }
}
