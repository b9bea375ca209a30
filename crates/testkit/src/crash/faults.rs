//! Every call of a device fails in turn, and the volume must not lose what was durable.
//!
//! The steps of a sequence run on a device that fails once at one call, or from one call on. Steps
//! may answer that they failed, or that the volume takes no more changes; nothing may panic or
//! hang. Afterwards the device is whole again, and what it holds is held to the same rule as after
//! a crash.

use std::sync::Arc;
use std::sync::mpsc;
use std::time::Duration;

use holdfast_device::{Image, MemoryDevice};
use holdfast_types::Errno;

use super::step::Step;
use super::subject::{Bases, CACHE, Replay, Subject};
use super::trace::{End, Seen};
use super::verify::examine;
use super::{plan, unpanicked};
use crate::device::{DeviceCall, DeviceFault, Effect, FaultyDevice, SparseDevice};

/// Longest time of one case: then it hangs.
const PATIENCE: Duration = Duration::from_secs(60);
/// Of so many cases one is filled and emptied afterwards.
const CLOSELY: u64 = 7;

/// What was tried.
#[derive(Clone, Debug, Default)]
pub struct Tried {
    /// Sequences.
    pub sequences: u64,
    /// Faults, one at a time.
    pub cases: u64,
    /// Cases in which a step, the opening or the closing told of the fault.
    pub told: u64,
    /// What was wrong.
    pub failures: Vec<String>,
}

/// What happens to a device.
#[derive(Clone, Copy, Debug)]
enum Trouble {
    Fault(DeviceFault),
    /// The host has so many bytes for a sparse image.
    Room(u64),
}

/// The kinds of fault that strike at a call.
fn troubles(call: u64) -> [Trouble; 7] {
    let torn = Effect::Torn {
        sectors: call % 9,
        error: Some(Errno::EIO),
    };
    let write = Some(DeviceCall::Write);
    let faults = [
        DeviceFault::once(None, call, Errno::EIO),
        DeviceFault::for_ever(None, call, Errno::EIO),
        DeviceFault::once(write, call, Errno::ENOSPC),
        DeviceFault::for_ever(write, call, Errno::EIO),
        DeviceFault::for_ever(Some(DeviceCall::Flush), call / 4, Errno::EIO),
        DeviceFault {
            effect: torn,
            ..DeviceFault::once(write, call, Errno::EIO)
        },
    ];
    let [a, b, c, d, e, f] = faults.map(Trouble::Fault);
    [a, b, c, d, e, f, Trouble::Room(call * 4096)]
}

/// Tries faults at every call of `sequences` random sequences, the first of which is `from`.
///
/// # Errors
/// If not even a volume to begin with can be made.
pub fn faults(seed: u64, from: u64, sequences: u64) -> Result<Tried, String> {
    let bases = Bases::make(seed)?;
    let mut tried = Tried::default();
    for number in from..from + sequences {
        let steps = plan::steps(seed, plan::EXHAUSTIVE + number, 30);
        let steps: Vec<Step> = steps
            .into_iter()
            .filter(|step| *step != Step::Reopen)
            .collect();
        let image = &bases.images[number as usize % bases.images.len()];
        let replay = Replay::of(number / bases.images.len() as u64);
        // Without a fault, to know how many calls there are.
        let (calls, told) = attempt(image, replay, &steps, None, &bases, true)?;
        if told {
            return Err(format!("told of a fault without one: {steps:?}"));
        }
        for call in 0..calls {
            for (kind, trouble) in (0..).zip(troubles(call)) {
                let closely = (call + kind).is_multiple_of(CLOSELY);
                tried.cases += 1;
                match patiently(image, replay, &steps, trouble, &bases, closely) {
                    Ok(told) => tried.told += u64::from(told),
                    Err(text) => tried.failures.push(format!(
                        "seed {seed}, sequence {number}, {trouble:?}: {text}\n  steps {steps:?}"
                    )),
                }
            }
        }
        tried.sequences += 1;
    }
    Ok(tried)
}

/// Tries a case, but not for ever.
fn patiently(
    image: &Image,
    replay: Replay,
    steps: &[Step],
    trouble: Trouble,
    bases: &Bases,
    closely: bool,
) -> Result<bool, String> {
    let (done, wait) = mpsc::channel();
    let (image, steps, bases) = (image.clone(), steps.to_vec(), bases.clone());
    std::thread::spawn(move || {
        let outcome =
            unpanicked(|| attempt(&image, replay, &steps, Some(trouble), &bases, closely));
        // The receiver is gone if it took too long.
        let _ = done.send(outcome.map(|(_, told)| told));
    });
    let waited = wait.recv_timeout(PATIENCE);
    waited.unwrap_or_else(|_| Err("it hangs".to_owned()))
}

/// Performs the steps; returns the number of calls, and whether any step reported a fault.
fn attempt(
    image: &Image,
    replay: Replay,
    steps: &[Step],
    trouble: Option<Trouble>,
    bases: &Bases,
    closely: bool,
) -> Result<(u64, bool), String> {
    let memory = MemoryDevice::from_image("memory", image.clone());
    let memory = Arc::new(memory.with_cache_identity(CACHE));
    let room = match trouble {
        Some(Trouble::Room(room)) => room,
        _ => 1 << 40,
    };
    let sparse = Arc::new(SparseDevice::new(memory.clone(), room));
    let faulty = Arc::new(FaultyDevice::new(sparse));
    if let Some(Trouble::Fault(fault)) = trouble {
        faulty.plan(fault);
    }
    let mut told = false;
    // What is there at first is seen without faults.
    let whole = Subject::open(Arc::new(MemoryDevice::from_image("memory", image.clone())))?;
    let highest = |subject: &Subject| subject.highest().map_err(|error| error.to_string());
    let mut seen = Seen::beginning(whole.tree()?, highest(&whole)?);
    drop(whole);
    let mut durable = 0;
    match Subject::replayed(Arc::clone(&faulty) as _, replay) {
        Err(_) => told = true,
        Ok(mut subject) => {
            for (nth, step) in (1..).zip(steps) {
                let outcome = subject.perform(step, nth as u64);
                told |= judge(step, outcome.as_ref().err().copied())?;
                if outcome.is_ok() && step.is_durable() {
                    durable = nth;
                }
                // A read that failed once works the next time.
                let tree = subject.tree().or_else(|_| subject.tree());
                seen.note(step, outcome.is_ok(), tree.ok(), highest(&subject)?);
            }
            told |= subject.close().map(|_| durable = steps.len()).is_err();
        }
    }
    if trouble.is_none() && told {
        return Err("a step failed without a fault".to_owned());
    }
    let calls = faulty.total();
    drop(faulty);
    let last = seen.steps.len();
    let steps = durable.min(last)..=last;
    examine(memory, replay, &seen, steps, End::Power, bases, closely)?;
    Ok((calls, told))
}

/// Does the answer tell of a fault?
///
/// # Errors
/// If it says what is not so.
fn judge(step: &Step, error: Option<Errno>) -> Result<bool, String> {
    match error {
        Some(Errno::EIO | Errno::EROFS | Errno::ENOSPC) => Ok(true),
        Some(Errno::EUCLEAN) => Err(format!("{step:?} finds damage where there is none")),
        Some(error) if matches!(step, Step::WriteBehind | Step::Sync | Step::Checkpoint) => {
            Err(format!("{step:?} answers {error}"))
        }
        _ => Ok(false),
    }
}
