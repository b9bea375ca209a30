//! The log buffers of a journal: one per core, or in a small ring fewer, which cores share.
//!
//! *Locking.* An append locks its core's buffer. A cut locks all of them in order.

use super::log_buffer::LogBuffer;
use crate::primitive::{Mutex, MutexGuard, PerCore};
use holdfast_sync::Padded;
use std::cell::Cell;

/// The fewest blocks of a ring per log buffer: four frames.
const BUFFER_BLOCKS: u64 = 64;

#[derive(Debug)]
pub(super) struct LogBuffers {
    /// As many as there are cores, or as the ring has room for.
    log_buffers: Box<[Padded<Mutex<LogBuffer>>]>,
    /// The index of each core's buffer.
    mine: PerCore<usize>,
}

impl LogBuffers {
    /// The buffers for a ring of so many blocks.
    pub(super) fn new(capacity: u64) -> Self {
        let slots = PerCore::new(|| ()).iter().count() as u64;
        // Numbers have 16 bits, and the last is a commit's: there are never as many slots.
        let log_buffers = (capacity / BUFFER_BLOCKS).clamp(1, slots) as u16;
        let next = Cell::new(0);
        Self {
            log_buffers: (0..log_buffers)
                .map(|number| Padded(Mutex::new(LogBuffer::new(number))))
                .collect(),
            mine: PerCore::new(|| next.replace(next.get() + 1) % usize::from(log_buffers)),
        }
    }

    /// Calls `show` with the buffer of the calling thread's core.
    #[inline]
    pub(super) fn with_own<R>(&self, show: impl FnOnce(&mut LogBuffer) -> R) -> R {
        show(&mut self.log_buffers[*self.mine.mine()].lock())
    }

    /// Calls `show` with all buffers, all of them locked.
    pub(super) fn with_all<R>(
        &self,
        show: impl FnOnce(&mut dyn Iterator<Item = &mut LogBuffer>) -> R,
    ) -> R {
        let mut log_buffers: Vec<MutexGuard<'_, LogBuffer>> = self
            .log_buffers
            .iter()
            .map(|log_buffer| log_buffer.lock())
            .collect();
        show(&mut log_buffers.iter_mut().map(|log_buffer| &mut **log_buffer))
    }
}
