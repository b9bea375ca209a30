//! The content of regular files.
//!
//! *Locking.* A file's pages are locked during a change, size and times included; the size changes
//! after the pages. A read takes no lock and sees a change whole or not at all; after repeated
//! conflicts with changes it takes the lock. Copies between two files lock them in ascending order
//! of `ino`.

pub(crate) mod copy;
pub(crate) mod fallocate;
pub(crate) mod map;
pub(crate) mod populate;
pub(crate) mod read;
pub(crate) mod resize;
pub(crate) mod seek;
pub(crate) mod write;

use std::ops::Range;

use holdfast_cache::{PAGE_SIZE, Pages, PagesLock};

use crate::core::Core;
use crate::inode::{Inode, Numbered as _};
use crate::open::OpenFile;
use crate::store::{Class, Intent, Reservation};
use crate::transaction::reserve;
use crate::types::{Errno, Result};

/// Largest size of a file, in bytes: offsets are signed.
const SIZE_MAX: u64 = i64::MAX as u64;

/// Pages without a page in the store that need one when the size changes: the first page of a
/// [small](crate::store::Guarantees::small) file.
fn outgrown(core: &Core, old: u64, new: u64) -> u64 {
    u64::from(0 < old && old <= core.small && core.small < new)
}

/// Reserves what a change of these bytes may need.
///
/// # Errors
/// Those of [`reserve`].
#[inline]
pub(crate) fn reserve_for<'c>(
    core: &'c Core,
    inode: &Inode,
    pages: &PagesLock<'_>,
    bytes: Range<u64>,
    intent: impl FnOnce() -> Intent,
) -> Result<Reservation<'c>> {
    let intent = intent();
    match Reservation::at_once(&*core.behind, &intent) {
        Some(reservation) => Ok(reservation),
        None => reserve_in_place(core, inode, pages, bytes, &intent),
    }
}

/// Like [`reserve_for`], if space may be short. A change of bytes that have
/// space needs none, even behind the end of the file.
#[cold]
fn reserve_in_place<'c>(
    core: &'c Core,
    inode: &Inode,
    pages: &PagesLock<'_>,
    bytes: Range<u64>,
    intent: &Intent,
) -> Result<Reservation<'c>> {
    if intent.class == Class::GivingBack || !has_space(core, inode, pages, bytes)? {
        return reserve(core, intent);
    }
    reserve(
        core,
        &Intent {
            class: Class::InPlace,
            moved: 0,
            allocated: 0,
            ..*intent
        },
    )
}

/// Do all of these bytes have space in the store, and the first page of the file, if it has
/// bytes?
///
/// # Errors
/// Those of the store.
fn has_space(core: &Core, inode: &Inode, pages: &PagesLock<'_>, bytes: Range<u64>) -> Result<bool> {
    let page = PAGE_SIZE as u64;
    if !pages.have_space(&(bytes.start / page..bytes.end.div_ceil(page))) {
        return Ok(false);
    }
    let size = inode.size();
    if size == 0 || size > core.small {
        return Ok(true);
    }
    // Content that the store keeps without pages ends at the end of the file.
    let first = core.store.next_space(inode.ino(), 0)?;
    Ok(first.is_some_and(|run| run.start + run.len >= page))
}

/// Is `offset..offset + len` within the range of offsets?
fn check_range(offset: u64, len: usize) -> Result<()> {
    match offset.checked_add(len as u64) {
        Some(end) if end <= SIZE_MAX => Ok(()),
        _ => Err(Errno::EINVAL),
    }
}

/// The content of a file opened for reading.
fn readable(file: &OpenFile) -> Result<&Pages> {
    if !file.flags().readable() {
        return Err(Errno::EBADF);
    }
    file.node().inode().regular()
}

/// The content of a file opened for writing.
fn writable(file: &OpenFile) -> Result<&Pages> {
    if !file.flags().writable() {
        return Err(Errno::EBADF);
    }
    file.node().inode().regular()
}
