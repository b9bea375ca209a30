//! Inodes without names that this client uses.

use holdfast_types::Ino;
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};

/// The inodes that the database keeps for this session.
///
/// *Locking.* The lock is a leaf: the core calls [`release`](Self::release) with locks of its own,
/// and is asked without this one.
#[derive(Debug, Default)]
pub(super) struct Kept(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// With `true`: the core was seen to use the inode.
    inos: BTreeMap<Ino, bool>,
    /// Used no more. The database does not know yet.
    releases: BTreeSet<Ino>,
}

impl Kept {
    pub(super) fn insert(&self, ino: Ino) {
        self.0.lock().inos.insert(ino, false);
    }

    /// Releases inodes that were in use and are not any more. An inode that is being created is not
    /// in use yet.
    pub(super) fn look(&self, in_use: impl Fn(Ino) -> bool) {
        let inos: Vec<(Ino, bool)> = {
            let state = self.0.lock();
            state.inos.iter().map(|(ino, seen)| (*ino, *seen)).collect()
        };
        for (ino, seen) in inos {
            match in_use(ino) {
                true if !seen => self.seen(ino),
                false if seen => self.release(ino),
                _ => {}
            }
        }
    }

    fn seen(&self, ino: Ino) {
        if let Some(seen) = self.0.lock().inos.get_mut(&ino) {
            *seen = true;
        }
    }

    /// Of these inodes, those that are in use. From now on the end of their use is noticed.
    pub(super) fn find(&self, inos: &[Ino], in_use: impl Fn(Ino) -> bool) -> Vec<Ino> {
        let mut found = Vec::new();
        for ino in inos {
            // First: its use may end while the core is asked.
            self.insert(*ino);
            if in_use(*ino) {
                self.seen(*ino);
                found.push(*ino);
            } else {
                self.0.lock().inos.remove(ino);
            }
        }
        found
    }

    /// An inode is not used any more. Does not block.
    pub(super) fn release(&self, ino: Ino) {
        let mut state = self.0.lock();
        if state.inos.remove(&ino).is_some() {
            state.releases.insert(ino);
        }
    }

    /// The inodes that are used no more.
    pub(super) fn releases(&self) -> Vec<Ino> {
        self.0.lock().releases.iter().copied().collect()
    }

    /// The database knows that these are used no more.
    pub(super) fn released(&self, inos: &[Ino]) {
        let mut state = self.0.lock();
        for ino in inos {
            state.releases.remove(ino);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_inode_that_is_forgotten_while_the_core_is_asked_is_released() {
        let kept = Kept::default();
        let found = kept.find(&[Ino(1), Ino(2), Ino(3)], |ino| {
            if ino == Ino(2) {
                kept.release(ino);
            }
            ino != Ino(3)
        });
        assert_eq!(found, [Ino(1), Ino(2)]);
        assert_eq!(kept.releases(), [Ino(2)]);
        kept.release(Ino(1));
        kept.release(Ino(3));
        assert_eq!(kept.releases(), [Ino(1), Ino(2)]);
        kept.released(&[Ino(2)]);
        assert_eq!(kept.releases(), [Ino(1)]);
    }

    #[test]
    fn an_inode_that_was_in_use_is_released_and_a_new_one_is_not() {
        let kept = Kept::default();
        kept.insert(Ino(1));
        kept.look(|_| false);
        kept.look(|_| true);
        assert_eq!(kept.releases(), []);
        kept.look(|_| false);
        assert_eq!(kept.releases(), [Ino(1)]);
    }
}
