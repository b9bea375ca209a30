//! The repair: what contradicts itself is made to agree, and as much as can be read is kept.
//!
//! First the journal is replayed. Then all trees are read, records are judged one by one, and those that
//! cannot stay are changed or go. Trees that are damaged are made anew of what can be read. Everything is
//! written to blocks that nobody has, and at last the superblock leads to it: a crash before leaves the
//! volume as it was, and it can be repaired again. `docs/fsck.md` says what becomes of each finding.
//!
//! Memory: some 250 bytes for each inode, four bits for each block, the names of one directory, what changes.

mod census;
mod contents;
mod names;
mod paths;
mod repair_action;
mod room;
mod round;
#[cfg(test)]
mod tests;
mod walk;
mod write;

pub use repair_action::Deed;

use std::sync::Arc;
use std::time::SystemTime;

use holdfast_device::BlockDevice;
use holdfast_types::Time;

use crate::check::{CheckOptions, Finding, Progress, Report, check};
use crate::journal::{self, Journal, Position};
use crate::store::{OpenOptions, VolumeStore, newest_superblock};
use crate::superblock::Superblock;
use crate::{Error, Result};
use repair_action::Deeds;
use round::{Depth, Round};

/// Where what has no name goes.
const LOST_AND_FOUND: &[u8] = b"lost+found";
/// Where symbolic links lead whose targets are lost.
pub const LOST_TARGET: &[u8] = b"lost-target";
/// Inode numbers left out where a journal that may know them waits, or was lost.
const NUMBERS_LEFT: u64 = 1 << 32;
/// What one round changes may show what the next one has to change.
const ROUNDS: usize = 5;

/// What a repair found, did, and left.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// What was wrong before it.
    pub before: Report,
    /// What was done.
    pub deeds: Vec<Deed>,
    /// Deeds that were not kept.
    pub more: u64,
    /// What is wrong after it: what cannot be repaired.
    pub after: Report,
}

/// Checks the volume on a device and repairs what is wrong. Where nothing is, nothing is written, but for
/// the replay of a journal.
///
/// # Errors
/// Those of the device, and if there is no room for new trees. The volume is as it was then, or as after
/// a round of the repair: never worse.
pub fn repair(
    device: &Arc<dyn BlockDevice>,
    options: &CheckOptions,
    progress: &Progress<'_>,
) -> Result<Outcome> {
    let before = check(device, options, progress);
    let mut deeds = Deeds {
        most: options.findings_max,
        ..Deeds::default()
    };
    let is_hopeless = before
        .findings
        .iter()
        .any(|finding| matches!(finding, Finding::CutShort { .. } | Finding::Root { .. }));
    let mut after = before.clone();
    if before.superblock.is_some() && !is_hopeless {
        bring_up_to_date(device, &mut deeds)?;
        after = check(device, options, progress);
        for _ in 0..ROUNDS {
            if after.is_clean() {
                break;
            }
            one_round(device, Depth::All, &after, &mut deeds)?;
            after = check(device, options, progress);
        }
    }
    Ok(Outcome {
        before,
        deeds: deeds.kept,
        more: deeds.more,
        after,
    })
}

/// Replays the journal; if damage is in the way, after what can be read of the trees was made whole.
fn bring_up_to_date(device: &Arc<dyn BlockDevice>, deeds: &mut Deeds) -> Result<()> {
    let superblock = newest_superblock(device)?;
    if superblock.clean {
        return Ok(());
    }
    match replay(device) {
        Ok(()) => {
            deeds.add(Deed::Replayed);
            return Ok(());
        }
        // Nothing is wrong: a later Holdfast can replay it.
        Err(error @ Error::Journal(journal::Error::Newer { .. })) => return Err(error),
        Err(_) => {}
    }
    one_round(device, Depth::Trees, &Report::default(), deeds)?;
    match replay(device) {
        Ok(()) => deeds.add(Deed::Replayed),
        Err(error @ (Error::Device(_) | Error::Journal(journal::Error::Newer { .. }))) => {
            return Err(error);
        }
        Err(error) => {
            let superblock = newest_superblock(device)?;
            Journal::format(Arc::clone(device), superblock.region())?;
            let reason = error.to_string();
            deeds.add(Deed::JournalDropped { reason });
            let superblock = Superblock {
                journal_position: Position::default(),
                clean: true,
                // What the journal said of numbers that were dealt is lost.
                last_ino: superblock.last_ino + NUMBERS_LEFT,
                ..superblock
            };
            Round::publish(device, superblock)?;
        }
    }
    Ok(())
}

fn replay(device: &Arc<dyn BlockDevice>) -> Result<()> {
    let options = OpenOptions {
        commit_every: None,
        ..OpenOptions::default()
    };
    VolumeStore::open(Arc::clone(device), &options)?.close()
}

fn one_round(
    device: &Arc<dyn BlockDevice>,
    depth: Depth,
    found: &Report,
    deeds: &mut Deeds,
) -> Result<()> {
    let superblock = newest_superblock(device)?;
    let now = Time::from(SystemTime::now());
    Round::new(device, superblock, now).run(depth, found, deeds)
}
