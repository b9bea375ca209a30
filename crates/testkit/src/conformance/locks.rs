//! File locks: callers are processes of their own.

use super::bench::{ROOT, expect};
use super::{Bench, Case, Check};
use crate::diff::op::{LockFamily, LockWant, Op};
use crate::diff::outcome::{Outcome, SeenLock};
use holdfast_types::{Errno, OpenFlags};

pub(super) const CASES: &[Case] = &[
    Case::with_users("record_locks_exclude_other_processes_only", posix),
    Case::with_users("closing_any_descriptor_drops_record_locks", posix_close),
    Case::new("open_file_locks_exclude_within_a_process", ofd),
    Case::with_users("locks_split_and_merge_by_range", ranges),
    Case::new("flock_belongs_to_the_open_file", flock),
    Case::new("a_lock_is_gone_when_close_returns", handed_on),
];

const OTHER: usize = 1;

fn lock(slot: usize, family: LockFamily, want: LockWant, start: i64, len: i64) -> Op {
    Op::SetLock {
        slot,
        family,
        want,
        start,
        len,
    }
}

fn open_both(bench: &Bench) -> Check {
    bench.file("f", 1, 100)?;
    bench.chmod("f", 0o666)?;
    bench.open(ROOT, 0, "f", OpenFlags::READ_WRITE)?;
    bench.open(ROOT, 1, "f", OpenFlags::READ_WRITE)?;
    bench.open(OTHER, 0, "f", OpenFlags::READ_WRITE)
}

fn posix(bench: &Bench) -> Check {
    open_both(bench)?;
    let family = LockFamily::Posix;
    bench.ok(ROOT, &lock(0, family, LockWant::Write, 0, 10))?;
    bench.ok(ROOT, &lock(1, family, LockWant::Write, 5, 10))?;
    bench.fails(OTHER, &lock(0, family, LockWant::Read, 9, 1), Errno::EAGAIN)?;
    bench.ok(OTHER, &lock(0, family, LockWant::Write, 15, 0))?;
    let op = Op::GetLock {
        slot: 0,
        family,
        want: LockWant::Read,
        start: 0,
        len: 0,
    };
    let seen = SeenLock {
        kind: LockWant::Write,
        start: 0,
        len: 15,
        of_process: true,
    };
    expect(
        bench.ok(OTHER, &op)? == Outcome::Lock(Some(seen)),
        "the lock in the way is told",
    )?;
    bench.close(OTHER, 0)
}

fn posix_close(bench: &Bench) -> Check {
    open_both(bench)?;
    let family = LockFamily::Posix;
    bench.ok(ROOT, &lock(0, family, LockWant::Write, 0, 0))?;
    bench.fails(OTHER, &lock(0, family, LockWant::Read, 0, 0), Errno::EAGAIN)?;
    bench.close(ROOT, 1)?;
    bench.ok(OTHER, &lock(0, family, LockWant::Read, 0, 0))?;
    bench.close(OTHER, 0)
}

fn ofd(bench: &Bench) -> Check {
    bench.file("f", 1, 100)?;
    bench.open(ROOT, 0, "f", OpenFlags::READ_WRITE)?;
    bench.open(ROOT, 1, "f", OpenFlags::READ_WRITE)?;
    let family = LockFamily::Ofd;
    bench.ok(ROOT, &lock(0, family, LockWant::Write, 0, 10))?;
    bench.fails(
        ROOT,
        &lock(1, family, LockWant::Write, 0, 10),
        Errno::EAGAIN,
    )?;
    bench.fails(
        ROOT,
        &lock(1, LockFamily::Posix, LockWant::Read, 0, 10),
        Errno::EAGAIN,
    )?;
    bench.open(ROOT, 2, "f", OpenFlags::empty())?;
    bench.close(ROOT, 2)?;
    bench.fails(
        ROOT,
        &lock(1, family, LockWant::Write, 0, 10),
        Errno::EAGAIN,
    )?;
    bench.close(ROOT, 0)?;
    bench
        .ok(ROOT, &lock(1, family, LockWant::Write, 0, 10))
        .map(drop)
}

/// Often, because a mount hears of the close after the close: what comes next must wait for it.
fn handed_on(bench: &Bench) -> Check {
    bench.file("f", 1, 100)?;
    let flock = |slot| Op::Flock {
        slot,
        want: LockWant::Write,
    };
    let ofd = |slot| lock(slot, LockFamily::Ofd, LockWant::Write, 0, 0);
    for round in 0..200 {
        let whole = |slot| {
            if round % 2 == 0 {
                flock(slot)
            } else {
                ofd(slot)
            }
        };
        bench.open(ROOT, 0, "f", OpenFlags::READ_WRITE)?;
        bench.open(ROOT, 1, "f", OpenFlags::READ_WRITE)?;
        bench.ok(ROOT, &whole(0))?;
        bench.close(ROOT, 0)?;
        bench.ok(ROOT, &whole(1))?;
        bench.close(ROOT, 1)?;
    }
    Ok(())
}

fn ranges(bench: &Bench) -> Check {
    open_both(bench)?;
    let family = LockFamily::Posix;
    bench.ok(ROOT, &lock(0, family, LockWant::Write, 0, 30))?;
    bench.ok(ROOT, &lock(0, family, LockWant::Unlock, 10, 10))?;
    bench.ok(OTHER, &lock(0, family, LockWant::Write, 10, 10))?;
    bench.fails(
        OTHER,
        &lock(0, family, LockWant::Write, 9, 1),
        Errno::EAGAIN,
    )?;
    bench.fails(
        OTHER,
        &lock(0, family, LockWant::Write, 20, 1),
        Errno::EAGAIN,
    )?;
    // A reader next to the hole, downgraded in the middle of the second half.
    bench.ok(ROOT, &lock(0, family, LockWant::Read, 25, 2))?;
    bench.ok(OTHER, &lock(0, family, LockWant::Read, 25, 2))?;
    bench.fails(
        OTHER,
        &lock(0, family, LockWant::Read, 24, 1),
        Errno::EAGAIN,
    )?;
    bench.fails(
        ROOT,
        &lock(0, family, LockWant::Write, 25, 2),
        Errno::EAGAIN,
    )?;
    bench.fails(ROOT, &lock(0, family, LockWant::Read, -5, 2), Errno::EINVAL)?;
    bench.close(OTHER, 0)
}

fn flock(bench: &Bench) -> Check {
    bench.file("f", 1, 100)?;
    bench.open(ROOT, 0, "f", OpenFlags::empty())?;
    bench.open(ROOT, 1, "f", OpenFlags::empty())?;
    let flock = |slot, want| Op::Flock { slot, want };
    bench.ok(ROOT, &flock(0, LockWant::Read))?;
    bench.ok(ROOT, &flock(1, LockWant::Read))?;
    bench.fails(ROOT, &flock(1, LockWant::Write), Errno::EAGAIN)?;
    bench.close(ROOT, 0)?;
    bench.ok(ROOT, &flock(1, LockWant::Write))?;
    bench.open(ROOT, 0, "f", OpenFlags::READ_WRITE)?;
    bench.fails(ROOT, &flock(0, LockWant::Read), Errno::EAGAIN)?;
    // The two kinds of lock do not know of each other.
    bench
        .ok(ROOT, &lock(0, LockFamily::Ofd, LockWant::Write, 0, 0))
        .map(drop)
}
