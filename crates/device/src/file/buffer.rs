use std::sync::{Mutex, PoisonError};

/// What one direct transfer carries at most, in bytes.
pub(super) const BUFFER: usize = 1 << 20;
/// Buffers kept for the next transfer.
const KEPT: usize = 4;

/// Memory aligned for direct transfers.
#[derive(Debug)]
pub(super) struct Buffer {
    bytes: Vec<u8>,
    start: usize,
    len: usize,
}

impl Buffer {
    /// Zeros.
    pub(super) fn new(len: usize, alignment: usize) -> Self {
        let bytes = vec![0; len + alignment];
        let start = bytes.as_ptr().addr().next_multiple_of(alignment) - bytes.as_ptr().addr();
        Self { bytes, start, len }
    }

    pub(super) const fn len(&self) -> usize {
        self.len
    }

    pub(super) fn bytes(&mut self) -> &mut [u8] {
        &mut self.bytes[self.start..self.start + self.len]
    }
}

/// Buffers that wait for use.
#[derive(Debug)]
pub(super) struct Buffers {
    alignment: usize,
    idle: Mutex<Vec<Buffer>>,
}

impl Buffers {
    pub(super) const fn new(alignment: usize) -> Self {
        Self {
            alignment,
            idle: Mutex::new(Vec::new()),
        }
    }

    /// Lends a buffer, with anything in it.
    pub(super) fn with<T>(&self, work: impl FnOnce(&mut [u8]) -> T) -> T {
        let idle = || self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = idle().pop();
        let mut buffer = kept.unwrap_or_else(|| Buffer::new(BUFFER, self.alignment));
        let result = work(buffer.bytes());
        let mut idle = idle();
        if idle.len() < KEPT {
            idle.push(buffer);
        }
        result
    }

    /// What memory has to be aligned to, in bytes.
    pub(super) const fn alignment(&self) -> usize {
        self.alignment
    }

    /// Whether memory can be transferred as it lies.
    pub(super) fn fits(&self, bytes: &[u8]) -> bool {
        bytes.as_ptr().addr().is_multiple_of(self.alignment)
    }
}
