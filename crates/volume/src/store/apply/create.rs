//! A new inode with its name, and the directory after that: what most batches are where a tree grows.
//!
//! Such a batch needs no room for bytes, frees nothing, and cannot fail once the volume runs, so it takes a short
//! way. What it leaves is what [`Maker`](crate::store::apply::transaction::Maker) would leave, which knows all kinds of changes.

use holdfast_core::store::{Change, InodeRecord, Intent, Stamp};
use holdfast_types::Ino;

use crate::Result;
use crate::store::Inner;
use crate::store::memtable::Growth;
use crate::store::memtable::Overlay;
use crate::store::memtable::REALM;
use crate::store::memtable::names::Name;

/// The parts of such a batch.
#[derive(Debug)]
pub(in crate::store) struct Birth<'c> {
    inode: &'c InodeRecord,
    name: Name<'c>,
    cookie: u64,
    dir: &'c InodeRecord,
}

impl<'c> Birth<'c> {
    /// Sees in a batch what it is.
    #[inline]
    pub(in crate::store) fn of(batch: &'c [Change<'_>]) -> Option<Self> {
        let [
            Change::Create {
                inode,
                target: None,
            },
            Change::Enter {
                dir,
                name: bytes,
                cookie,
                ino,
                kind,
            },
            Change::Attributes { inode: after },
        ] = batch
        else {
            return None;
        };
        (*dir == after.ino).then_some(Self {
            inode,
            name: Name {
                bytes,
                ino: *ino,
                kind: *kind,
            },
            cookie: *cookie,
            dir: after,
        })
    }

    /// The new inode.
    #[inline]
    pub(in crate::store) fn ino(&self) -> Ino {
        self.inode.ino
    }

    /// What it changes of the trees.
    #[inline]
    pub(in crate::store) fn growth(&self) -> Growth {
        let one = Intent {
            inodes: 1,
            records: 1 + u64::from(self.dir.nlink == 0) + u64::from(self.inode.nlink == 0),
            ..Intent::default()
        };
        Growth::intended(&one.name(self.name.bytes))
    }
}

impl Inner {
    /// Makes the changes of such a `batch`, in memory and in the journal.
    pub(in crate::store) fn bear(
        &self,
        birth: &Birth<'_>,
        batch: &[Change<'_>],
        growth: Growth,
    ) -> Result<Stamp> {
        let layers = self.gate.pass();
        self.running()?;
        let active = &layers.active;
        active.count(growth);
        self.whole("a creation", || self.bear_in(active, birth, batch))
    }

    fn bear_in(&self, active: &Overlay, birth: &Birth<'_>, batch: &[Change<'_>]) -> Result<Stamp> {
        // The directory first, all of whose names the core has: nobody asks for the one that leads nowhere yet. What is
        // written of the inode goes to memory that no cache has, and an exchange behind it would wait for that.
        {
            let mut shard = active.shard(birth.dir.ino);
            let mut dir = shard.changed(birth.dir.ino);
            dir.names_mut().enter(birth.cookie, birth.name);
            dir.set_record(birth.dir);
        }
        let inode = birth.inode;
        active.shard(inode.ino).create(inode.ino).set_record(inode);
        let stamp = self.journal.append(REALM, batch)?;
        self.met.met(inode.ino);
        self.inodes.add(1);
        Ok(stamp)
    }
}

#[cfg(test)]
pub(in crate::store) mod tests;
