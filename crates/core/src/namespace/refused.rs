//! What a refusal of the store tells of cached names.

use crate::core::Core;
use crate::inode::{DirectoryBody, Inode, Numbered as _};
use crate::namespace::lookup::find_child;
use crate::types::Errno;

/// The store refused to change a name. If that contradicts the cached names, they are dropped
/// before they expire. Over an exclusive store the cached names are right.
pub(crate) fn refused(core: &Core, dir: &Inode, body: &DirectoryBody, name: &[u8], error: Errno) {
    let Some(coherence) = core.coherence.as_deref().filter(|it| it.is_dated()) else {
        return;
    };
    let is_there = body.names.find_cached(name).is_some();
    let contradicts = match error {
        Errno::EEXIST => !is_there,
        Errno::ENOENT | Errno::ESTALE | Errno::ENOTDIR | Errno::EISDIR => is_there,
        _ => false,
    };
    if contradicts {
        let _names = body.names.write();
        coherence.note_change(dir.ino(), None);
    }
}

/// As [`refused`], for a name that was to be created: if it exists, that is the
/// error that is reported.
pub(crate) fn refused_new(
    core: &Core,
    (dir, body): (&Inode, &DirectoryBody),
    name: &[u8],
    error: Errno,
) -> Errno {
    refused(core, dir, body, name, error);
    find_child(core, dir, body, name).map_or(error, |_| Errno::EEXIST)
}
