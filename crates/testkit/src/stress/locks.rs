//! Operations on file locks.

use super::worker::{Row, Worker};
use holdfast_core::{Cancel, LockKind, LockRange, LockSpace};
use holdfast_types::{Errno, Result};

pub(super) const ROWS: &[Row] = &[
    ("set_lock", 25, set),
    ("get_lock", 8, get),
    ("release_locks", 8, release),
];

fn kind(worker: &mut Worker<'_>) -> LockKind {
    if worker.rng.one_in(2) {
        LockKind::Read
    } else {
        LockKind::Write
    }
}

fn range(worker: &mut Worker<'_>) -> LockRange {
    match worker.rng.below(4) {
        0 => LockRange::WHOLE,
        _ => {
            let start = worker.rng.below(10);
            LockRange {
                start,
                end: start + worker.rng.below(5),
            }
        }
    }
}

fn set(worker: &mut Worker<'_>) -> Result<()> {
    let (kind, mut range) = (kind(worker), range(worker));
    let kind = (!worker.rng.one_in(3)).then_some(kind);
    let cancel = worker.rng.one_in(4).then(|| {
        let cancel = Cancel::new();
        let mut waits = worker.world.waits.lock();
        waits.push(cancel.clone());
        cancel
    });
    let fs = &worker.world.fs;
    if worker.rng.one_in(2) {
        let (node, owner) = (worker.node()?, worker.owner());
        let space = LockSpace::Posix;
        let set = fs.set_lock(&node, owner, space, kind, range, 1, cancel.as_ref());
        // Also if it failed: it may hold others there.
        worker
            .hands
            .keep_locked(worker.world, &mut worker.rng, owner, node);
        return set;
    }
    let Some(file) = worker.hands.files.first() else {
        return Err(Errno::EBADF);
    };
    let space = if worker.rng.one_in(2) {
        range = LockRange::WHOLE;
        LockSpace::Flock
    } else {
        LockSpace::Ofd
    };
    fs.set_lock(
        file.node(),
        file.owner(),
        space,
        kind,
        range,
        1,
        cancel.as_ref(),
    )
}

fn get(worker: &mut Worker<'_>) -> Result<()> {
    let (kind, range, owner) = (kind(worker), range(worker), worker.owner());
    let node = worker.node()?;
    let fs = &worker.world.fs;
    let found = fs.get_lock(&node, owner, LockSpace::Posix, kind, range)?;
    let own = found.is_some_and(|lock| (lock.space, lock.owner) == (LockSpace::Posix, owner));
    worker
        .world
        .demand(!own, || format!("in one's own way: {found:?}"));
    Ok(())
}

fn release(worker: &mut Worker<'_>) -> Result<()> {
    let (owner, fs) = (worker.owner(), &worker.world.fs);
    if let Some(node) = worker.hands.locked.pop() {
        fs.release_locks(&node, owner, LockSpace::Posix);
        let (range, space) = (LockRange::WHOLE, LockSpace::Posix);
        let other = holdfast_core::LockOwner(1 << 61);
        let held = fs.get_lock(&node, other, space, LockKind::Write, range)?;
        let own = held.is_some_and(|lock| (lock.space, lock.owner) == (space, owner));
        worker
            .world
            .demand(!own, || format!("released, and held: {held:?}"));
    }
    Ok(())
}
