//! Whether what the store holds fits: behind each batch, since a crash may come there.

use super::{Held, ModelStore};
use holdfast_core::store::Change;
use holdfast_types::{FileType, Ino};

impl ModelStore {
    /// What contradicts itself: entries without inodes, wrong link counts, wrong parents. An
    /// inode without names is an orphan, and no contradiction.
    #[must_use]
    pub fn contradictions(&self) -> Vec<String> {
        let held = self.held();
        let mut found = Vec::new();
        for ((dir, _), entry) in &held.entries {
            let Some(inode) = held.inodes.get(&entry.ino) else {
                found.push(format!("{dir:?} names {:?}, which is not there", entry.ino));
                continue;
            };
            if inode.record.kind != entry.kind {
                found.push(format!("{dir:?} has the wrong kind for {:?}", entry.ino));
            }
        }
        found.extend(held.inodes.keys().filter_map(|ino| held.misfit(*ino)));
        found
    }
}

impl Held {
    /// What does not fit of an inode's attributes, if something does not.
    pub(super) fn misfit(&self, ino: Ino) -> Option<String> {
        let held = self.inodes.get(&ino)?;
        let inode = &held.record;
        if !inode.xattrs && !held.xattrs.is_empty() {
            return Some(format!("{ino:?} says that it has no values"));
        }
        let own = if ino == Ino::ROOT { 2 } else { 0 };
        let links = own + self.links.get(&ino).copied().unwrap_or(0);
        if inode.nlink != links {
            let nlink = inode.nlink;
            return Some(format!("{ino:?} says {nlink} links and has {links}"));
        }
        let parent = self.parents.get(&ino).filter(|_| links > 0);
        if parent.is_some_and(|parent| *parent != inode.parent) {
            let parent = inode.parent;
            return Some(format!("{ino:?} has the wrong parent {parent:?}"));
        }
        None
    }

    /// What does not fit any more behind a batch, if something does not.
    pub(super) fn misfit_behind(&self, batch: &[Change<'_>]) -> Option<String> {
        batch.iter().find_map(|change| match *change {
            Change::Create { ref inode, .. } | Change::Attributes { ref inode } => {
                self.misfit(inode.ino)
            }
            Change::Enter { dir, ino, .. } => self.misfit(dir).or_else(|| self.misfit(ino)),
            Change::Leave { dir, .. } => self.misfit(dir),
            _ => None,
        })
    }

    /// A file that gets another size by its attributes alone, if there is one.
    pub(super) fn resized(&self, batch: &[Change<'_>]) -> Option<String> {
        let has_content = |of: Ino| {
            batch.iter().any(|change| match *change {
                Change::Write { ino, .. }
                | Change::Truncate { ino, .. }
                | Change::Zero { ino, .. }
                | Change::Allocate { ino, .. }
                | Change::Collapse { ino, .. }
                | Change::Insert { ino, .. } => ino == of,
                _ => false,
            })
        };
        batch.iter().find_map(|change| {
            let Change::Attributes { inode } = change else {
                return None;
            };
            let (old, new) = (self.inodes.get(&inode.ino)?.record.size, inode.size);
            let is_file = inode.kind == FileType::Regular;
            (is_file && old != new && !has_content(inode.ino))
                .then(|| format!("{:?} gets {new} bytes for {old} by attributes", inode.ino))
        })
    }
}
