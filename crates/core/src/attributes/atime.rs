//! Access times.

use crate::core::Core;
use crate::inode::Inode;
use crate::open_file::OpenFile;
use crate::options::AtimePolicy;
use crate::store::{Intent, Reservation};
use crate::transaction::apply_unless_busy;
use crate::types::{OpenFlags, Time};
use crate::{FileSystem, clock};

#[inline]
fn is_due(times: (Time, Time, Time), policy: AtimePolicy, now: Time) -> bool {
    times.0 != now && moves_later(times, policy, now)
}

/// Does a read move the access time, if the clock differs from it?
#[inline]
fn moves_later((atime, mtime, ctime): (Time, Time, Time), policy: AtimePolicy, now: Time) -> bool {
    match policy {
        AtimePolicy::None => false,
        AtimePolicy::Strict => true,
        AtimePolicy::Relatime => atime <= mtime || atime <= ctime || is_old(atime, now),
    }
}

/// Is an access time, later than every change, so old that a read moves it?
fn is_old(atime: Time, now: Time) -> bool {
    atime <= clock::day_before(now)
}

impl FileSystem {
    /// Does a read of this open file move its access time, now or with the next tick of the clock?
    /// A front end that caches content has to pass such a read on.
    #[must_use]
    pub fn is_access_time_due(&self, file: &OpenFile) -> bool {
        let (core, inode, flags) = (&self.core, file.node().inode(), file.flags());
        let policy = core.policy.atime();
        if policy == AtimePolicy::None
            || has_settled_access_time(core, inode)
            || !flags.readable()
            || flags.contains(OpenFlags::NOATIME)
        {
            return false;
        }
        // A store that is written through keeps its own times.
        core.through.is_none()
            && !inode.is_noatime()
            && core.writable().is_ok()
            && moves_later(inode.latest_times(), policy, clock::now())
    }
}

/// Has [`note_access`] nothing to do after a read of this file? Mostly this is
/// known without reading the clock. That an access time has become a day old may be noticed
/// some reads late.
#[inline(always)]
pub(crate) fn has_settled_access_time(core: &Core, inode: &Inode) -> bool {
    core.policy.atime() == AtimePolicy::Relatime
        && inode.is_read_since_changed()
        && inode.atime() > clock::day_ago()
}

/// Moves the access time of an inode after a read, as the options say.
pub(crate) fn note_access(core: &Core, inode: &Inode) {
    let policy = core.policy.atime();
    // A store that is written through keeps its own access times: it served this read, or the
    // read hit the cache and it never saw it.
    if policy == AtimePolicy::None || inode.is_noatime() || core.through.is_some() {
        return;
    }
    let now = clock::change();
    // Checked without the lock first: most reads change nothing, and then write nothing. Reads
    // beside a writer mostly fall into the tick of an earlier read, and skip the fields that
    // the writer changes.
    if inode.atime() == now {
        return;
    }
    // Each time is loaded by itself. They can be inconsistent only while a change is in
    // progress, and that change may be ordered after this read.
    if is_due(inode.latest_times(), policy, now) {
        move_access_time(core, inode, policy, now);
    }
}

#[inline(never)]
fn move_access_time(core: &Core, inode: &Inode, policy: AtimePolicy, now: Time) {
    if inode.kind().is_dir() && core.policy.nodiratime()
        || core.writable().is_err()
        || !is_due(inode.times(), policy, now)
    {
        return;
    }
    {
        let mut meta = inode.write();
        if !is_due(inode.times(), policy, now) {
            return;
        }
        meta.atime = now;
    }
    // A reader waits neither for a writer nor for space: its access time goes to the store with
    // the next change or with `sync`. A failed `apply` has stopped the writers; reads go on.
    let handed_over = || {
        let intent = Intent::changing().records(1);
        let reserved = Reservation::at_once(&*core.behind, &intent);
        reserved.map_or(Ok(false), |mut reservation| {
            apply_unless_busy(core, &mut reservation, inode)
        })
    };
    if core.policy.lazytime() || handed_over() == Ok(false) {
        inode.mark_lazy_time();
        core.lazytime.note();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MemoryLimits;
    use crate::clock::DAY;
    use crate::options::Options;
    use crate::types::{Caller, SetAttr, SetTime};
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread;
    use std::time::{Duration, Instant};

    fn at(atime: i64, mtime: i64) -> (Time, Time, Time) {
        (Time(atime), Time(mtime), Time(mtime))
    }

    #[test]
    fn relatime_moves_times_that_are_not_later_than_the_change_or_a_day_old() {
        let due = |atime, mtime, now| is_due(at(atime, mtime), AtimePolicy::Relatime, Time(now));
        assert!(due(5, 5, 6));
        assert!(!due(6, 5, 7));
        assert!(due(6, 5, 6 + DAY));
        assert!(!due(5, 5, 5), "nothing to move");
        assert!(is_due(at(6, 5), AtimePolicy::Strict, Time(7)));
        assert!(!is_due(at(1, 5), AtimePolicy::None, Time(7)));
    }

    /// What is done to a file between reads.
    #[derive(Clone, Copy, Debug)]
    enum Done {
        Wait,
        Write,
        Chmod,
        /// Sets the access time before all other times.
        Earlier,
        /// Sets all times to the past, in this order: change, modification, access.
        LongAgo,
        Tomorrow,
        Strict,
        Relatime,
    }

    /// Waits until the clock is past `now` and past all times given so far: a fine time may be
    /// ahead of the clock by more than a tick.
    fn next_tick(now: Time) {
        let given = clock::change();
        while clock::now() <= now.max(given) {
            thread::yield_now();
        }
    }

    fn does(done: Done, fs: &FileSystem, file: &OpenFile) {
        let (who, now) = (Caller::root(), clock::now());
        let ago = |days: i64| Some(SetTime::At(Time(now.0 - days * DAY)));
        let mut set = SetAttr::default();
        match done {
            Done::Wait => next_tick(now),
            Done::Write => assert_eq!(fs.write(&who, file, 5, b"new"), Ok(3)),
            Done::Chmod => set.perm = Some(0o600),
            Done::Earlier => set.atime = ago(10_000),
            Done::LongAgo => (set.atime, set.mtime, set.ctime) = (ago(2), ago(3), ago(4)),
            Done::Tomorrow => set.atime = ago(-1),
            Done::Strict | Done::Relatime => fs.set_options(Options {
                atime: match done {
                    Done::Strict => AtimePolicy::Strict,
                    _ => AtimePolicy::Relatime,
                },
                ..Options::default()
            }),
        }
        if set != SetAttr::default() {
            fs.setattr(&who, file.node(), &set, None).unwrap();
        }
    }

    /// Reads a byte, and checks that the access time follows the rule.
    fn read(fs: &FileSystem, file: &OpenFile, after: &[Done]) {
        let inode = file.node().inode();
        let (before, now) = (inode.times(), clock::change());
        assert_eq!(fs.read(file, 0, &mut [0]), Ok(1));
        let moved = is_due(before, fs.core.policy.atime(), now);
        let expected = if moved { now } else { before.0 };
        // Otherwise a tick or another test's fine time came in between, and either time is right.
        if clock::change() == now {
            assert_eq!(inode.times().0, expected, "after {after:?}: {before:?}");
        }
    }

    #[test]
    fn whatever_came_before_each_read_moves_the_access_time_as_the_rule_says() {
        let all = [
            Done::Wait,
            Done::Write,
            Done::Chmod,
            Done::Earlier,
            Done::LongAgo,
            Done::Tomorrow,
            Done::Strict,
            Done::Relatime,
        ];
        for len in [1, 3 * 4096] {
            let (fs, file) = written(len);
            // Enough reads that most do not read the clock.
            (0..1000).for_each(|_| read(&fs, &file, &[]));
            let places = (0..all.len().pow(3)).map(|n| [n / 64, n / 8 % 8, n % 8]);
            for places in places {
                let after = places.map(|place| all[place]);
                for done in after {
                    does(done, &fs, &file);
                    (0..3).for_each(|_| read(&fs, &file, &after));
                }
            }
        }
    }

    /// A file of `len` bytes.
    fn written(len: usize) -> (FileSystem, OpenFile) {
        let fs = FileSystem::memory(MemoryLimits::default(), Options::default());
        let (who, root) = (Caller::root(), fs.root());
        let flags = OpenFlags::CREATE | OpenFlags::READ_WRITE;
        let file = fs.create(&who, &root, b"f", 0o644, flags).unwrap();
        fs.write(&who, &file, 0, &vec![1; len]).unwrap();
        (fs, file)
    }

    #[test]
    fn access_times_move_on_beside_writers_of_two_file_systems() {
        let both = [written(3 * 4096), written(3 * 4096)];
        let times = |(_, file): &(FileSystem, OpenFile)| file.node().inode().times();
        let (is_over, begun) = (AtomicBool::new(false), Instant::now());
        thread::scope(|scope| {
            for (fs, file) in &both {
                scope.spawn(|| {
                    while !is_over.load(Ordering::Relaxed) {
                        fs.write(&Caller::root(), file, 4096, &[2; 4096]).unwrap();
                    }
                });
                scope.spawn(|| {
                    while !is_over.load(Ordering::Relaxed) {
                        assert_eq!(fs.read(file, 0, &mut [0]), Ok(1));
                    }
                });
            }
            for each in &both {
                for _ in 0..100 {
                    let changed = times(each).1;
                    while times(each).0 <= changed {
                        assert!(begun.elapsed() < Duration::from_secs(60), "it is read");
                        thread::yield_now();
                    }
                }
            }
            is_over.store(true, Ordering::Relaxed);
        });
        for (fs, file) in &both {
            next_tick(clock::now());
            assert_eq!(fs.read(file, 0, &mut [0]), Ok(1));
            let (atime, mtime, _) = file.node().inode().times();
            assert!(atime > mtime);
        }
    }

    #[test]
    fn a_front_end_is_told_of_each_file_that_a_later_read_moves() {
        let (fs, file) = written(1);
        assert!(fs.is_access_time_due(&file), "made and written in one tick");
        let read_later = || {
            does(Done::Wait, &fs, &file);
            assert_eq!(fs.read(&file, 0, &mut [0]), Ok(1));
            // The access time moved to a later tick than the change.
            does(Done::Wait, &fs, &file);
        };
        read_later();
        assert!(!fs.is_access_time_due(&file));
        for done in [Done::Write, Done::Chmod, Done::Earlier, Done::LongAgo] {
            does(done, &fs, &file);
            assert!(fs.is_access_time_due(&file), "{done:?}");
            read_later();
            assert!(!fs.is_access_time_due(&file), "read after {done:?}");
        }
        does(Done::Strict, &fs, &file);
        assert!(fs.is_access_time_due(&file));
        let open = |flags| fs.open(&Caller::root(), file.node(), flags).unwrap();
        assert!(!fs.is_access_time_due(&open(OpenFlags::WRITE_ONLY)));
        assert!(!fs.is_access_time_due(&open(OpenFlags::NOATIME)));
        let read_only = Options {
            atime: AtimePolicy::Strict,
            read_only: true,
            ..Options::default()
        };
        fs.set_options(read_only);
        assert!(!fs.is_access_time_due(&file));
    }

    #[test]
    fn what_is_settled_is_not_due() {
        let (fs, file) = written(1);
        let settled = || has_settled_access_time(&fs.core, file.node().inode());
        assert!(!settled(), "written later");
        let settles = |after: &[Done]| {
            does(Done::Wait, &fs, &file);
            read(&fs, &file, after);
            settled()
        };
        assert!(settles(&[]));
        for done in [Done::Chmod, Done::Earlier, Done::LongAgo, Done::Strict] {
            does(Done::Wait, &fs, &file);
            does(done, &fs, &file);
            assert!(!settled(), "{done:?}");
            assert_eq!(settles(&[done]), !matches!(done, Done::Strict), "{done:?}");
        }
    }
}
