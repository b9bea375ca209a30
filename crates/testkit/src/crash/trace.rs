//! A sequence of steps on a recorded volume, with a look at everything after each.

use std::collections::HashSet;
use std::ops::RangeInclusive;
use std::sync::Arc;

use holdfast_device::MemoryDevice;
use holdfast_types::Ino;

use super::step::Step;
use super::subject::{Bases, CACHE, Replay, Subject};
use super::tree::{Leeway, Tree};
use crate::device::{CrashState, History, RecordingDevice};

/// What happened, and what it looked like.
#[derive(Debug)]
pub(super) struct Trace {
    pub(super) history: History,
    pub(super) seen: Seen,
}

/// What there was to see before the first step and after each.
#[derive(Debug)]
pub(super) struct Seen {
    pub(super) steps: Vec<(Step, bool)>,
    trees: Vec<Tree>,
    /// The highest inode number that was shown.
    highest: Vec<Ino>,
    /// The file that each step moved bytes of.
    shifted: Vec<Option<u64>>,
    large: HashSet<u64>,
    small: HashSet<u64>,
}

/// What a mark says of a step.
#[derive(Clone, Copy, Debug)]
enum Mark {
    /// It begins.
    Begun,
    /// All up to it was written.
    Written,
    /// And is durable.
    Durable,
}

impl Mark {
    const fn of(self, step: usize) -> u64 {
        (step as u64) << 2 | self as u64
    }
}

/// How a volume came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// Its process was killed.
    Killed,
    /// The power failed.
    Power,
}

impl Trace {
    /// Performs the steps on one of the volumes to begin with.
    pub(super) fn record(bases: &Bases, number: u64, steps: &[Step]) -> Result<Self, String> {
        let image = bases.images[number as usize % bases.images.len()].clone();
        let memory = MemoryDevice::from_image("memory", image).with_cache_identity(CACHE);
        let device = Arc::new(RecordingDevice::over(memory));
        let replay = Replay::of(number / bases.images.len() as u64);
        let mut subject = Subject::replayed(Arc::clone(&device) as _, replay)?;
        let highest = |subject: &Subject| subject.highest().map_err(|error| error.to_string());
        let mut seen = Seen::beginning(subject.tree()?, highest(&subject)?);
        for (nth, step) in (1..).zip(steps) {
            device.mark(Mark::Begun.of(nth));
            let done = subject.step(step, number << 20 | nth as u64);
            let done = done.map_err(|trouble| format!("step {nth}, {step:?}: {trouble}"))?;
            if done && step.is_durable() {
                device.mark(Mark::Durable.of(nth));
            } else if done && *step == Step::WriteBehind {
                device.mark(Mark::Written.of(nth));
            }
            let tree = subject
                .tree()
                .map_err(|trouble| format!("after step {nth}, {step:?}: {trouble}"))?;
            seen.note(step, done, Some(tree), highest(&subject)?);
        }
        let history = device.history();
        Ok(Self { history, seen })
    }
}

impl Seen {
    /// Nothing has happened to this yet.
    pub(super) fn beginning(tree: Tree, highest: Ino) -> Self {
        Self {
            highest: vec![highest],
            steps: Vec::new(),
            large: tree.large().collect(),
            small: tree.small().collect(),
            trees: vec![tree],
            shifted: Vec::new(),
        }
    }

    /// A step, whether it was done, and what there was after it; if that cannot be seen, it is as
    /// before. `highest`: the highest number shown so far.
    pub(super) fn note(&mut self, step: &Step, done: bool, tree: Option<Tree>, highest: Ino) {
        let before = self.trees.last().cloned().unwrap_or_default();
        let shifted = step.shifts().and_then(|path| before.number(path));
        let tree = tree.unwrap_or_else(|| before.clone());
        self.large.extend(tree.large());
        self.small.extend(tree.small());
        if done {
            // Its bytes lie in blocks now, and are written in place as those of large files.
            let taken = step.takes_blocks().and_then(|path| before.number(path));
            self.large.extend(taken);
        }
        self.trees.push(tree);
        self.highest.push(highest);
        self.shifted.push(shifted.filter(|_| done));
        self.steps.push((step.clone(), done));
    }

    /// Of which steps such an end may show the end.
    pub(super) fn possible(state: &CrashState, end: End) -> RangeInclusive<usize> {
        let (mut first, mut last) = (0, 0);
        for mark in state.reached() {
            let step = (mark >> 2) as usize;
            match mark & 3 {
                begun if begun == Mark::Begun as u64 => last = step,
                written if written == Mark::Written as u64 && end == End::Power => {}
                _ => first = step,
            }
        }
        first..=last
    }

    /// What may be otherwise of what is opened again.
    pub(super) fn reopened(&self) -> Leeway<'static> {
        Leeway {
            uncounted: self.small.clone(),
            ..Leeway::default()
        }
    }

    /// Numbers of inodes go on above this one, if so many steps were begun: it was shown before the
    /// last of them.
    pub(super) fn shown_before(&self, step: usize) -> Ino {
        self.highest[step.saturating_sub(1)]
    }

    /// Is this what there was after one of these steps? After such an end it may be a little later
    /// in places; a process that is killed leaves exactly that.
    ///
    /// # Errors
    /// What differs from the one that is the most alike.
    pub(super) fn explain(
        &self,
        found: &Tree,
        steps: RangeInclusive<usize>,
        end: End,
    ) -> Result<usize, String> {
        let last = *steps.end();
        if let Some(step) = steps
            .clone()
            .rev()
            .find(|step| self.trees[*step].is_like(found, &self.small))
        {
            return Ok(step);
        }
        let mut closest: Option<(usize, Vec<String>)> = None;
        for step in steps.clone().rev() {
            let may = match end {
                End::Killed => self.reopened(),
                End::Power => Leeway {
                    later: self.trees[step + 1..=last].iter().collect(),
                    large: self.large.clone(),
                    shifted: self.shifted[step..last].iter().flatten().copied().collect(),
                    uncounted: self.small.clone(),
                },
            };
            let differences = self.trees[step].differences(found, &may);
            if differences.is_empty() {
                return Ok(step);
            }
            let fewer = |(_, least): &(usize, Vec<String>)| differences.len() < least.len();
            if closest.as_ref().is_none_or(fewer) {
                closest = Some((step, differences));
            }
        }
        let (step, differences) = closest.unwrap_or_default();
        Err(format!(
            "none of steps {steps:?} ends like this; nearest is step {step}: {}",
            differences.join(" | ")
        ))
    }
}
