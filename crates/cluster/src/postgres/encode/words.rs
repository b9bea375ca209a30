//! Words and blobs.

use holdfast_types::{Errno, Result};

/// A number of 63 bits. Larger ones name nothing, and become the largest, which is never dealt.
pub(in crate::postgres) fn number(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// A request that is being encoded.
pub(super) struct Encoder {
    pub(super) words: Vec<i64>,
    pub(super) blobs: Vec<Vec<u8>>,
}

impl Encoder {
    pub(super) fn push_number(&mut self, value: u64) {
        self.words.push(number(value));
    }

    /// A number of 32 bits, as a column keeps it.
    pub(super) fn push_wrapped(&mut self, value: u32) {
        self.words.push(value.cast_signed().into());
    }

    pub(super) fn push_blob(&mut self, blob: &[u8]) {
        self.blobs.push(blob.to_vec());
    }

    pub(super) fn push_name(&mut self, name: &[u8]) -> Result<()> {
        if name.is_empty() || name.len() > holdfast_types::NAME_MAX {
            return Err(Errno::EINVAL);
        }
        self.push_blob(name);
        Ok(())
    }
}
