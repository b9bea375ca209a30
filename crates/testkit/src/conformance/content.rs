//! The bytes of files.

use super::bench::{ROOT, expect};
use super::{Bench, Case, Check};
use crate::diff::op::{Object, Op};
use crate::diff::outcome::Outcome;
use crate::rng::pattern;
use holdfast_types::{Errno, Fallocate, OpenFlags, Whence};

pub(super) const CASES: &[Case] = &[
    Case::new(
        "appends_of_several_files_never_overwrite_each_other",
        append_from_two,
    ),
    Case::with_users(
        "appends_of_callers_at_work_at_once_are_all_there",
        append_at_once,
    ),
    Case::new("a_gap_reads_as_zeros", gaps),
    Case::new("seek_finds_data_and_holes", seek),
    Case::new("a_punched_hole_is_zeros_and_frees_space", punch),
    Case::new("collapse_and_insert_move_the_rest", shift),
    Case::new("preallocation_keeps_or_extends_the_size", preallocate),
    Case::new("copy_file_range_copies_and_stops_at_the_end", copy),
    Case::new("truncation_and_growth_leave_zeros_behind", truncate),
    Case::new("vectored_transfers_are_one_transfer", vectored),
    Case::new(
        "a_descriptor_gives_only_the_access_it_was_opened_for",
        access_modes,
    ),
];

const READ_WRITE: OpenFlags = OpenFlags::READ_WRITE;

fn append_from_two(bench: &Bench) -> Check {
    bench.file("f", 0, 0)?;
    let flags = OpenFlags::WRITE_ONLY | OpenFlags::APPEND;
    bench.open(ROOT, 0, "f", flags)?;
    bench.open(ROOT, 1, "f", flags)?;
    let mut whole = Vec::new();
    for nth in 0..20 {
        // The given offset is ignored.
        bench.write(ROOT, nth % 2, 3, nth as u64, 100)?;
        whole.extend(pattern(nth as u64, 100));
    }
    expect(
        bench.read(ROOT, 5, 0, 4000)? == whole,
        "each write went to the end",
    )
}

fn append_at_once(bench: &Bench) -> Check {
    const CALLERS: [usize; 4] = [0, 1, 2, 3];
    const EACH: usize = 500;
    const LEN: usize = 64;
    bench.file("f", 0, 0)?;
    bench.chmod("f", 0o666)?;
    let checks: Vec<Check> = std::thread::scope(|scope| {
        let threads = CALLERS.map(|caller| {
            scope.spawn(move || {
                bench.open(caller, 0, "f", OpenFlags::WRITE_ONLY | OpenFlags::APPEND)?;
                for nth in 0..EACH {
                    bench.write(caller, 0, 0, (caller * EACH + nth) as u64, LEN)?;
                }
                bench.close(caller, 0)
            })
        });
        let join = |thread: std::thread::ScopedJoinHandle<'_, Check>| {
            thread
                .join()
                .unwrap_or_else(|_| Err("a caller panicked".into()))
        };
        threads.into_iter().map(join).collect()
    });
    checks.into_iter().collect::<Check>()?;
    let bytes = bench.read(ROOT, 5, 0, 2 * CALLERS.len() * EACH * LEN)?;
    expect(
        bytes.len() == CALLERS.len() * EACH * LEN,
        "no write was lost",
    )?;
    let mut found: Vec<&[u8]> = bytes.chunks(LEN).collect();
    let written = (0..CALLERS.len() * EACH).map(|seed| pattern(seed as u64, LEN));
    let mut wanted: Vec<Vec<u8>> = written.collect();
    found.sort_unstable();
    wanted.sort_unstable();
    expect(found == wanted, "no write was torn")
}

fn gaps(bench: &Bench) -> Check {
    bench.file("f", 1, 10)?;
    bench.write(ROOT, 5, 100_000, 2, 10)?;
    let bytes = bench.read(ROOT, 5, 10, 200_000)?;
    expect(bytes.len() == 100_000, "reading stops at the end")?;
    expect(
        bytes[..99_990].iter().all(|&byte| byte == 0),
        "the gap is zeros",
    )?;
    expect(bytes[99_990..] == pattern(2, 10), "the data follows")
}

fn seek(bench: &Bench) -> Check {
    const MIB: i64 = 1 << 20;
    bench.file("f", 1, 4096)?;
    bench.write(ROOT, 5, MIB, 2, 4096)?;
    let object = Object::File(5);
    bench.ok(
        ROOT,
        &Op::Truncate {
            object,
            len: 2 * MIB,
        },
    )?;
    let at = |offset, whence| {
        bench.call(
            ROOT,
            &Op::Seek {
                slot: 5,
                offset,
                whence,
            },
        )
    };
    let is = |outcome: Outcome, offset: i64| outcome == Outcome::Number(offset as u64);
    expect(is(at(0, Whence::Data), 0), "data begins at 0")?;
    expect(
        is(at(0, Whence::Hole), 4096),
        "the first hole begins behind the data",
    )?;
    expect(
        is(at(5000, Whence::Data), MIB),
        "data is found behind a hole",
    )?;
    expect(
        is(at(MIB, Whence::Hole), MIB + 4096),
        "the second hole is found",
    )?;
    let none = Outcome::Failed(Errno::ENXIO);
    expect(
        at(MIB + 4096, Whence::Data) == none,
        "no data follows the last",
    )?;
    expect(
        at(2 * MIB, Whence::Hole) == none,
        "nothing is behind the end",
    )
}

/// fallocate(2) of the file in slot 5.
fn fallocate(mode: Fallocate, offset: i64, len: i64) -> Op {
    Op::Fallocate {
        slot: 5,
        mode,
        offset,
        len,
    }
}

fn punch(bench: &Bench) -> Check {
    bench.file("f", 1, 40_960)?;
    let before = bench.stat("f")?.blocks;
    let mode = Fallocate::PUNCH_HOLE | Fallocate::KEEP_SIZE;
    bench.ok(ROOT, &fallocate(mode, 4096, 8192))?;
    bench.ok(ROOT, &fallocate(mode, 20_000, 100))?;
    let after = bench.stat("f")?;
    expect(after.size == 40_960, "the size stays")?;
    expect(after.blocks <= before - 16, "whole pages are given back")?;
    let mut bytes = pattern(1, 40_960);
    bytes[4096..12_288].fill(0);
    bytes[20_000..20_100].fill(0);
    expect(
        bench.read(ROOT, 5, 0, 50_000)? == bytes,
        "the hole is zeros, the rest stays",
    )
}

fn shift(bench: &Bench) -> Check {
    bench.file("f", 1, 20_480)?;
    let insert = fallocate(Fallocate::INSERT_RANGE, 4096, 8192);
    if bench.call(ROOT, &insert) == Outcome::Failed(Errno::EOPNOTSUPP) {
        // Not every file system can: tmpfs cannot.
        return expect(
            bench.stat("f")?.size == 20_480,
            "a refused call changes nothing",
        );
    }
    let mut bytes = pattern(1, 20_480);
    bytes.splice(4096..4096, [0; 8192]);
    expect(
        bench.read(ROOT, 5, 0, 50_000)? == bytes,
        "what follows moved up",
    )?;
    bench.ok(ROOT, &fallocate(Fallocate::COLLAPSE_RANGE, 0, 4096))?;
    expect(
        bench.read(ROOT, 5, 0, 50_000)? == bytes[4096..],
        "what follows moved down",
    )?;
    let beyond = fallocate(Fallocate::COLLAPSE_RANGE, 16_384, 8192);
    bench.fails(ROOT, &beyond, Errno::EINVAL)?;
    let odd = fallocate(Fallocate::INSERT_RANGE, 100, 4096);
    bench.fails(ROOT, &odd, Errno::EINVAL)
}

fn preallocate(bench: &Bench) -> Check {
    bench.file("f", 1, 10)?;
    bench.ok(ROOT, &fallocate(Fallocate::KEEP_SIZE, 0, 65_536))?;
    let view = bench.stat("f")?;
    expect(
        view.size == 10 && view.blocks >= 128,
        "space is taken, the size stays",
    )?;
    bench.ok(ROOT, &fallocate(Fallocate::empty(), 0, 20_000))?;
    expect(bench.stat("f")?.size == 20_000, "the size grows")?;
    let zeros = bench.read(ROOT, 5, 10, 30_000)?;
    expect(zeros == [0; 19_990], "what was preallocated is zeros")
}

fn copy(bench: &Bench) -> Check {
    bench.file("from", 1, 10_000)?;
    bench.open(ROOT, 0, "to", READ_WRITE | OpenFlags::CREATE)?;
    let op = Op::CopyRange {
        from: 5,
        from_off: 100,
        to: 0,
        to_off: 5,
        len: 50_000,
    };
    expect(
        bench.ok(ROOT, &op)? == Outcome::Number(9900),
        "it copies what there is",
    )?;
    let want = [&[0; 5][..], &pattern(1, 10_000)[100..]].concat();
    expect(bench.read(ROOT, 0, 0, 20_000)? == want, "the bytes arrive")?;
    let overlap = Op::CopyRange {
        from: 5,
        from_off: 0,
        to: 5,
        to_off: 50,
        len: 100,
    };
    bench.fails(ROOT, &overlap, Errno::EINVAL)
}

fn truncate(bench: &Bench) -> Check {
    bench.file("f", 1, 10_000)?;
    let to = |len| {
        bench.ok(
            ROOT,
            &Op::Truncate {
                object: Object::File(5),
                len,
            },
        )
    };
    to(5000)?;
    to(9000)?;
    let mut bytes = pattern(1, 9000);
    bytes[5000..].fill(0);
    expect(
        bench.read(ROOT, 5, 0, 20_000)? == bytes,
        "cut bytes do not come back",
    )?;
    let path = Object::Path(bench.at("f"));
    bench.ok(
        ROOT,
        &Op::Truncate {
            object: path,
            len: 0,
        },
    )?;
    expect(bench.stat("f")?.blocks == 0, "an empty file takes no space")?;
    bench.fails(
        ROOT,
        &Op::Truncate {
            object: Object::Path(bench.at(".")),
            len: 0,
        },
        Errno::EISDIR,
    )
}

fn vectored(bench: &Bench) -> Check {
    bench.file("f", 0, 0)?;
    let lens = vec![10, 0, 5000, 1];
    let op = Op::Pwrite {
        slot: 5,
        offset: 7,
        lens: lens.clone(),
        fill: 4,
    };
    expect(
        bench.ok(ROOT, &op)? == Outcome::Number(5011),
        "all parts are written",
    )?;
    match bench.ok(
        ROOT,
        &Op::Pread {
            slot: 5,
            offset: 7,
            lens,
        },
    )? {
        Outcome::Data(bytes) => expect(bytes == pattern(4, 5011), "all parts are read"),
        other => Err(other.brief()),
    }
}

fn access_modes(bench: &Bench) -> Check {
    bench.file("f", 1, 10)?;
    bench.open(ROOT, 0, "f", OpenFlags::empty())?;
    bench.open(ROOT, 1, "f", OpenFlags::WRITE_ONLY)?;
    bench.open(ROOT, 2, "f", OpenFlags::PATH)?;
    let write = |slot| Op::Pwrite {
        slot,
        offset: 0,
        lens: vec![1],
        fill: 0,
    };
    let read = |slot| Op::Pread {
        slot,
        offset: 0,
        lens: vec![1],
    };
    bench.fails(ROOT, &write(0), Errno::EBADF)?;
    bench.fails(ROOT, &read(1), Errno::EBADF)?;
    bench.fails(ROOT, &read(2), Errno::EBADF)?;
    bench.fails(
        ROOT,
        &Op::Truncate {
            object: Object::File(0),
            len: 0,
        },
        Errno::EINVAL,
    )?;
    bench.open(ROOT, 3, ".", OpenFlags::DIRECTORY)?;
    bench.fails(ROOT, &read(3), Errno::EISDIR)
}
