//! The unsafe floor of batches: a ring that owns the memory the kernel reads into.
#![expect(unsafe_code, reason = "submissions hand addresses to the kernel")]

use crate::file::buffer::Buffer;
use io_uring::{IoUring, opcode, types};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// A ring and its buffers, one for each read that can be under way.
///
/// *Invariants.* A slot is busy from the moment its address is in the queue until the kernel has
/// said that it is done with it; nobody can reach its memory meanwhile, and it outlives the ring if
/// the kernel never says so.
pub(super) struct Ring {
    ring: IoUring,
    slots: Vec<Slot>,
    busy: usize,
}

struct Slot {
    buffer: Buffer,
    busy: bool,
}

/// A read has ended.
pub(super) struct Done {
    pub(super) slot: usize,
    /// Bytes read, or the negative error number.
    pub(super) result: i32,
}

impl Ring {
    /// A ring for `depth` reads at once, of `len` bytes at most each.
    pub(super) fn new(depth: usize, len: usize, alignment: usize) -> io::Result<Self> {
        let slot = || Slot {
            buffer: Buffer::new(len, alignment),
            busy: false,
        };
        Ok(Self {
            ring: IoUring::new(depth as u32)?,
            slots: std::iter::repeat_with(slot).take(depth).collect(),
            busy: 0,
        })
    }

    /// Queues a read of `len` bytes into a slot. `false`: the queue is full, or the slot is busy
    /// or too small.
    pub(super) fn queue(&mut self, file: &File, offset: u64, slot: usize, len: usize) -> bool {
        let Some(into) = self.slots.get_mut(slot) else {
            return false;
        };
        if into.busy || len > into.buffer.len() {
            return false;
        }
        let address = into.buffer.bytes().as_mut_ptr();
        let read = opcode::Read::new(types::Fd(file.as_raw_fd()), address, len as u32)
            .offset(offset)
            .build()
            .user_data(slot as u64);
        // SAFETY: `address` points at `len` bytes of a slot that is marked busy right below, so
        // that its memory is neither touched nor freed until the kernel has completed the read.
        // The descriptor is open: the kernel takes its own reference when it takes the entry.
        let queued = unsafe { self.ring.submission().push(&read) }.is_ok();
        into.busy = queued;
        self.busy += usize::from(queued);
        queued
    }

    /// Hands the queue to the kernel and waits until a read has ended.
    pub(super) fn wait(&mut self) -> io::Result<()> {
        self.ring.submit_and_wait(1).map(drop)
    }

    /// One read that has ended, if any. Its slot is free again.
    pub(super) fn done(&mut self) -> Option<Done> {
        let entry = self.ring.completion().next()?;
        let slot = usize::try_from(entry.user_data()).ok()?;
        let freed = self.slots.get_mut(slot)?;
        self.busy -= usize::from(std::mem::take(&mut freed.busy));
        Some(Done {
            slot,
            result: entry.result(),
        })
    }

    /// What a slot holds; `None` while it is busy.
    pub(super) fn bytes(&mut self, slot: usize) -> Option<&[u8]> {
        let slot = self.slots.get_mut(slot).filter(|it| !it.busy)?;
        Some(slot.buffer.bytes())
    }

    /// How many reads are queued or under way.
    pub(super) fn busy(&self) -> usize {
        self.busy
    }

    /// How many slots there are.
    pub(super) fn depth(&self) -> usize {
        self.slots.len()
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // Closing a ring does not wait for what is under way: the kernel may write there for ever.
        for slot in self.slots.drain(..).filter(|slot| slot.busy) {
            std::mem::forget(slot);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_busy_slot_can_neither_be_queued_nor_looked_at() {
        let Ok(mut ring) = Ring::new(2, 4096, 4096) else {
            eprintln!("not tried: no io_uring here");
            return;
        };
        let file = File::open("/proc/self/exe").unwrap();
        assert!(ring.queue(&file, 0, 0, 4));
        assert!(!ring.queue(&file, 0, 0, 4) && ring.bytes(0).is_none());
        assert!(!ring.queue(&file, 0, 1, 4097) && !ring.queue(&file, 0, 2, 4));
        assert_eq!(ring.busy(), 1);
        ring.wait().unwrap();
        let done = ring.done().unwrap();
        assert_eq!((done.slot, done.result, ring.busy()), (0, 4, 0));
        assert_eq!(ring.bytes(0).unwrap()[..4], *b"\x7fELF");
        // Dropped with a read that nobody waited for.
        assert!(ring.queue(&file, 0, 1, 4096));
    }
}
