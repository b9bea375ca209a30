//! How much is at work at the same time, and where.

use serde::{Deserialize, Serialize};
use std::fmt;

/// How a task is divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Threads of one process, on one tree.
    Threads(usize),
    /// Processes of one thread, each with a tree of its own: what the machine allows those that
    /// share nothing but its memory.
    Processes(usize),
}

impl Mode {
    /// All shapes of these thread counts, in the order they run, those together that are held
    /// against each other; one process of one thread is the same in either.
    pub(crate) fn heats(threads: &[usize], processes: bool) -> Vec<Vec<Self>> {
        let aging = |&count: &usize| {
            let alone = (processes && count > 1).then_some(Self::Processes(count));
            std::iter::once(Self::Threads(count)).chain(alone).collect()
        };
        threads.iter().map(aging).collect()
    }

    /// Threads that are at work at the same time.
    pub(crate) fn threads(self) -> usize {
        match self {
            Self::Threads(count) | Self::Processes(count) => count,
        }
    }

    /// Processes, where they are what is compared.
    pub(crate) fn processes(self) -> Option<usize> {
        match self {
            Self::Threads(_) => None,
            Self::Processes(count) => Some(count),
        }
    }

    /// What each process is given.
    pub(crate) fn slots(self) -> Vec<Slots> {
        match self {
            Self::Threads(threads) => vec![Slots { threads, first: 0 }],
            Self::Processes(count) => (0..count)
                .map(|first| Slots { threads: 1, first })
                .collect(),
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Threads(count) => write!(f, "threads {count}"),
            Self::Processes(count) => write!(f, "processes {count}"),
        }
    }
}

/// Where a worker's threads sit.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub(crate) struct Slots {
    /// How many.
    pub(crate) threads: usize,
    /// The first one's place among the processors.
    pub(crate) first: usize,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_run_beside_every_count_of_threads_that_is_not_one() {
        use Mode::{Processes, Threads};
        assert_eq!(Mode::heats(&[1, 2], false), [[Threads(1)], [Threads(2)]]);
        assert_eq!(
            Mode::heats(&[2, 1], true),
            [vec![Threads(2), Processes(2)], vec![Threads(1)]]
        );
    }

    #[test]
    fn processes_sit_on_processors_of_their_own() {
        let slots = |mode: Mode| -> Vec<_> {
            let slots = mode.slots();
            slots.iter().map(|one| (one.threads, one.first)).collect()
        };
        assert_eq!(slots(Mode::Threads(3)), [(3, 0)]);
        assert_eq!(slots(Mode::Processes(3)), [(1, 0), (1, 1), (1, 2)]);
    }
}
