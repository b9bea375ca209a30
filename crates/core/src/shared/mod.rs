//! What others change below: of stores that number their inodes themselves ([`store::Shared`]), and may answer for a time only.
//!
//! Before what is in memory of an inode is used, it is [made fresh](Core::refresh): if the store was asked longer ago than its
//! answer holds, it is asked again, and what does not stand any more goes. Names stand while the times of their directory
//! do, and are read again else (`names.rs`). Inodes are asked for by their names (`by_name.rs`), and directories that a walk comes to next are read together (`walk.rs`).
//!
//! When the store was asked is kept [beside](Coherence) the inodes: those of other stores pay nothing for it. Over a store with answers that hold
//! for a time no directory is [whole](crate::directory::Place::Whole) and no read a plain one, so the paths
//! without locks give up by themselves.
//!
//! *Invariant.* What is answered was so when the store was last asked, or later, and `now - asked < valid`. So answers are taken in
//! in the order of their questions: under the lock of a shard, which is not held while the store is asked.

mod again;
mod by_name;
mod bypass;
mod names;
mod no_size;
mod told;
mod walk;

use holdfast_cache::{Pages, PagesLock};
use std::ops::Deref;
use std::sync::atomic::Ordering;
use std::time::Instant;

use crate::coherence::{Coherence, Standing};
use crate::file_system::Core;
use crate::inode::{ExtraAttrs, Inode, Numbered as _};
use crate::load::parts;
use crate::store::{self, InodeRecord, StoredSpace, Version};
use crate::types::{Caller, Errno, FileFlags, FileType, Ino, Result};

/// Which side asks the store for an inode.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Asks {
    /// A front end, which is told the attributes.
    HotAttrs,
    /// This side alone: a front end that keeps attributes learns of a change only if it is told.
    Core,
}

/// A store that numbers its inodes, and what is known of when it was asked.
#[derive(Clone, Copy)]
pub(crate) struct SharedStore<'c> {
    pub(crate) coherence: &'c Coherence,
    store: &'c dyn store::Shared,
}

impl<'c> Deref for SharedStore<'c> {
    type Target = dyn store::Shared + 'c;

    fn deref(&self) -> &Self::Target {
        self.store
    }
}

/// So often what names led to may have gone before it is used.
const ROUNDS: u32 = 16;

impl SharedStore<'_> {
    /// An inode, or what is in a directory, is about to be asked for: the date of the answer.
    pub(crate) fn ask(&self, ino: Ino) -> Instant {
        self.store.listen(ino);
        self.store.now()
    }

    /// How far an answer stands that was asked for then.
    pub(crate) fn standing(&self, record: &InodeRecord, at: Instant) -> Standing {
        Standing {
            settled: self.store.is_settled(record, at),
            heard: self.store.hears_of(record, at),
        }
    }
}

impl Core {
    #[inline]
    pub(crate) fn shared(&self) -> Option<SharedStore<'_>> {
        let coherence = self.coherence.as_deref()?;
        let store = self.store.shared()?;
        Some(SharedStore { coherence, store })
    }

    /// Makes sure that what is in memory of an inode is not older than the store allows.
    ///
    /// # Errors
    /// `ESTALE`: there is no such inode any more. What the store answers.
    #[inline]
    pub(crate) fn refresh(&self, inode: &Inode) -> Result<()> {
        match &self.coherence {
            Some(coherence) if coherence.is_dated() => self.refresh_now(inode),
            _ => Ok(()),
        }
    }

    #[cold]
    fn refresh_now(&self, inode: &Inode) -> Result<()> {
        let (Some(shared), ino) = (self.shared(), inode.ino()) else {
            return Ok(());
        };
        self.alive()?;
        if shared
            .coherence
            .holds(&shared.coherence.checked(ino), shared.now())
        {
            return Ok(());
        }
        self.ask_again(shared, inode, Asks::HotAttrs).map(drop)
    }

    /// Asks the store for an inode. Has it changed since it was asked for last?
    ///
    /// # Errors
    /// `ESTALE`: there is no such inode any more. What the store answers.
    pub(super) fn ask_again(
        &self,
        shared: SharedStore<'_>,
        inode: &Inode,
        asks: Asks,
    ) -> Result<bool> {
        let at = shared.ask(inode.ino());
        let record = self.ask_for_record(inode.ino())?;
        self.renew(shared, inode, (&record, at), asks)
    }

    /// What the store has of an inode now.
    ///
    /// # Errors
    /// `ESTALE`: there is no such inode. What the store answers.
    pub(crate) fn ask_for_record(&self, ino: Ino) -> Result<InodeRecord> {
        let mut found = Vec::with_capacity(1);
        self.store.load_inodes(&[ino], &mut found)?;
        let record = found.into_iter().find(|record| record.ino == ino);
        record.ok_or_else(|| self.or_gone(Errno::ESTALE))
    }

    /// Does what begins with names that are looked up: again, if what they led to has gone by the time that it is used, since the names may lead
    /// to others.
    ///
    /// # Errors
    /// What `act` answers.
    #[inline]
    pub(crate) fn again_if_gone<R>(&self, mut act: impl FnMut() -> Result<R>) -> Result<R> {
        let mut done = act();
        if self.coherence.as_ref().is_some_and(|it| it.is_dated()) {
            for _ in 0..ROUNDS {
                if !matches!(done, Err(Errno::ESTALE)) {
                    break;
                }
                done = act();
            }
        }
        done
    }

    /// An answer of the store about an inode that it told of. It may say that the inode has gone: then names lead to others
    /// than those in memory, and for a while the store is asked for
    /// [each](Coherence::asks_each).
    #[cold]
    pub(crate) fn or_gone(&self, error: Errno) -> Errno {
        if error == Errno::ESTALE
            && let Some(shared) = self.shared()
        {
            shared.coherence.note_gone(shared.now());
        }
        error
    }

    /// Is an inode in memory, and need the store not be asked for it?
    pub(crate) fn is_there(&self, ino: Ino) -> bool {
        self.has_inode(ino)
            && self.shared().is_none_or(|shared| {
                let coherence = shared.coherence;
                !coherence.is_dated() || coherence.holds(&coherence.checked(ino), shared.now())
            })
    }

    /// An inode that the store told of is in memory: `made`, made known with this very record, else perhaps with an older one.
    ///
    /// # Errors
    /// As [`renew`](Self::renew).
    pub(crate) fn date(
        &self,
        shared: SharedStore<'_>,
        inode: &Inode,
        record: &InodeRecord,
        at: Instant,
        made: bool,
    ) -> Result<()> {
        let coherence = shared.coherence;
        if !coherence.is_dated() {
            return Ok(());
        }
        if !made {
            return self
                .renew(shared, inode, (record, at), Asks::HotAttrs)
                .map(drop);
        }
        if let Some(_order) = coherence.in_order(record.ino, at) {
            coherence.note(record.ino, at, shared.standing(record, at));
        }
        Ok(())
    }

    /// Takes in what the store told of an inode that is in memory, asked at this time. Has it changed?
    ///
    /// # Errors
    /// `ESTALE`: it is another inode by now. What the store answers.
    fn renew(
        &self,
        shared: SharedStore<'_>,
        inode: &Inode,
        (record, at): (&InodeRecord, Instant),
        asks: Asks,
    ) -> Result<bool> {
        if record.kind != inode.kind() {
            return Err(Errno::ESTALE);
        }
        let (was, is) = (version(inode), Version::of(record));
        let same = shared.coherence.checked(record.ino).settled && was == is;
        let extra_attrs = match same {
            true => None,
            false => self.renewed_rare(inode, record)?,
        };
        let (was_known, is_news);
        {
            // First: while another thread has them the store may be asked.
            let mut pages = inode.regular().ok().map(Pages::lock);
            let Some(_order) = shared.coherence.in_order(record.ino, at) else {
                return Ok(false);
            };
            let checked = shared.coherence.checked(record.ino);
            // A kernel that writes a file itself keeps nothing of it.
            was_known = checked.at.is_some() && !checked.is_bypassed();
            is_news = shared.coherence.is_told() && !checked.is_in_doubt();
            if let Some(pages) = &mut pages
                && !same
            {
                self.forget_content(inode, pages, record.space);
            }
            self.renew_meta(inode, record, extra_attrs);
            let standing = shared.standing(record, at);
            shared.coherence.note(record.ino, at, standing);
        }
        let changed = was_known && !same;
        let shows =
            asks == Asks::HotAttrs && !is_news && (was.size, was.mtime) != (is.size, is.mtime);
        if changed && !shows && record.kind == FileType::Regular {
            // A kernel may have what it read past memory, and cannot tell by the attributes, or believes those that it has for long since it
            // would be told. Where it can tell soon it is not told: it would not believe those that it has asked for meanwhile, the
            // length among them.
            self.notify_inode(&Caller::root(), record.ino, true);
        }
        // An answer that was not settled may stand: then only the content is in doubt.
        Ok(was_known && was != is)
    }

    /// Of a file's content, which is locked, nothing is known any more but the space that it takes.
    pub(crate) fn forget_content(
        &self,
        inode: &Inode,
        pages: &mut PagesLock<'_>,
        space: StoredSpace,
    ) {
        self.unmapped.cut(inode.ino());
        pages.begin();
        inode.changed_below(space);
        pages.clear(self.loaded());
    }

    /// What few inodes have, of an inode that may have changed. `None`: it has nothing of that, and had nothing.
    pub(crate) fn renewed_rare(
        &self,
        inode: &Inode,
        record: &InodeRecord,
    ) -> Result<Option<Box<ExtraAttrs>>> {
        let asks = record.xattrs || record.kind == FileType::Symlink;
        if !asks && !inode.may_have_extra_attrs() {
            return Ok(None);
        }
        let mut rests = Vec::new();
        if asks {
            self.store
                .load_rests(std::slice::from_ref(record), &mut rests)?;
        }
        let rest = rests.pop().unwrap_or_default();
        if record.kind == FileType::Symlink && rest.target.as_deref() != inode.target() {
            // A target never changes: it is another link.
            return Err(Errno::ESTALE);
        }
        let (_, extra_attrs) = parts(record, rest)?;
        Ok(Some(extra_attrs.unwrap_or_default()))
    }

    /// Makes the attributes of an inode those of its record, and what few inodes have, if that may have changed. The caller has a use of it.
    pub(crate) fn renew_meta(
        &self,
        inode: &Inode,
        record: &InodeRecord,
        extra_attrs: Option<Box<ExtraAttrs>>,
    ) {
        if let Ok(body) = inode.directory() {
            body.parent.store(record.parent.0, Ordering::Relaxed);
        }
        let mut meta = inode.write();
        // An inode without names is doomed, and only such a one (it is in use, so it does not end here).
        match (meta.nlink, record.nlink) {
            (1.., 0) => drop(inode.mark_freeing()),
            (0, 1..) => {
                meta.linkable = false;
                if !self.policy.revoked() {
                    inode.unmark_freeing();
                }
            }
            _ => {}
        }
        (meta.perm, meta.nlink) = (record.perm, record.nlink);
        (meta.uid, meta.gid) = (record.uid, record.gid);
        (meta.atime, meta.mtime) = (record.atime, record.mtime);
        (meta.ctime, meta.btime) = (record.ctime, record.btime);
        meta.size = record.size;
        meta.flags = record.flags & FileFlags::all();
        if let Some(extra_attrs) = extra_attrs {
            *meta.extra_attrs() = *extra_attrs;
        }
    }

    /// An inode has been buried: the store need not know it any more unless it is used by number. The number is locked.
    pub(crate) fn let_go(&self, ino: Ino, is_used: bool) {
        if let Some(shared) = self.shared() {
            shared.coherence.forget(ino);
            if !is_used {
                shared.forgotten(ino);
            }
        }
    }

    /// The store told of an inode that may not have come into memory, or the last use by number of one was given back: if nobody knows it,
    /// the store need not either.
    pub(crate) fn let_go_unless_known(&self, ino: Ino) {
        let Some(shared) = self.shared() else { return };
        let mut evictions = self.evictions.lock(ino);
        if !self.has_inode(ino) && !evictions.is_used(ino) {
            // What was asked for before begins anew: the store may have forgotten it by now.
            evictions.count_up();
            shared.forgotten(ino);
        }
    }
}

/// What tells whether an inode in memory is as the store has it.
pub(crate) fn version(inode: &Inode) -> Version {
    let meta = inode.meta();
    Version {
        size: meta.size,
        mtime: meta.mtime,
        ctime: meta.ctime,
    }
}
