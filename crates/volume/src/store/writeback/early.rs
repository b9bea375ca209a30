//! Writing pages to the device before there is a commit.
//!
//! A page that is full is seldom written again, and could go to the device while its file is filled, instead of in the fsync
//! at the end. So the pages of a file that wait get their places, *as if never written*: of that nobody sees anything, not
//! even after a crash. Full ones are then written there, by the volume's thread. A commit, which lets the places count
//! as written, finds that the device has these pages already, unless they were changed meanwhile.
//!
//! *Invariant.* A place to which a page goes early is not used for anything else before that has ended: who gives a place up
//! is heard by others with a commit only, and no commit ends meanwhile
//! ([`Announced::write_early`](crate::store::load::in_flight::Announced::write_early)).

#[cfg(test)]
mod tests;

use holdfast_types::Ino;

use super::allocate::Placer;
use crate::Result;
use crate::journal::{Map, Record};
use crate::store::Inner;
use crate::store::file::content::Content;
use crate::store::file::extent_map::Run;
use crate::store::memtable::REALM;

/// As many pages are worth waking the volume's thread.
pub(in crate::store) const EARLY_MIN: u64 = 8192;
/// Pages that are written at once: a commit may have to wait for them.
const AT_ONCE: usize = 1024;
/// Bytes that a place takes in the journal, at most.
const RECORD_MAX: u64 = 64;
/// Places that are journalled at once.
const RECORDS: usize = 1024;

impl Inner {
    /// Writes what may go early.
    ///
    /// # Errors
    /// If the places cannot be journalled, which stops the store; if the device fails: a commit tries again.
    pub(in crate::store) fn write_early(&self) -> Result<()> {
        let files = self.gate.pass().active.take_early_files();
        for ino in files {
            let placed = self.place_early(ino)?;
            let went = if placed { self.write_full(ino) } else { Ok(0) };
            if !matches!(went, Ok(1..)) {
                self.with_content(ino, Content::decline_early);
            }
            went?;
            let more = self.with_content(ino, |content| content.dirty().early > 0);
            if more == Some(true) {
                self.gate.pass().active.note_early(ino);
            }
        }
        Ok(())
    }

    /// Gives places to the pages of a file that wait; `false`: it has none that may go early, or there is no room.
    fn place_early(&self, ino: Ino) -> Result<bool> {
        self.running()?;
        // Nobody changes the file between looking at it and giving it places.
        let layers = self.gate.close();
        let mut shard = layers.active.shard(ino);
        let mut object = shard.get_mut(ino);
        let content = object.as_mut().and_then(|object| object.content_mut());
        let Some(content) = content.filter(|content| content.dirty().early > 0) else {
            return Ok(false);
        };
        // Nobody else appends while the gate is closed: there is room for them all, if each has a place of its own.
        let records = content.dirty().pages as u64 * RECORD_MAX;
        if self.journal.used() + records > self.journal.capacity() / 2 {
            return Ok(false);
        }
        // Places that nobody journalled are not for a commit to find.
        self.whole("early writeback", || self.journal_places(ino, content))
    }

    /// Gives places to pages of a file that wait, and journals them; `false`: there is no room.
    fn journal_places(&self, ino: Ino, content: &mut Content) -> Result<bool> {
        let mut records = Vec::new();
        let mut placed = |offset, run: Run| {
            records.push(Record::Map(Map {
                ino,
                offset,
                start: run.extent.start,
                blocks: run.extent.length,
                birth: run.birth,
                unwritten: true,
            }));
        };
        let mut promise = self.promises.take();
        let mut places = Placer::new(self, ino, &mut promise);
        let room = content.place_early(&mut places, &mut placed).is_ok();
        let fresh = places.fresh;
        self.promises.add(promise.into_blocks());
        let mut stamp = self.journal.before_next_cut();
        for some in records.chunks(RECORDS) {
            stamp = self.journal.append_records(REALM, some)?;
        }
        self.space.record_all(&fresh, stamp.0)?;
        Ok(room)
    }

    /// Writes the full pages of a file that wait to the places that they have; gives how many.
    fn write_full(&self, ino: Ino) -> Result<usize> {
        let (mut next, mut done) = (Some(0), 0);
        while let Some(from) = next {
            let mut begun = Vec::new();
            let written = self.blocks().write_early(|| {
                let found = self.with_content(ino, |content| content.begin_early(from, AT_ONCE));
                let (found, behind) = found.unwrap_or_default();
                next = behind;
                begun.extend(found.iter().map(|(block, _)| *block));
                found.into_iter().map(|(_, page)| page).collect()
            });
            self.with_content(ino, |content| content.end_early(&begun, written.is_ok()));
            written?;
            done += begun.len();
        }
        Ok(done)
    }

    /// Shows a file's content, if any of it changed.
    fn with_content<R>(&self, ino: Ino, show: impl FnOnce(&mut Content) -> R) -> Option<R> {
        let layers = self.gate.pass();
        let mut shard = layers.active.shard(ino);
        let mut object = shard.get_mut(ino)?;
        let content = object.content_mut()?;
        let before = content.dirty();
        let shown = show(content);
        layers.active.count_dirty(ino, before, content.dirty());
        Some(shown)
    }
}
