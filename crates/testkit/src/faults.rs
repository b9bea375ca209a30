//! Device calls fail while several threads write, rename, truncate, unlink and fsync, and while
//! commits come from them, from the timer, from checkpoints and from fullness.
//!
//! A round has a volume of its own, and faults that follow from seed and number. Each thread works
//! in a directory of its own, so that the states of its files follow each other. Each word of a
//! file names its file and the write that brought it.
//!
//! Afterwards the volume is dropped as by a crash and opened three times: without anything that was
//! not flushed, with all of it, and with a part. The check must have no findings. Each directory
//! must be as after one of its thread's operations, and all of them as at one moment. No operation
//! before a successful fsync may be missing, and no file may have words of another.
//!
//! A seed fixes operations and faults (the call of its kind that each fault strikes). The host's
//! scheduler decides which thread makes that call, so a failure may need several runs of its round.

pub mod command;
mod judge;
mod plan;
mod round;
mod state;
mod worker;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use clap::Parser;
use clap::builder::RangedU64ValueParser;
use parking_lot::Mutex;
use plan::Plan;
use round::{Bases, Outcome};

/// Longest time of one round: then it hangs.
const PATIENCE: Duration = Duration::from_secs(120);
/// Failures that are kept, with what they say.
const KEPT: usize = 20;
/// Rounds beside each other: most of their time they wait for their devices.
const JOBS: usize = 4;
/// So many rounds at most for each fault that is wanted: more would be faults that do not come.
const ROUNDS_MAX: u64 = 10;

/// Has calls of devices fail beside each other, until so many have as --faults says
///
/// Exit code 0: nothing went wrong; 1: something did; 2: the arguments make no sense.
#[derive(Clone, Copy, Debug, Parser)]
#[command(name = "faults")]
pub struct Settings {
    /// Operations and faults follow from it
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Threads beside each other
    #[arg(long, value_name = "N", default_value_t = 8,
        value_parser = RangedU64ValueParser::<usize>::new().range(1..=64))]
    pub threads: usize,
    /// Faults wanted
    #[arg(long, value_name = "N", default_value_t = 1000)]
    pub faults: u64,
    /// Only this round. Operations and faults are the same each time, the order of the threads is
    /// the host's
    #[arg(long, value_name = "N")]
    pub round: Option<u64>,
    /// How often to make it
    #[arg(long, value_name = "N", default_value_t = 1, requires = "round")]
    pub times: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self::parse_from(["faults"])
    }
}

/// What was tried.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    /// Volumes.
    pub rounds: u64,
    /// Faults that struck a call of their devices.
    pub faults: u64,
    /// Rounds without a fault, on a volume that is nearly full.
    pub crowded: u64,
    /// Rounds in which the store failed.
    pub failed: u64,
    /// Operations that succeeded.
    pub operations: u64,
    /// Those of them that promised what was done before them.
    pub promises: u64,
    /// Crash states that were compared.
    pub states: u64,
    /// Rounds with something wrong.
    pub wrong: u64,
    /// What was wrong in the first of them.
    pub failures: Vec<String>,
}

impl std::fmt::Display for Summary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            rounds,
            faults,
            crowded,
            failed,
            operations,
            promises,
            states,
            wrong,
            ..
        } = self;
        write!(
            f,
            "{faults} faults in {rounds} rounds ({crowded} crowded ones have none), {failed} stores failed, \
             {operations} operations, {promises} promises, {states} states, {wrong} rounds wrong"
        )
    }
}

impl Summary {
    fn add(&mut self, plan: &Plan, outcome: &Outcome) {
        self.rounds += 1;
        self.crowded += u64::from(plan.faults.is_empty());
        self.wrong += u64::from(outcome.wrong.is_some());
        self.faults += outcome.faults;
        self.failed += u64::from(outcome.failed);
        self.operations += outcome.operations;
        self.promises += outcome.promises;
        self.states += outcome.states;
    }
}

/// Makes rounds until there were as many faults as wanted. `say` hears of each failure.
///
/// # Errors
/// If not even a volume to begin with can be made.
pub fn run(settings: &Settings, say: &(dyn Fn(&str) + Sync)) -> Result<Summary, String> {
    let bases = Bases::make(settings.threads)?;
    let summary = Mutex::new(Summary::default());
    let next = AtomicU64::new(0);
    let work = || {
        loop {
            // Relaxed: it only deals numbers out.
            let nth = next.fetch_add(1, Ordering::Relaxed);
            let number = match settings.round {
                Some(_) if nth >= settings.times => return,
                Some(number) => number,
                None if nth > ROUNDS_MAX * settings.faults => return,
                None if summary.lock().faults >= settings.faults => return,
                None => nth,
            };
            let plan = Plan::of(settings.seed, number);
            let outcome = patiently(&plan, &bases, settings.threads);
            let mut summary = summary.lock();
            summary.add(&plan, &outcome);
            if let Some(trouble) = outcome.wrong {
                let Settings { seed, threads, .. } = settings;
                let text = format!(
                    "{trouble}\n  {plan:?}\n  again: faults --seed {seed} --threads {threads} --round {number} --times 50"
                );
                say(&text);
                if summary.failures.len() < KEPT {
                    summary.failures.push(text);
                }
            }
        }
    };
    std::thread::scope(|scope| (0..JOBS).for_each(|_| drop(scope.spawn(work))));
    Ok(summary.into_inner())
}

/// Makes a round, but does not wait for ever.
fn patiently(plan: &Plan, bases: &Bases, threads: usize) -> Outcome {
    let (done, wait) = mpsc::channel();
    let (plan, bases) = (plan.clone(), bases.clone());
    std::thread::spawn(move || {
        // The receiver is gone if it took too long.
        let _ = done.send(round::run(&plan, &bases, threads));
    });
    let waited = wait.recv_timeout(PATIENCE);
    waited.unwrap_or_else(|error| Outcome {
        wrong: Some(match error {
            mpsc::RecvTimeoutError::Timeout => format!("it hangs for {PATIENCE:?}"),
            mpsc::RecvTimeoutError::Disconnected => "it panicked".to_owned(),
        }),
        ..Outcome::default()
    })
}
