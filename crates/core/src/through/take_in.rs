//! Inodes that an operation touched, as the store told of them.

use holdfast_cache::{Pages, PagesLock};
use std::borrow::Cow;
use std::ops::Range;
use std::time::Instant;

use super::ThroughStore;
use crate::evictions::{self, Evictions};
use crate::inode::{Inode, Numbered as _, WHOLE};
use crate::node::Node;
use crate::shared::version;
use crate::store::{Done, StoredSpace, Touched};
use crate::types::{Caller, Errno, FileType, Ino, Result};

const PAGE: u64 = holdfast_cache::PAGE_SIZE as u64;

/// What an operation changed of an inode, beside its attributes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Changed {
    Nothing,
    /// Extended attributes and access control lists.
    Rest,
    /// The bytes of a file.
    Content,
}

impl<'c> ThroughStore<'c> {
    /// What became of an inode, and since when: as it was told, or as the store tells now.
    ///
    /// # Errors
    /// What the store answers.
    pub(super) fn touched<'d>(
        self,
        done: &'d Done,
        ino: Ino,
    ) -> Result<(Cow<'d, Touched>, Instant)> {
        if let Some(touched) = done.of(ino) {
            return Ok((Cow::Borrowed(touched), done.at));
        }
        let at = self.shared.ask(ino);
        let record = self.core.ask_for_record(ino)?;
        let before = None;
        Ok((Cow::Owned(Touched { before, record }), at))
    }

    /// Takes in what became of an inode that is in memory, and in use.
    ///
    /// # Errors
    /// `ESTALE`: it is another inode. What the store answers that has to be asked for extended attributes.
    pub(super) fn take_in(
        self,
        inode: &Inode,
        touched: &Touched,
        at: Instant,
        changed: Changed,
    ) -> Result<()> {
        let (core, record) = (self.core, &touched.record);
        if record.kind != inode.kind() {
            return Err(Errno::ESTALE);
        }
        let stands = touched.before == Some(version(inode));
        let extra_attrs = match stands && changed != Changed::Rest {
            true => None,
            false => core.renewed_rare(inode, record)?,
        };
        {
            // First: while another thread has them the store may be asked.
            let mut pages = inode.regular().ok().map(Pages::lock);
            if let Some(pages) = &mut pages
                && (!stands || changed == Changed::Content)
            {
                core.forget_content(inode, pages, record.space);
            }
            self.date(inode, touched, at, |inode| {
                core.renew_meta(inode, record, extra_attrs);
            });
        }
        self.tell_of_others(inode, stands);
        Ok(())
    }

    /// As [`take_in`](Self::take_in), of a file of which these bytes were written. Its pages are locked since before that.
    /// Does what was known of it stand?
    ///
    /// # Errors
    /// The same.
    pub(super) fn take_in_written(
        self,
        inode: &Inode,
        pages: &mut PagesLock<'_>,
        (touched, at): (&Touched, Instant),
        bytes: Range<u64>,
    ) -> Result<bool> {
        let (core, record) = (self.core, &touched.record);
        let stands = touched.before == Some(version(inode));
        let size = record.size;
        if stands && inode.is_mapped() && size > WHOLE && inode.size() > WHOLE {
            // The bytes are elsewhere now, also where there was a hole.
            let written = bytes.start / PAGE..bytes.end.div_ceil(PAGE);
            pages.begin();
            pages.forget(written.clone(), core.loaded());
            inode.partial();
            match pages.put_aside(written, core.loaded()) {
                Ok(()) => inode.takes(record.space, size),
                Err(_) => core.forget_content(inode, pages, record.space),
            }
            pages.has_size(size);
        } else {
            core.forget_content(inode, pages, record.space);
        }
        let extra_attrs = match stands {
            true => None,
            false => core.renewed_rare(inode, record)?,
        };
        self.date(inode, touched, at, |inode| {
            core.renew_meta(inode, record, extra_attrs);
        });
        Ok(stands)
    }

    /// It is not known what became of a file's content, which is locked.
    pub(super) fn take_in_nothing(self, inode: &Inode, pages: &mut PagesLock<'_>) {
        self.core.forget_content(inode, pages, StoredSpace::UNKNOWN);
    }

    /// A kernel may have what others changed, and takes it for what its own change left.
    pub(super) fn tell_of_others(self, inode: &Inode, stands: bool) {
        let bypassed = || self.shared.coherence.checked(inode.ino()).is_bypassed();
        if !stands && inode.kind() == FileType::Regular && !bypassed() {
            self.core.notify_inode(&Caller::root(), inode.ino(), true);
        }
    }

    fn date(self, inode: &Inode, touched: &Touched, at: Instant, renew: impl FnOnce(&Inode)) {
        let coherence = self.shared.coherence;
        if let Some(_order) = coherence.in_order(inode.ino(), at) {
            renew(inode);
            let standing = self.shared.standing(&touched.record, at);
            coherence.note(inode.ino(), at, standing);
        }
    }

    /// The inode that an operation made or gave a name, brought into memory if need be. `evictions`: from before. `None`: it has to be
    /// asked for.
    ///
    /// # Errors
    /// As [`take_in`](Self::take_in).
    pub(super) fn take_in_entry(
        self,
        done: &Done,
        evictions: &[u64; evictions::SHARDS],
    ) -> Result<Option<Node>> {
        let core = self.core;
        let (ino, _) = done.entry.ok_or(Errno::EUCLEAN)?;
        let Some(touched) = done.of(ino) else {
            return Ok(None);
        };
        if let Some(node) = core.node_in_memory(ino)? {
            self.take_in(node.inode(), touched, done.at, Changed::Rest)?;
            return Ok(Some(node));
        }
        match core.take_in_told(&touched.record, Evictions::of(evictions, ino)) {
            Ok(Some((node, true))) => {
                self.date(node.inode(), touched, done.at, |_| ());
                Ok(Some(node))
            }
            Ok(Some((node, false))) => {
                self.take_in(node.inode(), touched, done.at, Changed::Rest)?;
                Ok(Some(node))
            }
            // It was known and let go meanwhile.
            Ok(None) => Ok(None),
            Err(error) => {
                core.let_go_unless_known(ino);
                Err(error)
            }
        }
    }

    /// An inode that an operation touched, if it is in memory, as it is now.
    ///
    /// # Errors
    /// As [`take_in`](Self::take_in).
    pub(super) fn take_in_known(
        self,
        done: &Done,
        ino: Ino,
        changed: Changed,
    ) -> Result<Option<Node>> {
        let Some(inode) = self.core.index.get(ino.0) else {
            self.core.let_go_unless_known(ino);
            return Ok(None);
        };
        let node = Node::new(inode);
        let (touched, at) = self.touched(done, ino)?;
        self.take_in(node.inode(), &touched, at, changed)?;
        Ok(Some(node))
    }
}
