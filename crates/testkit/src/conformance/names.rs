//! Names: making, linking, removing, renaming.

use super::bench::{ROOT, expect};
use super::{Bench, Case, Check};
use crate::diff::op::{Bytes, Object, Op};
use crate::diff::outcome::Outcome;
use crate::rng::pattern;
use holdfast_types::{Errno, FileType, OpenFlags, RenameFlags};

pub(super) const CASES: &[Case] = &[
    Case::new("an_unlinked_file_lives_while_open", unlinked_but_open),
    Case::new(
        "rename_over_an_open_file_leaves_it_readable",
        rename_over_open,
    ),
    Case::new("hard_links_share_everything_and_are_counted", hard_links),
    Case::new("directories_count_their_subdirectories", directory_links),
    Case::new("exchange_swaps_a_file_and_a_directory", exchange),
    Case::new("noreplace_keeps_what_is_there", noreplace),
    Case::new("whiteout_leaves_a_device_zero", whiteout),
    Case::new("a_directory_cannot_move_into_itself", rename_into_self),
    Case::new(
        "rename_onto_a_link_of_the_same_file_does_nothing",
        rename_same_file,
    ),
    Case::new("only_an_empty_directory_is_replaced", rename_over_directory),
    Case::new("a_tmpfile_gets_its_name_by_link", tmpfile),
    Case::new("an_exclusive_tmpfile_never_gets_a_name", tmpfile_exclusive),
    Case::new("exclusive_creation_refuses_even_a_dangling_link", exclusive),
    Case::new("creation_follows_a_dangling_link", create_through_link),
    Case::new("a_link_to_itself_is_a_loop", loops),
    Case::new("forty_links_are_followed_and_no_more", forty_links),
    Case::new("a_trailing_slash_asks_for_a_directory", trailing_slashes),
    Case::new("special_files_keep_kind_and_number", special_files),
];

fn unlinked_but_open(bench: &Bench) -> Check {
    bench.file("f", 1, 5000)?;
    bench.unlink("f")?;
    bench.missing("f")?;
    expect(bench.fstat(5)?.nlink == 0, "no link is counted")?;
    expect(
        bench.read(ROOT, 5, 0, 6000)? == pattern(1, 5000),
        "the bytes are there",
    )?;
    bench.write(ROOT, 5, 5000, 2, 10)?;
    expect(bench.fstat(5)?.size == 5010, "it can still grow")
}

fn rename_over_open(bench: &Bench) -> Check {
    bench.file("old", 1, 100)?;
    bench.open(ROOT, 0, "old", OpenFlags::empty())?;
    bench.file("new", 2, 50)?;
    bench.rename("new", "old", RenameFlags::empty())?;
    expect(
        bench.read(ROOT, 0, 0, 200)? == pattern(1, 100),
        "the replaced file's bytes stay",
    )?;
    bench.open(ROOT, 1, "old", OpenFlags::empty())?;
    expect(
        bench.read(ROOT, 1, 0, 200)? == pattern(2, 50),
        "the name leads to the new file",
    )?;
    bench.missing("new")
}

fn hard_links(bench: &Bench) -> Check {
    bench.file("a", 1, 10)?;
    bench.mkdir(ROOT, "d", 0o755)?;
    bench.link("a", "d/b")?;
    bench.write(ROOT, 5, 0, 9, 20)?;
    let (a, b) = (bench.stat("a")?, bench.stat("d/b")?);
    expect(
        a.ino == b.ino && a.nlink == 2 && b.size == 20,
        "both names are one file",
    )?;
    bench.unlink("a")?;
    expect(
        bench.stat("d/b")?.nlink == 1,
        "a removed name is no longer counted",
    )?;
    let op = Op::Link {
        from: bench.at("d"),
        to: bench.at("e"),
        follow: false,
    };
    bench.fails(ROOT, &op, Errno::EPERM)
}

fn directory_links(bench: &Bench) -> Check {
    let before = bench.stat(".")?.nlink;
    bench.mkdir(ROOT, "d", 0o755)?;
    bench.mkdir(ROOT, "d/sub", 0o755)?;
    bench.file("d/f", 0, 0)?;
    expect(
        bench.stat("d")?.nlink == 3,
        "itself, its name and one subdirectory",
    )?;
    expect(
        bench.stat(".")?.nlink == before + 1,
        "files and grandchildren do not count",
    )?;
    bench.rename("d/sub", "sub", RenameFlags::empty())?;
    expect(
        bench.stat("d")?.nlink == 2 && bench.stat(".")?.nlink == before + 2,
        "links move",
    )
}

fn exchange(bench: &Bench) -> Check {
    bench.file("f", 1, 10)?;
    bench.mkdir(ROOT, "d", 0o755)?;
    bench.mkdir(ROOT, "d/x", 0o755)?;
    bench.rename("f", "d", RenameFlags::EXCHANGE)?;
    expect(
        bench.stat("f")?.kind == FileType::Directory,
        "the directory has the file's name",
    )?;
    expect(
        bench.stat("d")?.size == 10,
        "the file has the directory's name",
    )?;
    bench.stat("f/x")?;
    bench.fails(
        ROOT,
        &bench.renaming("f", "none", RenameFlags::EXCHANGE),
        Errno::ENOENT,
    )
}

fn noreplace(bench: &Bench) -> Check {
    bench.file("a", 1, 10)?;
    bench.file("b", 1, 20)?;
    bench.fails(
        ROOT,
        &bench.renaming("a", "b", RenameFlags::NOREPLACE),
        Errno::EEXIST,
    )?;
    bench.rename("a", "c", RenameFlags::NOREPLACE)?;
    expect(
        bench.stat("b")?.size == 20 && bench.stat("c")?.size == 10,
        "nothing was replaced",
    )
}

fn whiteout(bench: &Bench) -> Check {
    bench.file("a", 1, 10)?;
    let op = bench.renaming("a", "b", RenameFlags::WHITEOUT);
    if bench.call(ROOT, &op) == Outcome::Failed(Errno::EINVAL) {
        // FUSE's kernel side passes no whiteouts on: the claim is empty there.
        return expect(
            bench.stat("a")?.size == 10,
            "a refused rename changes nothing",
        );
    }
    let left = bench.stat("a")?;
    expect(
        left.kind == FileType::CharDevice && left.rdev == 0,
        "the old name is a whiteout",
    )?;
    expect(
        bench.stat("b")?.size == 10,
        "the new name leads to the file",
    )
}

fn rename_into_self(bench: &Bench) -> Check {
    bench.mkdir(ROOT, "d", 0o755)?;
    bench.mkdir(ROOT, "d/e", 0o755)?;
    bench.fails(
        ROOT,
        &bench.renaming("d", "d/e/f", RenameFlags::empty()),
        Errno::EINVAL,
    )?;
    bench.fails(
        ROOT,
        &bench.renaming("d/e", "d", RenameFlags::empty()),
        Errno::ENOTEMPTY,
    )?;
    bench.fails(
        ROOT,
        &bench.renaming("d", "d/e", RenameFlags::EXCHANGE),
        Errno::EINVAL,
    )
}

fn rename_same_file(bench: &Bench) -> Check {
    bench.file("a", 1, 10)?;
    bench.link("a", "b")?;
    bench.rename("a", "b", RenameFlags::empty())?;
    expect(
        bench.stat("a")?.nlink == 2 && bench.stat("b")?.nlink == 2,
        "both names stay",
    )
}

fn rename_over_directory(bench: &Bench) -> Check {
    for dir in ["from", "full", "empty", "full/x"] {
        bench.mkdir(ROOT, dir, 0o755)?;
    }
    bench.file("f", 0, 0)?;
    let plain = RenameFlags::empty();
    bench.fails(
        ROOT,
        &bench.renaming("from", "full", plain),
        Errno::ENOTEMPTY,
    )?;
    bench.fails(ROOT, &bench.renaming("f", "empty", plain), Errno::EISDIR)?;
    bench.fails(ROOT, &bench.renaming("from", "f", plain), Errno::ENOTDIR)?;
    bench.rename("from", "empty", plain)?;
    bench.missing("from")
}

fn tmpfile(bench: &Bench) -> Check {
    bench.open(ROOT, 0, ".", OpenFlags::TMPFILE | OpenFlags::READ_WRITE)?;
    bench.write(ROOT, 0, 0, 3, 100)?;
    expect(bench.fstat(0)?.nlink == 0, "it has no name at first")?;
    expect(bench.names(".")?.is_empty(), "nothing is listed")?;
    bench.ok(
        ROOT,
        &Op::LinkOpen {
            slot: 0,
            to: bench.at("named"),
        },
    )?;
    let named = bench.stat("named")?;
    expect(
        named.nlink == 1 && named.size == 100,
        "the name leads to it",
    )?;
    expect(named.ino == bench.fstat(0)?.ino, "it is the same file")
}

fn tmpfile_exclusive(bench: &Bench) -> Check {
    let flags = OpenFlags::TMPFILE | OpenFlags::READ_WRITE | OpenFlags::EXCLUSIVE;
    bench.open(ROOT, 0, ".", flags)?;
    bench.fails(
        ROOT,
        &Op::LinkOpen {
            slot: 0,
            to: bench.at("named"),
        },
        Errno::ENOENT,
    )
}

fn symlink(bench: &Bench, target: &str, path: &str) -> Check {
    let target = Bytes::from(target.as_bytes());
    bench
        .ok(
            ROOT,
            &Op::Symlink {
                target,
                path: bench.at(path),
            },
        )
        .map(drop)
}

fn exclusive(bench: &Bench) -> Check {
    symlink(bench, "nowhere", "l")?;
    let flags = OpenFlags::CREATE | OpenFlags::EXCLUSIVE;
    let op = Op::Open {
        path: bench.at("l"),
        flags,
        perm: 0o644,
        slot: 0,
    };
    bench.fails(ROOT, &op, Errno::EEXIST)?;
    bench.missing("nowhere")
}

fn create_through_link(bench: &Bench) -> Check {
    symlink(bench, "target", "l")?;
    bench.open(ROOT, 0, "l", OpenFlags::CREATE)?;
    expect(
        bench.stat("target")?.kind == FileType::Regular,
        "the target was made",
    )?;
    expect(
        bench.stat("l")?.kind == FileType::Symlink,
        "the link is still one",
    )
}

fn loops(bench: &Bench) -> Check {
    symlink(bench, "l", "l")?;
    let object = Object::Path(bench.at("l"));
    bench.fails(ROOT, &Op::Stat { object }, Errno::ELOOP)?;
    let path = bench.at("l/x");
    bench.fails(ROOT, &Op::Mkdir { path, perm: 0o755 }, Errno::ELOOP)
}

fn forty_links(bench: &Bench) -> Check {
    bench.file("l0", 0, 0)?;
    for nth in 1..=41 {
        symlink(bench, &format!("l{}", nth - 1), &format!("l{nth}"))?;
    }
    bench.ok(
        ROOT,
        &Op::Stat {
            object: Object::Path(bench.at("l40")),
        },
    )?;
    bench.fails(
        ROOT,
        &Op::Stat {
            object: Object::Path(bench.at("l41")),
        },
        Errno::ELOOP,
    )
}

fn trailing_slashes(bench: &Bench) -> Check {
    bench.ok(
        ROOT,
        &Op::Mkdir {
            path: bench.at("d/"),
            perm: 0o755,
        },
    )?;
    bench.file("f", 0, 0)?;
    bench.fails(
        ROOT,
        &Op::Stat {
            object: Object::Link(bench.at("f/")),
        },
        Errno::ENOTDIR,
    )?;
    bench.fails(
        ROOT,
        &Op::Unlink {
            path: bench.at("f/"),
        },
        Errno::ENOTDIR,
    )?;
    bench.fails(
        ROOT,
        &Op::Unlink {
            path: bench.at("d/"),
        },
        Errno::EISDIR,
    )?;
    symlink(bench, "d", "l")?;
    let op = Op::Stat {
        object: Object::Link(bench.at("l/")),
    };
    match bench.ok(ROOT, &op)? {
        Outcome::Attributes(view) => {
            expect(view.kind == FileType::Directory, "slashes follow a link")
        }
        other => Err(other.brief()),
    }
}

fn special_files(bench: &Bench) -> Check {
    let device = rustix::fs::makedev(259, 70_000);
    for (name, kind, rdev) in [
        ("fifo", FileType::Fifo, 0),
        ("socket", FileType::Socket, 0),
        ("char", FileType::CharDevice, device),
        ("block", FileType::BlockDevice, device),
    ] {
        bench.ok(
            ROOT,
            &Op::Mknod {
                path: bench.at(name),
                kind,
                perm: 0o640,
                rdev,
            },
        )?;
        let view = bench.stat(name)?;
        expect(
            (view.kind, view.rdev) == (kind, rdev),
            "kind and number are kept",
        )?;
        let listed = bench
            .names(".")?
            .get(&Bytes::from(name.as_bytes()))
            .copied();
        expect(listed == Some(kind.dirent_type()), "listings tell the kind")?;
    }
    Ok(())
}
