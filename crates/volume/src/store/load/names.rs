//! The names of directories.

use std::ops::ControlFlow;

use holdfast_core::store::{EntryRecord, InodeRecord, NameRun};
use holdfast_types::Ino;

use super::SnapshotReader;
use crate::error::Result;
use crate::store::memtable::{LayeredNames, Names, Object, Window};
use crate::tree::{EntryKey, HashKey};

/// Cookies per window, at most, while few names are found.
const PLACES_MAX: usize = 4096;

impl SnapshotReader<'_> {
    /// A cookie above all that names of a directory have or had.
    pub(in crate::store) fn end_cookie(&self, dir: Ino) -> Result<u64> {
        let mut next = 0;
        for memtable in self.layers.memtables() {
            let known = memtable.with(dir, |object| {
                let names = object.names();
                (names.map_or(0, Names::next_cookie), object.fresh)
            });
            if let Some((here, fresh)) = known {
                next = next.max(here);
                if fresh {
                    return Ok(next);
                }
            }
        }
        // The stored `next_cookie` only exceeds those of removed names.
        let below = self.inodes().get(&dir, |inode| inode.next_cookie)?;
        next = next.max(below.unwrap_or(0));
        let cookie = u64::MAX;
        let last = self
            .entries()
            .last_below(&EntryKey { dir, cookie }, |key, _| key)?;
        let last = last.filter(|last| last.dir == dir);
        Ok(next.max(last.map_or(0, |last| last.cookie.saturating_add(1))))
    }

    /// One name of a directory, and its inode.
    pub(in crate::store) fn look_up(
        &self,
        dir: Ino,
        name: &[u8],
    ) -> Result<Option<(EntryRecord, Option<InodeRecord>)>> {
        hop!();
        let Some(entry) = self.lookup(dir, name)? else {
            return Ok(None);
        };
        // The error of an unreadable inode is reported when it is loaded.
        let inode = self.whole_inode(entry.ino).ok().flatten();
        Ok(Some((entry, inode)))
    }

    /// One name of a directory.
    pub(in crate::store) fn lookup(&self, dir: Ino, name: &[u8]) -> Result<Option<EntryRecord>> {
        hop!();
        let entry = |cookie, ino, kind| EntryRecord {
            name: name.into(),
            cookie,
            ino,
            kind,
        };
        // Names removed from a lower layer are known by cookie.
        let gone = |above: usize, cookie| {
            let mut memtables = self.layers.memtables().take(above);
            memtables.any(|memtable| {
                let is_gone = |object: &Object| object.names()?.is_gone(cookie).then_some(());
                memtable.with(dir, is_gone).flatten().is_some()
            })
        };
        let mut memtables = 0;
        for memtable in self.layers.memtables() {
            let known = memtable.with(dir, |object| {
                let found = object.names().and_then(|names| names.find(name));
                let found = found.map(|(cookie, name)| entry(cookie, name.ino, name.kind));
                (found, object.fresh || object.is_freed())
            });
            match known {
                Some((Some(found), _)) if !gone(memtables, found.cookie) => return Ok(Some(found)),
                Some((_, true)) => return Ok(None),
                _ => memtables += 1,
            }
        }
        let hash = self.hasher.hash(name);
        let first = HashKey {
            dir,
            hash,
            cookie: 0,
        };
        let mut cursor = self.hashes().range(Some(&first))?;
        while let Some((key, ())) = cursor.next()? {
            if (key.dir, key.hash) != (dir, hash) {
                break;
            }
            let place = EntryKey {
                dir,
                cookie: key.cookie,
            };
            let found = self.entries().get(&place, |found| {
                (found.name == name).then(|| entry(place.cookie, found.ino, found.kind))
            })?;
            if let Some(Some(found)) = found
                && !gone(memtables, found.cookie)
            {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// Appends a run of a directory's names to `run`.
    pub(in crate::store) fn names(
        &self,
        dir: Ino,
        after: u64,
        max: usize,
        run: &mut NameRun,
    ) -> Result<()> {
        if self.layers.memtables().all(|memtable| {
            let known = memtable.with(dir, |object| object.names().is_some() || object.fresh);
            known != Some(true)
        }) {
            return self.names_in_trees(dir, after, max, run);
        }
        let mut after = after;
        let mut left = max;
        let mut places = max;
        while left > 0 {
            let window = self.window(dir, after, left, places)?;
            left -= window.names.len();
            // Where many names in a row were removed, the next window has more cookies.
            places = places.saturating_mul(2).clamp(left, PLACES_MAX.max(left));
            for entry in window.names {
                run.push(&entry.name, entry.cookie, entry.ino, entry.kind);
            }
            match window.upto {
                Some(upto) => after = upto,
                None => break,
            }
        }
        Ok(())
    }

    fn names_in_trees(&self, dir: Ino, after: u64, max: usize, run: &mut NameRun) -> Result<()> {
        let mut left = max;
        let cookie = after.saturating_add(1);
        let mut cursor = self.entries().range(Some(&EntryKey { dir, cookie }))?;
        cursor.each(|key, entry| {
            if key.dir != dir || left == 0 {
                return ControlFlow::Break(());
            }
            left -= 1;
            run.push(entry.name, key.cookie, entry.ino, entry.kind);
            ControlFlow::Continue(())
        })?;
        Ok(())
    }

    /// At most `max` names, from at most `most` cookies of each layer after `after`.
    fn window(&self, dir: Ino, after: u64, max: usize, most: usize) -> Result<Window> {
        let mut places = LayeredNames::default();
        let mut below = true;
        for memtable in self.layers.memtables() {
            let seen = memtable.with(dir, |object| {
                let names = object.names().into_iter();
                let changes = names.flat_map(|names| names.after(after));
                let changes = changes.map(|place| (place.cookie, place.entry()));
                places.take(changes.take(most), most);
                object.fresh
            });
            if seen == Some(true) {
                below = false;
                break;
            }
        }
        if below {
            let from = EntryKey {
                dir,
                cookie: after.saturating_add(1),
            };
            let mut cursor = self.entries().range(Some(&from))?;
            let mut run = Vec::new();
            while run.len() < most {
                let Some((key, entry)) = cursor.next()? else {
                    break;
                };
                if key.dir != dir || places.upto.is_some_and(|upto| key.cookie > upto) {
                    break;
                }
                let entry = EntryRecord {
                    name: entry.name.into(),
                    cookie: key.cookie,
                    ino: entry.ino,
                    kind: entry.kind,
                };
                run.push((key.cookie, Some(entry)));
            }
            places.take(run.into_iter(), most);
        }
        Ok(places.window(max))
    }
}
