//! Objects that changed, in runs of neighbours.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::ops::{Deref, DerefMut};
use std::ptr;

use foldhash::fast::RandomState;
use holdfast_sync::prefetch_to_fill;
use holdfast_types::Ino;

use super::Object;
use holdfast_sync::collections::entry_bytes;

/// Numbers of a run: the core deals as many to one thread.
pub(super) const RUN: u64 = 64;

/// Objects that changed, by their numbers.
#[derive(Debug, Default)]
pub(in crate::store) struct Objects {
    pub(super) runs: HashMap<u64, Run, RandomState>,
    /// The runs in which there are objects that the layers below do not have.
    fresh: BTreeSet<u64>,
    /// Bytes of memory that came, less those that went, since that was [asked](Self::came).
    came: i64,
}

/// An object that is being changed: it is weighed behind that.
#[derive(Debug)]
pub(in crate::store) struct Changing<'o> {
    object: &'o mut Object,
    came: &'o mut i64,
    before: usize,
}

impl<'o> Changing<'o> {
    #[inline]
    fn new(object: &'o mut Object, came: &'o mut i64) -> Self {
        Self {
            before: object.weighed(),
            object,
            came,
        }
    }
}

impl Deref for Changing<'_> {
    type Target = Object;

    #[inline]
    fn deref(&self) -> &Object {
        self.object
    }
}

impl DerefMut for Changing<'_> {
    #[inline]
    fn deref_mut(&mut self) -> &mut Object {
        self.object
    }
}

impl Drop for Changing<'_> {
    #[inline]
    fn drop(&mut self) {
        *self.came += self.object.weigh() as i64 - self.before as i64;
    }
}

/// Neighbours that changed: those that are there have a bit in `there`, and their order.
#[derive(Debug, Default)]
pub(super) struct Run {
    pub(super) there: u64,
    /// Those that the layers below do not have.
    pub(super) fresh: u64,
    /// They mostly come at the end and go from the beginning.
    pub(super) objects: VecDeque<Object>,
}

/// Room is made for this many times the objects that are there, where the next one comes at the end: more will; and elsewhere, where
/// perhaps none will.
const ROOM: [usize; 2] = [4, 2];

/// What a run takes, with what finds it.
const RUN_BYTES: usize = entry_bytes::<(u64, Run)>() + entry_bytes::<u64>();

/// The run of a number. `came`: bytes of memory that came with it.
#[inline]
fn run_of<'r>(
    runs: &'r mut HashMap<u64, Run, RandomState>,
    came: &mut i64,
    number: u64,
) -> &'r mut Run {
    runs.entry(number).or_insert_with(|| {
        *came += RUN_BYTES as i64;
        Run::default()
    })
}

impl Run {
    /// Where the object of a bit is among those that are there.
    pub(super) fn place(&self, bit: u64) -> usize {
        // Counting bits takes long where the processor has no instruction for it, and who comes is mostly the last.
        match self.there & !(bit - 1) {
            0 => self.objects.len(),
            last if last == bit => self.objects.len() - 1,
            _ => (self.there & (bit - 1)).count_ones() as usize,
        }
    }

    /// `came`: bytes that its objects take more, but for what they have beside attributes.
    #[inline]
    fn changed(&mut self, bit: u64, came: &mut i64) -> &mut Object {
        let place = self.place(bit);
        if self.there & bit == 0 {
            self.there |= bit;
            let len = self.objects.len();
            if len == self.objects.capacity() {
                let times = ROOM[usize::from(place < len)];
                let room = (times * len).clamp(times, RUN as usize);
                self.objects.reserve_exact(room - len);
                *came += ((self.objects.capacity() - len) * size_of::<Object>()) as i64;
            }
            if place == len {
                self.objects.push_back(Object::default());
            } else {
                self.objects.insert(place, Object::default());
            }
        }
        &mut self.objects[place]
    }
}

pub(super) fn bit(ino: Ino) -> u64 {
    1 << (ino.0 % RUN)
}

impl Objects {
    /// An object that changed.
    pub(in crate::store) fn get(&self, ino: Ino) -> Option<&Object> {
        let (run, bit) = (self.runs.get(&(ino.0 / RUN))?, bit(ino));
        (run.there & bit != 0).then(|| &run.objects[run.place(bit)])
    }

    /// An object that changed, to change it again.
    pub(in crate::store) fn get_mut(&mut self, ino: Ino) -> Option<Changing<'_>> {
        let (run, bit) = (self.runs.get_mut(&(ino.0 / RUN))?, bit(ino));
        let place = run.place(bit);
        (run.there & bit != 0).then(|| Changing::new(&mut run.objects[place], &mut self.came))
    }

    /// An object, changed from now on.
    #[inline]
    pub(in crate::store) fn changed(&mut self, ino: Ino) -> Changing<'_> {
        let Self { runs, came, .. } = self;
        let run = run_of(runs, came, ino.0 / RUN);
        Changing::new(run.changed(bit(ino), came), came)
    }

    /// A new object.
    #[inline]
    pub(in crate::store) fn create(&mut self, ino: Ino) -> Changing<'_> {
        let (number, bit) = (ino.0 / RUN, bit(ino));
        let Self { runs, came, fresh } = self;
        let run = run_of(runs, came, number);
        if run.fresh == 0 {
            fresh.insert(number);
        }
        run.fresh |= bit;
        let object = run.changed(bit, came);
        object.fresh = true;
        // The next one mostly comes behind it.
        prefetch_to_fill(ptr::from_ref(object).wrapping_add(1), size_of::<Object>());
        Changing::new(object, came)
    }

    /// Bytes of memory that its objects take more since this was asked, or fewer.
    #[inline]
    pub(super) fn came(&mut self) -> i64 {
        std::mem::take(&mut self.came)
    }

    /// Forgets an object that the layers below never had.
    pub(in crate::store) fn forget(&mut self, ino: Ino) {
        let (number, bit) = (ino.0 / RUN, bit(ino));
        let Some(run) = self.runs.get_mut(&number) else {
            return;
        };
        if run.there & bit != 0 {
            let went = match run.place(bit) {
                0 => run.objects.pop_front(),
                place => run.objects.remove(place),
            };
            self.came -= went.map_or(0, |object| object.weighed()) as i64;
            run.there &= !bit;
        }
        run.fresh &= !bit;
        if run.fresh == 0 {
            self.fresh.remove(&number);
        }
        if run.there == 0 {
            let objects = run.objects.capacity() * size_of::<Object>();
            self.came -= (RUN_BYTES + objects) as i64;
            self.runs.remove(&number);
        }
    }

    /// New objects behind this one, ascending.
    pub(super) fn fresh_after(&self, after: Ino) -> impl Iterator<Item = Ino> {
        let runs = self.fresh.range(after.0 / RUN..);
        let numbers = runs.flat_map(|number| {
            let fresh = self.runs.get(number).map_or(0, |run| run.fresh);
            bits(*number, fresh)
        });
        numbers.filter(move |ino| *ino > after)
    }
}

/// The numbers of a run that have their bits set.
pub(super) fn bits(run: u64, mut bits: u64) -> impl Iterator<Item = Ino> {
    std::iter::from_fn(move || {
        let lowest = bits.trailing_zeros();
        bits &= bits.checked_sub(1)?;
        Some(Ino(run * RUN + u64::from(lowest)))
    })
}
