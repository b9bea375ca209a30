//! Orphans: inodes with `nlink == 0`, freed at the next open.

use std::collections::BTreeSet;

use holdfast_core::store::{Change, Class, Intent};
use holdfast_types::Ino;

use super::Inner;
use crate::error::Result;
use crate::store::memtable::TreeCost;

impl Inner {
    /// Frees the orphans of the last use.
    pub(super) fn end_orphans(&self) -> Result<()> {
        for ino in self.orphans()? {
            let end = [Change::Free { ino }];
            let held = self.reserve(&Intent {
                class: Class::GivingBack,
                ..Intent::of(&end)
            })?;
            self.apply(&end, None, TreeCost::of(&end), 0)?;
            self.used(held);
        }
        Ok(())
    }

    fn orphans(&self) -> Result<BTreeSet<Ino>> {
        let layers = self.freeze_barrier.pass();
        let snapshot_reader = self.snapshot_reader(&layers);
        let mut suspects: BTreeSet<Ino> = layers.active.numbers().into_iter().collect();
        let mut cursor = snapshot_reader.orphans().range(None)?;
        while let Some((ino, _)) = cursor.next()? {
            suspects.insert(ino);
        }
        let mut orphans = BTreeSet::new();
        for ino in suspects {
            // It may have been linked or freed since.
            if snapshot_reader
                .inode(ino)?
                .is_some_and(|inode| inode.nlink == 0)
            {
                orphans.insert(ino);
            }
        }
        Ok(orphans)
    }
}
