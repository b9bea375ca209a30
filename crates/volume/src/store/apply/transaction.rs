//! One operation's changes, made in memory.
//!
//! First those of content, which need the length from before; then attributes and names. What has to
//! be journalled differs from what came: bytes of mapped files go to the device at the commit,
//! and space that is taken is journalled as the places that it got.

use holdfast_core::store::{Change, InodeRecord, PageOf};
use holdfast_types::{FileType, Ino};

use super::prefetched::Prefetched;
use crate::journal::{Map, Record};
use crate::space::{Extent, FileRequest};
use crate::store::file::content::{Content, Source, Waits, edges_of};
use crate::store::file::extent_map::Run;
use crate::store::load::SnapshotReader;
use crate::store::memtable::names::Name;
use crate::store::memtable::{Object, Shard};
use crate::{BLOCK, Error, Result};

fn went(ino: Ino) -> Error {
    Error::Damaged(format!("file {ino} went"))
}

/// Does it change a file's bytes or their places?
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

/// The directory in which a change is about a name.
fn dir_of(change: &Change<'_>) -> Option<Ino> {
    match *change {
        Change::Enter { dir, .. } | Change::Leave { dir, .. } => Some(dir),
        _ => None,
    }
}

/// What making changes needs beside the layers.
pub(in crate::store) struct Applier<'m, 'k> {
    pub(in crate::store) snapshot_reader: SnapshotReader<'m>,
    /// Shows pages that hold what is written to them already.
    pub(in crate::store) kept: Option<&'m PageOf<'k>>,
    /// What was read of the device before; `None` in replay, where nobody waits.
    pub(in crate::store) prefetched: Option<&'m Prefetched<'m>>,
    /// Finds room for what a file asks for, or less; `None` in replay.
    pub(in crate::store) place: &'m dyn Fn(Ino, &FileRequest) -> Result<Run>,
    /// Files that have no bytes any more from some block on, or others there.
    pub(in crate::store) cut: Vec<(Ino, u64)>,
    /// Places that are not needed any more.
    pub(in crate::store) freed: Vec<Run>,
    /// How many inodes came, less those that went.
    pub(in crate::store) inodes: i64,
    /// An inode that the batch ends, where it says what that is.
    pub(in crate::store) ends: Option<(Ino, FileType)>,
}

impl<'m> Applier<'m, '_> {
    /// Makes the changes of one batch; returns what is to be journalled.
    pub(in crate::store) fn make<'c>(
        &mut self,
        batch: &'c [Change<'c>],
    ) -> Result<Vec<Record<'c>>> {
        if let [Change::Attributes { inode }, write] = batch
            && let Change::Write { ino, offset, data } = *write
            && ino == inode.ino
        {
            return self.write(inode, offset, data, batch);
        }
        self.prepare(batch)?;
        let mut records = Vec::with_capacity(batch.len());
        for change in batch {
            self.change_content(change, &mut records)?;
        }
        for change in batch {
            self.change_other(change)?;
            if !is_of_content(change) {
                records.push(Record::Change(change.clone()));
            }
        }
        Ok(records)
    }

    /// Bytes of a file are written, and its attributes become these: what nearly all writes are.
    ///
    /// Of bytes that get a place on the device the journal has nothing, and nothing of attributes that are as
    /// they were: then it has had these, and nothing else about them since.
    fn write<'c>(
        &self,
        inode: &InodeRecord,
        offset: u64,
        data: &[u8],
        batch: &'c [Change<'c>],
    ) -> Result<Vec<Record<'c>>> {
        let ino = inode.ino;
        let active = &self.snapshot_reader.layers.active;
        let mut shard = self.shard_with_content(ino)?;
        let mut object = shard.get_mut(ino).ok_or_else(|| went(ino))?;
        let content = object.content_mut().ok_or_else(|| went(ino))?;
        let before = content.dirty();
        let done = self.write_in(content, inode, offset, data);
        active.count_dirty(ino, before, content.dirty());
        done?;
        let inline = content.as_inline().is_some();
        let known = matches!(&object.record, Some(Some(known)) if known == inode);
        if !known {
            object.set_record(inode);
        }
        drop(object);
        drop(shard);
        let mut records = Vec::new();
        if inline {
            records.push(Record::Change(batch[1].clone()));
        }
        if inline || !known {
            records.push(Record::Change(batch[0].clone()));
        }
        Ok(records)
    }

    fn write_in(
        &self,
        content: &mut Content,
        inode: &InodeRecord,
        offset: u64,
        data: &[u8],
    ) -> Result<()> {
        let source = self.source();
        let blocks: &dyn Source = self.snapshot_reader.cache.source();
        let end = offset + data.len() as u64;
        if let Some(source) = source {
            let (edges, len) = (edges_of(&(offset..end)), end.max(inode.size));
            content.prepare(edges, len, |block| self.keeps(block), source)?;
        }
        self.begin();
        content.write(offset, data, self.kept, source.unwrap_or(blocks))?;
        content.grow(inode.size, source)
    }

    /// Has the caller all of a block that is written, and can it be kept?
    fn keeps(&self, block: u64) -> bool {
        let page = self.kept.and_then(|kept| kept(block));
        page.is_some_and(|page| page.share().is_some())
    }

    /// Where pages of a file are read from that it needs to be changed; `None` in replay.
    fn source(&self) -> Option<&'m dyn Source> {
        self.prefetched.map(|prefetched| prefetched as &dyn Source)
    }

    /// Has all asked for that the batch may need of the device. After that it is made, all of it.
    fn prepare(&self, batch: &[Change<'_>]) -> Result<()> {
        let Some(prefetched) = self.prefetched else {
            return Ok(());
        };
        self.prepare_ends(batch)?;
        for change in batch {
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
                // Attributes alone do not ask for bytes.
                Change::Attributes { ref inode } if self.has_content(inode.ino) => {
                    (inode.ino, [0, 0], inode.size)
                }
                _ => continue,
            };
            let known = |block| is_kept && self.keeps(block);
            self.content(ino, |content| {
                content.prepare(edges, len, known, prefetched)
            })?;
        }
        self.begin();
        Ok(())
    }

    /// From now on nothing is missing.
    fn begin(&self) {
        if let Some(prefetched) = self.prefetched {
            prefetched.begin();
        }
    }

    fn has_content(&self, ino: Ino) -> bool {
        let active = &self.snapshot_reader.layers.active;
        active.with(ino, |object| object.content().is_some()) == Some(true)
    }

    /// Makes the changes of a batch that has none of content.
    pub(in crate::store) fn make_others(&mut self, batch: &[Change<'_>]) -> Result<()> {
        // One change alone has made nothing as long as something is missing.
        if let [_, _, ..] = batch {
            self.prepare_ends(batch)?;
            self.begin();
        }
        let mut rest = batch;
        while let [change, behind @ ..] = rest {
            rest = match behind {
                // What nearly every batch has: a name, and the directory's attributes after that.
                [Change::Attributes { inode }, behind @ ..]
                    if dir_of(change) == Some(inode.ino) =>
                {
                    self.change_names(inode.ino, change, Some(inode));
                    behind
                }
                _ => {
                    self.change_other(change)?;
                    behind
                }
            };
        }
        Ok(())
    }

    /// A name comes or goes, and the directory's attributes become these.
    fn change_names(&self, dir: Ino, change: &Change<'_>, after: Option<&InodeRecord>) {
        let hasher = self.snapshot_reader.hasher;
        self.object(dir, |object| {
            match *change {
                Change::Enter {
                    name: bytes,
                    cookie,
                    ino,
                    kind,
                    ..
                } => {
                    let name = Name { bytes, ino, kind };
                    object.names_mut().enter(cookie, name);
                }
                Change::Leave { name, cookie, .. } => {
                    object.names_mut().leave(name, cookie, || hasher.hash(name));
                }
                _ => {}
            }
            if let Some(after) = after {
                object.set_record(after);
            }
        });
    }

    fn change_content<'c>(
        &mut self,
        change: &'c Change<'c>,
        records: &mut Vec<Record<'c>>,
    ) -> Result<()> {
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

    /// Makes any change but one of content.
    fn change_other(&mut self, change: &Change<'_>) -> Result<()> {
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
            Change::Attributes { ref inode } => self.attributes(inode)?,
            Change::Enter { dir, .. } | Change::Leave { dir, .. } => {
                self.change_names(dir, change, None);
            }
            Change::Xattr { ino, name, value } => self.object(ino, |object| {
                let xattrs = &mut object.rest_mut().xattrs;
                xattrs.insert(name.into(), value.map(Box::from));
            }),
            Change::Free { ino } => self.free(ino)?,
            // Content was changed before.
            _ => {}
        }
        Ok(())
    }

    /// Replays a place that a file's blocks got.
    pub(in crate::store) fn map(&mut self, map: &Map, run: Run) -> Result<()> {
        let freed = self.content(map.ino, |content| Ok(content.map(map.offset, run)))?;
        self.freed.extend(freed);
        Ok(())
    }

    /// The parts of a run that the file does not have at this place already.
    pub(in crate::store) fn parts_elsewhere(
        &self,
        ino: Ino,
        offset: u64,
        run: Run,
    ) -> Result<Vec<Extent>> {
        self.content(ino, |content| Ok(content.parts_elsewhere(offset, run)))
    }

    pub(in crate::store) fn object<R>(&self, ino: Ino, change: impl FnOnce(&mut Object) -> R) -> R {
        let mut shard = self.snapshot_reader.layers.active.shard(ino);
        change(&mut shard.changed(ino))
    }

    fn attributes(&mut self, inode: &InodeRecord) -> Result<()> {
        let active = &self.snapshot_reader.layers.active;
        let mut shard = active.shard(inode.ino);
        let mut object = shard.changed(inode.ino);
        if let Some(content) = object.content_mut() {
            let before = content.dirty();
            let grown = content.grow(inode.size, self.source());
            active.count_dirty(inode.ino, before, content.dirty());
            grown?;
        }
        object.set_record(inode);
        Ok(())
    }

    /// Shows a file's content to be changed, loaded if need be.
    pub(in crate::store) fn content<R>(
        &self,
        ino: Ino,
        change: impl FnOnce(&mut Content) -> Result<R>,
    ) -> Result<R> {
        let mut shard = self.shard_with_content(ino)?;
        let mut object = shard.get_mut(ino).ok_or_else(|| went(ino))?;
        let content = object.content_mut().ok_or_else(|| went(ino))?;
        let before = content.dirty();
        let changed = change(content);
        let active = &self.snapshot_reader.layers.active;
        active.count_dirty(ino, before, content.dirty());
        changed
    }

    /// Locks the shard of a file whose content is there, loaded if need be.
    fn shard_with_content(&self, ino: Ino) -> Result<Shard<'_>> {
        let active = &self.snapshot_reader.layers.active;
        let shard = active.shard(ino);
        if shard.get(ino).is_some_and(|it| it.content().is_some()) {
            return Ok(shard);
        }
        drop(shard);
        let content = self.load(ino)?;
        let mut shard = active.shard(ino);
        // The core has the pages of a file locked while its bytes change, so no other change was faster.
        let mut object = shard.changed(ino);
        let held = &mut object.rest_mut().content;
        let content = held.get_or_insert(Box::new(content));
        // Few bytes may have become pages, if attributes in a journal say that the file outgrew them.
        active.count_dirty(ino, Waits::default(), content.dirty());
        drop(object);
        Ok(shard)
    }

    fn load(&self, ino: Ino) -> Result<Content> {
        let new = |object: &Object| {
            let record = object.record.as_ref().filter(|_| object.fresh)?;
            Some(record.as_ref().map_or(0, |record| record.size))
        };
        if let Some(Some(len)) = self.snapshot_reader.layers.active.with(ino, new) {
            // Before its first bytes a new file has none.
            let mut content = Content::inline(Vec::new());
            content.settle(len);
            return Ok(content);
        }
        match self.prefetched {
            Some(prefetched) => prefetched.take_content(ino),
            None => self.snapshot_reader.content_below(ino),
        }
    }

    /// Takes space for what has none in a range of bytes.
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
                    birth: run.birth,
                    unwritten: true,
                }));
                at += run.extent.length;
            }
        }
        Ok(())
    }
}
