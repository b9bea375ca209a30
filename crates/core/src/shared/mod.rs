//! Stores that others change ([`Shared`](crate::store::Shared)): they number their inodes
//! themselves, and their answers may expire.
//!
//! Before cached data of an inode is used, the inode is [made fresh](crate::shared::refresh_inode):
//! if the answer has expired, the store is asked again, and invalid data is dropped. Names of a
//! directory are valid while its times are unchanged, and are read again otherwise (`names.rs`).
//! Inodes are loaded by name (`by_name.rs`), and the directories that a walk visits next are read
//! together (`walk.rs`).
//!
//! The times of requests are kept [beside](crate::coherence::Coherence) the inodes, so inodes of
//! other stores do not pay for them. Over a store with answers that expire, no directory is
//! [whole](crate::directory::Residency::Whole) and no read takes the fast path, so the lock-free
//! paths fall back by themselves.
//!
//! *Invariant.* A cached answer was true when the store was last asked, or later, and `now - asked
//! < valid`. So answers are applied in the order of their requests, under the lock of a shard. The
//! lock is not held during a request.

pub(crate) mod by_name;
pub(crate) mod bypass;
pub(crate) mod child;
pub(crate) mod names;
pub(crate) mod no_size;
pub(crate) mod notified;
pub(crate) mod revalidate;
pub(crate) mod shared_store;
pub(crate) mod walk;

use holdfast_cache::{Pages, PagesLock};
use std::sync::atomic::Ordering;
use std::time::Instant;

use crate::core::Core;
use crate::inode::loaded::{meta_of, parts};
use crate::inode::{ExtraAttrs, Inode, Meta, Numbered as _};
use crate::inodes::find::has_inode;
use crate::io::pages::loaded_account;
use crate::notify::notify_inode;
use crate::shared::shared_store::SharedStore;
use crate::store::{InodeRecord, StoredSpace, Version};
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

/// How often an operation is repeated because an inode that it looked up has gone.
const ROUNDS: u32 = 16;

/// Makes sure that the cached data of an inode has not expired.
///
/// # Errors
/// `ESTALE`: the inode does not exist any more. Errors of the store.
#[inline]
pub(crate) fn refresh_inode(core: &Core, inode: &Inode) -> Result<()> {
    match &core.coherence {
        Some(coherence) if coherence.is_dated() => refresh_now(core, inode),
        _ => Ok(()),
    }
}

#[cold]
fn refresh_now(core: &Core, inode: &Inode) -> Result<()> {
    let (Some(shared), ino) = (core.shared(), inode.ino()) else {
        return Ok(());
    };
    core.alive()?;
    if shared
        .coherence
        .holds(&shared.coherence.checked(ino), shared.present())
    {
        return Ok(());
    }
    ask_for_attributes(core, shared, inode, Asks::HotAttrs).map(drop)
}

/// Asks the store for an inode. Returns whether it has changed since the last request.
///
/// # Errors
/// `ESTALE`: the inode does not exist any more. Errors of the store.
pub(super) fn ask_for_attributes(
    core: &Core,
    shared: SharedStore<'_>,
    inode: &Inode,
    asks: Asks,
) -> Result<bool> {
    let at = shared.ask(inode.ino());
    let record = ask_for_record(core, inode.ino())?;
    renew_inode(core, shared, inode, (&record, at), asks)
}

/// The current record of an inode.
///
/// # Errors
/// `ESTALE`: there is no such inode. Errors of the store.
pub(crate) fn ask_for_record(core: &Core, ino: Ino) -> Result<InodeRecord> {
    let mut found = Vec::with_capacity(1);
    core.store.load_inodes(&[ino], &mut found)?;
    let record = found.into_iter().find(|record| record.ino == ino);
    record.ok_or_else(|| or_gone(core, Errno::ESTALE))
}

/// Runs an operation that begins with lookups. If an inode that it found has gone meanwhile,
/// the operation is repeated, since the names may lead to other inodes.
///
/// # Errors
/// Those of `act`.
#[inline]
pub(crate) fn retry_if_stale<R>(core: &Core, mut act: impl FnMut() -> Result<R>) -> Result<R> {
    let mut done = act();
    if core.coherence.as_ref().is_some_and(|it| it.is_dated()) {
        for _ in 0..ROUNDS {
            if !matches!(done, Err(Errno::ESTALE)) {
                break;
            }
            done = act();
        }
    }
    done
}

/// Passes on the store's error for an inode that it had returned before. If it says that the inode
/// has gone, cached names may be wrong, and for a while
/// [each](crate::coherence::Coherence::asks_each) lookup asks the store.
#[cold]
pub(crate) fn or_gone(core: &Core, error: Errno) -> Errno {
    if error == Errno::ESTALE
        && let Some(shared) = core.shared()
    {
        shared.coherence.note_gone(shared.now());
    }
    error
}

/// Is an inode in memory and fresh?
pub(crate) fn is_in_memory(core: &Core, ino: Ino) -> bool {
    has_inode(core, ino)
        && core.shared().is_none_or(|shared| {
            let coherence = shared.coherence;
            !coherence.is_dated() || coherence.holds(&coherence.checked(ino), shared.present())
        })
}

/// Applies a record to an inode in memory. `made`: the inode was just created from this very
/// record.
///
/// # Errors
/// Those of [`renew_inode`].
pub(crate) fn date_inode(
    core: &Core,
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
        return renew_inode(core, shared, inode, (record, at), Asks::HotAttrs).map(drop);
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
fn renew_inode(
    core: &Core,
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
        false => renewed_rare(core, inode, record)?,
    };
    let (was_known, is_news);
    {
        // The pages are locked before the order lock: a holder of the page lock may ask the
        // store.
        let mut pages = inode.regular().ok().map(Pages::lock);
        let Some(_order) = shared.coherence.in_order(record.ino, at) else {
            if was != is {
                // The later request may have been answered from an earlier state than this one, and
                // the caller may have a name that came with this record.
                shared.coherence.invalidate(record.ino, shared.now());
            }
            return Ok(false);
        };
        let checked = shared.coherence.checked(record.ino);
        // A kernel that writes a file directly keeps nothing of it.
        was_known = checked.at.is_some() && !checked.is_bypassed();
        is_news = shared.coherence.is_notifying() && !checked.is_invalidated();
        if let Some(pages) = &mut pages
            && !same
        {
            forget_content(core, inode, pages, record.space);
        }
        renew_meta(core, inode, record, extra_attrs);
        let standing = shared.standing(record, at);
        shared.coherence.note(record.ino, at, standing);
    }
    let changed = was_known && !same;
    let shows = asks == Asks::HotAttrs && !is_news && (was.size, was.mtime) != (is.size, is.mtime);
    if changed && !shows && record.kind == FileType::Regular {
        // The kernel may have cached pages. It must be notified if the attributes do not show
        // the change, or if it keeps its attributes for long because it expects notifications.
        // Where it notices by the attributes, it is not notified: it would drop attributes that
        // it has requested meanwhile, the size among them.
        notify_inode(core, &Caller::root(), record.ino, true);
    }
    // After an unsettled answer the version may be equal: then only the content is in doubt.
    Ok(was_known && was != is)
}

/// Drops the content of a file, which is locked, except for the number of its blocks.
pub(crate) fn forget_content(
    core: &Core,
    inode: &Inode,
    pages: &mut PagesLock<'_>,
    space: StoredSpace,
) {
    core.unmapped.cut(inode.ino());
    pages.begin();
    inode.changed_below(space);
    pages.clear(loaded_account(core));
}

/// The extra attributes of an inode that may have changed. `None`: it has none, and had none.
pub(crate) fn renewed_rare(
    core: &Core,
    inode: &Inode,
    record: &InodeRecord,
) -> Result<Option<Box<ExtraAttrs>>> {
    let asks = record.xattrs || record.kind == FileType::Symlink;
    if !asks && !inode.may_have_extra_attrs() {
        return Ok(None);
    }
    let mut rests = Vec::new();
    if asks {
        core.store
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
    core: &Core,
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
            if !core.policy.revoked() {
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
pub(crate) fn let_go(core: &Core, ino: Ino, is_used: bool) {
    if let Some(shared) = core.shared() {
        shared.coherence.forget(ino);
        if !is_used {
            shared.forgotten(ino);
        }
    }
}

/// The store returned an inode that may not have been loaded, or its last reference by number
/// was dropped. If there is no reference left, the store may forget it too.
pub(crate) fn let_go_unless_known(core: &Core, ino: Ino) {
    let Some(shared) = core.shared() else { return };
    let mut evictions = core.evictions.lock(ino);
    if !has_inode(core, ino) && !evictions.is_used(ino) {
        // An earlier answer about this number becomes invalid: the store may have forgotten the
        // inode by now.
        evictions.count_up();
        shared.forgotten(ino);
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
