//! A crash test of volumes: the power fails at any moment, and the volume must then hold the tree
//! of some earlier moment.
//!
//! A *sequence* of steps is performed through the core on a recorded device. The whole tree is read
//! after each step. [`CrashStates`] then makes the states in which a crash may leave the
//! device. Each state is opened and its tree compared. It must be the tree after one of the steps
//! begun, and no durable step may be missing. Only sectors of large files may belong to a later
//! step, because they are written in place before their commit.
//!
//! A state with everything that was written stands for the end of the process alone: then nothing
//! may be missing that was handed to the device's cache. Some of the states are also filled and
//! emptied, which shows a block that is allocated twice or lost.
//!
//! Sequences are numbered: all of one and of two steps of an alphabet, then random ones. A failure
//! prints seed, sequence and state, which repeat it.

pub mod command;
mod faults;
mod mangled;
mod plan;
mod step;
mod subject;
mod trace;
mod tree;
mod verify;

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::command::seconds;
use crate::device::CrashStates;
use clap::Parser;
use clap::builder::RangedU64ValueParser;
pub use faults::{Tried, faults};
pub use mangled::Images;
pub use step::Step;
use subject::Bases;
use trace::Trace;
use verify::verify;

/// Tries crash states of a volume, until there were as many as --states says
///
/// Exit code 0: nothing went wrong; 1: something did; 2: the arguments make no sense.
#[derive(Clone, Copy, Debug, Parser)]
#[command(name = "crash")]
pub struct Settings {
    /// Random sequences and states follow from it
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// States to try
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    pub states: u64,
    /// Of the sequences of more than one step only every so-manieth is tried
    #[arg(skip = 1_u64)]
    pub every: u64,
    /// Of the states of a sequence only every so-manieth is tried
    #[arg(skip = 1_u64)]
    pub stride: u64,
    /// Steps of a random sequence at most
    #[arg(long, value_name = "N", default_value_t = 60,
        value_parser = RangedU64ValueParser::<usize>::new().range(1..=100_000))]
    pub operations: usize,
    /// Threads. One more than processors by default: a quarter of the time of a state is waiting
    /// for the volume's own threads
    #[arg(long, value_name = "N",
        default_value_t = std::thread::available_parallelism().map_or(1, usize::from) + 1,
        value_parser = RangedU64ValueParser::<usize>::new().range(1..=256))]
    pub threads: usize,
    /// After so long no new sequence is begun
    #[arg(long = "seconds", value_name = "N", value_parser = seconds)]
    pub time: Option<Duration>,
    /// Only this sequence: brings a failure back
    #[arg(long, value_name = "N")]
    pub sequence: Option<u64>,
    /// Only this state of it
    #[arg(long, value_name = "N", requires = "sequence")]
    pub state: Option<u64>,
}

impl Default for Settings {
    fn default() -> Self {
        Self::parse_from(["crash"])
    }
}

/// What a run found.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    /// Sequences performed.
    pub sequences: u64,
    /// Were those of one and two steps among them, all of them?
    pub exhaustive: bool,
    /// States opened and compared.
    pub states: u64,
    /// Those that were filled and emptied, too.
    pub closely: u64,
    /// What failed: the first ones.
    pub failures: Vec<String>,
    /// How many failed.
    pub failed: u64,
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} sequences (all of one and two steps: {}), {} states tried and checked ({} filled and \
             emptied), {} failures",
            self.sequences,
            if self.exhaustive { "yes" } else { "no" },
            self.states,
            self.closely,
            self.failed
        )
    }
}

/// Failures that are kept.
const KEPT: usize = 20;
/// Of a sequence's states so many are sampled, beside the systematic ones.
const SAMPLED: u64 = 15;
/// And so many of a random one.
const SAMPLED_OF_LONG: u64 = 300;
/// One of so many states is filled and emptied.
const CLOSELY: u64 = 23;

struct Run<'r> {
    settings: &'r Settings,
    bases: Bases,
    next: AtomicU64,
    summary: Mutex<Summary>,
    deadline: Option<Instant>,
    say: &'r (dyn Fn(&str) + Sync),
}

/// Tries states until there were as many as are wanted. `say` hears of failures.
///
/// # Errors
/// If not even a volume to begin with can be made.
pub fn run(settings: &Settings, say: &(dyn Fn(&str) + Sync)) -> Result<Summary, String> {
    let run = Run {
        settings,
        bases: Bases::make(settings.seed)?,
        next: AtomicU64::new(settings.sequence.unwrap_or(0)),
        summary: Mutex::default(),
        deadline: settings.time.map(|time| Instant::now() + time),
        say,
    };
    std::thread::scope(|scope| {
        for _ in 0..settings.threads.max(1) {
            scope.spawn(|| run.work());
        }
    });
    let mut summary = run.summary.into_inner();
    summary.exhaustive = settings.every == 1 && summary.sequences >= plan::EXHAUSTIVE;
    Ok(summary)
}

impl Run<'_> {
    fn work(&self) {
        while !self.is_over() {
            // Relaxed: only a count.
            let nth = self.next.fetch_add(1, Ordering::Relaxed);
            let number = plan::nth(nth, self.settings.every);
            if self.settings.sequence.is_some_and(|only| only != number) {
                return;
            }
            self.sequence(number);
        }
    }

    fn is_over(&self) -> bool {
        let late = self.deadline.is_some_and(|end| Instant::now() >= end);
        late || self.summary.lock().states >= self.settings.states
    }

    fn sequence(&self, number: u64) {
        let Settings {
            seed, operations, ..
        } = *self.settings;
        let steps = plan::steps(seed, number, operations);
        let recorded = unpanicked(|| Trace::record(&self.bases, number, &steps));
        self.summary.lock().sequences += 1;
        let Trace { history, seen } = match recorded {
            Ok(trace) => trace,
            Err(trouble) => {
                self.fail(&format!("{trouble}\n  steps {steps:?}"), number, None);
                return;
            }
        };
        let states = CrashStates::new(history, seed ^ number);
        let sampled = if number < plan::EXHAUSTIVE {
            SAMPLED
        } else {
            SAMPLED_OF_LONG
        };
        let wanted = states.systematic() + sampled;
        let (skip, take) = match self.settings.state {
            Some(only) => (only, 1),
            // Not the same ones of each sequence.
            None => (number % self.settings.stride, wanted),
        };
        let (mut tried, mut closely) = (0, 0);
        let chosen = states.iter().take((skip + take) as usize);
        let stride = self.settings.stride as usize;
        for state in chosen.skip(skip as usize).step_by(stride) {
            let index = state.index;
            let is_close =
                self.settings.state.is_some() || (index + number).is_multiple_of(CLOSELY);
            let shown = state.to_string();
            let verified = unpanicked(|| verify(state, &seen, &self.bases, is_close));
            (tried, closely) = (tried + 1, closely + u64::from(is_close));
            if let Err(trouble) = verified {
                let text = format!("{shown}\n  {trouble}\n  steps {:?}", seen.steps);
                self.fail(&text, number, Some(index));
            }
        }
        let mut summary = self.summary.lock();
        summary.states += tried;
        summary.closely += closely;
    }

    fn fail(&self, trouble: &str, sequence: u64, state: Option<u64>) {
        let Settings {
            seed, operations, ..
        } = self.settings;
        let state = state.map_or(String::new(), |state| format!(" --state {state}"));
        let text = format!(
            "{trouble}\n  again: crash --seed {seed} --operations {operations} --sequence \
             {sequence}{state}"
        );
        let mut summary = self.summary.lock();
        summary.failed += 1;
        if summary.failures.len() < KEPT {
            (self.say)(&text);
            summary.failures.push(text);
        }
    }
}

/// A panic is a failure like any other.
fn unpanicked<T>(work: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
        Err(format!("panicked: {}", text.unwrap_or("without a word")))
    })
}
