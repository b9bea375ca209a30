//! Resident memory of the process, as the kernel counts it.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;

/// Reads the resident memory of this process.
#[derive(Debug)]
pub(super) struct Resident {
    statm: File,
    page: u64,
}

impl Resident {
    pub(super) fn open() -> io::Result<Self> {
        Ok(Self {
            statm: File::open("/proc/self/statm")?,
            page: rustix::param::page_size() as u64,
        })
    }

    /// Bytes; `None` if the kernel does not say.
    pub(super) fn bytes(&self) -> Option<u64> {
        let mut text = [0; 128];
        let len = self.statm.read_at(&mut text, 0).ok()?;
        let text = std::str::from_utf8(&text[..len]).ok()?;
        let pages: u64 = text.split_ascii_whitespace().nth(1)?.parse().ok()?;
        Some(pages * self.page)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_resident() {
        let resident = Resident::open().unwrap();
        let before = resident.bytes().unwrap();
        assert!(before > 100 << 10);
        let more = vec![1_u8; 64 << 20];
        assert!(resident.bytes().unwrap() > before + (32 << 20));
        drop(more);
    }
}
