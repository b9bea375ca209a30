//! The lanes of a journal: each core's own, or, of a small ring, fewer that cores share.
//!
//! *Locking.* A thread locks its lane for an append. A cut locks all of them in their order.

use super::log_buffer::LogBuffer;
use crate::primitive::{Mutex, MutexGuard, PerCore};
use holdfast_sync::Padded;
use std::cell::Cell;

/// Blocks of a ring for each lane, at least: four frames.
const LANE_BLOCKS: u64 = 64;

#[derive(Debug)]
pub(super) struct LogBuffers {
    /// As many as there are cores, or as the ring has room for.
    log_buffers: Box<[Padded<Mutex<LogBuffer>>]>,
    /// Each core's lane.
    mine: PerCore<usize>,
}

impl LogBuffers {
    /// Those of a ring of so many blocks.
    pub(super) fn new(capacity: u64) -> Self {
        let slots = PerCore::new(|| ()).iter().count() as u64;
        // Numbers of lanes have 16 bits, and the last is a commit's: there are never as many slots.
        let log_buffers = (capacity / LANE_BLOCKS).clamp(1, slots) as u16;
        let next = Cell::new(0);
        Self {
            log_buffers: (0..log_buffers)
                .map(|number| Padded(Mutex::new(LogBuffer::new(number))))
                .collect(),
            mine: PerCore::new(|| next.replace(next.get() + 1) % usize::from(log_buffers)),
        }
    }

    /// Shows the calling thread's lane.
    #[inline]
    pub(super) fn with_own<R>(&self, show: impl FnOnce(&mut LogBuffer) -> R) -> R {
        show(&mut self.log_buffers[*self.mine.mine()].lock())
    }

    /// Shows all lanes at one moment.
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
