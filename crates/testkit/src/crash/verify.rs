//! What must hold of a volume that is opened after a crash.

use std::ops::RangeInclusive;
use std::sync::Arc;

use holdfast_device::{BlockDevice, MemoryDevice};
use holdfast_volume::{CheckOptions, check};

use super::step::Step;
use super::subject::{Bases, CACHE, Replay, Subject};
use super::trace::{End, Seen};
use super::tree::{Leeway, Tree};
use crate::device::{CrashState, CrashStates, RecordingDevice};

/// Bytes of each write that fills a volume.
const PIECE: usize = 1 << 16;

/// So many states of an opening are tried.
const AGAIN: u64 = 8;

/// How volumes are checked here: they are small, and other threads have states of their own.
const CHECK: CheckOptions = CheckOptions {
    jobs: 1,
    findings_max: 20,
};

/// Checks a state that a crash of the host leaves or, if nothing is lost, the end of the process.
/// The state is checked as it is, opened, compared, and checked again after it was closed.
/// `closely`: the volume is also filled and emptied, which shows that no block is used twice and
/// none is lost.
///
/// # Errors
/// What is wrong.
pub(super) fn verify(
    state: CrashState,
    seen: &Seen,
    bases: &Bases,
    closely: bool,
) -> Result<(), String> {
    let after = |end: End, closely| {
        let steps = Seen::possible(&state, end);
        let cache = match end {
            End::Killed => CACHE,
            End::Power => CACHE.map(|cache| cache + 1),
        };
        let device = MemoryDevice::from_image("crash", state.image.clone());
        let device = Arc::new(device.with_cache_identity(cache));
        let replay = Replay::of(state.index);
        examine(device, replay, seen, steps, end, bases, closely)
            .map_err(|trouble| format!("{end:?}, replayed {replay:?}: {trouble}"))
    };
    if state.lost_nothing() {
        after(End::Killed, false)?;
    }
    after(End::Power, closely)?;
    if closely {
        reopen(&state, seen, bases)
            .map_err(|trouble| format!("Power, while it was opened: {trouble}"))?;
    }
    Ok(())
}

/// Opens a volume and looks at it; it must be as after one of these steps, as far as such an end
/// leaves it so.
///
/// # Errors
/// What is wrong.
pub(super) fn examine(
    device: Arc<dyn BlockDevice>,
    replay: Replay,
    seen: &Seen,
    steps: RangeInclusive<usize>,
    end: End,
    bases: &Bases,
    closely: bool,
) -> Result<(), String> {
    sound(&device, "before it is opened")?;
    let subject = Subject::replayed(Arc::clone(&device), replay)?;
    // As the journal, or the trees, have it, and then as it is in memory.
    subject.say_their_space()?;
    let found = subject.tree()?;
    subject.say_their_space()?;
    let shown = seen.shown_before(*steps.end());
    seen.explain(&found, steps, end)?;
    let highest = subject.highest().map_err(|error| error.to_string())?;
    if highest < shown {
        return Err(format!(
            "inode {shown} was shown, and {highest} is the last known"
        ));
    }
    let device = subject.close()?;
    sound(&device, "opened and closed")?;
    if closely {
        let subject = Subject::open(Arc::clone(&device))?;
        subject.say_their_space()?;
        let filled = fill(subject, &found, &seen.reopened(), device)?;
        empty(filled, bases)?;
    }
    Ok(())
}

/// Cuts the power while a state is opened and its journal brought into the trees: what is left must
/// be as after one of its steps, too.
fn reopen(state: &CrashState, seen: &Seen, bases: &Bases) -> Result<(), String> {
    let later = CACHE.map(|cache| cache + 1);
    let steps = Seen::possible(state, End::Power);
    let memory = MemoryDevice::from_image("crash", state.image.clone());
    let memory = memory.with_cache_identity(if state.lost_nothing() { CACHE } else { later });
    let device = Arc::new(RecordingDevice::over(memory));
    drop(Subject::replayed(
        Arc::clone(&device) as _,
        Replay::InParts,
    )?);
    let states = CrashStates::new(device.history(), state.index);
    let apart = states.systematic().div_ceil(AGAIN).max(1);
    for again in states.iter().step_by(apart as usize).take(AGAIN as usize) {
        let shown = again.to_string();
        let memory = MemoryDevice::from_image("crash", again.image);
        let device = Arc::new(memory.with_cache_identity(later.map(|later| later + 1)));
        let replay = Replay::of(again.index / apart);
        examine(
            device,
            replay,
            seen,
            steps.clone(),
            End::Power,
            bases,
            false,
        )
        .map_err(|trouble| format!("{shown}, replayed {replay:?}: {trouble}"))?;
    }
    Ok(())
}

/// Must be without findings.
fn sound(device: &Arc<dyn BlockDevice>, when: &str) -> Result<(), String> {
    let report = check(device, &CHECK, &|_, _, _| {});
    if report.is_clean() {
        return Ok(());
    }
    let findings: Vec<String> = report.findings.iter().map(ToString::to_string).collect();
    Err(format!("{when}, it is unsound: {}", findings.join(" | ")))
}

/// Allocates all free space, and checks that none of it belonged to another file.
fn fill(
    mut subject: Subject,
    found: &Tree,
    may: &Leeway<'_>,
    device: Arc<dyn BlockDevice>,
) -> Result<Subject, String> {
    let mut offset = 0;
    while subject.step(&Step::Write("filler", offset, PIECE), offset)? {
        offset += PIECE as u64;
    }
    subject.step(&Step::Sync, 0)?;
    let filled = subject.tree()?;
    drop(subject);
    let subject = Subject::open(device).map_err(|trouble| format!("filled, it {trouble}"))?;
    let again = subject
        .tree()
        .map_err(|trouble| format!("filled, it {trouble}"))?;
    let differences = filled.differences(&again, may);
    if !differences.is_empty() {
        return Err(format!("filled and opened: {}", differences.join(" | ")));
    }
    let differences = found.differences_below_root(&again, may);
    if !differences.is_empty() {
        return Err(format!("filling it changed {}", differences.join(" | ")));
    }
    Ok(subject)
}

/// Removes everything, and looks whether all space is back.
fn empty(mut subject: Subject, bases: &Bases) -> Result<(), String> {
    subject
        .remove_all()
        .map_err(|error| format!("full, it cannot be emptied: {error}"))?;
    let device = subject
        .close()
        .map_err(|trouble| format!("emptied, it {trouble}"))?;
    let subject = Subject::open(device).map_err(|trouble| format!("emptied, it {trouble}"))?;
    let used = subject.used().map_err(|error| error.to_string())?;
    if used != bases.empty {
        return Err(format!(
            "emptied, it has {used} pages in use, and a new one {}",
            bases.empty
        ));
    }
    Ok(())
}
