//! What the journal knows and the trees do not, brought back into memory.

use holdfast_core::store::Change;

use crate::journal::{Map, Record};
use crate::space::{FileRequest, Layout, Space};
use crate::store::apply::transaction::Maker;
use crate::store::commit::extent_of;
use crate::store::file::extent_map::Run;
use crate::store::file::page::zeros;
use crate::store::load::Finder;
use crate::store::load::device::Blocks;
use crate::{Error, Result};

/// Counts that batches move.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    pub(super) inodes: i64,
    /// The highest number of an inode, or mark.
    pub(super) last_ino: u64,
    pub(super) batches: u64,
}

/// Makes the changes of a journalled batch again.
pub(super) fn replay(
    finder: Finder<'_>,
    space: &Space,
    records: &[Record<'_>],
    counts: &mut Counts,
) -> Result<()> {
    let no_place = |_, _: &FileRequest| -> Result<Run> {
        Err(Error::Damaged("the journal asks for space".to_owned()))
    };
    let mut maker = Maker {
        finder,
        kept: None,
        fetched: None,
        place: &no_place,
        cut: Vec::new(),
        freed: Vec::new(),
        inodes: 0,
        ends: None,
    };
    let mut changes: Vec<Change<'_>> = Vec::new();
    for record in records {
        match record {
            Record::Change(change) => {
                if let Change::Create { inode, .. } = change {
                    counts.last_ino = counts.last_ino.max(inode.ino.0);
                }
                let mut change = change.clone();
                if let Change::Create { inode, .. } | Change::Attributes { inode } = &mut change {
                    finder.layers.roots.clamp_times(inode);
                }
                changes.push(change);
            }
            Record::Numbers(upto) => counts.last_ino = counts.last_ino.max(upto.0),
            Record::Map(_) | Record::Overwrite(_) => {}
        }
    }
    maker.make(&changes)?;
    give_back(space, &mut maker)?;
    for record in records {
        if let Record::Map(map) = record {
            replay_map(space, &mut maker, map)?;
        }
    }
    counts.inodes += maker.inodes;
    counts.batches += 1;
    Ok(())
}

/// What the last commit of a replay was about to write over other bytes.
///
/// Earlier commits have done that: each writes it before the next begins.
#[derive(Debug, Default)]
pub(super) struct Redo {
    commit: u64,
    bytes: Vec<(u64, usize, Vec<u8>)>,
}

impl Redo {
    /// Takes note of what a batch of a commit has.
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

    /// Writes it.
    ///
    /// # Errors
    /// The device's; [`Error::Damaged`] if it is about no file's block.
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

fn replay_map(space: &Space, maker: &mut Maker<'_, '_>, map: &Map) -> Result<()> {
    if map.blocks == 0 {
        return Err(Error::Damaged(
            "a journalled extent of no blocks".to_owned(),
        ));
    }
    let extent = extent_of(map);
    let run = Run {
        extent,
        birth: map.birth,
        unwritten: map.unwritten,
    };
    // Blocks that the file has there already were only written for the first time.
    for part in maker.parts_elsewhere(map.ino, map.offset, run)? {
        space.mark_used(part)?;
    }
    maker.map(map, run)?;
    give_back(space, maker)
}

fn give_back(space: &Space, maker: &mut Maker<'_, '_>) -> Result<()> {
    for run in std::mem::take(&mut maker.freed) {
        space.mark_free(run.extent)?;
    }
    Ok(())
}
