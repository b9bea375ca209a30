//! Stores that others change ([`store::Shared`]): they number their inodes themselves, and their
//! answers may expire.
//!
//! Before cached data of an inode is used, the inode is [made fresh](Core::refresh): if the answer
//! has expired, the store is asked again, and invalid data is dropped. Names of a directory are
//! valid while its times are unchanged, and are read again otherwise (`names.rs`). Inodes are
//! loaded by name (`by_name.rs`), and the directories that a walk visits next are read together
//! (`walk.rs`).
//!
//! The times of requests are kept [beside](Coherence) the inodes, so inodes of other stores do not
//! pay for them. Over a store with answers that expire, no directory is
//! [whole](crate::directory::Residency::Whole) and no read takes the fast path, so the lock-free
//! paths fall back by themselves.
//!
//! *Invariant.* A cached answer was true when the store was last asked, or later, and `now - asked
//! < valid`. So answers are applied in the order of their requests, under the lock of a shard. The
//! lock is not held during a request.

mod by_name;
mod bypass;
mod names;
mod no_size;
mod notified;
mod revalidate;
mod walk;

use holdfast_cache::{Pages, PagesLock};
use std::ops::Deref;
use std::sync::atomic::Ordering;
use std::time::Instant;

use crate::coherence::{Coherence, Standing};
use crate::core::Core;
use crate::inode::{ExtraAttrs, Inode, Meta, Numbered as _};
use crate::load::{meta_of, parts};
use crate::store::{self, InodeRecord, StoredSpace, Version};
use crate::types::{Caller, Errno, FileType, Ino, Result};

/// The origin of a request for an inode.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Asks {
    /// A front end, which gets the attributes.
    HotAttrs,
    /// The core itself: a front end that caches attributes learns of a change only by a
    /// notification.
    Core,
}

/// A store that numbers its inodes, and the times of the requests to it.
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

/// How often an operation is repeated because an inode that it looked up has gone.
const ROUNDS: u32 = 16;

impl SharedStore<'_> {
    /// Prepares a request for an inode or the names of a directory; returns the time of the
    /// request.
    pub(crate) fn ask(&self, ino: Ino) -> Instant {
        self.store.listen(ino);
        self.store.now()
    }

    /// How long an answer to a request made at `at` stays valid.
    pub(crate) fn standing(&self, record: &InodeRecord, at: Instant) -> Standing {
        Standing {
            settled: self.store.is_settled(record, at),
            notified: self.store.hears_of(record, at),
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

    /// Makes sure that the cached data of an inode has not expired.
    ///
    /// # Errors
    /// `ESTALE`: the inode does not exist any more. Errors of the store.
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
        self.ask_for_attributes(shared, inode, Asks::HotAttrs)
            .map(drop)
    }

    /// Asks the store for an inode. Returns whether it has changed since the last request.
    ///
    /// # Errors
    /// `ESTALE`: the inode does not exist any more. Errors of the store.
    pub(super) fn ask_for_attributes(
        &self,
        shared: SharedStore<'_>,
        inode: &Inode,
        asks: Asks,
    ) -> Result<bool> {
        let at = shared.ask(inode.ino());
        let record = self.ask_for_record(inode.ino())?;
        self.renew(shared, inode, (&record, at), asks)
    }

    /// The current record of an inode.
    ///
    /// # Errors
    /// `ESTALE`: there is no such inode. Errors of the store.
    pub(crate) fn ask_for_record(&self, ino: Ino) -> Result<InodeRecord> {
        let mut found = Vec::with_capacity(1);
        self.store.load_inodes(&[ino], &mut found)?;
        let record = found.into_iter().find(|record| record.ino == ino);
        record.ok_or_else(|| self.or_gone(Errno::ESTALE))
    }

    /// Runs an operation that begins with lookups. If an inode that it found has gone meanwhile,
    /// the operation is repeated, since the names may lead to other inodes.
    ///
    /// # Errors
    /// Those of `act`.
    #[inline]
    pub(crate) fn retry_if_stale<R>(&self, mut act: impl FnMut() -> Result<R>) -> Result<R> {
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

    /// Passes on the store's error for an inode that it had returned before. If it says that the
    /// inode has gone, cached names may be wrong, and for a while [each](Coherence::asks_each)
    /// lookup asks the store.
    #[cold]
    pub(crate) fn or_gone(&self, error: Errno) -> Errno {
        if error == Errno::ESTALE
            && let Some(shared) = self.shared()
        {
            shared.coherence.note_gone(shared.now());
        }
        error
    }

    /// Is an inode in memory and fresh?
    pub(crate) fn is_there(&self, ino: Ino) -> bool {
        self.has_inode(ino)
            && self.shared().is_none_or(|shared| {
                let coherence = shared.coherence;
                !coherence.is_dated() || coherence.holds(&coherence.checked(ino), shared.now())
            })
    }

    /// Applies a record to an inode in memory. `made`: the inode was just created from this very
    /// record.
    ///
    /// # Errors
    /// Those of [`renew`](Self::renew).
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

    /// Applies a record, requested at this time, to an inode in memory. Returns whether the inode
    /// has changed.
    ///
    /// # Errors
    /// `ESTALE`: the number means another inode by now. Errors of the store.
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
            // The pages are locked before the order lock: a holder of the page lock may ask the
            // store.
            let mut pages = inode.regular().ok().map(Pages::lock);
            let Some(_order) = shared.coherence.in_order(record.ino, at) else {
                return Ok(false);
            };
            let checked = shared.coherence.checked(record.ino);
            // A kernel that writes a file directly keeps nothing of it.
            was_known = checked.at.is_some() && !checked.is_bypassed();
            is_news = shared.coherence.is_notifying() && !checked.is_invalidated();
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
            // The kernel may have cached pages. It must be notified if the attributes do not show
            // the change, or if it keeps its attributes for long because it expects notifications.
            // Where it notices by the attributes, it is not notified: it would drop attributes that
            // it has requested meanwhile, the size among them.
            self.notify_inode(&Caller::root(), record.ino, true);
        }
        // After an unsettled answer the version may be equal: then only the content is in doubt.
        Ok(was_known && was != is)
    }

    /// Drops the content of a file, which is locked, except for the number of its blocks.
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

    /// The extra attributes of an inode that may have changed. `None`: it has none, and had none.
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
            // The target of a link never changes: it is another link.
            return Err(Errno::ESTALE);
        }
        let (_, extra_attrs) = parts(record, rest)?;
        Ok(Some(extra_attrs.unwrap_or_default()))
    }

    /// Sets the attributes of an inode to those of its record, and its extra attributes if given.
    /// The caller references the inode.
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
        // An inode is marked freeing exactly while it has no name. It is referenced, so it is not
        // evicted here.
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
        *meta = Meta {
            linkable: meta.linkable,
            home: meta.home,
            ..meta_of(record)
        };
        if let Some(extra_attrs) = extra_attrs {
            *meta.extra_attrs() = *extra_attrs;
        }
    }

    /// An inode has been evicted: the store may forget it unless it is referenced by number. The
    /// number is locked.
    pub(crate) fn let_go(&self, ino: Ino, is_used: bool) {
        if let Some(shared) = self.shared() {
            shared.coherence.forget(ino);
            if !is_used {
                shared.forgotten(ino);
            }
        }
    }

    /// The store returned an inode that may not have been loaded, or its last reference by number
    /// was dropped. If there is no reference left, the store may forget it too.
    pub(crate) fn let_go_unless_known(&self, ino: Ino) {
        let Some(shared) = self.shared() else { return };
        let mut evictions = self.evictions.lock(ino);
        if !self.has_inode(ino) && !evictions.is_used(ino) {
            // An earlier answer about this number becomes invalid: the store may have forgotten the
            // inode by now.
            evictions.count_up();
            shared.forgotten(ino);
        }
    }
}

/// Compares an inode in memory with the store's record.
pub(crate) fn version(inode: &Inode) -> Version {
    let meta = inode.meta();
    Version {
        size: meta.size,
        mtime: meta.mtime,
        ctime: meta.ctime,
    }
}
