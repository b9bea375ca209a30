//! Reservations for changes of content.

use crate::core::Core;
use crate::inode::{Inode, Numbered as _};
use crate::store::{Class, Intent, Reservation};
use crate::types::Result;
use holdfast_cache::{PAGE_SIZE, PagesLock};
use std::ops::Range;

/// Reserves what a change of these bytes may need.
///
/// # Errors
/// Those of [`Reservation::of`].
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
        return Reservation::of(&*core.behind, intent);
    }
    Reservation::of(
        &*core.behind,
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

/// Pages without a page in the store that need one when the size changes: the first page of a
/// [small](crate::store::Guarantees::small) file.
pub(crate) fn outgrown(core: &Core, old: u64, new: u64) -> u64 {
    u64::from(0 < old && old <= core.small && core.small < new)
}
