//! The waits-for graph of the owners of POSIX locks of one file system.
//!
//! Only POSIX locks take part, as on Linux. The owner of an OFD or flock lock is an open file,
//! which many processes may hold and any of them may release.
//!
//! Only waiters access the graph, so uncontended locks of different inodes share nothing here.

use super::lock::LockOwner;
use hashbrown::{HashMap, HashSet};
use holdfast_sync::ShardedCounter;
use parking_lot::Mutex;

/// Edges followed in one search. Beyond this the search gives up and lets the caller wait, as Linux
/// does (after ten).
const STEPS_MAX: usize = 1 << 16;

type Waits = HashMap<LockOwner, Vec<Wait>, foldhash::fast::RandomState>;

/// The waits-for graph of a file system's POSIX locks, and the count of all its locks.
#[derive(Debug, Default)]
pub(crate) struct LockGraph {
    /// Guards the edges. No entry is empty; no cycle.
    waits: Mutex<Waits>,
    /// Locks held, in shards so that locking different inodes shares no line.
    pub(super) held: ShardedCounter,
}

/// One wait of an owner, which may have several: one for each of its threads.
#[derive(Debug)]
struct Wait {
    id: usize,
    on: Vec<LockOwner>,
}

impl LockGraph {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Locks held in the whole file system, of all families. Exact while no lock is taken or
    /// released.
    pub(crate) fn held(&self) -> u64 {
        u64::try_from(self.held.sum()).unwrap_or(0)
    }

    /// Adds the edges from `owner` to each of `on`, in place of the edges of the wait `id`. Returns
    /// false if that would close a cycle: then the graph has no edge of this wait.
    pub(super) fn wait(&self, id: usize, owner: LockOwner, on: &[LockOwner]) -> bool {
        let mut waits = self.waits.lock();
        remove(&mut waits, id, owner);
        if on.is_empty() {
            return true;
        }
        if reaches(&waits, on, owner) {
            return false;
        }
        waits.entry(owner).or_default().push(Wait {
            id,
            on: on.to_vec(),
        });
        true
    }

    /// Removes the edges of the wait `id`, if there are any.
    pub(super) fn done(&self, id: usize, owner: LockOwner) {
        remove(&mut self.waits.lock(), id, owner);
    }

    #[cfg(test)]
    pub(super) fn is_idle(&self) -> bool {
        self.waits.lock().is_empty()
    }
}

fn remove(waits: &mut Waits, id: usize, owner: LockOwner) {
    if let Some(list) = waits.get_mut(&owner) {
        list.retain(|wait| wait.id != id);
        if list.is_empty() {
            waits.remove(&owner);
        }
    }
}

/// Does a chain of waits lead from one of `from` to `goal`?
fn reaches(waits: &Waits, from: &[LockOwner], goal: LockOwner) -> bool {
    let mut seen: HashSet<LockOwner, foldhash::fast::RandomState> = from.iter().copied().collect();
    let mut open = from.to_vec();
    let mut steps = 0;
    while let Some(owner) = open.pop() {
        if owner == goal {
            return true;
        }
        for next in waits
            .get(&owner)
            .into_iter()
            .flatten()
            .flat_map(|wait| &wait.on)
        {
            steps += 1;
            if steps > STEPS_MAX {
                return false;
            }
            if seen.insert(*next) {
                open.push(*next);
            }
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn owner(n: u64) -> LockOwner {
        LockOwner(n)
    }

    #[test]
    fn a_long_chain_is_followed_to_its_end() {
        let graph = LockGraph::new();
        for n in 0..1000 {
            assert!(graph.wait(n as usize, owner(n), &[owner(n + 1)]));
        }
        assert!(!graph.wait(1000, owner(1000), &[owner(0)]));
        assert!(!graph.wait(1000, owner(1000), &[owner(5000), owner(500)]));
        assert!(graph.wait(1000, owner(1000), &[owner(5000)]));
    }

    #[test]
    fn a_wait_that_changes_forgets_what_it_was_for() {
        let graph = LockGraph::new();
        assert!(graph.wait(1, owner(1), &[owner(2)]));
        assert!(graph.wait(1, owner(1), &[owner(3)]));
        assert!(graph.wait(2, owner(2), &[owner(1)]));
        graph.done(1, owner(1));
        graph.done(2, owner(2));
        assert!(graph.is_idle());
    }

    #[test]
    fn every_wait_of_an_owner_counts() {
        let graph = LockGraph::new();
        assert!(graph.wait(1, owner(1), &[owner(2)]));
        assert!(graph.wait(2, owner(1), &[owner(3)]));
        assert!(!graph.wait(3, owner(3), &[owner(1)]));
        graph.done(1, owner(1));
        assert!(!graph.wait(3, owner(3), &[owner(1)]));
        graph.done(2, owner(1));
        assert!(graph.wait(3, owner(3), &[owner(1)]));
    }

    #[test]
    fn a_search_without_end_gives_up() {
        let graph = LockGraph::new();
        let length = STEPS_MAX as u64 + 10;
        {
            let mut waits = graph.waits.lock();
            for n in 0..length {
                let on = vec![owner(n + 1)];
                waits.insert(owner(n), vec![Wait { id: n as usize, on }]);
            }
        }
        assert!(graph.wait(usize::MAX, owner(length), &[owner(0)]));
    }
}
