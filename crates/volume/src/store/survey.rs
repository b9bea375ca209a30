//! The survey of a journal before its replay.
//!
//! Replay may checkpoint halfway, and those nodes must not take a block that a later record maps.

use holdfast_core::store::Change;
use holdfast_types::Ino;

use super::commit::extent_of;
use super::file::zeros;
use super::load::Blocks;
use crate::error::{Error, Result};
use crate::journal::{Record, Replay};
use crate::space::{Layout, Space};

#[derive(Debug, Default)]
pub(super) struct Survey {
    /// The highest inode number, or mark.
    pub(super) last_ino: u64,
    pub(super) redo: Redo,
}

impl Survey {
    /// Reads the whole journal, and withholds the blocks that it maps from allocation.
    ///
    /// # Errors
    /// Those of the device, and of what is damaged.
    pub(super) fn of(journal: &mut Replay, space: &Space) -> Result<Self> {
        let mut survey = Self::default();
        while let Some(mut batch) = journal.next_batch()? {
            let records = batch.rest()?;
            survey.redo.note(batch.commit(), &records);
            for record in &records {
                match record {
                    Record::Change(Change::Create { inode, .. }) => survey.meet(inode.ino),
                    Record::Numbers(upto) => survey.meet(*upto),
                    Record::Map(map) if map.blocks == 0 => {
                        let what = "a journalled extent of no blocks";
                        return Err(Error::Damaged(what.to_owned()));
                    }
                    Record::Map(map) => space.hold(extent_of(map))?,
                    Record::Change(_) | Record::Overwrite(_) => {}
                }
            }
        }
        Ok(survey)
    }

    fn meet(&mut self, ino: Ino) {
        self.last_ino = self.last_ino.max(ino.0);
    }
}

/// The overwrites of the last commit in a journal.
///
/// Those of earlier commits are done: each commit finishes its overwrites before the next begins.
#[derive(Debug, Default)]
pub(super) struct Redo {
    commit: u64,
    bytes: Vec<(u64, usize, Vec<u8>)>,
}

impl Redo {
    /// Notes the overwrites of one batch of `commit`.
    pub(super) fn note(&mut self, commit: u64, records: &[Record<'_>]) {
        if self.commit != commit {
            (self.commit, self.bytes) = (commit, Vec::new());
        }
        for record in records {
            if let Record::Overwrite(bytes) = record {
                self.bytes
                    .push((bytes.block, bytes.from, bytes.data.to_vec()));
            }
        }
    }

    /// Writes them to the device.
    ///
    /// # Errors
    /// Those of the device; [`Error::Damaged`] if a block is outside the data area.
    pub(super) fn write(&self, blocks: &Blocks, layout: &Layout) -> Result<()> {
        let mut page = zeros();
        for (block, from, bytes) in &self.bytes {
            if !(layout.start..layout.end).contains(block) {
                let what = format!("the journal writes to block {block}, which is no file's");
                return Err(Error::Damaged(what));
            }
            blocks.read_at(*block, &mut page[..])?;
            page[*from..from + bytes.len()].copy_from_slice(bytes);
            blocks.write(*block, &page[..])?;
        }
        Ok(())
    }
}
