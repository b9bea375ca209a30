//! Full file systems: random operations with 0 to 100 blocks free.
//!
//! A volume of 8 to 64 MiB (or `mem:` with a limit) is kept full by a file that takes what is left.
//! Root and an ordinary user run all operations on files of every size class, and on names and
//! attributes of every length. Now and then the volume is closed and opened again, or dropped as by
//! a kill.
//!
//! An operation may succeed, or return `ENOSPC` if the count of blocks agrees. It agrees if, after
//! a commit and a checkpoint, fewer blocks are free than the operation may need together with the
//! [reserve](RESERVE). Removing, truncating and punching always succeed.
//!
//! What was there at the last sync and was not changed since is there after a kill. After a close
//! everything is there, with as many blocks, and a check finds nothing.

pub mod command;
mod model;
mod operations;
mod world;

use crate::rng::Rng;
use clap::Parser;
use std::fmt;

/// Blocks that an operation may have to leave besides what it takes: what it may cost of the trees
/// at most. What a volume sets aside is not counted as free.
pub const RESERVE: u64 = 640;

/// Does random operations on file systems that are full
///
/// A failure names the seed that brings it back. Exit code 0: nothing went wrong; 1: something did;
/// 2: the arguments make no sense.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Parser)]
#[command(name = "full")]
pub struct Settings {
    /// Everything follows from it
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Operations in all
    #[arg(long, value_name = "N", default_value_t = 50_000)]
    pub operations: u64,
}

/// Operations on one file system, before the next is made.
const SESSION: u64 = 5_000;
const MIB: u64 = 1 << 20;

/// What was done, and how it went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Operations tried.
    pub tried: u64,
    /// Those of them that were refused for want of space.
    pub refused: u64,
    /// Times that a volume was closed and opened again, and found sound.
    pub reopened: u64,
    /// Times that one was dropped as by a kill.
    pub killed: u64,
    /// File systems that were filled.
    pub sessions: u64,
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            tried,
            refused,
            reopened,
            killed,
            sessions,
        } = self;
        write!(
            f,
            "{tried} operations on {sessions} file systems, {refused} refused; opened again {reopened} times, \
             killed {killed} times"
        )
    }
}

/// Fills one file system after the other, until there were as many operations. `say` is told of
/// each session.
///
/// # Errors
/// What was wrong first, with the seed of its session.
pub fn run(settings: &Settings, say: &dyn Fn(&str)) -> Result<Summary, String> {
    let mut summary = Summary::default();
    let mut seed = settings.seed;
    while summary.tried < settings.operations {
        let most = (settings.operations - summary.tried).min(SESSION);
        let mut rng = Rng::new(seed);
        let memory = rng.one_in(5);
        let bytes = match memory {
            true => (1 + rng.below(8)) * MIB,
            false => *rng.pick(&[8, 12, 16, 24, 32, 64]) * MIB,
        };
        let done = match memory {
            true => world::World::in_memory(rng, bytes),
            false => world::World::on_volume(rng, bytes),
        };
        let what = if memory { "mem:" } else { "volume" };
        let told = |error: String| {
            format!(
                "session seed {seed}, {what} of {bytes} bytes: {error} (again: --seed {seed} --operations {most})"
            )
        };
        done.and_then(|mut world| world.session(most, &mut summary))
            .map_err(told)?;
        summary.sessions += 1;
        say(&format!("seed {seed}, {what} of {bytes} bytes: {summary}"));
        seed += 1;
    }
    Ok(summary)
}
