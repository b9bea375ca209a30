//! Inodes by number, and references by number: references that were converted to inode numbers and
//! are dropped by number, such as the lookup counts of a FUSE kernel.
//!
//! They are counted in the inode while it is in memory, else in `evictions.rs`.

use crate::FileSystem;
use crate::core::Core;
use crate::inode::Numbered as _;
use crate::inodes::find::node_in_memory;
use crate::inodes::free::end_inode;
use crate::inodes::walk::scan_inodes;
use crate::load::load_inode;
use crate::node::Node;
use crate::reclaim::metadata::{added_so_far, shrink_inodes_since};
use crate::shared::let_go_unless_known;
use crate::types::{Ino, Result};

/// Passes of `forget_all` over the remaining references, at most.
const FORGET_ROUNDS: u32 = 4;

impl FileSystem {
    /// The inode with this number.
    ///
    /// # Errors
    /// `ESTALE` if there is none (any more); errors of the store.
    pub fn node(&self, ino: Ino) -> Result<Node> {
        let added = added_so_far(&self.core);
        let node = find_node(&self.core, ino);
        shrink_inodes_since(&self.core, added);
        node
    }

    /// Drops `count` references that [`Node::into_raw`](crate::Node::into_raw) converted to a
    /// number.
    ///
    /// An excess of `count` is ignored: a front end's kernel is not trusted.
    pub fn forget(&self, ino: Ino, count: u64) {
        if let Some(freeing) = self.core.evictions.forget(&self.core.index, ino, count) {
            end_inode(&self.core, freeing);
        }
        if self.core.coherence.is_some() {
            let_go_unless_known(&self.core, ino);
        }
    }

    /// Is a reference of this inode held by number ([`Node::into_raw`](crate::Node::into_raw))?
    /// Never `false` for an inode that is referenced so throughout the call.
    #[must_use]
    pub fn is_known_by_number(&self, ino: Ino) -> bool {
        self.core.evictions.may_be_held(&self.core.index, ino)
    }

    /// Calls `visit` for every inode that is referenced by number
    /// ([`Node::into_raw`](crate::Node::into_raw)), in memory or not, with its count. The count may
    /// be 0 for an inode that many threads use at the moment. An inode that is evicted or loaded
    /// meanwhile may be visited twice.
    pub fn each_known_by_number(&self, mut visit: impl FnMut(Ino, u64)) {
        // An inode loaded meanwhile was visited by the first pass, one evicted meanwhile by the
        // last.
        self.core.evictions.each(&mut visit);
        let held = held_in_memory(&self.core);
        held.into_iter().for_each(|(ino, uses)| visit(ino, uses));
        self.core.evictions.each(&mut visit);
    }

    /// Drops all references by number, after the front end that held them is gone.
    pub fn forget_all(&self) {
        // Repeated for inodes that were evicted or loaded between the two passes. Counts that
        // reached their maximum remain.
        for _ in 0..FORGET_ROUNDS {
            let away = self.core.evictions.forget_all();
            let held = held_in_memory(&self.core);
            for (ino, _) in &held {
                self.forget(*ino, u64::MAX);
            }
            if away == 0 && held.is_empty() {
                break;
            }
        }
    }
}

/// The inode with this number, loaded if necessary.
pub(crate) fn find_node(core: &Core, ino: Ino) -> Result<Node> {
    match node_in_memory(core, ino)? {
        Some(node) => Ok(node),
        None => load_inode(core, ino, false),
    }
}

/// Inodes in memory that may be referenced by number, with their counts.
fn held_in_memory(core: &Core) -> Vec<(Ino, u64)> {
    let mut held = Vec::new();
    scan_inodes(core, (0, u64::MAX), &mut |inode| {
        if inode.may_have_raw_uses() == Some(true) {
            held.push((inode.ino(), inode.raw_uses().unwrap_or(0)));
        }
    });
    held
}
