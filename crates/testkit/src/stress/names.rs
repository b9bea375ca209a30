//! Operations on names.

use super::paths::{dir_name, name, path};
use super::worker::{Row, Worker};
use holdfast_core::DirEntry;
use holdfast_types::{Errno, FileType, OpenFlags, RenameFlags, Result};

pub(super) const ROWS: &[Row] = &[
    ("lookup", 30, lookup),
    ("stat_at", 40, stat_at),
    ("resolve", 20, resolve),
    ("resolve_parent", 5, resolve_parent),
    ("node", 10, by_number),
    ("create", 40, create),
    ("open_at", 40, open_at),
    ("tmpfile", 10, tmpfile),
    ("open", 20, open),
    ("mkdir", 20, mkdir),
    ("mkdir_at", 10, mkdir_at),
    ("mknod", 8, mknod),
    ("symlink", 8, symlink),
    ("link", 15, link),
    ("unlink", 30, unlink),
    ("unlink_at", 20, unlink_at),
    ("rmdir", 10, rmdir),
    ("rename", 25, rename),
    ("rename_at", 15, rename_at),
    ("read_dir", 15, read_dir),
    ("read_dir_plus", 10, read_dir_plus),
    ("close", 60, close),
];

/// Errors that say that what was asked for by number has gone.
fn or_gone(answer: Result<()>) -> Result<()> {
    answer.map_err(|error| match error {
        Errno::ESTALE => Errno::ENOENT,
        other => other,
    })
}

fn flags(worker: &mut Worker<'_>) -> OpenFlags {
    let rng = &mut worker.rng;
    let mut flags = *rng.pick(&[
        OpenFlags::empty(),
        OpenFlags::READ_WRITE,
        OpenFlags::READ_WRITE,
        OpenFlags::WRITE_ONLY,
    ]);
    for (flag, odds) in [
        (OpenFlags::EXCLUSIVE, 6),
        (OpenFlags::TRUNCATE, 8),
        (OpenFlags::APPEND, 6),
        (OpenFlags::NOFOLLOW, 8),
        (OpenFlags::NOATIME, 8),
        (OpenFlags::DIRECTORY, 10),
        (OpenFlags::SYNC, 20),
        (OpenFlags::PATH, 20),
    ] {
        flags.set(flag, rng.one_in(odds));
    }
    flags
}

fn lookup(worker: &mut Worker<'_>) -> Result<()> {
    let (who, dir, name) = (worker.who(), worker.dir()?, name(&mut worker.rng));
    let node = worker.world.fs.lookup(&who, &dir, &name)?;
    if worker.rng.one_in(3) {
        worker.hands.keep_node(worker.world, &mut worker.rng, node);
    }
    Ok(())
}

fn stat_at(worker: &mut Worker<'_>) -> Result<()> {
    let (who, base, path) = (worker.who(), worker.base(), path(&mut worker.rng));
    let follow = worker.rng.one_in(2);
    worker
        .world
        .fs
        .stat_at(&who, &base, &path, follow)
        .map(drop)
}

fn resolve(worker: &mut Worker<'_>) -> Result<()> {
    let (who, base, path) = (worker.who(), worker.base(), path(&mut worker.rng));
    let follow = worker.rng.one_in(2);
    let node = worker.world.fs.resolve(&who, &base, &path, follow)?;
    if worker.rng.one_in(3) {
        worker.hands.keep_node(worker.world, &mut worker.rng, node);
    }
    Ok(())
}

fn resolve_parent(worker: &mut Worker<'_>) -> Result<()> {
    let (who, base, path) = (worker.who(), worker.base(), path(&mut worker.rng));
    worker.world.fs.resolve_parent(&who, &base, &path).map(drop)
}

fn by_number(worker: &mut Worker<'_>) -> Result<()> {
    let known = worker.hands.raw.last().copied();
    let ino = match known {
        Some(ino) if worker.rng.one_in(2) => ino,
        // One that is, was, or will be.
        _ => holdfast_types::Ino(worker.rng.below(1 << 14)),
    };
    let found = worker.world.fs.node(ino);
    if let Ok(node) = &found {
        let attr = worker.world.fs.getattr(node);
        let same = attr.ino == ino && node.ino() == ino;
        worker
            .world
            .demand(same, || format!("{ino:?} led to {attr:?}"));
    }
    or_gone(found.map(drop))
}

fn create(worker: &mut Worker<'_>) -> Result<()> {
    let (who, dir, name) = (worker.who(), worker.dir()?, name(&mut worker.rng));
    let flags = flags(worker) | OpenFlags::CREATE;
    let file = worker.world.fs.create(&who, &dir, &name, 0o664, flags)?;
    worker.hands.keep_file(&mut worker.rng, file);
    Ok(())
}

fn open_at(worker: &mut Worker<'_>) -> Result<()> {
    let (who, base, path) = (worker.who(), worker.base(), path(&mut worker.rng));
    let mut flags = flags(worker);
    flags.set(OpenFlags::CREATE, worker.rng.one_in(2));
    let file = worker.world.fs.open_at(&who, &base, &path, flags, 0o664)?;
    worker.hands.keep_file(&mut worker.rng, file);
    Ok(())
}

fn tmpfile(worker: &mut Worker<'_>) -> Result<()> {
    let (who, dir) = (worker.who(), worker.dir()?);
    let mut flags = OpenFlags::READ_WRITE;
    flags.set(OpenFlags::EXCLUSIVE, worker.rng.one_in(3));
    let file = worker.world.fs.tmpfile(&who, &dir, 0o600, flags)?;
    worker.hands.keep_file(&mut worker.rng, file);
    Ok(())
}

fn open(worker: &mut Worker<'_>) -> Result<()> {
    let (who, node, flags) = (worker.who(), worker.node()?, flags(worker));
    let file = worker.world.fs.open(&who, &node, flags)?;
    worker.hands.keep_file(&mut worker.rng, file);
    Ok(())
}

fn mkdir(worker: &mut Worker<'_>) -> Result<()> {
    let (who, dir, name) = (worker.who(), worker.dir()?, dir_name(&mut worker.rng));
    let made = worker.world.fs.mkdir(&who, &dir, &name, 0o2775)?;
    if worker.rng.one_in(3) {
        worker.hands.keep_node(worker.world, &mut worker.rng, made);
    }
    Ok(())
}

fn mkdir_at(worker: &mut Worker<'_>) -> Result<()> {
    let (who, base, path) = (worker.who(), worker.base(), path(&mut worker.rng));
    worker
        .world
        .fs
        .mkdir_at(&who, &base, &path, 0o777)
        .map(drop)
}

fn mknod(worker: &mut Worker<'_>) -> Result<()> {
    let kinds = [
        FileType::Fifo,
        FileType::Socket,
        FileType::CharDevice,
        FileType::Regular,
    ];
    let kind = *worker.rng.pick(&kinds);
    let fs = &worker.world.fs;
    if worker.rng.one_in(2) {
        let (who, base, path) = (worker.who(), worker.base(), path(&mut worker.rng));
        return fs
            .mknod_at(&who, &base, &path, kind, 0o666, 0x105)
            .map(drop);
    }
    let (who, dir, name) = (worker.who(), worker.dir()?, name(&mut worker.rng));
    fs.mknod(&who, &dir, &name, kind, 0o666, 0x105).map(drop)
}

fn symlink(worker: &mut Worker<'_>) -> Result<()> {
    let target = path(&mut worker.rng);
    let fs = &worker.world.fs;
    if worker.rng.one_in(2) {
        let (who, base, path) = (worker.who(), worker.base(), path(&mut worker.rng));
        return fs.symlink_at(&who, &base, &path, &target).map(drop);
    }
    let (who, dir, name) = (worker.who(), worker.dir()?, name(&mut worker.rng));
    fs.symlink(&who, &dir, &name, &target).map(drop)
}

fn link(worker: &mut Worker<'_>) -> Result<()> {
    // An unnamed file that is held gets its first name, any other one more.
    let node = match worker.hands.files.last() {
        Some(file) if worker.rng.one_in(2) => file.node().clone(),
        _ => worker.node()?,
    };
    let fs = &worker.world.fs;
    if worker.rng.one_in(2) {
        let (who, base, path) = (worker.who(), worker.base(), path(&mut worker.rng));
        return fs.link_at(&who, &node, &base, &path);
    }
    let (who, dir, name) = (worker.who(), worker.dir()?, name(&mut worker.rng));
    fs.link(&who, &node, &dir, &name)
}

fn unlink(worker: &mut Worker<'_>) -> Result<()> {
    let (who, dir, name) = (worker.who(), worker.dir()?, name(&mut worker.rng));
    worker.world.fs.unlink(&who, &dir, &name)
}

fn unlink_at(worker: &mut Worker<'_>) -> Result<()> {
    let (who, base, path) = (worker.who(), worker.base(), path(&mut worker.rng));
    worker.world.fs.unlink_at(&who, &base, &path)
}

fn rmdir(worker: &mut Worker<'_>) -> Result<()> {
    let fs = &worker.world.fs;
    if worker.rng.one_in(2) {
        let (who, base, path) = (worker.who(), worker.base(), path(&mut worker.rng));
        return fs.rmdir_at(&who, &base, &path);
    }
    let (who, dir, name) = (worker.who(), worker.dir()?, dir_name(&mut worker.rng));
    fs.rmdir(&who, &dir, &name)
}

fn rename_flags(worker: &mut Worker<'_>) -> RenameFlags {
    match worker.rng.below(10) {
        0 => RenameFlags::NOREPLACE,
        1 | 2 => RenameFlags::EXCHANGE,
        3 => RenameFlags::WHITEOUT,
        _ => RenameFlags::empty(),
    }
}

fn rename(worker: &mut Worker<'_>) -> Result<()> {
    let (who, from) = (worker.who(), worker.dir()?);
    let to = if worker.rng.one_in(2) {
        from.clone()
    } else {
        worker.dir()?
    };
    let (old, new) = (name(&mut worker.rng), name(&mut worker.rng));
    let flags = rename_flags(worker);
    worker.world.fs.rename(&who, &from, &old, &to, &new, flags)
}

fn rename_at(worker: &mut Worker<'_>) -> Result<()> {
    let (who, from, to) = (worker.who(), worker.base(), worker.base());
    let (old, new) = (path(&mut worker.rng), path(&mut worker.rng));
    let flags = rename_flags(worker);
    worker
        .world
        .fs
        .rename_at(&who, &from, &old, &to, &new, flags)
}

/// Notes an entry of a listing; complains if the order is not that of cookies.
fn note(worker: &Worker<'_>, last: &mut u64, entry: DirEntry<'_>) {
    let (before, now) = (*last, entry.cookie);
    let trouble = || format!("cookie {now} after {before}, at {:?}", entry.name);
    worker.world.demand(now > before, trouble);
    *last = now;
}

fn read_dir(worker: &mut Worker<'_>) -> Result<()> {
    let (who, dir) = (worker.who(), worker.dir()?);
    let opened = worker.world.fs.open(&who, &dir, OpenFlags::empty())?;
    let (mut last, most, mut seen) = (0, worker.rng.below(60), 0);
    for _ in 0..2 {
        let fs = &worker.world.fs;
        fs.read_dir(&opened, last, &mut |entry| {
            note(worker, &mut last, entry);
            seen += 1;
            seen < most
        })?;
    }
    worker.hands.keep_file(&mut worker.rng, opened);
    Ok(())
}

fn read_dir_plus(worker: &mut Worker<'_>) -> Result<()> {
    let (who, dir) = (worker.who(), worker.dir()?);
    let opened = worker.world.fs.open(&who, &dir, OpenFlags::empty())?;
    let (mut last, mut kept) = (0, None);
    let fs = &worker.world.fs;
    fs.read_dir_plus(&opened, 0, &mut |entry, attr| {
        note(worker, &mut last, entry);
        let agree = attr.is_ok_and(|attr| entry.kind == attr.kind && attr.ino == entry.ino);
        let trouble = || format!("{entry:?} has {attr:?}");
        // `..` is the parent of the moment, and its entry that of the moment before.
        worker.world.demand(agree || entry.name == b"..", trouble);
        kept = fs.node(entry.ino).ok();
        true
    })?;
    if let Some(node) = kept {
        worker.hands.keep_node(worker.world, &mut worker.rng, node);
    }
    Ok(())
}

fn close(worker: &mut Worker<'_>) -> Result<()> {
    let owner = worker.owner();
    worker.hands.drop_one(worker.world, &mut worker.rng, owner);
    Ok(())
}
