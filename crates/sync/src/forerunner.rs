//! Touching memory before an allocator hands it out.
//!
//! Who touches memory first waits until the kernel has found and cleared it, and below a virtual machine until
//! the host has: up to a third of the time in which a file is made. Allocators mostly go through their memory from
//! below, so that the place of a new object tells what they will hand out next. When a thread makes one in a
//! *region* where none was yet, another thread touches the next regions, if they are plain memory, by a call that leaves
//! alone what it holds: a wrong guess costs some memory (a few megabytes for each thread that makes many objects),
//! and nothing else.
//!
//! It is the [thread at hand](crate::hand), which is there while there is a [`Forerunner`].
//!
//! *Locking.* One lock, which a thread takes once a region, and then that of the thread at hand.
#![expect(unsafe_code, reason = "madvise(2), of memory that others have")]

use crate::hand::{self, Duty, Hand};
use crate::thread_slot::thread_slot;
use parking_lot::Mutex;
use rustix::io;
use rustix::mm::{Advice, madvise};
use std::cell::Cell;
use std::collections::VecDeque;
use std::fs;
use std::mem;
use std::ops::Range;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// A region has two to the power of so many bytes: a large page.
const REGION_BITS: u32 = 21;
/// Regions that are touched ahead of a thread.
const AHEAD: usize = 3;
/// Regions with the same number but for multiples of this are taken for the same.
const KNOWN: usize = 1 << 15;
/// Who has come into a region within this time is at work.
const LATELY: Duration = Duration::from_millis(100);
/// After a while without work it is forgotten what was done.
const DUTY: Duty = Duty {
    work: touch_wanted,
    rest: forget,
};

thread_local! {
    /// The region of the calling thread's latest object.
    static LATEST: Cell<usize> = const { Cell::new(0) };
}

/// Regions with objects in them, and those that were wanted: a bit each.
static MET: [AtomicU64; KNOWN / 64] = [const { AtomicU64::new(0) }; KNOWN / 64];

/// What is to be done.
struct Work {
    wanted: VecDeque<usize>,
    /// Threads that made many objects, and when they said so last.
    makers: Vec<(usize, Instant)>,
}

static WORK: Mutex<Work> = Mutex::new(Work {
    wanted: VecDeque::new(),
    makers: Vec::new(),
});

impl Work {
    /// Are as many at work as there are processors, with this one? Then what is done ahead is done at their
    /// expense.
    fn is_crowded(&mut self, maker: usize, processors: usize, now: Instant) -> bool {
        let others = |(other, last): &(usize, Instant)| {
            *other != maker && now.saturating_duration_since(*last) < LATELY
        };
        self.makers.retain(others);
        self.makers.push((maker, now));
        self.makers.len() >= processors
    }
}

/// While one of these lives, memory is touched ahead of those who say [where](Self::made) they make objects.
#[derive(Debug)]
pub struct Forerunner {
    _hand: Hand,
}

impl Forerunner {
    /// Sees to it that there is a thread: unless there is one processor only, or no thread to be had.
    #[must_use]
    pub fn new() -> Self {
        Self {
            _hand: Hand::new(DUTY),
        }
    }

    /// The calling thread has made an object here, one of many that it may make.
    #[inline]
    pub fn made<T>(&self, object: &T) {
        let region = ptr::from_ref(object).addr() >> REGION_BITS;
        if region != LATEST.get() {
            came_into(region);
        }
    }
}

impl Default for Forerunner {
    fn default() -> Self {
        Self::new()
    }
}

/// Was a region not met yet? From now on it was.
fn meets(region: usize) -> bool {
    let (word, bit) = (&MET[region % KNOWN / 64], 1 << (region % 64));
    // Relaxed: nothing but a guess depends on it.
    word.load(Ordering::Relaxed) & bit == 0 && word.fetch_or(bit, Ordering::Relaxed) & bit == 0
}

/// The regions to be touched now that a thread has come into this one from another.
fn behind(before: usize, region: usize) -> impl Iterator<Item = usize> {
    meets(region);
    // Who has met only one makes few objects.
    let ahead = if before == 0 { 0 } else { AHEAD };
    (region + 1..=region + ahead).filter(|next| meets(*next))
}

#[cold]
fn came_into(region: usize) {
    let mut wanted = behind(LATEST.replace(region), region).peekable();
    if wanted.peek().is_none() {
        return;
    }
    let Some(processors) = hand::reach() else {
        return;
    };
    let mut work = WORK.lock();
    if !work.is_crowded(thread_slot(), processors, Instant::now()) {
        work.wanted.extend(wanted);
        drop(work);
        hand::want();
    }
}

/// By and by memory is given back, and has to be touched again.
fn forget() {
    MET.iter().for_each(|word| word.store(0, Ordering::Relaxed));
}

fn touch_wanted() {
    let wanted = mem::take(&mut WORK.lock().wanted);
    touch_all(&wanted);
}

/// Touches those regions that are plain memory. What lies behind an allocator's may be anybody's: of a file that is
/// mapped and shared, touching would make blocks and move times.
fn touch_all(regions: &VecDeque<usize>) {
    let Ok(maps) = fs::read_to_string("/proc/self/maps") else {
        return;
    };
    let plain: Vec<Range<usize>> = maps.lines().filter_map(plain_memory).collect();
    for &region in regions {
        let (start, end) = (region << REGION_BITS, (region + 1) << REGION_BITS);
        if plain
            .iter()
            .any(|area| area.start <= start && end <= area.end)
        {
            // Where it cannot be done (before Linux 5.14), nothing is lost.
            let _ = touch(region);
        }
    }
}

/// The area that a line of proc(5)'s `maps` tells of, if it is memory of no file, nobody else's, that can be written,
/// and no stack.
fn plain_memory(line: &str) -> Option<Range<usize>> {
    let mut fields = line.split_ascii_whitespace();
    let (start, end) = fields.next()?.split_once('-')?;
    let address = |digits| usize::from_str_radix(digits, 16).ok();
    let (rights, _offset, _device, inode) = (
        fields.next()?,
        fields.next()?,
        fields.next()?,
        fields.next()?,
    );
    let is_stack = fields.next().is_some_and(|name| name.starts_with("[stack"));
    let is_plain = rights.starts_with("rw") && rights.ends_with('p') && inode == "0";
    (is_plain && !is_stack).then_some(address(start)?..address(end)?)
}

/// Touches a region, as far as there is memory.
fn touch(region: usize) -> io::Result<()> {
    let start = ptr::without_provenance_mut(region << REGION_BITS);
    // SAFETY: the advice changes the contents of no memory, wherever it is, nor what may be done to it.
    unsafe { madvise(start, 1 << REGION_BITS, Advice::LinuxPopulateWrite) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{MemfdFlags, memfd_create};
    use rustix::mm::{MapFlags, ProtFlags, mmap, mmap_anonymous};

    /// Fresh memory for so many whole regions, of which the first is told.
    fn fresh(regions: usize) -> usize {
        let len = (regions + 1) << REGION_BITS;
        let rights = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: memory of its own, wherever there is room.
        let start = unsafe { mmap_anonymous(ptr::null_mut(), len, rights, MapFlags::PRIVATE) };
        (start.expect("memory").addr() >> REGION_BITS) + 1
    }

    /// Has the kernel given memory to the first page of a region?
    fn is_there(region: usize) -> bool {
        let address = (region << REGION_BITS) as u64;
        let map = std::fs::File::open("/proc/self/pagemap").expect("a map of pages");
        let mut entry = [0; 8];
        let maps = std::fs::read_to_string("/proc/self/smaps").expect("a map of areas");
        let size = maps
            .lines()
            .find_map(|line| line.strip_prefix("KernelPageSize:"))
            .and_then(|size| size.trim().strip_suffix(" kB")?.parse::<u64>().ok());
        let offset = address / (size.expect("a size") << 10) * 8;
        std::os::unix::fs::FileExt::read_exact_at(&map, &mut entry, offset).expect("an entry");
        u64::from_le_bytes(entry) >> 63 == 1
    }

    #[test]
    fn a_region_is_wanted_once_and_nothing_behind_the_first_one_of_a_thread() {
        // No allocator has memory there, and tests of other modules make no objects.
        let far = 7 << 40 >> REGION_BITS;
        assert_eq!(behind(0, far).count(), 0);
        let next: Vec<usize> = behind(far, far + 1).collect();
        assert_eq!(next, [far + 2, far + 3, far + 4]);
        assert_eq!(behind(far + 1, far + 2).collect::<Vec<_>>(), [far + 5]);
        assert_eq!(behind(far + 2, far + 1).count(), 0);
    }

    #[test]
    fn it_is_crowded_while_as_many_make_objects_as_there_are_processors() {
        let mut work = Work {
            wanted: VecDeque::new(),
            makers: Vec::new(),
        };
        let now = Instant::now();
        assert!(!work.is_crowded(1, 2, now));
        assert!(!work.is_crowded(1, 2, now));
        assert!(work.is_crowded(2, 2, now + LATELY / 2));
        assert!(!work.is_crowded(2, 2, now + LATELY));
    }

    #[test]
    fn only_memory_of_no_file_that_can_be_written_and_is_no_stack_is_plain() {
        let line = "7f0000200000-7f0000a00000 rw-p 00000000 00:00 0 ";
        assert_eq!(plain_memory(line), Some(0x7f00_0020_0000..0x7f00_00a0_0000));
        let heap = "1000-3000 rw-p 00000000 00:00 0                   [heap]";
        assert_eq!(plain_memory(heap), Some(0x1000..0x3000));
        for other in [
            "1000-3000 rw-s 00000000 00:01 1026  /dev/zero (deleted)",
            "1000-3000 rw-p 00002000 08:01 655360 /a/database",
            "1000-3000 ---p 00000000 00:00 0 ",
            "1000-3000 r--p 00000000 00:00 0 [vvar]",
            "7ffc1000-7ffc3000 rw-p 00000000 00:00 0 [stack]",
            "1000-3000",
            "",
        ] {
            assert_eq!(plain_memory(other), None, "{other}");
        }
    }

    #[test]
    fn a_file_that_is_mapped_behind_stays_as_it_is() {
        let file = memfd_create("mapped", MemfdFlags::CLOEXEC).expect("a file");
        let file = fs::File::from(file);
        file.set_len(1 << REGION_BITS).expect("room");
        let region = fresh(1);
        let place = ptr::without_provenance_mut(region << REGION_BITS);
        let (rights, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED);
        // SAFETY: in place of memory that is this test's alone.
        unsafe {
            mmap(
                place,
                1 << REGION_BITS,
                rights,
                flags | MapFlags::FIXED,
                &file,
                0,
            )
        }
        .expect("a mapping");
        touch_all(&VecDeque::from([region]));
        let blocks = std::os::unix::fs::MetadataExt::blocks(&file.metadata().expect("its size"));
        assert_eq!(blocks, 0, "a hole was filled");
        let memory = fresh(1);
        touch_all(&VecDeque::from([memory]));
        assert!(is_there(memory) || touch(memory).is_err());
    }

    #[test]
    fn memory_behind_is_there_before_anybody_touches_it() {
        let _user = Forerunner::new();
        let is_possible = hand::reach().is_some();
        let region = fresh(AHEAD + 2);
        came_into(region);
        came_into(region + 1);
        let begun = Instant::now();
        let all = || (2..AHEAD + 2).all(|next| is_there(region + next));
        while is_possible && !all() {
            assert!(begun.elapsed() < Duration::from_secs(60), "nobody came");
            std::thread::yield_now();
        }
        assert!(!is_there(region), "it was not behind any other");
    }
}
