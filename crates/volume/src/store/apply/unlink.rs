//! An inode goes with its last name, and the directory after that: what most batches are where a tree goes.
//!
//! Such a batch changes no bytes and takes no room, so it takes a short way. What it leaves is what
//! [`Maker`](crate::store::apply::transaction::Maker) would leave, which knows all kinds of changes.

use holdfast_core::store::{Change, InodeRecord, Intent, Stamp};
use holdfast_types::FileType;

use super::evict::without_last_attributes;
use super::fetched::Fetched;
use crate::Result;
use crate::store::Inner;
use crate::store::memtable::Growth;
use crate::store::memtable::REALM;
use crate::store::memtable::layers::Layers;

/// The parts of such a batch.
#[derive(Debug)]
pub(in crate::store) struct Death<'c> {
    last: &'c InodeRecord,
    name: &'c [u8],
    cookie: u64,
    dir: &'c InodeRecord,
}

impl<'c> Death<'c> {
    /// Sees in a batch what it is.
    #[inline]
    pub(in crate::store) fn of(batch: &'c [Change<'_>]) -> Option<Self> {
        let [
            Change::Attributes { inode: last },
            Change::Leave { dir, name, cookie },
            Change::Attributes { inode: after },
            Change::Free { ino },
        ] = batch
        else {
            return None;
        };
        (*ino == last.ino && *dir == after.ino).then_some(Self {
            last,
            name,
            cookie: *cookie,
            dir: after,
        })
    }

    /// What it changes of the trees.
    #[inline]
    pub(in crate::store) fn growth(&self) -> Growth {
        let one = Intent {
            ended: 1,
            records: 1 + u64::from(self.dir.nlink == 0),
            ..Intent::default()
        };
        Growth::intended(&one.leaving(self.name))
    }
}

impl Inner {
    /// Makes the changes of such a `batch`, in memory and in the journal.
    pub(in crate::store) fn bury(
        &self,
        death: &Death<'_>,
        batch: &[Change<'_>],
        growth: Growth,
    ) -> Result<Stamp> {
        self.make("a removal", |layers, fetched| {
            self.bury_in(layers, death, batch, growth, fetched)
        })
    }

    fn bury_in(
        &self,
        layers: &Layers,
        death: &Death<'_>,
        batch: &[Change<'_>],
        growth: Growth,
        fetched: &Fetched<'_>,
    ) -> Result<Stamp> {
        let ino = death.last.ino;
        let is_file = death.last.kind == FileType::Regular;
        // Before the name: whoever could ask where that leads waits for this. If its places are missing, nothing has
        // happened.
        let finder = self.finder(layers);
        let freed = finder.end(ino, Some(is_file), Some(fetched))?;
        layers.active.count(growth);
        let active = &layers.active;
        {
            let mut shard = active.shard(death.dir.ino);
            let mut dir = shard.changed(death.dir.ino);
            let hash = || self.hasher.hash(death.name);
            dir.names_mut().leave(death.name, death.cookie, hash);
            dir.set_record(death.dir);
        }
        let (_, told) = without_last_attributes(batch);
        let stamp = self.journal.append(REALM, told)?;
        for run in &freed {
            self.space.free_data(run.extent, stamp.0)?;
        }
        self.ahead.forget(ino);
        self.inodes.add(-1);
        Ok(stamp)
    }
}

#[cfg(test)]
mod tests;
