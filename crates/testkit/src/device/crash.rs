use super::history::{History, NEVER, Op, What};
use crate::rng::Rng;
use holdfast_device::{Image, SECTOR};
use std::fmt;
use std::sync::Arc;

/// What a device may hold after a crash somewhere in a history.
///
/// States are numbered. The first ones are systematic: before each call everything so far is
/// there; before each flush returns nothing is there that an earlier one did not make durable.
/// All further ones are sampled: a moment, and of the changes that were not durable then some,
/// torn between sectors. A state follows from history, seed and number alone.
///
/// For each sector that is complete: a state holds any one of the versions since the last flush,
/// and no order of writing makes another.
#[derive(Debug)]
pub struct CrashStates {
    history: Arc<History>,
    seed: u64,
    epochs: Vec<Epoch>,
    /// Successful flushes, in the order of their ends.
    flushes: Vec<usize>,
}

/// The time from the end of one flush to the end of the next.
#[derive(Debug)]
struct Epoch {
    /// When the flush ended that begins it.
    from: u64,
    /// Changes that ended before this are durable.
    durable: u64,
    /// All that is durable.
    base: Image,
    /// Changes that are not durable and begin before the epoch is over.
    pending: Vec<usize>,
}

/// One state.
#[derive(Clone, Debug)]
pub struct CrashState {
    /// What the device holds.
    pub image: Image,
    /// Its number.
    pub index: u64,
    seed: u64,
    time: u64,
    reached: usize,
    how: How,
    lost_nothing: bool,
    history: Arc<History>,
}

/// For messages.
#[derive(Clone, Copy, Debug, Default)]
struct How {
    pending: usize,
    kept: usize,
    torn: usize,
}

/// What of one pending change is there.
enum Kept {
    Nothing,
    All,
    /// By sector.
    Some(Vec<bool>),
}

impl CrashStates {
    /// The states after a crash in `history`; `seed` chooses those that are sampled.
    #[must_use]
    pub fn new(history: History, seed: u64) -> Self {
        let mut flushes: Vec<usize> = (0..history.ops.len())
            .filter(|&at| history.ops[at].is_flush() && history.ops[at].ended != NEVER)
            .collect();
        flushes.sort_unstable_by_key(|&at| history.ops[at].ended);
        let epochs = epochs(&history, &flushes);
        Self {
            history: Arc::new(history),
            seed,
            epochs,
            flushes,
        }
    }

    /// How many states are systematic: those below this number.
    #[must_use]
    pub fn systematic(&self) -> u64 {
        (self.history.ops.len() + 1 + self.flushes.len() + 1) as u64
    }

    /// The systematic states, then sampled ones without end.
    pub fn iter(&self) -> impl Iterator<Item = CrashState> {
        let whole = self.history.ops.len() as u64 + 1;
        let mut rolling = self.history.start.clone();
        let prefixes = (0..whole).map(move |index| {
            let image = rolling.clone();
            if let Some(op) = self.history.ops.get(index as usize) {
                op.apply(&mut rolling);
            }
            self.prefix(index, image)
        });
        prefixes.chain((whole..).map(|index| self.state(index)))
    }

    /// The state of a number.
    #[must_use]
    pub fn state(&self, index: u64) -> CrashState {
        let whole = self.history.ops.len() as u64 + 1;
        if index < whole {
            let mut image = self.history.start.clone();
            for op in &self.history.ops[..index as usize] {
                op.apply(&mut image);
            }
            return self.prefix(index, image);
        }
        if let Some(epoch) = self.epochs.get((index - whole) as usize) {
            let ended = |&flush: &usize| self.history.ops[flush].ended;
            let next = self.flushes.get((index - whole) as usize);
            let time = next.map_or(NEVER, ended);
            return self.at(index, time, epoch.base.clone(), How::default());
        }
        self.sampled(index)
    }

    /// Everything that began before a call.
    fn prefix(&self, index: u64, image: Image) -> CrashState {
        let next = self.history.ops.get(index as usize);
        let time = next.map_or(NEVER, |op| op.began);
        CrashState {
            lost_nothing: true,
            ..self.at(index, time, image, How::default())
        }
    }

    fn at(&self, index: u64, time: u64, image: Image, how: How) -> CrashState {
        let marks = &self.history.marks;
        CrashState {
            image,
            index,
            seed: self.seed,
            time,
            reached: marks.partition_point(|&(at, _)| at < time),
            how,
            lost_nothing: false,
            history: Arc::clone(&self.history),
        }
    }

    fn sampled(&self, index: u64) -> CrashState {
        let mut rng = Rng::new(self.seed ^ index.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let (mut epoch, mut time) = self.moment(&mut rng);
        // A moment at which all is durable has one state, which is systematic.
        for _ in 0..8 {
            if self.pending(epoch, time).next().is_some() {
                break;
            }
            (epoch, time) = self.moment(&mut rng);
        }
        let pending: Vec<usize> = self.pending(epoch, time).collect();
        let mut image = epoch.base.clone();
        let mut how = How {
            pending: pending.len(),
            ..How::default()
        };
        let mood = Mood::choose(&mut rng, pending.len());
        for (nth, &at) in pending.iter().enumerate() {
            let op = &self.history.ops[at];
            let kept = mood.kept(&mut rng, nth, op.sectors());
            how.kept += usize::from(!matches!(kept, Kept::Nothing));
            how.torn += usize::from(matches!(kept, Kept::Some(_)));
            // A discarded sector may hold anything, a device's favourite pattern for instance.
            let junk = matches!(op.what, What::Discard { .. }) && rng.one_in(4);
            self.apply(epoch, at, &kept, junk, &mut image);
        }
        self.at(index, time, image, how)
    }

    /// A moment of a crash: between two flushes chosen first, or before any call at all.
    fn moment(&self, rng: &mut Rng) -> (&Epoch, u64) {
        let ops = &self.history.ops;
        if rng.one_in(2) {
            let epoch = rng.pick(&self.epochs);
            let began: Vec<u64> = epoch
                .pending
                .iter()
                .map(|&at| ops[at].began + 1)
                .filter(|&time| time > epoch.from)
                .collect();
            if let Some(&last) = began.last() {
                // While a flush is under way most is at stake, however many writes were before it.
                let time = if rng.one_in(4) {
                    last
                } else {
                    *rng.pick(&began)
                };
                return (epoch, time);
            }
        }
        let time = ops
            .get(rng.index(ops.len() + 1))
            .map_or(NEVER, |op| op.began + 1);
        let epoch = self.epochs.partition_point(|epoch| epoch.from < time);
        (&self.epochs[epoch.max(1) - 1], time)
    }

    fn pending<'a>(&'a self, epoch: &'a Epoch, time: u64) -> impl Iterator<Item = usize> + 'a {
        let begun = move |&at: &usize| self.history.ops[at].began < time;
        epoch.pending.iter().copied().take_while(begun)
    }

    /// Applies the sectors that are kept, but for those that a later change has made durable over
    /// it: a device does not go back.
    fn apply(&self, epoch: &Epoch, at: usize, kept: &Kept, junk: bool, image: &mut Image) {
        let op = &self.history.ops[at];
        let mut keep = match kept {
            Kept::Nothing => return,
            Kept::All => vec![true; op.sectors()],
            Kept::Some(sectors) => sectors.clone(),
        };
        if let What::Resize { size } = op.what {
            if keep[0] {
                image.resize(size.max(image.size()));
            }
            return;
        }
        let (offset, len) = op.range();
        for later in &self.history.ops[at + 1..] {
            if later.began > epoch.durable {
                break;
            }
            let (from, other) = later.range();
            if later.ended < epoch.durable && from < offset + len && offset < from + other {
                let first = from.max(offset) - offset;
                let end = (from + other).min(offset + len) - offset;
                keep[(first / SECTOR) as usize..(end / SECTOR) as usize].fill(false);
            }
        }
        let mut next = 0;
        for run in keep.chunk_by(|a, b| a == b) {
            let sectors = next..next + run.len();
            next = sectors.end;
            if !run[0] {
                continue;
            }
            if junk {
                fill_junk(op, image, sectors);
            } else {
                op.apply_sectors(image, sectors);
            }
        }
    }
}

fn fill_junk(op: &Op, image: &mut Image, sectors: std::ops::Range<usize>) {
    let offset = op.range().0 + sectors.start as u64 * SECTOR;
    let len = (sectors.len() as u64 * SECTOR).min(image.size().saturating_sub(offset));
    image.write(offset.min(image.size()), &vec![0xdb; len as usize]);
}

fn epochs(history: &History, flushes: &[usize]) -> Vec<Epoch> {
    let ops = &history.ops;
    let mut epochs: Vec<Epoch> = Vec::with_capacity(flushes.len() + 1);
    let (mut durable, mut from, mut base) = (0, 0, history.start.clone());
    let (mut open, mut begun): (Vec<usize>, usize) = (Vec::new(), 0);
    for nth in 0..=flushes.len() {
        let until = flushes.get(nth).map_or(NEVER, |&flush| ops[flush].ended);
        while ops.get(begun).is_some_and(|op| op.began < until) {
            if !ops[begun].is_flush() {
                open.push(begun);
            }
            begun += 1;
        }
        epochs.push(Epoch {
            from,
            durable,
            base: base.clone(),
            pending: open.clone(),
        });
        if let Some(&flush) = flushes.get(nth) {
            (from, durable) = (until, ops[flush].began.max(durable));
            open.retain(|&at| {
                let done = ops[at].ended < durable;
                if done {
                    ops[at].apply(&mut base);
                }
                !done
            });
        }
    }
    epochs
}

/// How a sampled state treats what is pending.
#[derive(Clone, Copy)]
enum Mood {
    /// Each change is there once in so many times, or missing once in so many.
    Sparse(u64),
    Dense(u64),
    /// All of them up to one, which is torn; then none, or few.
    Cut {
        at: usize,
        after: Option<u64>,
    },
    /// One is missing, or torn.
    AllBut(usize),
    /// One alone is there.
    Only(usize),
    /// Each sector by itself.
    Sectors,
}

impl Mood {
    fn choose(rng: &mut Rng, pending: usize) -> Self {
        let one = rng.index(pending);
        match rng.below(8) {
            0 => Self::Sparse(2 + rng.below(8)),
            1 => Self::Dense(2 + rng.below(8)),
            2 => Self::Dense(2),
            3 => Self::Cut {
                at: one,
                after: None,
            },
            4 => Self::Cut {
                at: one,
                after: Some(2 + rng.below(6)),
            },
            5 => Self::AllBut(one),
            6 => Self::Only(one),
            _ => Self::Sectors,
        }
    }

    fn kept(self, rng: &mut Rng, nth: usize, sectors: usize) -> Kept {
        let whole = |keep| if keep { Kept::All } else { Kept::Nothing };
        match self {
            Self::Sparse(odds) if rng.one_in(odds) => torn_at_times(rng, sectors),
            Self::Sparse(_) => Kept::Nothing,
            Self::Dense(odds) if rng.one_in(odds) => Kept::Nothing,
            Self::Dense(_) => torn_at_times(rng, sectors),
            Self::Cut { at, .. } if nth < at => Kept::All,
            Self::Cut { at, .. } if nth == at => torn(rng, sectors),
            Self::Cut { after, .. } => whole(after.is_some_and(|odds| rng.one_in(odds))),
            Self::AllBut(one) if nth != one => Kept::All,
            Self::AllBut(_) if rng.one_in(2) => Kept::Nothing,
            Self::AllBut(_) => torn(rng, sectors),
            Self::Only(one) if nth == one => torn_at_times(rng, sectors),
            Self::Only(_) => Kept::Nothing,
            Self::Sectors => Kept::Some((0..sectors).map(|_| rng.one_in(2)).collect()),
        }
    }
}

fn torn_at_times(rng: &mut Rng, sectors: usize) -> Kept {
    if rng.one_in(4) {
        torn(rng, sectors)
    } else {
        Kept::All
    }
}

/// The first sectors, the last ones, all but a few in the middle, or any.
fn torn(rng: &mut Rng, sectors: usize) -> Kept {
    let (a, b) = (rng.index(sectors + 1), rng.index(sectors + 1));
    let shape = rng.below(4);
    let keep = |sector: usize| match shape {
        0 => sector < a,
        1 => sector >= a,
        2 => !(a.min(b)..a.max(b)).contains(&sector),
        _ => rng.one_in(2),
    };
    Kept::Some((0..sectors).map(keep).collect())
}

impl CrashState {
    /// Is all there that was begun before? So the end of a process leaves a device, too.
    #[must_use]
    pub const fn lost_nothing(&self) -> bool {
        self.lost_nothing
    }

    /// What the test had marked before the crash, in order.
    pub fn reached(&self) -> impl DoubleEndedIterator<Item = u64> + ExactSizeIterator {
        self.history.marks[..self.reached]
            .iter()
            .map(|&(_, mark)| mark)
    }
}

/// How to make the state again, and what it is.
impl fmt::Display for CrashState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ops = &self.history.ops;
        let begun = ops.partition_point(|op| op.began < self.time);
        let How {
            pending,
            kept,
            torn,
        } = self.how;
        write!(
            f,
            "crash state {} of seed {}: after {begun} of {} calls and {} of {} marks",
            self.index,
            self.seed,
            ops.len(),
            self.reached,
            self.history.marks.len(),
        )?;
        if pending > 0 {
            write!(
                f,
                ", {kept} of {pending} open changes there, {torn} of them in part"
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
