//! Operations on the content of files. All offsets and lengths are multiples of a word, so that
//! every word read is one that was written, or zero.

use super::words::{WORD, fill, foreign};
use super::worker::{Row, Worker};
use super::world::World;
use crate::rng::Rng;
use holdfast_core::OpenFile;
use holdfast_types::{Errno, Fallocate, OpenFlags, Result, SetAttr, Whence};
use std::io::{IoSlice, IoSliceMut};

pub(super) const ROWS: &[Row] = &[
    ("read", 80, read),
    ("read_vectored", 15, read_vectored),
    ("write", 60, write),
    ("write_vectored", 15, write_vectored),
    ("append", 20, append),
    ("truncate", 25, truncate),
    ("fallocate", 30, fallocate),
    ("copy_file_range", 15, copy),
    ("seek", 10, seek),
    ("fsync", 5, fsync),
    ("set_flags", 5, set_flags),
];

const PAGE: u64 = 4096;
/// Where files mostly end.
const SIZE: u64 = 40 * PAGE;

fn offset(rng: &mut Rng) -> u64 {
    if rng.one_in(40) {
        // Far out: a sparse file.
        return (1 << 40) + rng.below(8) * PAGE;
    }
    let span = if rng.one_in(2) { PAGE } else { SIZE };
    rng.below(span / WORD as u64) * WORD as u64
}

fn len(rng: &mut Rng) -> usize {
    let span = *rng.pick(&[64, 1024, PAGE, 8 * PAGE]);
    rng.below(span / WORD as u64 + 1) as usize * WORD
}

fn check(world: &World, what: &str, bytes: &[u8]) {
    if let Some(word) = foreign(world.round, bytes) {
        world.complain(format!("{what} found {word:02x?}, which nobody wrote"));
    }
}

fn read(worker: &mut Worker<'_>) -> Result<()> {
    worker.with_file(|rng, world, _, file| {
        let mut bytes = vec![0xa5; len(rng)];
        let read = world.fs.read(file, offset(rng), &mut bytes)?;
        check(world, "a read", &bytes[..read]);
        let rest = bytes[read..].iter().all(|byte| *byte == 0xa5);
        world.demand(rest, || "a read wrote behind what it says".to_owned());
        Ok(())
    })
}

fn read_vectored(worker: &mut Worker<'_>) -> Result<()> {
    worker.with_file(|rng, world, _, file| {
        let (mut one, mut other) = (vec![0; len(rng)], vec![0; len(rng)]);
        let mut bufs = [IoSliceMut::new(&mut one), IoSliceMut::new(&mut other)];
        let read = world.fs.read_vectored(file, offset(rng), &mut bufs)?;
        let first = read.min(one.len());
        check(world, "a vectored read", &one[..first]);
        check(world, "a vectored read", &other[..read - first]);
        Ok(())
    })
}

fn write(worker: &mut Worker<'_>) -> Result<()> {
    worker.with_file(|rng, world, who, file| {
        let len = len(rng);
        let bytes = fill(world.round, rng, len);
        let written = world.fs.write(who, file, offset(rng), &bytes)?;
        world.demand(written <= len, || format!("wrote {written} of {len}"));
        Ok(())
    })
}

fn write_vectored(worker: &mut Worker<'_>) -> Result<()> {
    worker.with_file(|rng, world, who, file| {
        let (one, other) = (len(rng), len(rng));
        let (one, other) = (fill(world.round, rng, one), fill(world.round, rng, other));
        let bufs = [IoSlice::new(&one), IoSlice::new(&[]), IoSlice::new(&other)];
        world
            .fs
            .write_vectored(who, file, offset(rng), &bufs)
            .map(drop)
    })
}

fn append(worker: &mut Worker<'_>) -> Result<()> {
    worker.with_file(|rng, world, who, file| {
        if world.fs.attributes(file.node())?.size > 2 * SIZE {
            return Err(Errno::EFBIG);
        }
        let len = len(rng);
        let bytes = fill(world.round, rng, len);
        let (at, written) = world.fs.append(who, file, &bytes)?;
        let whole = at % WORD as u64 == 0 && written.is_multiple_of(WORD);
        world.demand(whole, || format!("appended {written} at {at}"));
        Ok(())
    })
}

fn truncate(worker: &mut Worker<'_>) -> Result<()> {
    worker.with_file(|rng, world, who, file| {
        let size = if rng.one_in(3) { 0 } else { offset(rng) };
        let set = SetAttr {
            size: Some(size),
            ..SetAttr::default()
        };
        let through = rng.one_in(2).then_some(file);
        world.fs.setattr(who, file.node(), &set, through).map(drop)
    })
}

fn fallocate(worker: &mut Worker<'_>) -> Result<()> {
    worker.with_file(|rng, world, who, file| {
        let modes = [
            Fallocate::empty(),
            Fallocate::KEEP_SIZE,
            Fallocate::PUNCH_HOLE | Fallocate::KEEP_SIZE,
            Fallocate::PUNCH_HOLE | Fallocate::KEEP_SIZE,
            Fallocate::ZERO_RANGE,
            Fallocate::ZERO_RANGE | Fallocate::KEEP_SIZE,
            Fallocate::COLLAPSE_RANGE,
            Fallocate::INSERT_RANGE,
        ];
        let mode = *rng.pick(&modes);
        let (mut from, mut len) = (offset(rng), len(rng) as u64);
        if mode.intersects(Fallocate::COLLAPSE_RANGE | Fallocate::INSERT_RANGE) {
            (from, len) = (from / PAGE * PAGE, len / PAGE * PAGE);
            let size = world.fs.attributes(file.node())?.size;
            if mode.contains(Fallocate::INSERT_RANGE) && size > 2 * SIZE {
                return Err(Errno::EFBIG);
            }
        }
        world.fs.fallocate(who, file, mode, from, len)
    })
}

fn copy(worker: &mut Worker<'_>) -> Result<()> {
    let who = worker.who();
    let files = &worker.hands.files;
    if files.is_empty() {
        return Err(Errno::EBADF);
    }
    let (from, to) = (worker.rng.index(files.len()), worker.rng.index(files.len()));
    let (from, to): (&OpenFile, &OpenFile) = (&files[from], &files[to]);
    let rng = &mut worker.rng;
    let (source, target, len) = (offset(rng), offset(rng), len(rng) as u64);
    let fs = &worker.world.fs;
    let copied = fs.copy_file_range(&who, from, source, to, target, len)?;
    worker
        .world
        .demand(copied <= len, || format!("copied {copied} of {len}"));
    Ok(())
}

fn seek(worker: &mut Worker<'_>) -> Result<()> {
    worker.with_file(|rng, world, _, file| {
        let whence = *rng.pick(&[Whence::Data, Whence::Hole]);
        let from = offset(rng);
        let found = world.fs.seek(file, from, whence)?;
        world.demand(found >= from, || format!("sought {from}, found {found}"));
        Ok(())
    })
}

fn fsync(worker: &mut Worker<'_>) -> Result<()> {
    worker.with_file(|rng, world, _, file| world.fs.fsync(file, rng.one_in(2)))
}

fn set_flags(worker: &mut Worker<'_>) -> Result<()> {
    worker.with_file(|rng, _, _, file| {
        let mut flags = file.flags();
        flags.set(OpenFlags::APPEND, rng.one_in(4));
        flags.set(OpenFlags::NOATIME, rng.one_in(2));
        file.set_flags(flags);
        Ok(())
    })
}
