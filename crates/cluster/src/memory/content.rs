//! The content of files changes, and with it what is mapped of objects.

use super::state::{Object, State};
use super::transaction::Transaction;
use crate::meta::{Answer, Content, Edit, Flush, Size};
use holdfast_types::{Errno, Result, Time};

impl Edit {
    /// New objects, with their lengths.
    fn objects(&self) -> &[(u64, u64)] {
        match self {
            Self::None => &[],
            Self::Replace { objects, .. } | Self::Map { objects, .. } => objects,
        }
    }
}

impl Transaction<'_> {
    /// # Errors
    /// Those of [`Request::Flush`](crate::meta::Request::Flush).
    pub(super) fn flush(mut self, flush: &Flush) -> Result<Answer> {
        let inode = self.state.inode(flush.ino)?;
        if !inode.is_file() {
            return Err(Errno::EINVAL);
        }
        let Some(mut content) = inode.content.edited(&flush.edit)? else {
            return Ok(Answer::Refused);
        };
        let checked = match flush.edit {
            Edit::None => false,
            Edit::Replace { .. } => true,
            Edit::Map { .. } => flush.generation != 0,
        };
        if checked && inode.generation != flush.generation {
            return Ok(Answer::Refused);
        }
        let size = match flush.size {
            None => inode.stored.size,
            Some(Size::AtLeast(size)) => inode.stored.size.max(size),
            Some(Size::Exactly(size)) => size,
        };
        if let (Edit::None, Some(Size::Exactly(size))) = (&flush.edit, flush.size) {
            content = content.cut(size);
        }
        if !self.state.can_map(&content, flush.edit.objects())? {
            return Ok(Answer::Refused);
        }
        let changes = content != inode.content || size != inode.stored.size;
        self.state
            .remap(&inode.content.clone(), &content, flush.edit.objects());
        let now = self.now;
        let inode = match flush.changed {
            Some(at) => self.touch_at(flush.ino, at)?,
            None => self.touch_quietly(flush.ino)?,
        };
        if flush.changed.is_some() {
            inode.stored.mtime = inode.stored.ctime;
        }
        inode.change(&flush.change);
        inode.stored.size = size;
        if changes {
            inode.generation += 1;
            inode.content = content;
            inode.flushed = now;
            self.changes_content(flush.ino);
        }
        Ok(self.done(None, None))
    }
}

impl State {
    /// Can this content be mapped, of objects that are there and of these new ones?
    ///
    /// # Errors
    /// `EINVAL`: it is not in its objects.
    fn can_map(&self, content: &Content, new: &[(u64, u64)]) -> Result<bool> {
        for extent in content.extents().iter().filter(|it| it.object != 0) {
            let len = match self.objects.get(&extent.object) {
                Some(object) if object.deleting => return Ok(false),
                Some(object) => Some(object.len),
                None => {
                    let found = new.iter().find(|(number, _)| *number == extent.object);
                    found.map(|(_, len)| *len)
                }
            };
            let Some(len) = len else {
                return Ok(false);
            };
            if extent.object_offset + extent.len > len {
                return Err(Errno::EINVAL);
            }
        }
        Ok(true)
    }

    /// The content of a file becomes another: objects that are new get known, and what is mapped is
    /// counted.
    fn remap(&mut self, old: &Content, content: &Content, new: &[(u64, u64)]) {
        let now = self.clock.now();
        for (number, len) in new {
            self.objects.entry(*number).or_insert(Object {
                len: *len,
                live: 0,
                unmapped: Some(now),
                deleting: false,
            });
        }
        self.count(content);
        self.uncount(old, now);
    }

    fn count(&mut self, content: &Content) {
        for extent in content.extents() {
            if let Some(object) = self.objects.get_mut(&extent.object) {
                object.live += extent.len;
                object.unmapped = None;
            }
        }
    }

    /// Content is not that of a file any more.
    pub(super) fn uncount(&mut self, content: &Content, now: Time) {
        for extent in content.extents() {
            if let Some(object) = self.objects.get_mut(&extent.object) {
                object.live = object.live.saturating_sub(extent.len);
                if object.live == 0 {
                    object.unmapped = Some(now);
                }
            }
        }
    }
}
