//! Where each thread's last searches in directories ended.

use holdfast_dirindex::Catalog;
use holdfast_dirindex::LookupHint;
use std::ptr;

/// Directories that a thread goes through at the same time: those of a path, and of a second one.
const TRAILS: usize = 8;

thread_local! {
    static OWN: [LookupHint; TRAILS] = const { [const { LookupHint::new() }; TRAILS] };
}

/// Lends the calling thread's trail for this directory, or for another one whose address is alike.
#[inline]
pub(crate) fn with<R>(catalog: &Catalog, search: impl FnOnce(&LookupHint) -> R) -> R {
    // What a directory has beside its inode lies in a line of its own.
    let which = ptr::from_ref(catalog).addr() / 64 % TRAILS;
    OWN.with(|own| search(&own[which]))
}
