//! Putting in many objects at once.
#![expect(unsafe_code, reason = "the tree holds objects as plain pointers")]

use super::Index;
use super::held::Held;
use super::node::leaf_of;
use super::prepared::Prepared;
use super::radix::{Inserted, Step};
use crate::epoch;

impl<T: Send + Sync + 'static> Index<T> {
    /// Puts objects in as [`Index::publish_prepared`] does, without a use, and shows them
    /// to `done`; `None`: there is, or was, one with that key (whether or not it is dying), so that this
    /// one is dropped. Waits for nobody. Cheaper than one by one if keys of the same aligned 64 follow
    /// each other.
    ///
    /// Neither `objects` nor `done` may wait for anything: they are called under a guard.
    pub fn publish_all(
        &self,
        objects: impl Iterator<Item = (u64, Prepared<T>)>,
        mut done: impl FnMut(u64, Option<&Held<T>>),
    ) {
        let guard = epoch::pin();
        let mut leaf: Option<(u64, Step<'_>)> = None;
        let mut published = 0;
        for (key, prepared) in objects {
            if key == u64::MAX {
                done(key, None);
                continue;
            }
            let held = prepared.leak_unused(key);
            let inserted = loop {
                let step = match leaf {
                    Some((first, step)) if first == leaf_of(key) => step,
                    _ => leaf.insert((leaf_of(key), self.tree.leaf(key, &guard))).1,
                };
                match self.tree.insert_in(step, key, held.as_ptr().cast()) {
                    Inserted::Done => break true,
                    Inserted::Taken(_) => break false,
                    Inserted::Replaced => leaf = None,
                }
            };
            if inserted {
                published += 1;
                // SAFETY: in the tree since the guard, hence freed after it.
                done(key, Some(unsafe { held.as_ref() }));
            } else {
                // SAFETY: made above, and nobody has seen it.
                drop(unsafe { Prepared::from_raw(held) });
                done(key, None);
            }
        }
        if published != 0 {
            self.population.add(published);
        }
    }
}
