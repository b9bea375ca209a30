//! Single nodes, read without their tree: for repair, and for a developer's dump.

use super::cache::{NodeCache, NodeSource};
use super::error::{Error, Result};
use super::node::{Header, Node, child};
use super::pointer::Pointer;
use super::record::{Kind, Record};
use super::run::Run;
use std::ops::ControlFlow;

/// What the first bytes of a node claim; nothing of it was checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UncheckedHeader {
    /// Its tree.
    pub kind: Kind,
    /// Its level; 0: a leaf.
    pub level: u8,
    /// Where it lies, how long it is, when it was written.
    pub node: Pointer,
    /// The realm that made it.
    pub subvolume: u32,
    /// Bytes in use.
    pub used: u32,
    /// Records of a leaf, pointers of an interior node.
    pub count: u32,
}

impl UncheckedHeader {
    /// Reads the first 48 bytes of a block. `None`: no node begins like this.
    #[must_use]
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let Header {
            kind,
            level,
            node,
            subvolume,
            used,
            count,
            ..
        } = Header::read(bytes)?;
        let kinds = [Kind::Inodes, Kind::Entries, Kind::Hashes, Kind::Data];
        let kind = kinds.into_iter().find(|&known| known as u8 == kind)?;
        Some(Self {
            kind,
            level,
            node,
            subvolume,
            used,
            count,
        })
    }
}

impl<S: NodeSource> NodeCache<S> {
    /// Reads one node of a tree of `R` from the device, whatever is cached, and verifies it.
    ///
    /// # Errors
    /// When it cannot be read, or is not what `pointer` and `level` say.
    pub fn read_node<R: Record>(&self, pointer: Pointer, level: u8) -> Result<Node> {
        self.load_anew::<R>(pointer, level)
    }
}

impl Node {
    /// Calls `read` with the children of an interior node: first key and pointer of each.
    ///
    /// # Errors
    /// When a pointer or a key is damaged.
    pub fn each_child<R: Record>(&self, mut read: impl FnMut(R::Key, Pointer)) -> Result<()> {
        let count = if self.level() == 0 { 0 } else { self.count() };
        for index in 0..count {
            let (key, pointer) = child::<R>(self, index)?;
            read(key, pointer);
        }
        Ok(())
    }

    /// Calls `read` with the records of a leaf. What is wrong with a block of records costs that
    /// block: the others are still read.
    ///
    /// # Errors
    /// What is wrong with the first block that cannot be read.
    pub fn each_record<R: Record>(
        &self,
        mut read: impl FnMut(R::Key, R::Value<'_>),
    ) -> Result<(), Error> {
        let mut run = Run::<R>::new(self.clone());
        let mut first = Ok(());
        for block in 0..self.runs() {
            run.rewind(block);
            let each = run.each_of_open(&mut |key, value| {
                read(key, value);
                ControlFlow::Continue(())
            });
            first = first.and(each);
        }
        first
    }
}
