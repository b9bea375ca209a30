//! The repair: removes contradictions, and keeps everything that can be read.
//!
//! First the journal is replayed. Then all trees are read, and records that cannot stay are changed
//! or deleted. Damaged trees are built anew of their readable records. Everything is written to
//! unreferenced blocks, and the superblock is written last. A crash before that leaves the volume
//! as it was, and it can be repaired again. `docs/book/reference/fsck.md` lists the repair of each
//! finding.
//!
//! Memory: about 250 bytes for each inode, four bits for each block, the names of one directory,
//! the changes.

mod census;
mod contents;
mod names;
mod paths;
mod repair_action;
mod room;
mod round;
#[cfg(test)]
mod tests;
mod write;

pub use contents::LOST_TARGET;
pub use repair_action::Action;

use std::sync::Arc;
use std::time::SystemTime;

use holdfast_device::BlockDevice;
use holdfast_types::Time;

use crate::check::{CheckOptions, Finding, Progress, Report, check, open_and_close};
use crate::error::{Error, Result};
use crate::journal::{self, Journal, Position};
use crate::store::{may_change, newest_superblock};
use crate::superblock::Superblock;
use repair_action::Actions;
use round::{Depth, NUMBERS_LEFT, Round};

/// The changes of one round may reveal defects for the next one.
const ROUNDS: usize = 5;

/// The result of a repair.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The defects before it.
    pub before: Report,
    /// The changes made.
    pub actions: Vec<Action>,
    /// Changes that were not kept in the list.
    pub more: u64,
    /// The defects after it, which cannot be repaired.
    pub after: Report,
}

/// Checks the volume on a device and repairs its defects. On a sound volume, nothing is written but
/// the replay of a journal.
///
/// # Errors
/// Those of the device, lack of room for new trees, and [`Error::ReadOnlyFeatures`]. The volume is
/// then in the state before, or after a complete round of the repair.
pub fn repair(
    device: &Arc<dyn BlockDevice>,
    options: &CheckOptions,
    progress: &Progress<'_>,
) -> Result<Outcome> {
    let before = check(device, options, progress);
    let mut actions = Actions {
        most: options.findings_max,
        ..Actions::default()
    };
    let is_hopeless = before
        .findings
        .iter()
        .any(|finding| matches!(finding, Finding::CutShort { .. } | Finding::Root { .. }));
    let mut after = before.clone();
    if before.superblock.is_some() && !is_hopeless {
        may_change(device)?;
        update_trees(device, &mut actions)?;
        after = check(device, options, progress);
        for _ in 0..ROUNDS {
            if after.is_clean() {
                break;
            }
            one_round(device, Depth::All, &after, &mut actions)?;
            after = check(device, options, progress);
        }
    }
    Ok(Outcome {
        before,
        actions: actions.kept,
        more: actions.more,
        after,
    })
}

/// Replays the journal. If that fails, makes the readable parts of the trees whole and tries again.
fn update_trees(device: &Arc<dyn BlockDevice>, actions: &mut Actions) -> Result<()> {
    let superblock = newest_superblock(device)?;
    if superblock.clean {
        return Ok(());
    }
    match open_and_close(device) {
        Ok(()) => {
            actions.add(Action::Replayed);
            return Ok(());
        }
        // No damage: a later Holdfast can replay it.
        Err(error @ Error::Journal(journal::Error::Newer { .. })) => return Err(error),
        Err(_) => {}
    }
    one_round(device, Depth::Trees, &Report::default(), actions)?;
    match open_and_close(device) {
        Ok(()) => actions.add(Action::Replayed),
        Err(error @ (Error::Device(_) | Error::Journal(journal::Error::Newer { .. }))) => {
            return Err(error);
        }
        Err(error) => {
            let superblock = newest_superblock(device)?;
            Journal::format(Arc::clone(device), superblock.region())?;
            let reason = error.to_string();
            actions.add(Action::JournalDropped { reason });
            let superblock = Superblock {
                journal_position: Position::default(),
                clean: true,
                // The numbers that the journal had given out are unknown.
                last_ino: superblock.last_ino + NUMBERS_LEFT,
                ..superblock
            };
            Round::publish(device, superblock)?;
        }
    }
    Ok(())
}

fn one_round(
    device: &Arc<dyn BlockDevice>,
    depth: Depth,
    found: &Report,
    actions: &mut Actions,
) -> Result<()> {
    let superblock = newest_superblock(device)?;
    let now = Time::from(SystemTime::now());
    Round::new(device, superblock, now).run(depth, found, actions)
}
