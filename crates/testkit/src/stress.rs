//! A stress test of the core: every operation of its public interface at random, on one tree, by
//! many threads, beside others that walk, count, evict, scan, switch quotas, and now and then take
//! the whole file system away.
//!
//! A run consists of *rounds*, each the life of one file system. It ends in one of two ways. Either
//! everything is closed, compared with itself after an eviction, and removed; or the file system is
//! revoked under its users, and while the next round runs they go on to use what they hold (which
//! must fail) and close it bit by bit. Either way nothing may be left: inodes, names, pages, bytes,
//! open files, watches, locks, space of the store; and after a few rounds the process must not grow.
//!
//! Which operation meets which cannot be repeated; what each thread asks for follows from the seed.

mod attributes;
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
mod words;
mod worker;
mod world;

use memory::Growth;
use round::{Ending, Round};
use std::fmt;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

/// What the file systems stand on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Base {
    /// Memory: everything is pinned.
    Memory,
    /// The model store: what nobody uses is evicted and loaded again.
    Model,
}

/// What a run is to be like.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// For how long.
    pub time: Duration,
    /// Of one round.
    pub round: Duration,
    /// Threads that work, beside a few that look after things.
    pub threads: usize,
    /// What the threads ask for follows from it.
    pub seed: u64,
    /// What stands below.
    pub base: Base,
    /// May the process grow? Under a sanitizer it does.
    pub may_grow: bool,
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
    /// The most resident memory of the first half, and the least of the last quarter, in KiB.
    pub resident: (u64, u64),
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            rounds,
            revoked,
            done,
            refused,
            resident: (early, late),
        } = self;
        write!(
            f,
            "{rounds} rounds ({revoked} revoked), {done} operations done and {refused} refused, \
             resident {early} KiB at first and {late} KiB at last"
        )
    }
}

/// Runs rounds until the time is up; `say` gets a line for each.
///
/// # Errors
/// What went wrong, with the seed.
pub fn run(settings: &Settings, say: &(dyn Fn(&str) + Sync)) -> Result<Summary, String> {
    let named = |trouble: String| format!("seed {}: {trouble}", settings.seed);
    let end = Instant::now() + settings.time;
    let mut summary = Summary::default();
    let mut growth = Growth::new();
    // What a revoked file system leaves behind is looked after while the next one lives.
    let (leftovers, left) = mpsc::channel::<Ending>();
    thread::scope(|scope| {
        let closer = scope.spawn(move || left.iter().try_for_each(Ending::wind_up));
        let lived = rounds(settings, end, say, &mut summary, &mut growth, &leftovers);
        drop(leftovers);
        let closed = closer
            .join()
            .unwrap_or_else(|_| Err("winding up panicked".to_owned()));
        // What went wrong there first is why nothing could be sent any more.
        closed.and(lived)
    })
    .map_err(named)?;
    growth.settled(settings.may_grow).map_err(named)?;
    summary.resident = growth.ends();
    Ok(summary)
}

fn rounds(
    settings: &Settings,
    end: Instant,
    say: &(dyn Fn(&str) + Sync),
    summary: &mut Summary,
    growth: &mut Growth,
    leftovers: &mpsc::Sender<Ending>,
) -> Result<(), String> {
    while Instant::now() < end || summary.rounds == 0 {
        let left = end.saturating_duration_since(Instant::now());
        let round = Round::new(settings, summary.rounds, settings.round.min(left));
        let revoked = round.ends_by_force();
        let ending = round.live()?;
        let (done, refused) = ending.counts();
        summary.rounds += 1;
        summary.revoked += u64::from(revoked);
        summary.done += done;
        summary.refused += refused;
        if revoked {
            // Gone already: what could not be sent is what went wrong with the others.
            leftovers
                .send(ending)
                .map_err(|_| "what was revoked before could not be wound up".to_owned())?;
        } else {
            ending.wind_up()?;
        }
        let resident = growth.note()?;
        say(&format!(
            "round {}: {done} done, {refused} refused, {}, resident {resident} KiB",
            summary.rounds,
            if revoked { "revoked" } else { "closed" },
        ));
    }
    Ok(())
}
