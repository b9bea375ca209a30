//! A stress test of the core: many threads run every operation of its public interface at random,
//! on one tree. Other threads walk, count, evict, scan and switch quotas, and now and then revoke
//! the file system.
//!
//! A run consists of *rounds*, each the lifetime of one file system. A round ends in one of two
//! ways. Either everything is closed, compared with itself after an eviction, and removed. Or the
//! file system is revoked: during the next round its users go on to use what they hold, which must
//! fail, and close it step by step.
//!
//! Either way no inode, name, page, byte, open file, watch, lock or space of the store may be left.
//! Whenever no file system exists, as much memory is allocated as before the first one.
//!
//! The operations of each thread follow from the seed. Their interleaving cannot be repeated.

mod attributes;
mod below;
mod chores;
pub mod command;
mod content;
mod hands;
mod locks;
mod memory;
mod names;
mod paths;
mod round;
mod survey;
pub mod sys;
mod words;
mod worker;
mod world;

use crate::command::{millis, seconds};
use clap::Parser;
use clap::builder::RangedU64ValueParser;
use memory::Memory;
use round::{Ending, Round};
use std::fmt;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};
use sys::Live;

/// What the file systems stand on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Base {
    /// Memory: everything is pinned.
    Memory,
    /// The model store: what is not in use is evicted and loaded again.
    Model,
    /// A volume on a device in memory: closed at the end, opened again and compared.
    Volume,
}

/// Has threads do everything at once, for a while, and compares what is left
///
/// Memory that is still allocated when no file system lives is a failure. Exit code 0: nothing went
/// wrong; 1: something did; 2: the arguments make no sense.
#[derive(Clone, Copy, Debug, Parser)]
#[command(name = "stress")]
pub struct Settings {
    /// For how long
    #[arg(long, value_name = "N", conflicts_with = "time", value_parser = seconds)]
    pub minutes: Option<Duration>,
    /// For how long
    #[arg(long = "seconds", value_name = "N", default_value = "60", value_parser = seconds)]
    pub time: Duration,
    /// How long one round takes
    #[arg(long, value_name = "MILLISECONDS", default_value = "4000", value_parser = millis)]
    pub round: Duration,
    /// Threads that work, beside a few that look after things
    #[arg(long, value_name = "N", default_value_t = 8,
        value_parser = RangedU64ValueParser::<usize>::new().range(1..=256))]
    pub threads: usize,
    /// What the threads ask for follows from it
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// What stands below
    #[arg(long = "store", value_enum, default_value_t = Base::Memory)]
    pub base: Base,
}

/// What a run has done.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    /// Lives of file systems.
    pub rounds: u64,
    /// Of these, how many were taken away.
    pub revoked: u64,
    /// Operations that were answered with success.
    pub done: u64,
    /// Operations that were refused, as they had to be or may be.
    pub refused: u64,
    /// What was alive when no file system lived, at most, beside what was before the first one.
    pub left: Live,
    /// The most resident memory seen after a round, in KiB.
    pub resident: u64,
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            rounds,
            revoked,
            done,
            refused,
            left: Live { bytes, blocks },
            resident,
        } = self;
        write!(
            f,
            "{rounds} rounds ({revoked} revoked), {done} operations done and {refused} refused, \
             at most {bytes} bytes in {blocks} blocks left of them, resident {resident} KiB at most"
        )
    }
}

/// A run has so many rounds at least: of three in a row two are revoked and one is closed.
const WAYS: u64 = 3;

/// Runs `body` on a thread of its own: what threads keep for themselves goes with it.
fn alone<T: Send>(body: impl FnOnce() -> Result<T, String> + Send) -> Result<T, String> {
    thread::scope(|scope| {
        let done = scope.spawn(body).join();
        done.unwrap_or_else(|_| Err("a thread panicked".to_owned()))
    })
}

/// What winds up the file systems that were revoked, while the next one lives.
struct Closer {
    leftovers: mpsc::Sender<Ending>,
    wound: mpsc::Receiver<()>,
    /// Sent, and not known to be wound up.
    owed: u64,
}

impl Closer {
    const GONE: &str = "what was revoked before could not be wound up";

    fn send(&mut self, ending: Ending) -> Result<(), String> {
        // Gone already: what could not be sent is what went wrong with the others.
        self.leftovers.send(ending).map_err(|_| Self::GONE)?;
        self.owed += 1;
        Ok(())
    }

    /// Waits until nothing is left to be wound up.
    fn wait(&mut self) -> Result<(), String> {
        while self.owed > 0 {
            self.wound.recv().map_err(|_| Self::GONE)?;
            self.owed -= 1;
        }
        Ok(())
    }
}

/// Runs rounds until the time is up; `say` gets a line for each. The program's allocator has to be
/// [`sys::Counting`].
///
/// # Errors
/// What went wrong, with the seed.
pub fn run(settings: &Settings, say: &(dyn Fn(&str) + Sync)) -> Result<Summary, String> {
    let named = |trouble: String| format!("seed {}: {trouble}", settings.seed);
    let mut summary = Summary::default();
    let mut memory = Memory::new().map_err(named)?;
    let (leftovers, left) = mpsc::channel::<Ending>();
    let (wound_up, wound) = mpsc::channel();
    thread::scope(|scope| {
        let closing = scope.spawn(move || {
            left.iter().try_for_each(|ending| {
                alone(|| ending.wind_up())?;
                // The receiver is gone if it has failed.
                let _ = wound_up.send(());
                Ok(())
            })
        });
        let mut closer = Closer {
            leftovers,
            wound,
            owed: 0,
        };
        let lived = rounds(settings, say, &mut summary, &mut memory, &mut closer);
        drop(closer);
        let closed = closing
            .join()
            .unwrap_or_else(|_| Err("winding up panicked".to_owned()));
        // What went wrong there first is why nothing could be sent any more.
        closed.and(lived)
    })
    .and_then(|()| memory.nothing_lives())
    .map_err(named)?;
    (summary.left, summary.resident) = memory.most();
    Ok(summary)
}

fn rounds(
    settings: &Settings,
    say: &(dyn Fn(&str) + Sync),
    summary: &mut Summary,
    memory: &mut Memory,
    closer: &mut Closer,
) -> Result<(), String> {
    let end = Instant::now() + settings.time;
    while Instant::now() < end || summary.rounds < WAYS {
        let left = end.saturating_duration_since(Instant::now());
        let round = Round::new(settings, summary.rounds, settings.round.min(left))?;
        let revoked = round.ends_by_force();
        let ending = alone(|| round.live())?;
        let (done, refused) = ending.counts();
        summary.rounds += 1;
        summary.revoked += u64::from(revoked);
        summary.done += done;
        summary.refused += refused;
        let how = if revoked {
            closer.send(ending)?;
            "revoked"
        } else {
            alone(|| ending.wind_up())?;
            closer.wait()?;
            memory.nothing_lives()?;
            "closed"
        };
        let (rounds, size) = (summary.rounds, memory.note()?);
        say(&format!(
            "round {rounds}: {done} done, {refused} refused, {how}, {size}"
        ));
    }
    Ok(())
}
