//! Applying one operation's changes in memory.
//!
//! Changes of content come first, as they need the old length; then attributes and names. The
//! journal's records differ from the changes: bytes of mapped files go to the device with the
//! commit, and an allocation is journalled as the extents it got.

use holdfast_core::store::{Change, InodeRecord, PageOf};
use holdfast_types::Ino;

use super::evict::{free, prepare_frees};
use super::prefetched::Prefetched;
use crate::block::BLOCK;
use crate::error::{Error, Result};
use crate::journal::{Map, Record};
use crate::space::{Extent, FileRequest};
use crate::store::file::{Content, Run, Source, edges_of};
use crate::store::load::SnapshotReader;
use crate::store::memtable::{Name, Object, Shard};

fn went(ino: Ino) -> Error {
    Error::Damaged(format!("file {ino} went"))
}

pub(in crate::store) fn is_of_content(change: &Change<'_>) -> bool {
    matches!(
        change,
        Change::Write { .. }
            | Change::Truncate { .. }
            | Change::Zero { .. }
            | Change::Allocate { .. }
            | Change::Collapse { .. }
            | Change::Insert { .. }
    )
}

/// Applies the changes of one batch.
pub(in crate::store) struct Applier<'m, 'k> {
    pub(in crate::store) snapshot_reader: SnapshotReader<'m>,
    /// Cached pages that already hold what is written.
    pub(in crate::store) kept: Option<&'m PageOf<'k>>,
    /// What was read beforehand; `None` in replay, which may read under locks.
    pub(in crate::store) prefetched: Option<&'m Prefetched<'m>>,
    /// Allocates the requested blocks, or fewer; fails in replay.
    pub(in crate::store) place: &'m dyn Fn(Ino, &FileRequest) -> Result<Run>,
    /// Files that were cut or shifted from some block on.
    pub(in crate::store) cut: Vec<(Ino, u64)>,
    /// Extents that are free now.
    pub(in crate::store) freed: Vec<Run>,
    /// The change of the inode count.
    pub(in crate::store) inodes: i64,
    /// An inode that the batch frees and that is not a regular file.
    pub(in crate::store) not_a_file: Option<Ino>,
}

impl<'m> Applier<'m, '_> {
    /// Applies one batch; returns its records for the journal.
    pub(in crate::store) fn make<'c>(
        &mut self,
        batch: &'c [Change<'c>],
    ) -> Result<Vec<Record<'c>>> {
        hop!();
        self.prepare(batch)?;
        let mut records = Vec::with_capacity(batch.len());
        for change in batch {
            self.change_content(change, &mut records)?;
        }
        for change in batch {
            self.change_other(change, &mut records)?;
        }
        Ok(records)
    }

    /// Does the caller have all of a written block as a page that can be shared?
    fn keeps(&self, block: u64) -> bool {
        let page = self.kept.and_then(|kept| kept(block));
        page.is_some_and(|page| page.share().is_some())
    }

    /// Where existing pages are read from; `None` in replay.
    fn source(&self) -> Option<&'m dyn Source> {
        self.prefetched.map(|prefetched| prefetched as &dyn Source)
    }

    /// Requests all that the batch may need from the device. Then it is applied as a whole.
    fn prepare(&self, batch: &[Change<'_>]) -> Result<()> {
        hop!();
        let Some(prefetched) = self.prefetched else {
            return Ok(());
        };
        let active = &self.snapshot_reader.layers.active;
        let has_content = |object: &Object| object.content().is_some();
        prepare_frees(active, batch, self.not_a_file, prefetched)?;
        // Attributes come first in a batch, and their file's content is loaded by its other
        // changes.
        for change in batch.iter().rev() {
            let mut is_kept = false;
            let (ino, edges, len) = match *change {
                Change::Write { ino, offset, data } => {
                    is_kept = true;
                    let end = offset + data.len() as u64;
                    (ino, edges_of(&(offset..end)), end)
                }
                Change::Truncate { ino, size } => (ino, [0, 0], size),
                Change::Zero {
                    ino, offset, len, ..
                } => (ino, [offset, offset.saturating_add(len)], 0),
                Change::Allocate { ino, .. }
                | Change::Collapse { ino, .. }
                | Change::Insert { ino, .. } => (ino, [0, 0], 0),
                // Attributes alone need no content.
                Change::Attributes { ref inode }
                    if active.with(inode.ino, has_content) == Some(true) =>
                {
                    (inode.ino, [0, 0], inode.size)
                }
                _ => continue,
            };
            let known = |block| is_kept && self.keeps(block);
            self.content(ino, |content| {
                content.prepare(edges, len, known, prefetched)
            })?;
        }
        prefetched.begin();
        Ok(())
    }

    fn change_content<'c>(
        &mut self,
        change: &'c Change<'c>,
        records: &mut Vec<Record<'c>>,
    ) -> Result<()> {
        hop!();
        if !is_of_content(change) {
            return Ok(());
        }
        let in_replay = self.prefetched.is_none();
        let as_is = Record::Change(change.clone());
        match *change {
            Change::Write { ino, offset, data } => {
                let kept = self.kept;
                let source = self.source().unwrap_or(self.snapshot_reader.cache.source());
                let inline = self.content(ino, |content| {
                    content.write(offset, data, kept, source)?;
                    Ok(content.as_inline().is_some())
                })?;
                if inline {
                    records.push(as_is);
                }
            }
            Change::Truncate { ino, size } => {
                let source = self.source();
                let freed = self.content(ino, |content| content.resize(size, source))?;
                self.freed.extend(freed);
                self.cut.push((ino, size.div_ceil(BLOCK as u64)));
                records.push(as_is);
            }
            Change::Zero {
                ino,
                offset,
                len,
                keep,
            } => {
                let range = offset..offset.saturating_add(len);
                let source = self.source();
                let freed = self.content(ino, |content| content.zero(range, keep, source))?;
                self.freed.extend(freed);
                records.push(as_is);
                if keep && !in_replay {
                    self.allocate(ino, offset, len, records)?;
                }
            }
            Change::Allocate { ino, offset, len } if !in_replay => {
                self.allocate(ino, offset, len, records)?;
            }
            Change::Collapse { ino, offset, len } => {
                let range = offset..offset.saturating_add(len);
                let freed = self.content(ino, |content| Ok(content.collapse(range)))?;
                self.freed.extend(freed);
                self.cut.push((ino, offset / BLOCK as u64));
                records.push(as_is);
            }
            Change::Insert { ino, offset, len } => {
                self.content(ino, |content| {
                    content.insert(offset, len);
                    Ok(())
                })?;
                self.cut.push((ino, offset / BLOCK as u64));
                records.push(as_is);
            }
            _ => {}
        }
        Ok(())
    }

    /// Applies a change that is not one of content, and records it.
    fn change_other<'c>(
        &mut self,
        change: &'c Change<'c>,
        records: &mut Vec<Record<'c>>,
    ) -> Result<()> {
        hop!();
        match *change {
            Change::Create { ref inode, target } => {
                let mut shard = self.snapshot_reader.layers.active.shard(inode.ino);
                let mut object = shard.create(inode.ino);
                object.set_record(inode);
                if let Some(target) = target {
                    object.rest_mut().target = Some(target.into());
                }
                self.inodes += 1;
            }
            Change::Attributes { ref inode } => {
                let known = self.attributes(inode)?;
                if known && records.is_empty() {
                    // The journal has them, and no record of this batch needs them.
                    return Ok(());
                }
            }
            Change::Enter {
                dir,
                name: bytes,
                cookie,
                ino,
                kind,
                ..
            } => self.object(dir, |object| {
                let name = Name { bytes, ino, kind };
                object.names_mut().enter(cookie, name);
            }),
            Change::Leave { dir, name, cookie } => {
                let hasher = self.snapshot_reader.hasher;
                self.object(dir, |object| {
                    object.names_mut().leave(name, cookie, || hasher.hash(name));
                });
            }
            Change::Xattr { ino, name, value } => self.object(ino, |object| {
                let xattrs = &mut object.rest_mut().xattrs;
                xattrs.insert(name.into(), value.map(Box::from));
            }),
            Change::Free { ino } => {
                let may_have = self.not_a_file != Some(ino);
                let freed = free(self.snapshot_reader, self.prefetched, ino, may_have)?;
                self.freed.extend(freed);
                self.inodes -= 1;
            }
            // Content was changed before.
            _ => return Ok(()),
        }
        records.push(Record::Change(change.clone()));
        Ok(())
    }

    /// Replays an extent that a file got.
    pub(in crate::store) fn map(&mut self, map: &Map, run: Run) -> Result<()> {
        let freed = self.content(map.ino, |content| Ok(content.map(map.offset, run)))?;
        self.freed.extend(freed);
        Ok(())
    }

    /// The parts of a run that the file does not have at this offset already.
    pub(in crate::store) fn parts_elsewhere(
        &self,
        ino: Ino,
        offset: u64,
        run: Run,
    ) -> Result<Vec<Extent>> {
        self.content(ino, |content| Ok(content.parts_elsewhere(offset, run)))
    }

    fn object(&self, ino: Ino, change: impl FnOnce(&mut Object)) {
        let mut shard = self.snapshot_reader.layers.active.shard(ino);
        change(&mut shard.changed(ino));
    }

    /// Sets attributes; `true`: they were the same before.
    fn attributes(&mut self, inode: &InodeRecord) -> Result<bool> {
        let active = &self.snapshot_reader.layers.active;
        let mut shard = active.shard(inode.ino);
        let mut object = shard.changed(inode.ino);
        if let Some(content) = object.content_mut() {
            let before = content.dirty();
            let grown = content.grow(inode.size, self.source());
            active.count_dirty(inode.ino, before, content.dirty());
            grown?;
        }
        let known = matches!(&object.record, Some(Some(known)) if known == inode);
        object.set_record(inode);
        Ok(known)
    }

    /// Calls `change` with a file's content, loaded if need be.
    pub(in crate::store) fn content<R>(
        &self,
        ino: Ino,
        change: impl FnOnce(&mut Content) -> Result<R>,
    ) -> Result<R> {
        hop!();
        let mut shard = self.shard_with_content(ino)?;
        let mut object = shard.get_mut(ino).ok_or_else(|| went(ino))?;
        let content = object.content_mut().ok_or_else(|| went(ino))?;
        let before = content.dirty();
        let changed = change(content);
        let active = &self.snapshot_reader.layers.active;
        active.count_dirty(ino, before, content.dirty());
        changed
    }

    /// Locks the shard of a file, with its content loaded.
    fn shard_with_content(&self, ino: Ino) -> Result<Shard<'_>> {
        let active = &self.snapshot_reader.layers.active;
        let shard = active.shard(ino);
        if shard.get(ino).is_some_and(|it| it.content().is_some()) {
            return Ok(shard);
        }
        drop(shard);
        let content = self.load(ino)?;
        let mut shard = active.shard(ino);
        // The core holds the file's page lock while its data changes, so no other thread has loaded
        // it.
        let mut object = shard.changed(ino);
        let held = &mut object.rest_mut().content;
        let content = held.get_or_insert(Box::new(content));
        // Loading may map an inline file, if journalled attributes say that it is longer.
        active.count_dirty(ino, 0, content.dirty());
        drop(object);
        Ok(shard)
    }

    fn load(&self, ino: Ino) -> Result<Content> {
        let new = |object: &Object| {
            let record = object.record.as_ref().filter(|_| object.fresh)?;
            Some(record.as_ref().map_or(0, |record| record.size))
        };
        if let Some(Some(len)) = self.snapshot_reader.layers.active.with(ino, new) {
            // A new file has no data before its first write.
            let mut content = Content::inline(Vec::new());
            content.set_len(len);
            return Ok(content);
        }
        match self.prefetched {
            Some(prefetched) => prefetched.take_content(ino),
            None => self.snapshot_reader.content_below(ino),
        }
    }

    /// Allocates blocks for the holes of a range of bytes.
    fn allocate(
        &mut self,
        ino: Ino,
        offset: u64,
        len: u64,
        records: &mut Vec<Record<'_>>,
    ) -> Result<()> {
        let range = offset..offset.saturating_add(len);
        let holes = self.content(ino, |content| Ok(content.holes(range)))?;
        for hole in holes {
            let mut at = hole.start;
            while at < hole.end {
                let request =
                    self.content(ino, |content| Ok(content.missing(at, hole.end - at)))?;
                let run = Run {
                    unwritten: true,
                    ..(self.place)(ino, &request)?
                };
                let freed = self.content(ino, |content| Ok(content.map(at, run)))?;
                debug_assert!(freed.is_empty(), "it was a hole");
                records.push(Record::Map(Map {
                    ino,
                    offset: at,
                    start: run.extent.start,
                    blocks: run.extent.length,
                    generation: run.generation,
                    unwritten: true,
                }));
                at += run.extent.length;
            }
        }
        Ok(())
    }
}
