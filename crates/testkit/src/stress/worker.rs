//! A thread that does anything to the tree.

use super::hands::Hands;
use super::world::World;
use super::{attributes, content, locks, names, paths};
use crate::rng::Rng;
use holdfast_core::{LockOwner, Node, OpenFile};
use holdfast_types::{Caller, Caps, Errno, Result};

/// An ordinary user.
const USER: u32 = 1000;
/// The group of that user.
const GROUP: u32 = 1000;

/// One thread, and what it holds.
pub(super) struct Worker<'w> {
    pub(super) world: &'w World,
    pub(super) number: usize,
    pub(super) rng: Rng,
    pub(super) hands: Hands,
    pub(super) root: Node,
    callers: [Caller; 3],
}

/// An operation on whatever it chooses.
type Operation = fn(&mut Worker<'_>) -> Result<()>;

/// A name, how often it is chosen, and what it does.
pub(super) type Row = (&'static str, u64, Operation);

const ALL: [&[Row]; 4] = [names::ROWS, content::ROWS, attributes::ROWS, locks::ROWS];

/// The owner of the POSIX locks of a thread: a number of its own.
pub(super) fn owner(number: usize) -> LockOwner {
    LockOwner(1 << 62 | number as u64)
}

impl<'w> Worker<'w> {
    pub(super) fn new(world: &'w World, number: usize, rng: Rng) -> Self {
        let member = Caller::user(USER + 1, GROUP + 1).with_groups(&[GROUP]);
        Self {
            root: world.fs.root(),
            world,
            number,
            rng,
            hands: Hands::default(),
            callers: [
                Caller::root(),
                Caller::user(USER, GROUP).with_umask(0o002),
                member,
            ],
        }
    }

    /// Works until it is stopped, or the file system is gone; returns what it holds then.
    pub(super) fn work(mut self) -> Hands {
        let total: u64 = ALL
            .iter()
            .flat_map(|rows| rows.iter())
            .map(|row| row.1)
            .sum();
        while !self.world.is_stopped() && !self.world.fs.is_revoked() {
            let mut pick = self.rng.below(total);
            for (name, weight, operation) in ALL.iter().flat_map(|rows| rows.iter()) {
                if pick < *weight {
                    let (world, number) = (self.world, self.number);
                    world.judged(number, name, || operation(&mut self));
                    break;
                }
                pick -= weight;
            }
        }
        std::mem::take(&mut self.hands)
    }

    /// The caller of the next operation: mostly one with all rights.
    pub(super) fn who(&mut self) -> Caller {
        match self.rng.below(8) {
            0 => self.callers[1].clone(),
            1 => self.callers[2].clone(),
            2 => {
                let mut who = self.callers[0].clone();
                who.caps = Caps::empty();
                who
            }
            _ => self.callers[0].clone(),
        }
    }

    pub(super) fn owner(&self) -> LockOwner {
        owner(self.number)
    }

    /// Where a path begins: the root, or something that is held.
    pub(super) fn base(&mut self) -> Node {
        let held = self.hands.nodes.iter().filter(|node| node.kind().is_dir());
        let held: Vec<&Node> = held.collect();
        if held.is_empty() || self.rng.one_in(2) {
            return self.root.clone();
        }
        (*self.rng.pick(&held)).clone()
    }

    /// Some directory.
    ///
    /// # Errors
    /// If it is not there.
    pub(super) fn dir(&mut self) -> Result<Node> {
        if self.rng.one_in(5) {
            return Ok(self.base());
        }
        let (base, path) = (self.base(), paths::to_dir(&mut self.rng));
        self.world.fs.resolve(&self.callers[0], &base, &path, true)
    }

    /// Some inode.
    ///
    /// # Errors
    /// If it is not there.
    pub(super) fn node(&mut self) -> Result<Node> {
        if !self.hands.nodes.is_empty() && self.rng.one_in(3) {
            return Ok(self.rng.pick(&self.hands.nodes).clone());
        }
        let (base, path) = (self.base(), paths::path(&mut self.rng));
        self.world.fs.resolve(&self.callers[0], &base, &path, true)
    }

    /// Has `body` use some open file that is not a directory.
    ///
    /// # Errors
    /// `EBADF` without one; those of `body`.
    pub(super) fn with_file(
        &mut self,
        body: impl FnOnce(&mut Rng, &World, &Caller, &OpenFile) -> Result<()>,
    ) -> Result<()> {
        let who = self.who();
        if self.hands.files.is_empty() {
            return Err(Errno::EBADF);
        }
        let at = self.rng.index(self.hands.files.len());
        body(&mut self.rng, self.world, &who, &self.hands.files[at])
    }
}
