//! What the process that tried a pair tells the one that asked it to.

use serde::{Deserialize, Serialize};

/// One pair, all repetitions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Report {
    /// For each repetition, the lines in conflict.
    pub(crate) repetitions: Vec<Vec<Line>>,
    /// The files that code and statics come from.
    pub(crate) modules: Vec<String>,
    /// Instructions recorded, of both sides and all repetitions.
    pub(crate) steps: u64,
    /// System calls seen in the records of each side, all repetitions.
    pub(crate) system_calls: [u64; 2],
}

/// A line in conflict.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Line {
    pub(crate) place: Place,
    pub(crate) same_bytes: bool,
    pub(crate) sides: [Vec<Touch>; 2],
}

/// Code: a module's index, and an address in it.
pub(crate) type Code = (usize, u64);

/// What memory a line is in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Place {
    /// A static, or other memory of a module.
    Module(Code),
    /// Blocks of the heap.
    Heap(Vec<Block>),
    /// The stack or the thread-locals of a side's thread.
    Thread(usize),
    /// None of these.
    Unknown,
}

/// A block of the heap that has bytes in a line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Block {
    pub(crate) size: u64,
    /// The first byte of the line, counted from the start of the block; negative if the block
    /// begins within the line.
    pub(crate) offset: i64,
    /// The callers that allocated it, innermost first.
    pub(crate) calls: Vec<Code>,
}

/// One access.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Touch {
    /// Innermost first.
    pub(crate) calls: Vec<Code>,
    pub(crate) write: bool,
    pub(crate) allocating: bool,
    pub(crate) bytes: (u8, u8),
}

impl Report {
    /// Repetitions with at least one line in conflict.
    pub(crate) fn conflicting(&self) -> usize {
        self.repetitions
            .iter()
            .filter(|lines| !lines.is_empty())
            .count()
    }

    /// Does the pair conflict? If more than half of the repetitions do: neighbours in a bucket or
    /// a leaf meet by chance.
    pub(crate) fn conflicts(&self) -> bool {
        2 * self.conflicting() > self.repetitions.len()
    }

    /// Are all lines in conflict those of the allocator?
    pub(crate) fn only_allocator(&self) -> bool {
        self.repetitions.iter().flatten().all(Line::by_allocator)
    }
}

impl Line {
    /// The first byte that is written, counted from the start of the line.
    pub(crate) fn first_written(&self) -> u64 {
        let writes = self.sides.iter().flatten().filter(|touch| touch.write);
        u64::from(writes.map(|touch| touch.bytes.0).min().unwrap_or(0))
    }

    /// Was it written by the allocator only?
    pub(crate) fn by_allocator(&self) -> bool {
        let mut writes = self.sides.iter().flatten().filter(|touch| touch.write);
        writes.all(|touch| touch.allocating)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(conflicting: usize, of: usize) -> Report {
        let line = Line {
            place: Place::Unknown,
            same_bytes: true,
            sides: [Vec::new(), Vec::new()],
        };
        let lines = |index| {
            if index < conflicting {
                vec![line.clone()]
            } else {
                Vec::new()
            }
        };
        Report {
            repetitions: (0..of).map(lines).collect(),
            ..Report::default()
        }
    }

    #[test]
    fn a_pair_conflicts_if_more_than_half_of_its_repetitions_do() {
        assert!(!report(0, 9).conflicts());
        assert!(!report(4, 9).conflicts());
        assert!(report(5, 9).conflicts());
        assert!(!report(4, 8).conflicts());
    }
}
