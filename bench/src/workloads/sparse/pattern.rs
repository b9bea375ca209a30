//! The offsets of a phase's writes, in their order: the same for every target.

use super::phase::Phase;
use crate::chance::mixed;

/// Bytes of one write.
pub(crate) const WRITE: usize = 1024;

const BLOCK: u64 = 4096;
const STRIDE: u64 = 1 << 20;
/// Blocks among which a scattered write has its own.
const APART: u64 = 16;

/// Where one file is written.
#[derive(Debug)]
pub(super) struct Pattern {
    phase: Phase,
    /// The places, in units of the phase, in the order they are written; `None`: forwards.
    order: Option<Vec<u32>>,
    places: u64,
    seed: u64,
}

impl Pattern {
    /// So many writes of a phase.
    pub(super) fn new(phase: Phase, writes: u64, seed: u64) -> Self {
        let places = writes.div_ceil(row(phase));
        let order = match phase {
            Phase::SparseStride => None,
            _ => Some(shuffled(places, seed)),
        };
        Self {
            phase,
            order,
            places,
            seed,
        }
    }

    /// How many writes.
    pub(super) fn len(&self) -> u64 {
        self.places * row(self.phase)
    }

    /// The offset of the write with this number.
    pub(super) fn offset(&self, number: u64) -> u64 {
        let row = row(self.phase);
        let (place, within) = (number / row, number % row);
        let place = match &self.order {
            Some(order) => u64::from(order[place as usize]),
            None => place,
        };
        match self.phase {
            Phase::SparseStride => place * STRIDE,
            Phase::SparseRandom => {
                let block = place * APART + mixed(self.seed ^ place) % APART;
                block * BLOCK
            }
            _ => (place * row + within) * WRITE as u64,
        }
    }
}

/// Writes in a row before each jump.
fn row(phase: Phase) -> u64 {
    match phase {
        Phase::FillSeq4 => 4,
        _ => 1,
    }
}

/// The numbers below `count` in an order that the seed says.
fn shuffled(count: u64, seed: u64) -> Vec<u32> {
    let mut order: Vec<u32> = (0..count as u32).collect();
    let mut state = seed;
    for last in (1..order.len()).rev() {
        state = state.wrapping_add(1);
        order.swap(last, (mixed(state) % (last as u64 + 1)) as usize);
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn offsets(phase: Phase, writes: u64) -> Vec<u64> {
        let pattern = Pattern::new(phase, writes, 7);
        (0..pattern.len())
            .map(|number| pattern.offset(number))
            .collect()
    }

    #[test]
    fn a_fill_meets_every_byte_once_in_an_order_of_its_own() {
        for phase in [Phase::Fill, Phase::FillSeq4] {
            let written = offsets(phase, 1000);
            assert!(!written.is_sorted(), "{phase}");
            let all: BTreeSet<u64> = written.iter().copied().collect();
            assert_eq!(all.len(), 1000, "{phase}");
            assert_eq!(all.last(), Some(&(999 * 1024)), "{phase}");
        }
        let rows = offsets(Phase::FillSeq4, 1000);
        let in_rows = rows.chunks(4).all(|row| {
            let next = |pair: &[u64]| pair[1] == pair[0] + 1024;
            row[0] % 4096 == 0 && row.windows(2).all(next)
        });
        assert!(in_rows);
    }

    #[test]
    fn scattered_writes_have_blocks_of_their_own() {
        for phase in [Phase::SparseRandom, Phase::SparseStride] {
            let written = offsets(phase, 5000);
            let blocks: BTreeSet<u64> = written.iter().map(|offset| offset / BLOCK).collect();
            assert_eq!((blocks.len(), written.len()), (5000, 5000), "{phase}");
        }
        assert_eq!(offsets(Phase::SparseStride, 3), [0, STRIDE, 2 * STRIDE]);
    }
}
