//! Reports of a store's failure to open files.

use crate::core::Core;
use crate::open_file::OpenFile;
use crate::types::{Errno, Result};

/// Makes an open file durable; `data_only`: the data, and the metadata that reading it back
/// needs.
///
/// # Errors
/// The reason of the store's failure, if this file was open then and has not got it before;
/// `EIO` after that. Those of [`tell_loss`].
pub(crate) fn sync_for(core: &Core, file: &OpenFile, data_only: bool) -> Result<()> {
    hop!();
    let synced = core.store.sync_inode(file.node().ino(), data_only);
    // Also after an error, which may report the same.
    let lost = tell_loss(core, file);
    synced.map_err(|error| match core.failure.reason() {
        None => error,
        Some(reason) if file.take_report() => reason,
        Some(_) => Errno::EIO,
    })?;
    lost
}

/// Does the work that the store deferred until a descriptor of a file is closed.
///
/// # Errors
/// The store's. Those of [`tell_loss`].
pub(crate) fn flush_for(core: &Core, file: &OpenFile) -> Result<()> {
    let flushed = core.store.flush_inode(file.node().ino());
    let lost = tell_loss(core, file);
    flushed?;
    lost
}

/// Reports to an open file that the store lost bytes of it, if the file was open then and has not
/// got it before.
///
/// # Errors
/// The reason.
fn tell_loss(core: &Core, file: &OpenFile) -> Result<()> {
    let losses = core.coherence.as_ref().map(|it| &it.losses);
    let lost = losses.and_then(|losses| losses.take(file.node().ino(), &file.losses));
    lost.map_or(Ok(()), Err)
}

/// Reports the store's failure to an open file, if it was open for writing then and has not got
/// it before.
///
/// # Errors
/// The reason.
pub(crate) fn tell_failure(core: &Core, file: &OpenFile) -> Result<()> {
    match core.failure.reason() {
        Some(reason) if file.flags().writable() && file.take_report() => Err(reason),
        _ => Ok(()),
    }
}
