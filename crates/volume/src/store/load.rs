//! Finding what is asked for: in the overlays, then in the trees.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use holdfast_core::store::{EntryRecord, InodeRecord, NameRun, Rest, XattrList};
use holdfast_types::{FileType, Ino};

use super::content::Content;
use super::device::Blocks;
use super::hash::NameHasher;
use super::layers::{Known, Layers};
use super::mapping::{Mapping, Run};
use super::names::Names;
use super::overlay::Object;
use super::reading::run_of;
use super::records::DataRecords;
use super::window::{Places, Window};
use crate::tree::{
    Contents, Data, DataKey, DataKind, Entries, EntryKey, HashKey, Hashes, Inodes, NodeCache, Tree,
    XattrValue,
};
use crate::{BLOCK, Error, Result, tree};

/// Longest value of an extended attribute: Linux's.
const XATTR_MAX: u64 = 64 << 10;

/// Everything that a search needs.
#[derive(Clone, Copy)]
pub(super) struct Finder<'l> {
    pub(super) layers: &'l Layers,
    pub(super) cache: &'l NodeCache<Blocks>,
    pub(super) hasher: &'l NameHasher,
}

impl<'l> Finder<'l> {
    pub(super) fn inodes(&self) -> Tree<'l, Inodes, Blocks> {
        Tree::new(self.cache, self.layers.roots.inodes)
    }

    pub(super) fn entries(&self) -> Tree<'l, Entries, Blocks> {
        Tree::new(self.cache, self.layers.roots.entries)
    }

    pub(super) fn hashes(&self) -> Tree<'l, Hashes, Blocks> {
        Tree::new(self.cache, self.layers.roots.hashes)
    }

    pub(super) fn data(&self) -> Tree<'l, Contents, Blocks> {
        Tree::new(self.cache, self.layers.roots.data)
    }

    pub(super) fn orphans(&self) -> Tree<'l, Inodes, Blocks> {
        Tree::new(self.cache, self.layers.roots.orphans)
    }

    /// An inode's attributes.
    pub(super) fn inode(&self, ino: Ino) -> Result<Option<InodeRecord>> {
        match self.layers.find(ino, |object| object.record.clone()) {
            Known::Found(record) => Ok(record),
            Known::Nothing => Ok(None),
            Known::Below => Ok(self.inodes().get(&ino, |inode| inode.record)?),
        }
    }

    /// The attributes of several inodes, in this order; cheap where the numbers ascend.
    pub(super) fn each_inode(
        &self,
        inos: &[Ino],
        mut each: impl FnMut(Option<InodeRecord>),
    ) -> Result<()> {
        if !inos.is_sorted_by(|one, other| one < other) {
            for ino in inos {
                each(self.inode(*ino)?);
            }
            return Ok(());
        }
        let changed = self.changed(inos);
        let mut below = Vec::new();
        let wanted = if changed.is_empty() {
            inos
        } else {
            let mut changed = changed.iter().map(|(place, _)| *place).peekable();
            let is_below = |(place, _): &(usize, &Ino)| changed.next_if_eq(place).is_none();
            below.extend(
                inos.iter()
                    .enumerate()
                    .filter(is_below)
                    .map(|(_, ino)| *ino),
            );
            &below
        };
        let mut changed = changed.into_iter().peekable();
        let mut at = 0;
        let mut cursor = self.inodes().range(wanted.first())?;
        cursor.find_each(wanted, |_, inode| {
            while let Some((_, record)) = changed.next_if(|(place, _)| *place == at) {
                each(record);
                at += 1;
            }
            each(inode.map(|inode| inode.record));
            at += 1;
        })?;
        changed.for_each(|(_, record)| each(record));
        Ok(())
    }

    /// What overlays know of these inodes, whose numbers ascend: by their places among them, ascending.
    fn changed(&self, inos: &[Ino]) -> Vec<(usize, Option<InodeRecord>)> {
        let mut changed: Vec<(usize, Option<InodeRecord>)> = Vec::new();
        for overlay in self.layers.overlays() {
            let newer = changed.len();
            overlay.with_each(inos, |place, object| {
                let known = match &object.record {
                    Some(record) => record.clone(),
                    None if object.fresh => None,
                    None => return,
                };
                let above = &changed[..newer];
                if above
                    .binary_search_by_key(&place, |(place, _)| *place)
                    .is_err()
                {
                    changed.push((place, known));
                }
            });
            if newer > 0 {
                changed.sort_unstable_by_key(|(place, _)| *place);
            }
        }
        changed
    }

    /// What inodes have beside their records, in this order; cheap where the numbers ascend.
    pub(super) fn each_rest(
        &self,
        records: &[InodeRecord],
        mut each: impl FnMut(Rest),
    ) -> Result<()> {
        let mut data = self.data_records();
        for record in records {
            let mut rest = Rest::default();
            if record.xattrs {
                rest.xattrs = self.xattrs(record.ino, &mut data)?;
            }
            if record.kind == FileType::Symlink {
                rest.target = Some(self.target(record.ino, &mut data)?);
            }
            each(rest);
        }
        Ok(())
    }

    /// The records of the data tree.
    pub(super) fn data_records(&self) -> DataRecords<'l> {
        DataRecords::of(self.data())
    }

    /// Where a symbolic link leads.
    pub(super) fn target(&self, ino: Ino, data: &mut DataRecords<'_>) -> Result<Box<[u8]>> {
        let known = self
            .layers
            .find(ino, |object| object.rest()?.target.clone());
        if let Known::Found(target) = known {
            return Ok(target);
        }
        let mut found = None;
        data.each(ino, DataKind::Inline, |_, value| {
            if let Data::Inline(bytes) = value {
                found = Some(Box::from(bytes));
            }
        })?;
        found.ok_or_else(|| Error::Damaged(format!("symbolic link {ino} has no target")))
    }

    /// Above all cookies that names of a directory had, unless names that are there have greater ones.
    pub(super) fn next_cookie(&self, dir: Ino) -> Result<u64> {
        let mut next = 0;
        for overlay in self.layers.overlays() {
            let known = overlay.with(dir, |object| {
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
        let below = self.inodes().get(&dir, |inode| inode.next_cookie)?;
        Ok(next.max(below.unwrap_or(0)))
    }

    /// All extended attributes.
    pub(super) fn xattrs(&self, ino: Ino, data: &mut DataRecords<'_>) -> Result<XattrList> {
        let mut layers = Vec::new();
        let mut below = true;
        for overlay in self.layers.overlays() {
            let found = overlay.with(ino, |object| {
                let xattrs = object.rest().map(|rest| rest.xattrs.clone());
                (xattrs.unwrap_or_default(), object.fresh)
            });
            if let Some((xattrs, fresh)) = found {
                layers.push(xattrs);
                if fresh {
                    below = false;
                    break;
                }
            }
        }
        let mut all = BTreeMap::new();
        if below {
            let mut external = Vec::new();
            data.each(ino, DataKind::Xattr, |_, value| match value {
                Data::Xattr {
                    name,
                    value: XattrValue::Inline(value),
                } => {
                    all.insert(Box::<[u8]>::from(name), Some(Box::<[u8]>::from(value)));
                }
                Data::Xattr {
                    name,
                    value: XattrValue::External { extent, len },
                } => external.push((Box::<[u8]>::from(name), extent, len)),
                _ => {}
            })?;
            for (name, extent, len) in external {
                all.insert(name, Some(self.external(extent, len)?));
            }
        }
        for layer in layers.into_iter().rev() {
            all.extend(layer);
        }
        let there = all
            .into_iter()
            .filter_map(|(name, value)| Some((name, value?)));
        Ok(there.collect())
    }

    /// A value that is too large for a node.
    fn external(&self, extent: tree::Extent, len: u32) -> Result<Box<[u8]>> {
        let room = u64::from(extent.blocks) * BLOCK as u64;
        if u64::from(len) > room.min(XATTR_MAX) {
            let block = extent.block;
            let what = format!("an extended attribute of {len} bytes at block {block}");
            return Err(Error::Damaged(what));
        }
        let mut bytes = vec![0; (len as usize).next_multiple_of(BLOCK)];
        self.cache.source().read_at(extent.block, &mut bytes)?;
        bytes.truncate(len as usize);
        Ok(bytes.into())
    }

    /// One name of a directory.
    pub(super) fn lookup(&self, dir: Ino, name: &[u8]) -> Result<Option<EntryRecord>> {
        let entry = |cookie, ino, kind| EntryRecord {
            name: name.into(),
            cookie,
            ino,
            kind,
        };
        // Names that went from a layer below are known by their places.
        let gone = |above: usize, cookie| {
            let mut overlays = self.layers.overlays().take(above);
            overlays.any(|overlay| {
                let is_gone = |object: &Object| object.names()?.is_gone(cookie).then_some(());
                overlay.with(dir, is_gone).flatten().is_some()
            })
        };
        let mut overlays = 0;
        for overlay in self.layers.overlays() {
            let known = overlay.with(dir, |object| {
                let found = object.names().and_then(|names| names.find(name));
                let found = found.map(|(cookie, name)| entry(cookie, name.ino, name.kind));
                (found, object.fresh || object.is_freed())
            });
            match known {
                Some((Some(found), _)) if !gone(overlays, found.cookie) => return Ok(Some(found)),
                Some((_, true)) => return Ok(None),
                _ => overlays += 1,
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
                && !gone(overlays, found.cookie)
            {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// A run of a directory's names, added to those of `run`.
    pub(super) fn names(&self, dir: Ino, after: u64, max: usize, run: &mut NameRun) -> Result<()> {
        if self.layers.overlays().all(|overlay| {
            let known = overlay.with(dir, |object| object.names().is_some() || object.fresh);
            known != Some(true)
        }) {
            return self.names_in_trees(dir, after, max, run);
        }
        let mut after = after;
        let mut left = max;
        while left > 0 {
            let window = self.window(dir, after, left)?;
            left -= window.names.len();
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

    /// The names of some places behind a cookie.
    fn window(&self, dir: Ino, after: u64, max: usize) -> Result<Window> {
        let mut places = Places::default();
        let mut below = true;
        for overlay in self.layers.overlays() {
            let seen = overlay.with(dir, |object| {
                let names = object.names().into_iter();
                let changes = names.flat_map(|names| names.after(after));
                let changes = changes.map(|place| (place.cookie, place.entry()));
                places.take(changes.take(max), max);
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
            while run.len() < max {
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
            places.take(run.into_iter(), max);
        }
        Ok(places.window(max))
    }

    /// What is known of a file's content below the active overlay. `len`: its length there.
    pub(super) fn content(&self, ino: Ino, len: u64) -> Result<Content> {
        if let Some(frozen) = &self.layers.frozen {
            let known = frozen.with(ino, |object| {
                let fresh = object.fresh.then(|| Content::inline(Vec::new()));
                object.content().cloned().or(fresh)
            });
            if let Some(Some(content)) = known {
                return Ok(content);
            }
        }
        self.content_in_trees(ino, len)
    }

    /// A file's content as the trees have it.
    pub(super) fn content_in_trees(&self, ino: Ino, len: u64) -> Result<Content> {
        if let Some(content) = self.inline_in_trees(ino, len)? {
            return Ok(content);
        }
        let mut mapping = Mapping::default();
        self.each_place(ino, |offset, run| {
            mapping.map(offset, run);
        })?;
        if mapping.is_empty() && len == 0 {
            return Ok(Content::inline(Vec::new()));
        }
        Ok(Content::mapped(len, mapping))
    }

    /// The places of a file's bytes that the trees have.
    pub(super) fn places_in_trees(&self, ino: Ino) -> Result<Vec<Run>> {
        let mut places = Vec::new();
        if self.layers.roots.data.is_some() {
            self.each_place(ino, |_, run| places.push(run))?;
        }
        Ok(places)
    }

    fn each_place(&self, ino: Ino, mut each: impl FnMut(u64, Run)) -> Result<()> {
        self.each_data(ino, DataKind::Extent, |offset, value| {
            if let Data::Extent(extent) = value {
                each(offset, run_of(&extent));
            }
        })
    }

    /// A file's content, if the trees have it inline.
    pub(super) fn inline_in_trees(&self, ino: Ino, len: u64) -> Result<Option<Content>> {
        let key = DataKey::first(ino, DataKind::Inline);
        let inline = self.data().get(&key, |value| match value {
            Data::Inline(bytes) => Some(bytes.to_vec()),
            _ => None,
        })?;
        Ok(inline.flatten().map(|bytes| {
            let mut content = Content::inline(bytes);
            content.settle(len);
            content
        }))
    }

    /// Inodes behind this one, by number: at most `max`.
    pub(super) fn walk(&self, after: Ino, max: usize, run: &mut Vec<InodeRecord>) -> Result<()> {
        let end = run.len().saturating_add(max);
        let mut after = after;
        while run.len() < end {
            after = match self.walk_part(after, end - run.len(), run)? {
                Some(upto) => upto,
                None => break,
            };
        }
        Ok(())
    }

    /// As [`Finder::walk`], as far as one look at the trees and at the overlays reaches: up to the
    /// number that is returned, or the end.
    fn walk_part(&self, after: Ino, max: usize, run: &mut Vec<InodeRecord>) -> Result<Option<Ino>> {
        let reach = |full: bool, last: Option<Ino>| last.filter(|_| full).unwrap_or(Ino(u64::MAX));
        let start = run.len();
        self.walk_trees(after, max, run)?;
        let last = run[start..].last().map(|record| record.ino);
        let mut upto = reach(run.len() - start == max, last);
        let mut inos: Vec<Ino> = Vec::new();
        let mut is_changed = false;
        for overlay in self.layers.overlays() {
            if let Some(fresh) = overlay.fresh_within(after, upto, max) {
                is_changed = true;
                upto = upto.min(reach(fresh.len() == max, fresh.last().copied()));
                inos.extend(fresh);
            }
        }
        if !is_changed {
            // What the trees have is all that there is.
            return Ok((upto.0 < u64::MAX).then_some(upto));
        }
        let fresh = inos.len();
        inos.extend(run[start..].iter().map(|record| record.ino));
        inos.retain(|ino| *ino <= upto);
        if fresh > 0 {
            inos.sort_unstable();
            inos.dedup();
        }
        let changed = self.changed(&inos);
        if fresh == 0 && changed.is_empty() {
            return Ok((upto.0 < u64::MAX).then_some(upto));
        }
        let mut changed = changed.into_iter().peekable();
        let mut below = run.split_off(start).into_iter().peekable();
        let end = start.saturating_add(max);
        for (place, ino) in inos.iter().enumerate() {
            let below = below.next_if(|record| record.ino == *ino);
            match changed.next_if(|(changed, _)| *changed == place) {
                Some((_, record)) => run.extend(record),
                None => run.extend(below),
            }
            if run.len() == end {
                return Ok(Some(*ino));
            }
        }
        Ok((upto.0 < u64::MAX).then_some(upto))
    }

    /// Numbers that cut all inodes into about equal parts.
    pub(super) fn split(&self, parts: usize) -> Result<Vec<Ino>> {
        Ok(self.inodes().split_points(parts)?)
    }

    fn walk_trees(&self, after: Ino, max: usize, run: &mut Vec<InodeRecord>) -> Result<()> {
        let mut cursor = self.inodes().range(Some(&Ino(after.0.saturating_add(1))))?;
        let mut left = max;
        cursor.each(|_, inode| {
            if left == 0 {
                return ControlFlow::Break(());
            }
            left -= 1;
            run.push(inode.record);
            ControlFlow::Continue(())
        })?;
        Ok(())
    }

    /// All records of one kind that belong to an inode.
    pub(super) fn each_data(
        &self,
        ino: Ino,
        kind: DataKind,
        mut each: impl FnMut(u64, Data<'_>),
    ) -> Result<()> {
        let first = DataKey::first(ino, kind);
        let mut cursor = self.data().range(Some(&first))?;
        while let Some((key, value)) = cursor.next()? {
            if (key.ino, key.kind) != (ino, kind) {
                break;
            }
            each(key.offset, value);
        }
        Ok(())
    }

    /// Is this a regular file?
    pub(super) fn is_file(&self, ino: Ino) -> Result<bool> {
        let inode = self.inode(ino)?;
        Ok(inode.is_some_and(|inode| inode.kind == FileType::Regular))
    }
}

#[cfg(test)]
mod tests;
