//! What a thread holds on to: open files, nodes, uses by number, watches, locks.

use super::world::World;
use crate::rng::Rng;
use holdfast_core::{LockOwner, LockSpace, Node, OpenFile, Watch};
use holdfast_types::{Caller, Errno, Ino, OpenFlags};
use std::time::Duration;

/// So many of each at most.
const MOST: usize = 24;

/// What one thread holds.
#[derive(Default)]
pub(super) struct Hands {
    pub(super) files: Vec<OpenFile>,
    pub(super) dirs: Vec<OpenFile>,
    pub(super) nodes: Vec<Node>,
    /// Uses that only their number is known of.
    pub(super) raw: Vec<Ino>,
    pub(super) watches: Vec<Watch>,
    /// Inodes on which its POSIX owner may hold locks.
    pub(super) locked: Vec<Node>,
}

/// Puts one in, in the place of another if there are many.
fn put<T>(held: &mut Vec<T>, rng: &mut Rng, new: T) -> Option<T> {
    if held.len() < MOST {
        held.push(new);
        return None;
    }
    let at = rng.index(held.len());
    Some(std::mem::replace(&mut held[at], new))
}

impl Hands {
    pub(super) fn keep_file(&mut self, rng: &mut Rng, file: OpenFile) {
        let held = match file.flags().contains(OpenFlags::PATH) || file.node().kind().is_dir() {
            true => &mut self.dirs,
            false => &mut self.files,
        };
        drop(put(held, rng, file));
    }

    pub(super) fn keep_node(&mut self, world: &World, rng: &mut Rng, node: Node) {
        if rng.one_in(3) {
            if let Some(ino) = put(&mut self.raw, rng, node.into_raw()) {
                world.fs.forget(ino, 1);
            }
        } else {
            drop(put(&mut self.nodes, rng, node));
        }
    }

    pub(super) fn keep_watch(&mut self, rng: &mut Rng, watch: Watch) {
        drop(put(&mut self.watches, rng, watch));
    }

    pub(super) fn keep_locked(
        &mut self,
        world: &World,
        rng: &mut Rng,
        owner: LockOwner,
        node: Node,
    ) {
        if let Some(other) = put(&mut self.locked, rng, node) {
            world.fs.release_locks(&other, owner, LockSpace::Posix);
        }
    }

    /// Lets one of them go.
    pub(super) fn drop_one(&mut self, world: &World, rng: &mut Rng, owner: LockOwner) -> bool {
        fn take<T>(held: &mut Vec<T>, rng: &mut Rng) -> Option<T> {
            (!held.is_empty()).then(|| held.swap_remove(rng.index(held.len())))
        }
        match rng.below(6) {
            0 => take(&mut self.files, rng).is_some(),
            1 => take(&mut self.dirs, rng).is_some(),
            2 => take(&mut self.nodes, rng).is_some(),
            3 => take(&mut self.watches, rng).is_some(),
            4 => take(&mut self.raw, rng).is_some_and(|ino| {
                world.fs.forget(ino, 1);
                true
            }),
            _ => take(&mut self.locked, rng).is_some_and(|node| {
                world.fs.release_locks(&node, owner, LockSpace::Posix);
                true
            }),
        }
    }

    fn is_empty(&self) -> bool {
        self.files.is_empty()
            && self.dirs.is_empty()
            && self.nodes.is_empty()
            && self.raw.is_empty()
            && self.watches.is_empty()
            && self.locked.is_empty()
    }

    /// Closes everything.
    pub(super) fn empty(&mut self, world: &World, rng: &mut Rng, owner: LockOwner) {
        while !self.is_empty() {
            self.drop_one(world, rng, owner);
        }
    }

    /// Uses what is held of a revoked file system, and closes it bit by bit.
    pub(super) fn outlive(&mut self, world: &World, rng: &mut Rng, owner: LockOwner) {
        let who = Caller::root();
        while !self.is_empty() {
            let fs = &world.fs;
            let (mut byte, mut answers) = ([0; 1], Vec::new());
            if let Some(file) = self.files.last() {
                answers.push(("read", fs.read(file, 0, &mut byte).map(drop)));
                answers.push(("fsync", fs.fsync(file, true).map(drop)));
                let node = file.node();
                answers.push(("attributes", fs.attributes(node).map(drop)));
                let open = fs.open(&who, node, OpenFlags::empty());
                answers.push(("open", open.map(drop)));
                if file.flags().writable() {
                    answers.push(("write", fs.write(&who, file, 0, &byte).map(drop)));
                }
            }
            if let Some(node) = self.nodes.last() {
                answers.push(("lookup", fs.lookup(&who, node, b"f1").map(drop)));
                answers.push(("node", fs.node(node.ino()).map(drop)));
            }
            for (name, answer) in answers {
                // What is wrong with the handle may be said first.
                let allowed = [Err(Errno::EIO), Err(Errno::EBADF)].contains(&answer);
                world.demand(allowed, || {
                    format!("{name} on a revoked file system: {answer:?}")
                });
            }
            for _ in 0..4 {
                // Some owners never release what they locked.
                if rng.one_in(2) {
                    self.locked.pop();
                }
                self.drop_one(world, rng, owner);
            }
            std::thread::sleep(Duration::from_micros(500));
        }
    }
}
