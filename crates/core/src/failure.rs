//! Reports of a store's failure to open files.

use crate::core::Core;
use crate::open_file::OpenFile;
use crate::types::{Errno, Result};

/// Makes an open file durable; `data_only`: the data, and the metadata that reading it back
/// needs.
///
/// # Errors
/// The reason of the store's failure, if this file was open then and has not got it before;
/// `EIO` after that.
pub(crate) fn sync_for(core: &Core, file: &OpenFile, data_only: bool) -> Result<()> {
    hop!();
    let synced = core.store.sync_inode(file.node().ino(), data_only);
    synced.map_err(|error| match core.failure.reason() {
        None => error,
        Some(reason) if file.take_report() => reason,
        Some(_) => Errno::EIO,
    })
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
