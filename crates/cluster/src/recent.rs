//! Inodes that came in recent answers.
//!
//! Targets of symbolic links, and the node that a file opened for writing begins from, need no
//! request of their own. The table also orders answers: two requests of this mount may be answered
//! in another order than the database performed them.

use crate::bounded::BoundedMap;
use crate::meta::{Content, Node};
use holdfast_core::budget::{Class, Member, Usage};
use holdfast_core::store::InodeRecord;
use holdfast_types::Ino;
use parking_lot::{Mutex, MutexGuard};
use std::mem::size_of;

/// The greatest number of inodes, and the least.
const NODES: usize = 8192;
const NODES_LEAST: usize = 256;
/// 1/`PART` of the limit of this member is available to the table.
const PART: u64 = 16;
/// Bytes of an entry, with its share of the table.
const ENTRY: usize = 2 * size_of::<(Ino, Node)>();

/// The table.
///
/// *Invariant.* Of all answers about an inode, the entry is the one with the greatest `ctime`,
/// which is the newest: the database moves it with each change.
pub(crate) struct Recent {
    nodes: Mutex<BoundedMap<Ino, Node>>,
}

/// The table, locked: no answer is taken in meanwhile.
pub(crate) struct Newest<'r>(MutexGuard<'r, BoundedMap<Ino, Node>>);

impl Recent {
    pub(crate) fn new() -> Self {
        Self {
            nodes: Mutex::new(BoundedMap::new(NODES)),
        }
    }

    /// Locks the table.
    pub(crate) fn lock(&self) -> Newest<'_> {
        Newest(self.nodes.lock())
    }

    /// The newest node of an inode, without its content.
    pub(crate) fn node(&self, ino: Ino) -> Option<Node> {
        self.nodes.lock().get(ino).cloned()
    }

    /// The target of a symbolic link.
    pub(crate) fn target(&self, ino: Ino) -> Option<Box<[u8]>> {
        self.nodes.lock().get(ino)?.target.clone()
    }
}

impl Newest<'_> {
    /// Takes in a node that the database answered. `Some`: the table has a newer record.
    pub(crate) fn seen(&mut self, node: &Node) -> Option<InodeRecord> {
        match self.0.get(node.record.ino) {
            Some(newest) if newest.record.ctime > node.record.ctime => {
                return Some(newest.record.clone());
            }
            Some(newest) => *newest = without_content(node),
            None => self.0.insert(node.record.ino, without_content(node)),
        }
        None
    }
}

/// What the table keeps of a node: of its content only that it is empty.
fn without_content(node: &Node) -> Node {
    let is_empty = |content: &&Content| **content == Content::empty();
    Node {
        record: node.record.clone(),
        generation: node.generation,
        target: node.target.clone(),
        content: node.content.as_ref().filter(is_empty).cloned(),
    }
}

impl Member for Recent {
    fn usage(&self) -> Usage {
        let bytes = self.nodes.lock().len() * ENTRY;
        Usage::NONE.with(Class::Inodes, bytes as u64)
    }

    fn limit(&self, _all: u64, own: u64) {
        let nodes = usize::try_from(own / PART).unwrap_or(usize::MAX) / ENTRY;
        self.nodes.lock().set_limit(nodes.clamp(NODES_LEAST, NODES));
    }
}
