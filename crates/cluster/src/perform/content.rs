//! Changes of the content of files, which wait here.

use crate::content::Written;
use crate::store::ClusterStore;
use holdfast_core::store::{Done, InodeRecord, Shared as _, Touched, Version};
use holdfast_types::{Ino, Result};

impl ClusterStore {
    /// Sets the length of a file. `modified`: its times change, even if it has this length and
    /// takes no space. If the file is not open for writing, no close follows: then nothing waits.
    pub(super) fn resize(&self, ino: Ino, size: u64, modified: bool) -> Result<Done> {
        self.open_to_write(ino)?;
        let files = &self.answers.files;
        let has_it = |record: &InodeRecord| {
            record.size == size && record.space.pages(record.size) == Some(0)
        };
        let written = match files.record(ino).filter(has_it) {
            Some(record) if !modified => Ok(Written {
                before: Version::of(&record),
                record,
                start: 0,
                count: 0,
            }),
            _ => files.resize(ino, size),
        };
        let is_open = files.close(ino);
        let written = written?;
        if !is_open {
            files.flush(ino)?;
        }
        Ok(self.written(written))
    }

    /// The result of a change that waits here.
    pub(super) fn written(&self, written: Written) -> Done {
        let Written {
            before,
            record,
            start,
            count,
        } = written;
        let at = self.now();
        // Another thread may have changed the file since: `at` is later than its change.
        let newest = self.answers.files.record(record.ino);
        Done {
            touched: vec![Touched {
                before: Some(before),
                record: newest.unwrap_or(record),
            }],
            count,
            start,
            ..Done::at(at)
        }
    }
}
