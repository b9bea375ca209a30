use super::Layout;
use super::group::State;
use crate::primitive::{AtomicU64, Mutex, MutexGuard, Ordering};
use holdfast_sync::Padded;
use std::sync::OnceLock;

/// Groups of the first segment; each further one is twice as large as the one before.
const FIRST: u64 = 64;
const SEGMENTS: usize = 18;

/// Classes of runs: class `c` of 1 and more has runs of `2^(c-1)` blocks and more.
const CLASSES: usize = 16;

/// All groups, each under its own lock, and hints which of them have long runs.
///
/// The table only grows, and its entries never move: a lookup takes no lock.
///
/// *Invariant.* While a group is unlocked, its bits include every class of run that it has. A group
/// without free blocks has no bit set, so no search visits it. (Older allocators kept full groups
/// on their search lists.)
#[derive(Debug)]
pub(super) struct Table {
    segments: [OnceLock<Segment>; SEGMENTS],
    count: AtomicU64,
}

#[derive(Debug)]
struct Segment {
    groups: Box<[Padded<Mutex<State>>]>,
    /// For each class one bit per group: may the group have a run of this class?
    fits: [Box<[AtomicU64]>; CLASSES],
}

/// The class of the runs of exactly this length.
pub(super) fn class(run: u32) -> u8 {
    (u32::BITS - run.leading_zeros()) as u8
}

/// The shortest run of a class (of 1 and more).
pub(super) fn shortest(class: u8) -> u32 {
    1 << (class - 1)
}

/// The segment of a group, and its place there.
fn segment_of(group: u64) -> (usize, usize) {
    let segment = (group / FIRST + 1).ilog2();
    let base = FIRST * ((1 << segment) - 1);
    (segment as usize, (group - base) as usize)
}

impl Table {
    /// A table without groups.
    pub(super) fn new() -> Self {
        Self {
            segments: [const { OnceLock::new() }; SEGMENTS],
            count: AtomicU64::new(0),
        }
    }

    /// A table of these groups.
    pub(super) fn of(layout: &Layout, states: Vec<State>) -> Self {
        let table = Self::new();
        for state in states {
            table.push(layout, state);
        }
        table
    }

    pub(super) fn count(&self) -> u64 {
        // Acquire: pairs with the release of `push`, which made the group.
        self.count.load(Ordering::Acquire)
    }

    /// Adds a group. One thread at a time, or no group is added.
    pub(super) fn push(&self, layout: &Layout, mut state: State) {
        let group = self.count.load(Ordering::Relaxed);
        let (index, place) = segment_of(group);
        let segment = self.segments[index].get_or_init(|| Segment::new(layout, index));
        let longest = match state.free() {
            free if u64::from(free) + layout.reserved(group) == state.extent().length => free,
            _ => state.map().longest(),
        };
        state.class = 0;
        let mut locked = segment.groups[place].0.lock();
        *locked = state;
        self.set_class(group, &mut locked, class(longest));
        drop(locked);
        self.count.store(group + 1, Ordering::Release);
    }

    /// The group's lock. The group must exist.
    pub(super) fn lock(&self, group: u64) -> MutexGuard<'_, State> {
        self.group(group).lock()
    }

    /// The group's lock, unless another thread holds it.
    pub(super) fn try_lock(&self, group: u64) -> Option<MutexGuard<'_, State>> {
        crate::primitive::try_lock(self.group(group))
    }

    fn group(&self, group: u64) -> &Mutex<State> {
        let (segment, place) = segment_of(group);
        &self.segment(segment).groups[place].0
    }

    fn segment(&self, index: usize) -> &Segment {
        self.segments[index].get().expect("a group that was pushed")
    }

    /// Sets the hint of a locked group: it may have runs up to this class.
    pub(super) fn set_class(&self, group: u64, state: &mut State, class: u8) {
        let (index, place) = segment_of(group);
        let segment = self.segment(index);
        let (old, new) = (usize::from(state.class), usize::from(class));
        let bit = 1 << (place % 64);
        // Relaxed: hints. A search that follows one locks the group and looks.
        for fits in &segment.fits[(old + 1).min(CLASSES)..(new + 1).max(old + 1).min(CLASSES)] {
            fits[place / 64].fetch_or(bit, Ordering::Relaxed);
        }
        for fits in &segment.fits[(new + 1).min(CLASSES)..(old + 1).max(new + 1).min(CLASSES)] {
            fits[place / 64].fetch_and(!bit, Ordering::Relaxed);
        }
        state.class = class;
    }

    /// The first group from `from` on that may have a run of a class; does not wrap.
    pub(super) fn next_fit(&self, from: u64, class: u8) -> Option<u64> {
        let count = self.count();
        let (mut index, mut place) = segment_of(from);
        let mut base = from - place as u64;
        while base < count {
            let fits = self.segment(index).fits.get(usize::from(class))?;
            let mut word = place / 64;
            let mut bits = fits[word].load(Ordering::Relaxed) & (u64::MAX << (place % 64));
            loop {
                if bits != 0 {
                    let group = base + word as u64 * 64 + u64::from(bits.trailing_zeros());
                    return (group < count).then_some(group);
                }
                word += 1;
                match fits.get(word) {
                    Some(next) => bits = next.load(Ordering::Relaxed),
                    None => break,
                }
            }
            base += FIRST << index;
            (index, place) = (index + 1, 0);
        }
        None
    }

    /// Does the hint offer this group to searches for this class?
    #[cfg(test)]
    pub(super) fn is_offered(&self, group: u64, class: u8) -> bool {
        self.next_fit(group, class) == Some(group)
    }
}

impl Segment {
    fn new(layout: &Layout, index: usize) -> Self {
        let length = (FIRST << index) as usize;
        let base = FIRST * ((1 << index) - 1);
        Self {
            groups: (0..length as u64)
                .map(|place| Padded(Mutex::new(State::fresh(layout, base + place))))
                .collect(),
            fits: std::array::from_fn(|_| (0..length / 64).map(|_| AtomicU64::new(0)).collect()),
        }
    }
}
