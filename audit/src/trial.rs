//! One pair, tried in this process.

use anyhow::{Context, Result, anyhow, bail};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use crate::lines::{self, Conflict};
use crate::memory::{self, Map};
use crate::placement::Pair;
use crate::report::{Block, Code, Line, Place, Report, Touch};
use crate::stage::Stage;
use crate::step::{Decoder, LINE_BYTES, Tape};
use crate::store::StoreKind;
use crate::worker::{Order, Worker};

/// Rounds before the recorded ones, in which structures that adapt come to rest.
const WARM_UP: usize = 24;
/// Instructions that one operation may take.
const STEPS: usize = 400_000;
/// Longer than the coarsest clock's step.
const CLOCK_STEP: Duration = Duration::from_millis(12);

/// How often a pair is tried.
#[derive(Clone, Copy)]
pub(crate) struct Effort {
    /// Recorded rounds, at most.
    pub(crate) repetitions: usize,
    /// So many without a conflict at first are enough; and it ends once the rest cannot change
    /// whether the pair conflicts.
    pub(crate) enough: Option<usize>,
}

impl Effort {
    /// As the command line takes it.
    pub(crate) fn options(self) -> Vec<String> {
        let mut options = vec![format!("--repetitions={}", self.repetitions)];
        options.extend(self.enough.map(|rounds| format!("--enough={rounds}")));
        options
    }

    /// One that has conflicted is tried until most rounds are known to, or not to: a chance
    /// meeting must not decide.
    fn is_enough(self, report: &Report) -> bool {
        let Some(enough) = self.enough else {
            return false;
        };
        let conflicting = report.conflicting();
        let free = report.repetitions.len() - conflicting;
        match conflicting {
            0 => free >= enough,
            _ => 2 * conflicting > self.repetitions || 2 * free >= self.repetitions,
        }
    }
}

/// Where the memory of a side's thread is: its stack from the deepest point up to the
/// thread-locals, which lie above it.
#[derive(Clone, Copy)]
struct OwnMemory {
    start: u64,
    end: u64,
}

/// Behind its base a thread has its control block.
const CONTROL_BLOCK: u64 = 0x1000;

/// Tries a pair so often, after the warm-up.
///
/// # Errors
/// When an operation fails, or cannot be recorded.
pub(crate) fn run(pair: &Pair, effort: Effort, store: StoreKind) -> Result<Report> {
    memory::note_origins();
    // Objects that both use are warmed up themselves; else each round has names of its own.
    let first = if pair.placement.shares_objects() {
        0
    } else {
        WARM_UP
    };
    let rounds = first + effort.repetitions;
    let stage = Stage::new(pair.placement, rounds, store).map_err(|error| anyhow!("{error}"))?;
    let stage = Arc::new(stage);
    let workers = [0, 1].map(|side| Worker::start(Arc::clone(&stage), side, pair.sides[side]));
    let both = |order| -> Result<()> {
        for worker in &workers {
            worker.order(order).map_err(|error| anyhow!(error))?;
        }
        Ok(())
    };
    both(Order::SetUp(rounds))?;
    thread::sleep(CLOCK_STEP);
    both(Order::Settle(rounds))?;
    for round in 0..WARM_UP {
        // What adapts to being shared is what both will meet again.
        both(match first {
            0 => Order::WarmUp(0, rounds),
            _ => Order::WarmUp(round, round + 1),
        })?;
    }
    let mut trial = Trial::new()?;
    for round in first..rounds {
        both(Order::Prepare(round))?;
        // Each goes first in turn.
        for side in [round % 2, 1 - round % 2] {
            trial.lend(&workers[side], side)?;
            workers[side]
                .order(Order::Run)
                .map_err(|error| anyhow!(error))?;
            trial.tapes[side] = workers[side].take_back();
        }
        trial.compare()?;
        if effort.is_enough(&trial.report) {
            break;
        }
    }
    Ok(trial.report)
}

struct Trial {
    decoder: Decoder,
    tapes: [Option<Tape>; 2],
    report: Report,
}

impl Trial {
    fn new() -> Result<Self> {
        Ok(Self {
            decoder: Decoder::new().context("/proc/self/mem")?,
            tapes: [Some(Tape::new(STEPS)), Some(Tape::new(STEPS))],
            report: Report::default(),
        })
    }

    fn lend(&mut self, worker: &Worker, side: usize) -> Result<()> {
        worker.lend(self.tapes[side].take().context("a tape was lost")?);
        Ok(())
    }

    fn compare(&mut self) -> Result<()> {
        let [Some(a), Some(b)] = &self.tapes else {
            bail!("a tape was lost");
        };
        if !a.whole || !b.whole {
            bail!("an operation took more than {STEPS} instructions");
        }
        let found = lines::compare(&mut self.decoder, [a, b])?;
        let map = Map::now()?;
        let own = [a, b].map(own_memory);
        let lines = found
            .conflicts
            .iter()
            .map(|conflict| tell(conflict, &map, own));
        self.report.repetitions.push(lines.collect());
        self.report.steps += (a.steps().len() + b.steps().len()) as u64;
        for (sum, count) in self.report.system_calls.iter_mut().zip(found.system_calls) {
            *sum += count;
        }
        self.report.modules = map.modules.into_iter().map(|(path, _)| path).collect();
        Ok(())
    }
}

fn own_memory(tape: &Tape) -> OwnMemory {
    let deepest = tape.steps().iter().map(crate::step::Step::sp).min();
    OwnMemory {
        // Below the stack pointer code may use 128 bytes.
        start: deepest.unwrap_or(tape.thread_base) - 128,
        end: tape.thread_base + CONTROL_BLOCK,
    }
}

fn tell(conflict: &Conflict, map: &Map, own: [OwnMemory; 2]) -> Line {
    let (start, end) = (conflict.address, conflict.address + LINE_BYTES);
    let code = |calls: &[u64]| -> Vec<Code> {
        let known = calls.iter().map_while(|&address| map.locate(address));
        known.collect()
    };
    let owner = own
        .iter()
        .position(|own| own.start < end && start < own.end);
    let place = if let Some(side) = owner {
        Place::Thread(side)
    } else if let Some(code) = map.locate(start) {
        Place::Module(code)
    } else {
        let blocks = memory::blocks(start, end).into_iter();
        let blocks: Vec<Block> = blocks
            .map(|block| Block {
                size: block.size as u64,
                offset: start.cast_signed() - block.start.cast_signed(),
                calls: code(&block.calls),
            })
            .collect();
        if blocks.is_empty() {
            Place::Unknown
        } else {
            Place::Heap(blocks)
        }
    };
    let touches = |side: usize| {
        let sightings = conflict.sides[side].iter();
        sightings
            .map(|sighting| Touch {
                calls: code(&sighting.calls),
                write: sighting.write,
                allocating: sighting.allocating,
                bytes: sighting.bytes,
            })
            .collect()
    };
    Line {
        place,
        same_bytes: conflict.same_bytes,
        sides: [touches(0), touches(1)],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(conflicts: &[bool]) -> Report {
        let line = Line {
            place: Place::Unknown,
            same_bytes: false,
            sides: [Vec::new(), Vec::new()],
        };
        let rounds = conflicts.iter();
        Report {
            repetitions: rounds
                .map(|&conflict| vec![line.clone(); usize::from(conflict)])
                .collect(),
            ..Report::default()
        }
    }

    #[test]
    fn rounds_without_a_conflict_are_enough_and_those_that_decide() {
        let effort = Effort {
            repetitions: 9,
            enough: Some(3),
        };
        assert!(!effort.is_enough(&after(&[false, false])));
        assert!(effort.is_enough(&after(&[false, false, false])));
        assert!(!effort.is_enough(&after(&[true, false, false, false])));
        assert!(!effort.is_enough(&after(&[true, true, true, true])));
        for decided in [true, false] {
            // Nine rounds: five of a kind are most of them, whatever the others are.
            let rounds = [!decided, decided, decided, !decided, decided, decided];
            assert!(!effort.is_enough(&after(&rounds)));
            let rounds = [&rounds[..], &[decided]].concat();
            assert!(effort.is_enough(&after(&rounds)));
            assert_eq!(after(&rounds).conflicts(), decided);
        }
        let all = Effort {
            enough: None,
            ..effort
        };
        assert!(!all.is_enough(&after(&[false, false, false, false])));
    }
}
