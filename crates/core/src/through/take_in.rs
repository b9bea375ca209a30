//! Updates of inodes in memory by the records that an operation returned.

use holdfast_cache::{Pages, PagesLock};
use std::borrow::Cow;
use std::ops::Range;
use std::time::Instant;

use super::{Changed, Performed, ThroughStore};
use crate::coherence::NamesRead;
use crate::directory::Residency;
use crate::evictions::Evictions;
use crate::inode::{Inode, Numbered as _, WHOLE};
use crate::inodes::find::node_in_memory;
use crate::io::pages::loaded_account;
use crate::load::take_in;
use crate::node::Node;
use crate::notify::notify_inode;
use crate::shared::{
    ask_for_record, forget_content, let_go_unless_known, renew_meta, renewed_rare, version,
};
use crate::store::{Done, InodeRecord, StoredSpace, Touched};
use crate::types::{Caller, Errno, FileType, Ino, Result};

const PAGE: u64 = holdfast_cache::PAGE_SIZE as u64;

impl<'c> ThroughStore<'c> {
    /// The record of an inode after an operation, and its time: from the result, or by another
    /// request.
    ///
    /// # Errors
    /// Those of the store.
    pub(super) fn touched<'d>(
        self,
        done: &'d Done,
        ino: Ino,
    ) -> Result<(Cow<'d, Touched>, Instant)> {
        if let Some(touched) = done.of(ino) {
            return Ok((Cow::Borrowed(touched), done.at));
        }
        let at = self.shared.ask(ino);
        let record = ask_for_record(self.core, ino)?;
        let before = None;
        Ok((Cow::Owned(Touched { before, record }), at))
    }

    /// Updates an inode that is in memory and referenced.
    ///
    /// # Errors
    /// `ESTALE`: the number means another inode. Errors of the store, if extended attributes have
    /// to be read.
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
            false => renewed_rare(core, inode, record)?,
        };
        {
            // The pages are locked before the order lock: a holder of the page lock may ask the
            // store.
            let mut pages = inode.regular().ok().map(Pages::lock);
            if let Some(pages) = &mut pages
                && (!stands || changed == Changed::Content)
            {
                forget_content(core, inode, pages, record.space);
            }
            self.date(inode, touched, at, |inode| {
                renew_meta(core, inode, record, extra_attrs);
            });
        }
        self.tell_of_others(inode, stands);
        Ok(())
    }

    /// Like [`take_in`](Self::take_in), for a file of which this range was written. Its pages have
    /// been locked since before the write. Returns whether the cached data was valid.
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
            // The blocks are new, also where there was a hole.
            let written = bytes.start / PAGE..bytes.end.div_ceil(PAGE);
            pages.begin();
            pages.forget(written.clone(), loaded_account(core));
            inode.partial();
            match pages.mark_unloaded(written, loaded_account(core)) {
                Ok(()) => inode.takes(record.space, size),
                Err(_) => forget_content(core, inode, pages, record.space),
            }
            pages.has_size(size);
        } else {
            forget_content(core, inode, pages, record.space);
        }
        let extra_attrs = match stands {
            true => None,
            false => renewed_rare(core, inode, record)?,
        };
        self.date(inode, touched, at, |inode| {
            renew_meta(core, inode, record, extra_attrs);
        });
        Ok(stands)
    }

    /// The content of a file, which is locked, is unknown.
    pub(super) fn take_in_nothing(self, inode: &Inode, pages: &mut PagesLock<'_>) {
        forget_content(self.core, inode, pages, StoredSpace::UNKNOWN);
    }

    /// The kernel may have cached pages from before a change by others, and would attribute the new
    /// times to its own change.
    pub(super) fn tell_of_others(self, inode: &Inode, stands: bool) {
        let bypassed = || self.shared.coherence.checked(inode.ino()).is_bypassed();
        if !stands && inode.kind() == FileType::Regular && !bypassed() {
            notify_inode(self.core, &Caller::root(), inode.ino(), true);
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

    /// Updates an inode that an operation changed, if it is in memory.
    ///
    /// # Errors
    /// Those of [`take_in`](Self::take_in).
    fn take_in_known(self, done: &Done, ino: Ino, changed: Changed) -> Result<Option<Node>> {
        let Some(inode) = self.core.index.get(ino.0) else {
            let_go_unless_known(self.core, ino);
            return Ok(None);
        };
        let node = Node::new(inode);
        let (touched, at) = self.touched(done, ino)?;
        self.take_in(node.inode(), &touched, at, changed)?;
        Ok(Some(node))
    }

    /// Updates the inode that lost a name, if it is in memory. A removed directory has no names,
    /// and gets none.
    ///
    /// # Errors
    /// Those of [`take_in`](Self::take_in).
    fn take_in_lost(self, done: &Done, ino: Ino) -> Result<Option<Node>> {
        let Some(node) = self.take_in_known(done, ino, Changed::Nothing)? else {
            return Ok(None);
        };
        if let Ok(body) = node.inode().directory()
            && node.inode().nlink() == 0
        {
            let mut names = body.names.write();
            let count = names.len();
            names.forget(true);
            debug_assert!(names.place() == Residency::Unloaded, "nobody lists it");
            names.free();
            self.core.names.add(-i64::from(count));
        }
        Ok(Some(node))
    }
}

impl Performed<'_> {
    /// The inode that the operation created or gave a name, loaded if necessary. `None`: the result
    /// does not contain it.
    ///
    /// # Errors
    /// Those of [`take_in`](ThroughStore::take_in).
    pub(super) fn take_in_entry(&self) -> Result<Option<Node>> {
        let (through, core, done) = (self.through, self.through.core, &self.done);
        let (ino, _) = done.entry.ok_or(Errno::EUCLEAN)?;
        let Some(touched) = done.of(ino) else {
            return Ok(None);
        };
        let update = |node: Node| {
            through.take_in(node.inode(), touched, done.at, Changed::Rest)?;
            Ok(Some(node))
        };
        if let Some(node) = node_in_memory(core, ino)? {
            return update(node);
        }
        match take_in(
            core,
            &touched.record,
            Evictions::of(&self.evictions, ino),
            false,
        ) {
            Ok(Some((node, true))) => {
                through.date(node.inode(), touched, done.at, |_| ());
                self.note_no_names(node.inode(), &touched.record);
                Ok(Some(node))
            }
            Ok(Some((node, false))) => update(node),
            // It was known and forgotten meanwhile.
            Ok(None) => Ok(None),
            Err(error) => {
                let_go_unless_known(core, ino);
                Err(error)
            }
        }
    }

    /// An inode that the operation made, and that this call instantiated: if it is a directory, its
    /// names are known, none.
    ///
    /// That was true when the operation began, and is valid from then on: another user may have
    /// made a name meanwhile, and the record need not show it.
    fn note_no_names(&self, dir: &Inode, record: &InodeRecord) {
        let shared = self.through.shared;
        let Ok(body) = dir.directory() else { return };
        // A host that generates files may have put some into the directory.
        if shared.has_no_size(0) {
            return;
        }
        let mut names = body.names.write();
        let is_unchanged = shared.coherence.changes(dir.ino()) == 0;
        if names.place() != Residency::Unloaded || body.names.is_dead() || !is_unchanged {
            return;
        }
        names.become_whole(shared.coherence.is_dated());
        let read = NamesRead {
            at: self.begun,
            times: (record.mtime, record.ctime),
            settled: false,
            notified: shared.standing(record, self.begun).notified,
        };
        shared.coherence.note_names(dir.ino(), Some(read));
    }

    /// Updates an inode that the operation changed.
    ///
    /// # Errors
    /// Those of [`take_in`](ThroughStore::take_in).
    pub(crate) fn update(&self, node: &Node, changed: Changed) -> Result<()> {
        let (touched, at) = self.through.touched(&self.done, node.ino())?;
        self.through.take_in(node.inode(), &touched, at, changed)
    }

    /// Updates the inodes of a rename that are in memory: the moved one, and the other name's.
    ///
    /// # Errors
    /// Those of [`take_in`](ThroughStore::take_in).
    pub(crate) fn take_in_moved(&self) -> Result<[Option<Node>; 2]> {
        let (through, done) = (self.through, &self.done);
        let (moved, _) = done.entry.ok_or(Errno::EUCLEAN)?;
        let moved = through.take_in_known(done, moved, Changed::Nothing)?;
        let other = match done.other {
            Some((ino, _)) => through.take_in_lost(done, ino)?,
            None => None,
        };
        Ok([moved, other])
    }

    /// As [`take_in_lost`](ThroughStore::take_in_lost), for the entry that was removed. `None` also
    /// if the store knows nothing of it any more.
    ///
    /// # Errors
    /// Those of [`take_in`](ThroughStore::take_in).
    pub(crate) fn take_in_lost_entry(&self) -> Result<Option<Node>> {
        let Some((ino, _)) = self.done.entry else {
            return Ok(None);
        };
        match self.through.take_in_lost(&self.done, ino) {
            Err(Errno::ESTALE) => Ok(None),
            taken => taken,
        }
    }
}
