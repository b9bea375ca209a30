//! Bodies that are to be moved, and objects that are to be deleted.

use super::state::{State, later_by};
use crate::meta::{Staged, Usage};
use std::time::Duration;

/// Bodies that are older are to be moved into objects.
const STAGED_FOR: Duration = Duration::from_secs(10);

impl State {
    pub(super) fn staged(&self, max: usize) -> Vec<Staged> {
        let now = self.clock.now();
        let is_staged = |inode: &&super::state::Inode| {
            inode.content.body_len() > self.settings.inline
                && later_by(inode.flushed, STAGED_FOR) < now
        };
        let mut staged: Vec<_> = self.inodes.values().filter(is_staged).collect();
        staged.sort_by_key(|inode| inode.flushed);
        let of = |inode: &super::state::Inode| Staged {
            ino: inode.stored.ino,
            generation: inode.generation,
            content: inode.content.clone(),
        };
        staged.into_iter().take(max).map(of).collect()
    }

    pub(super) fn deletable(&mut self, listed: &[u64], max: usize) -> Vec<u64> {
        let (now, keep) = (self.clock.now(), self.settings.keep);
        let mut found = Vec::new();
        for (number, object) in &mut self.objects {
            if found.len() == max {
                return found;
            }
            let over = |since| later_by(since, keep) < now;
            if object.live == 0 && object.unmapped.is_some_and(over) {
                object.deleting = true;
                found.push(*number);
            }
        }
        let never_mapped =
            |number: &&u64| !self.objects.contains_key(number) && self.dealt_to_ended(**number);
        let listed = listed.iter().filter(never_mapped);
        found.extend(listed.take(max - found.len()));
        found
    }

    /// Was this number dealt to a session that has ended?
    fn dealt_to_ended(&self, number: u64) -> bool {
        let deal = self.deals.range(..=number).next_back();
        deal.is_some_and(|(_, (range, session))| {
            range.contains(&number) && !self.sessions.contains_key(session)
        })
    }

    pub(super) fn deleted(&mut self, objects: &[u64]) {
        for number in objects {
            if self
                .objects
                .get(number)
                .is_some_and(|object| object.deleting)
            {
                self.objects.remove(number);
            }
        }
    }

    pub(super) fn usage(&self) -> Usage {
        let inodes = || self.inodes.values();
        let bodies = inodes().map(|inode| inode.content.body_len());
        let objects = || self.objects.values();
        Usage {
            inodes: self.inodes.len() as u64,
            pages: inodes().map(|inode| inode.content.space()).sum(),
            staged: bodies.filter(|len| *len > self.settings.inline).sum(),
            objects: self.objects.len() as u64,
            object_bytes: objects().map(|object| object.len).sum(),
            live_bytes: objects().map(|object| object.live).sum(),
            unmapped: objects().filter(|object| object.live == 0).count() as u64,
        }
    }
}
