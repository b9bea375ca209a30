//! Listings.

use super::bench::{ROOT, expect};
use super::{Bench, Case, Check};
use crate::diff::op::{Bytes, Op};
use crate::effort;
use holdfast_types::{Errno, FileType, OpenFlags};
use std::collections::BTreeSet;

pub(super) const CASES: &[Case] = &[
    Case::new(
        "a_listing_survives_insertions_and_removals",
        concurrent_changes,
    ),
    Case::new("a_large_directory_lists_every_name_once", many_entries),
    Case::new("any_cookie_resumes_where_it_was_given", cookies),
    Case::new(
        "a_removed_directory_lists_nothing_and_takes_nothing",
        removed_directory,
    ),
    Case::new("names_are_any_bytes_but_slash_and_nul", odd_names),
];

fn make(bench: &Bench, name: &str) -> Check {
    let (path, kind) = (bench.at(name), FileType::Regular);
    bench
        .ok(
            ROOT,
            &Op::Mknod {
                path,
                kind,
                perm: 0o644,
                rdev: 0,
            },
        )
        .map(drop)
}

fn remove(bench: &Bench, name: &str) -> Check {
    bench
        .ok(
            ROOT,
            &Op::Unlink {
                path: bench.at(name),
            },
        )
        .map(drop)
}

/// Every name that is there all the time is listed exactly once, others at most once.
fn concurrent_changes(bench: &Bench) -> Check {
    const STAYING: usize = 10_000;
    bench.mkdir(ROOT, "d", 0o755)?;
    for nth in 0..STAYING {
        make(bench, &format!("d/stay{nth}"))?;
        if nth % 10 == 0 {
            make(bench, &format!("d/leave{nth}"))?;
        }
    }
    bench.open(ROOT, 0, "d", OpenFlags::DIRECTORY)?;
    let (mut seen, mut after, mut round) = (Vec::new(), 0, 0);
    loop {
        let run = bench.run_from(0, after, 97)?;
        let Some((_, _, cookie)) = run.last() else {
            break;
        };
        after = *cookie;
        seen.extend(run.into_iter().map(|(name, _, _)| name));
        // Something new, something gone, between any two runs.
        make(bench, &format!("d/new{round}"))?;
        if round * 100 < STAYING {
            remove(bench, &format!("d/leave{}", round * 100))?;
        }
        round += 1;
        expect(
            round < 2 * STAYING,
            "the listing ends although names are added",
        )?;
    }
    let distinct: BTreeSet<&Bytes> = seen.iter().collect();
    expect(distinct.len() == seen.len(), "no name is listed twice")?;
    let staying = seen
        .iter()
        .filter(|name| name.0.starts_with(b"stay"))
        .count();
    expect(staying == STAYING, "no name that stays is left out")
}

/// 10,000 names, or 100,000.
fn many_entries(bench: &Bench) -> Check {
    let count = effort().of(10_000, 100_000);
    bench.mkdir(ROOT, "d", 0o755)?;
    for nth in 0..count {
        make(bench, &format!("d/entry-number-{nth}"))?;
    }
    expect(bench.names("d")?.len() == count, "every name is listed")?;
    bench.stat(&format!("d/entry-number-{}", count / 2))?;
    bench.fails(
        ROOT,
        &Op::Rmdir {
            path: bench.at("d"),
        },
        Errno::ENOTEMPTY,
    )?;
    for nth in 0..count {
        remove(bench, &format!("d/entry-number-{nth}"))?;
    }
    bench
        .ok(
            ROOT,
            &Op::Rmdir {
                path: bench.at("d"),
            },
        )
        .map(drop)
}

fn cookies(bench: &Bench) -> Check {
    bench.mkdir(ROOT, "d", 0o755)?;
    for nth in 0..40 {
        make(bench, &format!("d/f{nth}"))?;
    }
    bench.open(ROOT, 0, "d", OpenFlags::DIRECTORY)?;
    let all = bench.run_from(0, 0, usize::MAX)?;
    expect(all.len() == 42, "all names, . and ..")?;
    for (index, (_, _, cookie)) in all.iter().enumerate() {
        let rest = bench.run_from(0, *cookie, usize::MAX)?;
        expect(
            rest == all[index + 1..],
            "a listing goes on behind the entry",
        )?;
    }
    // The cookie of a name that has gone still marks the place.
    let (name, _, cookie) = &all[20];
    let path = Bytes([&bench.at("d/").0[..], &name.0].concat());
    bench.ok(ROOT, &Op::Unlink { path })?;
    let rest = bench.run_from(0, *cookie, usize::MAX)?;
    expect(rest == all[21..], "a removed name's cookie resumes, too")
}

fn removed_directory(bench: &Bench) -> Check {
    bench.mkdir(ROOT, "d", 0o755)?;
    bench.open(ROOT, 0, "d", OpenFlags::DIRECTORY)?;
    bench.ok(
        ROOT,
        &Op::Rmdir {
            path: bench.at("d"),
        },
    )?;
    expect(bench.fstat(0)?.nlink == 0, "no link is counted")?;
    bench.fails(
        ROOT,
        &Op::ListFrom {
            slot: 0,
            after: 0,
            most: 10,
        },
        Errno::ENOENT,
    )?;
    bench.missing("d")
}

fn odd_names(bench: &Bench) -> Check {
    let longest = vec![b'n'; 255];
    let names: [&[u8]; 6] = [
        b"new\nline",
        b"\xff\xfe",
        b" ",
        b"...",
        b"\x01*?\"",
        &longest,
    ];
    for name in names {
        let op = Op::Mkdir {
            path: bench.at(name),
            perm: 0o755,
        };
        bench.ok(ROOT, &op)?;
        bench.fails(ROOT, &op, Errno::EEXIST)?;
    }
    let listed: BTreeSet<Vec<u8>> = bench.names(".")?.into_keys().map(|name| name.0).collect();
    let wanted: BTreeSet<Vec<u8>> = names.iter().map(|name| name.to_vec()).collect();
    expect(listed == wanted, "each is listed byte by byte")?;
    let op = Op::Mkdir {
        path: bench.at([b'n'; 256]),
        perm: 0o755,
    };
    bench.fails(ROOT, &op, Errno::ENAMETOOLONG)
}
