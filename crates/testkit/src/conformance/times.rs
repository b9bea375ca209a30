//! Time stamps.

use super::bench::{ROOT, expect};
use super::{Bench, Case, Check};
use crate::diff::op::{Object, Op, When};
use crate::diff::view::Times;
use holdfast_types::{OpenFlags, RenameFlags, Time};
use std::time::Duration;

pub(super) const CASES: &[Case] = &[
    Case::new("explicit_times_are_kept_to_the_nanosecond", explicit),
    Case::new("a_write_touches_mtime_and_ctime", write),
    Case::new("a_write_right_behind_others_counts_as_much", write_at_once),
    Case::new("a_change_of_mode_touches_ctime_only", mode),
    Case::new("a_new_name_touches_its_directory", names),
    Case::new("a_second_link_touches_the_inode", link),
    Case::new("a_read_touches_atime_unless_asked_not_to", read),
    Case::new("birth_never_changes", birth),
];

/// Longer than any clock's tick.
const TICK: Duration = Duration::from_millis(15);

/// The times before and after some change of what `path` names.
fn around(bench: &Bench, path: &str, change: impl FnOnce() -> Check) -> Check<(Times, Times)> {
    let before = bench.stat(path)?.times;
    std::thread::sleep(TICK);
    change()?;
    Ok((before, bench.stat(path)?.times))
}

fn explicit(bench: &Bench) -> Check {
    bench.file("f", 0, 0)?;
    for secs in [0, -1_000_000, 1_234_567_890, 1 << 32] {
        let (atime, mtime) = (When::At(secs, 123_456_789), When::At(secs + 5, 1));
        let object = Object::Path(bench.at("f"));
        bench.ok(
            ROOT,
            &Op::Utimens {
                object,
                atime,
                mtime,
            },
        )?;
        let times = bench.stat("f")?.times;
        expect(
            times.atime == Time::new(secs, 123_456_789),
            "the time of access is as set",
        )?;
        expect(
            times.mtime == Time::new(secs + 5, 1),
            "the time of modification is as set",
        )?;
    }
    let object = Object::Path(bench.at("f"));
    let op = Op::Utimens {
        object,
        atime: When::Omit,
        mtime: When::At(9, 9),
    };
    let (before, after) = around(bench, "f", || bench.ok(ROOT, &op).map(drop))?;
    expect(after.atime == before.atime, "an omitted time stays")?;
    expect(after.ctime > before.ctime, "setting times is a change")
}

fn write(bench: &Bench) -> Check {
    bench.file("f", 0, 0)?;
    let (before, after) = around(bench, "f", || bench.write(ROOT, 5, 0, 1, 10))?;
    expect(
        after.mtime > before.mtime && after.ctime > before.ctime,
        "both moved",
    )?;
    expect(after.atime == before.atime, "a write is no access")
}

/// Most of this comes within one tick of the clock.
fn write_at_once(bench: &Bench) -> Check {
    bench.file("f", 0, 0)?;
    let set = |atime, mtime| {
        let object = Object::Path(bench.at("f"));
        let op = Op::Utimens {
            object,
            atime,
            mtime,
        };
        bench.ok(ROOT, &op).map(drop)
    };
    let long_ago = When::At(1_000_000_000, 0);
    for round in 0..40 {
        let before = bench.stat("f")?.times;
        match round % 3 {
            0 => set(When::Omit, long_ago)?,
            1 => bench.chmod("f", 0o600 + round)?,
            _ => set(long_ago, When::Omit)?,
        }
        // It grows once in four rounds.
        bench.write(ROOT, 5, i64::from(round / 4), 1, 1)?;
        let view = bench.stat("f")?;
        expect(view.size == u64::from(round / 4) + 1, "it is that long")?;
        expect(
            view.times.mtime >= before.mtime && view.times.mtime > Time::new(1_000_000_000, 0),
            "its content changed now",
        )?;
        expect(view.times.ctime >= view.times.mtime, "and so did it")?;
        bench.write(ROOT, 5, 0, 1, 1)?;
        expect(
            bench.stat("f")?.size == view.size,
            "it is as long as before",
        )?;
    }
    Ok(())
}

fn mode(bench: &Bench) -> Check {
    bench.file("f", 0, 0)?;
    let (before, after) = around(bench, "f", || bench.chmod("f", 0o600))?;
    expect(after.ctime > before.ctime, "the inode changed")?;
    expect(
        after.mtime == before.mtime && after.atime == before.atime,
        "its content did not",
    )
}

fn names(bench: &Bench) -> Check {
    bench.mkdir(ROOT, "d", 0o755)?;
    bench.mkdir(ROOT, "e", 0o755)?;
    let moved = |(before, after): (Times, Times)| {
        expect(
            after.mtime > before.mtime && after.ctime > before.ctime,
            "the directory changed",
        )
    };
    moved(around(bench, "d", || bench.file("d/f", 0, 0))?)?;
    moved(around(bench, "d", || bench.link("d/f", "d/g"))?)?;
    moved(around(bench, "d", || bench.unlink("d/g"))?)?;
    let to_e = || bench.rename("d/f", "e/f", RenameFlags::empty());
    moved(around(bench, "d", to_e)?)?;
    let to_d = || bench.rename("e/f", "d/f", RenameFlags::empty());
    moved(around(bench, "d", to_d)?)
}

fn link(bench: &Bench) -> Check {
    bench.file("f", 0, 0)?;
    let (before, after) = around(bench, "f", || bench.link("f", "g"))?;
    expect(
        after.ctime > before.ctime,
        "the count of links is part of the inode",
    )?;
    expect(after.mtime == before.mtime, "and no part of its content")?;
    let (before, after) = around(bench, "f", || bench.unlink("g"))?;
    expect(after.ctime > before.ctime, "so it is when a link goes")
}

fn read(bench: &Bench) -> Check {
    bench.file("f", 1, 10)?;
    // Long before the last change: then relatime counts an access, too.
    let object = Object::Path(bench.at("f"));
    let (atime, mtime) = (When::At(1_000_000_000, 0), When::Omit);
    bench.ok(
        ROOT,
        &Op::Utimens {
            object,
            atime,
            mtime,
        },
    )?;
    bench.open(ROOT, 0, "f", OpenFlags::NOATIME)?;
    let (before, after) = around(bench, "f", || bench.read(ROOT, 0, 0, 10).map(drop))?;
    expect(after.atime == before.atime, "O_NOATIME leaves no trace")?;
    bench.open(ROOT, 1, "f", OpenFlags::empty())?;
    let (before, after) = around(bench, "f", || bench.read(ROOT, 1, 0, 10).map(drop))?;
    expect(after.atime > before.atime, "an access is noted")?;
    expect(after.ctime == before.ctime, "and is no change")
}

fn birth(bench: &Bench) -> Check {
    bench.file("f", 1, 10)?;
    let (before, after) = around(bench, "f", || {
        bench.write(ROOT, 5, 0, 2, 100)?;
        bench.chmod("f", 0o600)?;
        bench.rename("f", "g", RenameFlags::empty())?;
        bench.rename("g", "f", RenameFlags::empty())
    })?;
    expect(after.btime == before.btime, "birth stays")?;
    expect(before.btime <= before.ctime, "nothing happens before birth")
}
