//! `Pages` against a naive model of bytes and page states. Every operation runs at the start of a
//! file, at borders of groups and near the largest offset. It runs with unlimited space, with
//! little, and with a refusal at each single request for space.

mod file;
mod known;
mod ops;
mod space;

use file::File;
use holdfast_cache::{Account, CacheStats, Contended, MAX_SIZE, Pages, PagesLock};
use holdfast_sync::epoch;
use ops::{BASES, Op, PAGE, op};
use proptest::prelude::*;
use space::Room;

/// Two files (copies go from one to the other), their models, and their account.
struct World {
    pages: [Pages; 2],
    files: [File; 2],
    room: Room,
    stats: CacheStats,
}

impl World {
    fn new(room: Room) -> Self {
        Self {
            pages: [Pages::new(), Pages::new()],
            files: [File::default(), File::default()],
            room,
            stats: CacheStats::new(),
        }
    }

    /// Applies `op` to both sides; the effect on the pages must be what their result says.
    fn apply(&mut self, which: usize, op: &Op) {
        match *op {
            Op::CopyAcross { to, from, len } => {
                self.populate(1 - which, from, len);
                self.populate(which, to, len);
                return self.copy(which, op);
            }
            Op::CopyWithin { to, from, len } => {
                self.populate(which, from, len);
                self.populate(which, to, len);
                return self.copy(which, op);
            }
            Op::Forget { offset, len } => return self.forget(which, offset, len),
            Op::Bring { offset, len } => return self.populate(which, offset, len),
            Op::Write { offset, ref data } => self.bring_edges(which, offset, data.len() as u64),
            _ => {}
        }
        self.change(which, op);
    }

    /// Operations that need no bytes of absent pages.
    fn change(&mut self, which: usize, op: &Op) {
        let free = self.room.free();
        let sure = !self.room.may_refuse_at_will();
        let account = Account {
            space: &self.room,
            stats: &self.stats,
        };
        let pages = &mut self.pages[which].lock();
        let file = &mut self.files[which];
        match *op {
            Op::Write { offset, ref data } => {
                let fits = file.writable(offset, data.len() as u64, free);
                let written = if data.len() % 2 == 0 {
                    pages.write_alone(offset, data, file.size, account)
                } else {
                    pages.write(offset, data, account)
                }
                .unwrap_or(0);
                assert!(written as u64 <= fits && (!sure || written as u64 == fits));
                file.write(offset, &data[..written]);
            }
            Op::Truncate { size } => {
                pages.truncate(size, account);
                file.truncate(size);
            }
            Op::Punch { offset, len } => {
                pages.punch(offset, len, account);
                file.punch(offset, len);
            }
            Op::Zero { offset, len } => {
                let fits = file.missing(offset, len) <= free;
                let done = pages.zero(offset, len, account).is_ok();
                assert!(done <= fits && (!sure || done == fits));
                if done {
                    file.zero(offset, len);
                }
            }
            Op::Allocate {
                offset,
                len,
                extend,
            } => {
                let fits = file.missing(offset, len) <= free;
                let done = pages.allocate(offset, len, account).is_ok();
                assert!(done <= fits && (!sure || done == fits));
                if done {
                    file.allocate(offset, len, extend);
                }
            }
            Op::Collapse { offset, len } => {
                if offset + len < file.size {
                    pages.collapse(offset, len, account).unwrap();
                    file.collapse(offset, len);
                }
            }
            Op::Insert { offset, len } => {
                if offset < file.size && file.size + len <= MAX_SIZE {
                    pages.insert(offset, len, account).unwrap();
                    file.insert(offset, len);
                }
            }
            Op::CopyAcross { .. }
            | Op::CopyWithin { .. }
            | Op::Forget { .. }
            | Op::Bring { .. } => unreachable!("done by `apply`"),
            Op::Clear => {
                pages.clear(account);
                *file = File::default();
            }
        }
    }

    fn forget(&mut self, which: usize, offset: u64, len: u64) {
        let account = Account {
            space: &self.room,
            stats: &self.stats,
        };
        let mut pages = self.pages[which].lock();
        let held = (pages.frames(), pages.pages());
        let dropped = pages.forget(offset / PAGE..(offset + len) / PAGE, account);
        assert_eq!((pages.frames() + dropped, pages.pages()), held);
    }

    /// Fills the absent pages that a range touches.
    fn populate(&mut self, which: usize, offset: u64, len: u64) {
        let end = offset.saturating_add(len).min(MAX_SIZE).div_ceil(PAGE);
        let mut pages = self.pages[which].lock();
        while let Some(unloaded) = pages.next_unloaded(offset / PAGE..end) {
            let last = (unloaded.end * PAGE).min(MAX_SIZE);
            let data = self.files[which].content(unloaded.start * PAGE..last);
            let account = Account {
                space: &self.room,
                stats: &self.stats,
            };
            let held = pages.pages();
            pages
                .populate(unloaded.start * PAGE, &data, account)
                .expect("it has its space");
            assert_eq!(pages.pages(), held);
        }
    }

    /// Fills those of them that the range covers in part.
    fn bring_edges(&mut self, which: usize, offset: u64, len: u64) {
        self.populate(which, offset.min(MAX_SIZE), 1);
        self.populate(which, offset.saturating_add(len).min(MAX_SIZE), 1);
    }

    fn copy(&mut self, which: usize, op: &Op) {
        let account = Account {
            space: &self.room,
            stats: &self.stats,
        };
        let (to, from, copied, source) = match *op {
            Op::CopyAcross { to, from, len } => {
                let mut target = self.pages[which].lock();
                let source = self.pages[1 - which].lock();
                let len = len.min(self.files[1 - which].size.saturating_sub(from));
                let copied = target
                    .copy_range(to, &source, from, len, account)
                    .unwrap_or(0);
                self.check_copy_len(to, len, copied);
                (to, from, copied, self.files[1 - which].clone())
            }
            Op::CopyWithin { to, from, len } => {
                let len = len.min(self.files[which].size.saturating_sub(from));
                if to < from + len && from < to + len {
                    return;
                }
                let copied = self.pages[which]
                    .lock()
                    .copy_within(to, from, len, account)
                    .unwrap_or(0);
                self.check_copy_len(to, len, copied);
                (to, from, copied, self.files[which].clone())
            }
            _ => unreachable!("not a copy: {op:?}"),
        };
        let pages = self.pages[which].lock();
        let framed = |page: u64| pages.seek_data(page * PAGE, MAX_SIZE + 1) == Some(page * PAGE);
        self.files[which].copy(to, &source, from, copied, framed);
    }

    /// With unlimited space a copy is short only at the largest size.
    fn check_copy_len(&self, to: u64, len: u64, copied: u64) {
        let most = len.min(MAX_SIZE.saturating_sub(to));
        assert!(copied <= most && (copied == most || self.room.is_limited()));
    }

    fn check(&self) {
        for (pages, file) in self.pages.iter().zip(&self.files) {
            assert_eq!(pages.pages(), pages.lock().pages(), "without the lock");
            file.check(&pages.lock());
            file.check_seeks(pages);
            for base in BASES {
                let mut buf = vec![0xEE; 9 * PAGE as usize];
                let base = base.saturating_sub(PAGE);
                let there = file.size.saturating_sub(base).min(9 * PAGE);
                buf[..there as usize].copy_from_slice(&file.content(base..base + there));
                reads_are_the_same(pages, file.size, base, &buf);
                unlocked_reads_are_the_same(pages, file.size, base, &buf);
            }
        }
        let locks = self.pages.each_ref().map(Pages::lock);
        let sum = |of: &dyn Fn(&PagesLock<'_>) -> u64| locks.iter().map(of).sum::<u64>();
        assert_eq!(self.room.used(), sum(&|pages| pages.pages()), "space");
        assert_eq!(self.stats.pages(), sum(&|pages| pages.frames()), "frames");
        assert_eq!(self.stats.bytes(), sum(&|pages| pages.bytes()), "bytes");
    }

    fn end(self) {
        for pages in &self.pages {
            let mut pages = pages.lock();
            pages.clear(Account {
                space: &self.room,
                stats: &self.stats,
            });
            assert_eq!((pages.pages(), pages.bytes()), (0, 0));
        }
        assert_eq!(
            (self.room.used(), self.stats.pages(), self.stats.bytes()),
            (0, 0, 0)
        );
        // Garbage must not wait for an ended thread, for the sake of leak detectors.
        epoch::synchronize();
    }
}

impl Drop for World {
    fn drop(&mut self) {
        // After a failed assertion the failure is the report, not what is still held.
        self.pages.iter_mut().for_each(Pages::abandon);
    }
}

/// Checks that reads under the lock return these bytes, from page to page.
fn reads_are_the_same(pages: &Pages, size: u64, base: u64, expected: &[u8]) {
    let pages = pages.lock();
    let mut at = base;
    let end = base + expected.len() as u64;
    while at < end {
        let unloaded = pages.next_unloaded(at / PAGE..end.div_ceil(PAGE));
        let until = unloaded
            .as_ref()
            .map_or(end, |unloaded| unloaded.start * PAGE);
        let mut buf = vec![0xEE; (until - at) as usize];
        let read = pages.read(at, &mut buf, size) as u64;
        assert_eq!(read, size.saturating_sub(at).min(until - at));
        let same = buf == expected[(at - base) as usize..(until - base) as usize];
        assert!(same, "content differs near {base}");
        at = unloaded.map_or(end, |unloaded| unloaded.end * PAGE);
    }
}

/// Checks that reads without the lock return the same bytes, whole and in parts of pages.
fn unlocked_reads_are_the_same(pages: &Pages, size: u64, base: u64, expected: &[u8]) {
    for (at, len) in [(0, expected.len()), (5000, 100), (1, 4095), (4000, 9000)] {
        let mut buf = vec![0xEE; len];
        let whole = || pages.lock().unloaded() == 0;
        let read = pages.read_with(base + at, &mut buf, || size, whole);
        let there = size.saturating_sub(base + at).min(len as u64) as usize;
        if read == Err(Contended) && !whole() {
            continue;
        }
        assert_eq!(read, Ok(there), "{len} bytes at {}", base + at);
        let same = buf[..] == expected[at as usize..at as usize + len];
        assert!(same, "content differs without the lock near {base}");
    }
}

fn run(room: Room, ops: &[(usize, Op)]) -> u64 {
    let mut world = World::new(room);
    for (which, op) in ops {
        world.apply(*which, op);
        world.check();
    }
    let requests = world.room.requests();
    world.end();
    requests
}

fn ops(len: usize) -> impl Strategy<Value = Vec<(usize, Op)>> {
    prop::collection::vec((0..2_usize, op()), 1..len)
}

/// A fraction of the usual number of cases, few enough for every run of the tests. After a change
/// of the page cache set `PROPTEST_CASES` to 10000 and more.
fn one_case_of(so_many: u32) -> ProptestConfig {
    let usual = ProptestConfig::default();
    let cases = usual.cases.div_ceil(so_many);
    ProptestConfig { cases, ..usual }
}

proptest! {
    #![proptest_config(one_case_of(1))]

    #[test]
    fn pages_behave_like_bytes_and_page_states(ops in ops(60)) {
        run(Room::unlimited(), &ops);
    }

    #[test]
    fn with_little_room_exactly_what_fits_is_done(room in 0..40_u64, ops in ops(60)) {
        run(Room::limited(room), &ops);
    }
}

proptest! {
    #![proptest_config(one_case_of(8))]

    #[test]
    fn a_refusal_at_each_request_in_turn_loses_nothing(ops in ops(25)) {
        let requests = run(Room::unlimited(), &ops);
        for request in 0..requests {
            run(Room::refusing_request(request, 1), &ops);
            run(Room::refusing_request(request, u64::MAX), &ops);
        }
    }
}
