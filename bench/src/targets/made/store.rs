//! The store: every answer is computed, and nothing is kept.

use super::layout::{Layout, Thing};
use holdfast_core::store::{
    Behind, Change, EntryRecord, Grant, Guarantees, InodeRecord, Intent, NameRun, Rest, Space,
    SpaceReport, SpaceRun, Stamp, Store, StoredSpace, WalkInodes, Writes,
};
use holdfast_core::types::{Errno, FileFlags, FileType, Ino, Result, Time};
use std::sync::Arc;

/// When everything was made.
const BIRTH: Time = Time::new(1_000_000_000, 0);

/// A tree of empty files that exists by computation.
pub(super) struct MadeStore {
    layout: Layout,
}

impl MadeStore {
    pub(super) fn new(layout: Layout) -> Self {
        Self { layout }
    }

    fn record(&self, thing: Thing) -> InodeRecord {
        let kind = thing.kind();
        let directories = match thing {
            Thing::File { .. } => 0,
            _ if self.holds_directories(thing) => self.layout.children(thing),
            _ => 0,
        };
        let (perm, nlink) = match kind {
            FileType::Directory => (0o755, 2 + directories as u32),
            _ => (0o644, 1),
        };
        InodeRecord {
            ino: self.layout.ino(thing),
            kind,
            perm,
            nlink,
            uid: 0,
            gid: 0,
            rdev: 0,
            size: 0,
            atime: BIRTH,
            mtime: BIRTH,
            ctime: BIRTH,
            btime: BIRTH,
            parent: self.layout.ino(self.layout.parent(thing)),
            xattrs: false,
            space: StoredSpace::AS_SIZE,
            flags: FileFlags::empty(),
            project: 0,
        }
    }

    fn holds_directories(&self, thing: Thing) -> bool {
        let first = self.layout.child(thing, 0);
        first.is_some_and(|first| first.kind() == FileType::Directory)
    }

    fn entry(&self, thing: Thing) -> EntryRecord {
        EntryRecord {
            name: thing.name().into_bytes().into(),
            cookie: FIRST_COOKIE + self.layout.place(thing) as u64,
            ino: self.layout.ino(thing),
            kind: thing.kind(),
        }
    }

    fn directory(&self, ino: Ino) -> Result<Thing> {
        self.layout.thing(ino).ok_or(Errno::EUCLEAN)
    }
}

/// Those below are those of `.` and `..`.
const FIRST_COOKIE: u64 = 3;

impl Store for MadeStore {
    fn guarantees(&self) -> Guarantees {
        Guarantees {
            pinned: false,
            blocks: false,
            small: 0,
            frees: false,
        }
    }

    fn writes(self: Arc<Self>) -> Writes {
        Writes::Behind(self)
    }

    fn load_inodes(&self, inos: &[Ino], found: &mut Vec<InodeRecord>) -> Result<()> {
        let things = inos.iter().filter_map(|ino| self.layout.thing(*ino));
        found.extend(things.map(|thing| self.record(thing)));
        Ok(())
    }

    fn load_rests(&self, records: &[InodeRecord], found: &mut Vec<Rest>) -> Result<()> {
        found.extend(records.iter().map(|_| Rest::default()));
        Ok(())
    }

    fn look_up(
        &self,
        dir: Ino,
        names: &[&[u8]],
        found: &mut Vec<Option<(EntryRecord, Option<InodeRecord>)>>,
    ) -> Result<()> {
        let dir = self.directory(dir)?;
        let things = names.iter().map(|name| self.layout.named(dir, name));
        found.extend(
            things.map(|thing| thing.map(|thing| (self.entry(thing), Some(self.record(thing))))),
        );
        Ok(())
    }

    fn read_names(&self, dir: Ino, after: u64, max: usize, run: &mut NameRun) -> Result<()> {
        let dir = self.directory(dir)?;
        let first = (after + 1).saturating_sub(FIRST_COOKIE) as usize;
        let things = (first..).map_while(|place| self.layout.child(dir, place));
        for entry in things.take(max).map(|thing| self.entry(thing)) {
            run.push(&entry.name, entry.cookie, entry.ino, entry.kind);
        }
        Ok(())
    }

    fn end_cookie(&self, dir: Ino) -> Result<u64> {
        let names = self.layout.children(self.directory(dir)?);
        Ok(FIRST_COOKIE + names as u64)
    }

    fn next_space(&self, _ino: Ino, _offset: u64) -> Result<Option<SpaceRun>> {
        Ok(None)
    }

    fn read_data(&self, _ino: Ino, _offset: u64, buf: &mut [u8]) -> Result<()> {
        buf.fill(0);
        Ok(())
    }

    fn space(&self) -> Result<SpaceReport> {
        Ok(SpaceReport {
            inodes_used: self.layout.last().0,
            ..SpaceReport::default()
        })
    }

    fn commit(&self, _upto: Option<Stamp>) -> Result<()> {
        Ok(())
    }

    fn walk(&self) -> Option<&dyn WalkInodes> {
        Some(self)
    }
}

impl WalkInodes for MadeStore {
    fn walk(&self, after: Ino, max: usize, run: &mut Vec<InodeRecord>) -> Result<()> {
        let numbers = after.0.saturating_add(1)..=self.layout.last().0;
        let things = numbers.filter_map(|number| self.layout.thing(Ino(number)));
        run.extend(things.take(max).map(|thing| self.record(thing)));
        Ok(())
    }
}

impl Behind for MadeStore {
    fn reserve(&self, _intent: &Intent) -> Result<Grant> {
        Err(Errno::EROFS)
    }

    fn give_back(&self, _held: Grant) {}

    fn release(&self, _space: Space) {}

    fn apply(&self, _held: &mut Grant, _batch: &[Change<'_>]) -> Result<Stamp> {
        Err(Errno::EROFS)
    }

    fn last_ino(&self) -> Result<Ino> {
        Ok(self.layout.last())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listings_and_walks_of_any_length_are_whole_and_in_order() {
        let store = MadeStore::new(Layout {
            threads: 2,
            files: 25,
            per_dir: Some(10),
        });
        for max in [1, 7, 100] {
            let (mut run, mut met) = (Vec::new(), Vec::new());
            loop {
                let after = met.last().map_or(Ino(0), |record: &InodeRecord| record.ino);
                WalkInodes::walk(&store, after, max, &mut run).expect("walked");
                if run.is_empty() {
                    break;
                }
                met.append(&mut run);
            }
            let numbers: Vec<u64> = met.iter().map(|record| record.ino.0).collect();
            let all: Vec<u64> = (1..=2 * (25 + 3 + 1) + 1).collect();
            assert_eq!(numbers, all);
            for dir in met.iter().filter(|one| one.kind == FileType::Directory) {
                let (mut run, mut after, mut subdirs) = (NameRun::default(), 0, 0);
                loop {
                    run.clear();
                    store
                        .read_names(dir.ino, after, max, &mut run)
                        .expect("read");
                    let Some(last) = run.last_cookie() else { break };
                    assert!(run.len() <= max && last > after);
                    after = last;
                    let names: Vec<&[u8]> = run.iter().map(|entry| entry.name).collect();
                    let mut found = Vec::new();
                    store
                        .look_up(dir.ino, &names, &mut found)
                        .expect("looked up");
                    for (entry, found) in run.iter().zip(found) {
                        let (told, record) = found.expect("there");
                        let record = record.expect("an inode");
                        assert_eq!((told.ino, record.parent), (record.ino, dir.ino));
                        let same = (&*told.name, told.cookie, told.ino, told.kind);
                        assert_eq!(same, (entry.name, entry.cookie, entry.ino, entry.kind));
                        subdirs += u32::from(entry.kind == FileType::Directory);
                    }
                }
                let end = store.end_cookie(dir.ino).expect("told");
                assert_eq!(end, (after + 1).max(FIRST_COOKIE));
                assert_eq!(dir.nlink, 2 + subdirs, "{dir:?}");
            }
        }
    }
}
