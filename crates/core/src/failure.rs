//! The failure of a store, as open files are told of it.

use crate::file_system::Core;
use crate::open::OpenFile;
use crate::types::{Errno, Result};

impl Core {
    /// Makes everything so far durable on behalf of an open file.
    ///
    /// # Errors
    /// The reason of the store's failure, if this file was open then and has not been told; `EIO` after that.
    pub(crate) fn commit_for(&self, file: &OpenFile) -> Result<()> {
        let committed = self.store.commit(None);
        committed.map_err(|error| match self.failure.reason() {
            None => error,
            Some(reason) if file.is_first_to_hear() => reason,
            Some(_) => Errno::EIO,
        })
    }

    /// Tells an open file of the store's failure, if it was open for writing then and has not been told.
    ///
    /// # Errors
    /// The reason.
    pub(crate) fn tell_failure(&self, file: &OpenFile) -> Result<()> {
        match self.failure.reason() {
            Some(reason) if file.flags().writable() && file.is_first_to_hear() => Err(reason),
            _ => Ok(()),
        }
    }
}
