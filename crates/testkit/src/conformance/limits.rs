//! The ends of ranges: long paths, deep trees, far offsets.

use super::bench::{ROOT, expect};
use super::{Bench, Case, Check};
use crate::diff::op::{Bytes, Object, Op};
use crate::diff::outcome::Outcome;
use crate::rng::pattern;
use holdfast_types::{Errno, RenameFlags};

pub(super) const CASES: &[Case] = &[
    Case::new("a_path_of_4095_bytes_is_walked_and_no_longer", path_length),
    Case::new("a_tree_4096_deep_is_made_walked_and_removed", depth),
    Case::new("the_last_byte_is_number_2_to_the_63_minus_2", far_offsets),
    Case::new("negative_and_overflowing_ranges_are_refused", bad_ranges),
];

fn path_length(bench: &Bench) -> Check {
    let tail = bench.at("d").0;
    let spelt = |total: usize| {
        let mut path = b"./".repeat((total - tail.len()) / 2);
        if path.len() + tail.len() < total {
            path.push(b'/');
        }
        Bytes([&path[..], &tail].concat())
    };
    bench.ok(
        ROOT,
        &Op::Mkdir {
            path: spelt(4095),
            perm: 0o755,
        },
    )?;
    bench.ok(
        ROOT,
        &Op::Stat {
            object: Object::Path(spelt(4095)),
        },
    )?;
    let object = Object::Path(spelt(4096));
    bench.fails(ROOT, &Op::Stat { object }, Errno::ENAMETOOLONG)
}

/// The way down is in legs, each made by the top and then moved below the one before; symbolic
/// links lead to where a leg begins. Made and removed in their places, they would take a walk of
/// all that is above for each.
fn depth(bench: &Bench) -> Check {
    const LEG: usize = 256;
    const LEGS: usize = 16;
    let leg = "d/".repeat(LEG);
    let way = |depth: usize| &leg[..2 * depth];
    let start = |nth: usize| {
        if nth == 0 {
            String::new()
        } else {
            format!("leg{nth}/")
        }
    };
    let moved = |from: &str, to: &str| bench.rename(from, to, RenameFlags::empty());
    let removed = |path: &str| {
        let path = bench.at(path);
        bench.ok(ROOT, &Op::Rmdir { path }).map(drop)
    };
    for nth in 0..LEGS {
        bench.mkdir(ROOT, "top", 0o755)?;
        for depth in 1..LEG {
            bench.mkdir(ROOT, &format!("top/{}", way(depth)), 0o755)?;
        }
        moved("top", &format!("{}d", start(nth)))?;
        let target = Bytes(format!("{}{leg}", start(nth)).into_bytes());
        let path = bench.at(format!("leg{}", nth + 1));
        bench.ok(ROOT, &Op::Symlink { target, path })?;
    }
    let bottom = start(LEGS);
    let (last, below) = (format!("{bottom}x"), format!("{bottom}y"));
    bench.file(&last, 1, 10)?;
    expect(bench.stat(&last)?.size == 10, "the deepest file is found")?;
    bench.unlink(&last)?;
    bench.mkdir(ROOT, &below, 0o755)?;
    removed(&below)?;
    for nth in (0..LEGS).rev() {
        moved(&format!("{}d", start(nth)), "top")?;
        for depth in (0..LEG).rev() {
            removed(&format!("top/{}", way(depth)))?;
        }
        bench.unlink(&format!("leg{}", nth + 1))?;
    }
    expect(bench.names(".")?.is_empty(), "nothing is left")
}

fn far_offsets(bench: &Bench) -> Check {
    const LAST: i64 = i64::MAX - 1;
    bench.file("f", 0, 0)?;
    if let Outcome::Failed(error) = bench.call(
        ROOT,
        &Op::Truncate {
            object: Object::File(5),
            len: i64::MAX,
        },
    ) {
        // File systems with smaller files say so.
        return expect(error == Errno::EFBIG, "a file too large is EFBIG");
    }
    expect(
        bench.fstat(5)?.size == i64::MAX as u64,
        "the largest size can be had",
    )?;
    bench.write(ROOT, 5, LAST, 1, 1)?;
    expect(
        bench.read(ROOT, 5, LAST, 1)? == pattern(1, 1),
        "the last byte is there",
    )?;
    expect(bench.fstat(5)?.blocks <= 64, "and little else")?;
    let write = Op::Pwrite {
        slot: 5,
        offset: i64::MAX,
        lens: vec![1],
        fill: 0,
    };
    let outcome = bench.call(ROOT, &write);
    let refused = [
        Outcome::Failed(Errno::EFBIG),
        Outcome::Failed(Errno::EINVAL),
    ];
    expect(refused.contains(&outcome), "no byte follows")?;
    let object = Object::File(5);
    bench.ok(ROOT, &Op::Truncate { object, len: 1 })?;
    expect(
        bench.read(ROOT, 5, 0, 10)? == [0],
        "and it can be cut again",
    )
}

fn bad_ranges(bench: &Bench) -> Check {
    bench.file("f", 1, 10)?;
    let read = |offset| Op::Pread {
        slot: 5,
        offset,
        lens: vec![10],
    };
    bench.fails(ROOT, &read(-1), Errno::EINVAL)?;
    bench.fails(ROOT, &read(i64::MAX - 5), Errno::EINVAL)?;
    bench.fails(
        ROOT,
        &Op::Truncate {
            object: Object::File(5),
            len: -1,
        },
        Errno::EINVAL,
    )?;
    let mode = holdfast_types::Fallocate::empty();
    let allocate = |offset, len| Op::Fallocate {
        slot: 5,
        mode,
        offset,
        len,
    };
    bench.fails(ROOT, &allocate(0, 0), Errno::EINVAL)?;
    bench.fails(ROOT, &allocate(-1, 10), Errno::EINVAL)?;
    bench.fails(ROOT, &allocate(i64::MAX - 5, 10), Errno::EFBIG)?;
    expect(bench.fstat(5)?.size == 10, "nothing changed")
}
