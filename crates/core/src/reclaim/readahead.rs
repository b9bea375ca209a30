//! How many inodes may be in memory that nobody has asked for yet.

use super::INODE_BYTES;
use crate::file_system::Core;

/// They may take this part of half of the limit, but as many as this at least.
const PART: u64 = 8;
const LEAST: u64 = 256;

impl Core {
    /// How many more inodes may be brought before anybody asks for them. None while others are let go.
    pub(crate) fn room_ahead(&self) -> usize {
        if self.reclaim.frees_inodes() {
            return 0;
        }
        let share = self.reclaim.limit() / 2 / PART / INODE_BYTES;
        let is_scarce = self.metadata_bytes() > self.metadata_max() / 4 * 3;
        let most = if is_scarce { share / 2 } else { share }.max(LEAST);
        let unmet = self.readahead.issued.sum()
            - self.reclaim.epochs.met.sum()
            - self.readahead.wasted.sum();
        let room = most.saturating_sub(u64::try_from(unmet).unwrap_or(0));
        usize::try_from(room).unwrap_or(usize::MAX)
    }
}
