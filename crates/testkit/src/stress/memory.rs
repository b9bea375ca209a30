//! The memory of the process, and what waits to be freed.

use super::alone;
use super::sys::{self, Live};
use holdfast_sync::epoch;
use std::fs;

/// How many more bytes, and blocks, than before the first file system may be allocated when none
/// exists. Threads have entries in lists of the process, which are kept for later threads.
const BYTES_MAX: i64 = 256 * 1024;
const BLOCKS_MAX: i64 = 256;

/// Values that may wait for a grace period although no thread works: a thread that still lives
/// keeps some until it retires more.
const PENDING_MAX: u64 = 256;

/// What was alive before the first file system, and at most when none was left.
pub(super) struct Memory {
    baseline: Live,
    most: Live,
    /// Resident KiB, greatest.
    resident: u64,
}

impl Memory {
    /// To be made before anything lives.
    ///
    /// # Errors
    /// If the program's allocator does not count.
    pub(super) fn new() -> Result<Self, String> {
        let baseline = settled()?;
        Ok(Self {
            baseline,
            most: Live::default(),
            resident: 0,
        })
    }

    /// A word on the size of the process.
    ///
    /// # Errors
    /// When it cannot be told.
    pub(super) fn note(&mut self) -> Result<String, String> {
        let (live, resident) = (counted()?, resident()?);
        self.resident = self.resident.max(resident);
        let Live { bytes, blocks } = live;
        let live = bytes / 1024;
        Ok(format!(
            "{live} KiB live in {blocks} blocks, resident {resident} KiB"
        ))
    }

    /// To be asked when all file systems have ended, with their threads.
    ///
    /// # Errors
    /// If more is alive than at first, or garbage is left.
    pub(super) fn nothing_lives(&mut self) -> Result<(), String> {
        let live = settled()?;
        let more = Live {
            bytes: live.bytes - self.baseline.bytes,
            blocks: live.blocks - self.baseline.blocks,
        };
        self.most.bytes = self.most.bytes.max(more.bytes);
        self.most.blocks = self.most.blocks.max(more.blocks);
        within_bounds(more)?;
        match epoch::pending() {
            0..=PENDING_MAX => Ok(()),
            pending => Err(format!("{pending} values still wait to be freed")),
        }
    }

    /// What more than at first was alive at most when nothing lived, and the most that was
    /// resident, in KiB.
    pub(super) fn most(&self) -> (Live, u64) {
        (self.most, self.resident)
    }
}

/// What is alive when all garbage is gone. Garbage is freed on a thread of its own: threads keep
/// some memory for the next file, until they end.
fn settled() -> Result<Live, String> {
    alone(|| {
        // What is freed may retire more.
        for _ in 0..3 {
            epoch::synchronize();
        }
        Ok(())
    })?;
    counted()
}

fn within_bounds(more: Live) -> Result<(), String> {
    let Live { bytes, blocks } = more;
    if bytes > BYTES_MAX || blocks > BLOCKS_MAX {
        return Err(format!(
            "nothing lives, and {bytes} bytes in {blocks} blocks are left of it"
        ));
    }
    Ok(())
}

fn counted() -> Result<Live, String> {
    sys::live().ok_or_else(|| "the allocator of this program does not count".to_owned())
}

fn resident() -> Result<u64, String> {
    let status = fs::read_to_string("/proc/self/status").map_err(|error| error.to_string())?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok())
        .ok_or_else(|| "no VmRSS in /proc/self/status".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_byte_or_block_more_than_may_be_left_is_a_leak() {
        let of = |bytes, blocks| within_bounds(Live { bytes, blocks });
        assert_eq!(of(BYTES_MAX, BLOCKS_MAX), Ok(()));
        assert!(of(BYTES_MAX + 1, 1).unwrap_err().contains("left"));
        assert!(of(0, BLOCKS_MAX + 1).unwrap_err().contains("left"));
    }

    #[test]
    fn the_resident_size_can_be_read() {
        assert!(resident().unwrap() > 100);
    }
}
