use super::bits;

/// Bits of one entry of the summary.
const CHUNK: u32 = 512;
const CHUNK_WORDS: usize = CHUNK as usize / 64;

/// The summary of 512 bits.
#[derive(Clone, Copy, Debug)]
struct Chunk {
    /// How many are clear.
    free: u16,
    /// The upper bound of a run of clear bits within. A failed search makes it exact.
    longest: u16,
}

/// A bitmap of the used blocks of a group, with a summary that lets searches skip.
///
/// *Invariants.* Bits behind `length` are set. `free` and each chunk's `free` are exact; `longest`
/// is never too small. Runs across the borders of chunks are counted in no chunk: searches carry
/// them over.
#[derive(Clone, Debug)]
pub(super) struct Map {
    words: Box<[u64]>,
    chunks: Box<[Chunk]>,
    length: u32,
    free: u32,
}

impl Map {
    /// The map of a group with this many blocks, none used.
    #[cfg(test)]
    pub(super) fn blank(length: u32) -> Self {
        Self::of(&blank_words(length), length)
    }

    /// The map with these bits set; bits behind `length` are set as well.
    pub(super) fn of(words: &[u64], length: u32) -> Self {
        let mut own = blank_words(length);
        for (own, given) in own.iter_mut().zip(words) {
            *own |= given;
        }
        let mut map = Self {
            chunks: vec![
                Chunk {
                    free: 0,
                    longest: 0
                };
                own.len() / CHUNK_WORDS
            ]
            .into(),
            words: own,
            length,
            free: 0,
        };
        for chunk in 0..map.chunks.len() {
            let from = chunk as u32 * CHUNK;
            let used = bits::count(&map.words, from, from + CHUNK);
            let free = (CHUNK - used) as u16;
            map.chunks[chunk] = Chunk {
                free,
                longest: free,
            };
            map.free += u32::from(free);
        }
        map
    }

    /// The bits, those behind the group's last block set.
    pub(super) fn words(&self) -> &[u64] {
        &self.words
    }

    pub(super) fn free(&self) -> u32 {
        self.free
    }

    /// The end of the clear bits that start at `at`, at most `to`.
    pub(super) fn run_end(&self, at: u32, to: u32) -> u32 {
        bits::next_set(&self.words, at, to.min(self.length))
    }

    /// Start and end of the run of clear bits around `from..to`, which is clear.
    pub(super) fn run_around(&self, from: u32, to: u32) -> (u32, u32) {
        (
            bits::clear_before(&self.words, 0, from),
            bits::next_set(&self.words, to, self.length),
        )
    }

    /// The first bit of a range that is set, if any is.
    pub(super) fn first_used(&self, from: u32, to: u32) -> Option<u32> {
        let used = bits::next_set(&self.words, from, to);
        (used < to).then_some(used)
    }

    /// The first bit of a range that is clear, if any is.
    pub(super) fn first_free(&self, from: u32, to: u32) -> Option<u32> {
        let free = bits::next_clear(&self.words, from, to);
        (free < to).then_some(free)
    }

    /// Sets the bits of a range, all of them clear before.
    pub(super) fn set(&mut self, from: u32, to: u32) {
        debug_assert_eq!(self.first_used(from, to), None);
        bits::set(&mut self.words, from, to);
        self.free -= to - from;
        for (chunk, part) in parts(from, to) {
            let chunk = &mut self.chunks[chunk];
            chunk.free -= part;
            chunk.longest = chunk.longest.min(chunk.free);
        }
    }

    /// Clears the bits of a range, all of them set before.
    pub(super) fn clear(&mut self, from: u32, to: u32) {
        debug_assert_eq!(self.first_free(from, to), None);
        bits::clear(&mut self.words, from, to);
        self.free += to - from;
        for (chunk, part) in parts(from, to) {
            let chunk = &mut self.chunks[chunk];
            chunk.free += part;
            // A run grew, or two merged; finding out would cost a scan.
            chunk.longest = chunk.free;
        }
    }

    /// The first run of at least `wanted` clear bits that starts at `from` or behind.
    pub(super) fn find(&mut self, from: u32, wanted: u32) -> Option<u32> {
        // The clear bits directly before the current chunk.
        let (mut carried, mut start) = (0, from);
        for index in (from / CHUNK) as usize..self.chunks.len() {
            let base = index as u32 * CHUNK;
            let (low, high) = (base.max(from), base + CHUNK);
            let chunk = self.chunks[index];
            if chunk.free == 0 {
                carried = 0;
                continue;
            }
            let head = if u32::from(chunk.free) == CHUNK {
                high
            } else {
                bits::next_set(&self.words, low, high)
            };
            if carried == 0 {
                start = low;
            }
            carried += head - low;
            if carried >= wanted {
                return Some(start);
            }
            if head == high {
                continue;
            }
            if u32::from(chunk.longest) >= wanted
                && let Some(found) = self.find_within(index, low, high, wanted)
            {
                return Some(found);
            }
            start = bits::clear_before(&self.words, head, high);
            carried = high - start;
        }
        None
    }

    fn find_within(&mut self, index: usize, low: u32, high: u32, wanted: u32) -> Option<u32> {
        let mut longest = 0;
        for (start, end) in bits::clear_runs(&self.words, low, high) {
            if end - start >= wanted {
                return Some(start);
            }
            longest = longest.max(end - start);
        }
        if low == index as u32 * CHUNK {
            self.chunks[index].longest = longest as u16;
        }
        None
    }

    /// The longest run of clear bits.
    pub(super) fn longest(&self) -> u32 {
        let (mut longest, mut carried) = (0, 0);
        for (index, chunk) in self.chunks.iter().enumerate() {
            let low = index as u32 * CHUNK;
            if u32::from(chunk.free) == CHUNK {
                carried += CHUNK;
                continue;
            }
            if chunk.free == 0 {
                longest = longest.max(carried);
                carried = 0;
                continue;
            }
            for (start, end) in bits::clear_runs(&self.words, low, low + CHUNK) {
                if start != low {
                    longest = longest.max(carried);
                    carried = 0;
                }
                carried += end - start;
                if end != low + CHUNK {
                    longest = longest.max(carried);
                    carried = 0;
                }
            }
            if bits::count(&self.words, low + CHUNK - 1, low + CHUNK) == 1 {
                longest = longest.max(carried);
                carried = 0;
            }
        }
        longest.max(carried)
    }

    /// The runs of clear bits, as starts and ends.
    pub(super) fn runs(&self) -> impl Iterator<Item = (u32, u32)> {
        bits::clear_runs(&self.words, 0, self.length)
    }
}

/// Clear words for `length` bits, in whole chunks; the bits behind them are set.
pub(super) fn blank_words(length: u32) -> Box<[u64]> {
    let words = (length.div_ceil(CHUNK) as usize).max(1) * CHUNK_WORDS;
    let mut words = vec![0; words].into_boxed_slice();
    let end = words.len() as u32 * 64;
    bits::set(&mut words, length, end);
    words
}

/// The chunks that a range touches, and its bits in each.
fn parts(from: u32, to: u32) -> impl Iterator<Item = (usize, u16)> {
    (from / CHUNK..to.div_ceil(CHUNK)).map(move |chunk| {
        let base = chunk * CHUNK;
        let part = to.min(base + CHUNK) - from.max(base);
        (chunk as usize, part as u16)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The runs of a map, found bit by bit.
    fn naive_runs(used: &[bool]) -> Vec<(u32, u32)> {
        let mut runs = Vec::new();
        let mut start = None;
        for (at, &used) in used.iter().chain([&true]).enumerate() {
            match (used, start) {
                (false, None) => start = Some(at as u32),
                (true, Some(from)) => {
                    runs.push((from, at as u32));
                    start = None;
                }
                _ => {}
            }
        }
        runs
    }

    proptest! {
        #[test]
        fn searches_agree_with_a_list_of_bits(
            length in 1..2100u32,
            steps in prop::collection::vec((0..2100u32, 1..700u32, any::<bool>()), 1..60),
            probes in prop::collection::vec((0..2100u32, 1..1200u32), 8),
        ) {
            let mut map = Map::blank(length);
            let mut used = vec![false; length as usize];
            for (start, len, free) in steps {
                let (from, to) = (start.min(length), (start + len).min(length));
                // Only bits that change may be set or cleared: take the first such run.
                let wanted = free;
                let Some(from) = (from..to).find(|&at| used[at as usize] == wanted) else { continue };
                let to = (from..to).find(|&at| used[at as usize] != wanted).unwrap_or(to);
                if free { map.clear(from, to) } else { map.set(from, to) }
                used[from as usize..to as usize].fill(!free);
                let runs = naive_runs(&used);
                prop_assert_eq!(map.free() as usize, used.iter().filter(|&&used| !used).count());
                prop_assert_eq!(map.runs().collect::<Vec<_>>(), runs.clone());
                let longest = runs.iter().map(|(start, end)| end - start).max().unwrap_or(0);
                prop_assert_eq!(map.longest(), longest);
                for &(from, wanted) in &probes {
                    let found = runs
                        .iter()
                        .map(|&(start, end)| (start.max(from), end))
                        .find(|&(start, end)| end >= start + wanted)
                        .map(|(start, _)| start);
                    prop_assert_eq!(map.find(from, wanted), found, "{} from {}", wanted, from);
                }
            }
        }
    }
}
