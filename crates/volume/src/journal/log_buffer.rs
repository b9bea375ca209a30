//! A log buffer: encoded batches of one core, until a commit takes them.

use super::context::Context;
use super::encode;
use super::error::{Error, Result};
use super::frame::{FRAME_BLOCKS, Frame, HEADER, Piece};
use super::record::{AsRecord, BatchHead};
use super::region::BLOCK;
use super::room::Room;
use crate::primitive::{AtomicU64, Mutex, Ordering};
use holdfast_core::store::Lsn;

/// Ring space and memory that all log buffers share.
#[derive(Debug)]
pub(super) struct Supply {
    pub(super) room: Room,
    /// The most blocks of one batch.
    pub(super) most: u64,
    /// Buffers of written frames; a leaf among the locks.
    idle: Mutex<Vec<Vec<u8>>>,
    /// Bytes of memory of all buffers, spare ones included.
    memory: AtomicU64,
}

/// The most buffers kept for later frames.
const IDLE_MAX: usize = 32;

impl Supply {
    pub(super) fn new(room: Room, most: u64) -> Self {
        Self {
            room,
            most,
            idle: Mutex::new(Vec::new()),
            memory: AtomicU64::new(0),
        }
    }

    /// A buffer for a frame of so many blocks.
    pub(super) fn buffer(&self, blocks: u64) -> Vec<u8> {
        let idle = self.idle.lock().pop();
        let mut buffer = idle.unwrap_or_default();
        let before = buffer.capacity();
        buffer.clear();
        buffer.reserve_exact(blocks as usize * BLOCK);
        // Relaxed: a count.
        let came = (buffer.capacity() - before) as u64;
        self.memory.fetch_add(came, Ordering::Relaxed);
        buffer
    }

    /// Bytes of memory of all buffers.
    pub(super) fn memory(&self) -> u64 {
        self.memory.load(Ordering::Relaxed)
    }

    /// Takes the buffers of frames that are no longer needed.
    pub(super) fn recycle(&self, frames: impl IntoIterator<Item = Frame>) {
        let mut idle = self.idle.lock();
        for frame in frames {
            if idle.len() < IDLE_MAX {
                idle.push(frame.bytes);
            } else {
                let went = frame.bytes.capacity() as u64;
                self.memory.fetch_sub(went, Ordering::Relaxed);
            }
        }
    }
}

/// The number of the buffer into which a commit itself appends.
pub(super) const COMMIT: u16 = u16::MAX;

#[derive(Debug)]
pub(super) struct LogBuffer {
    number: u16,
    full: Vec<Frame>,
    open: Option<Open>,
}

/// The frame that takes the next batch.
#[derive(Debug)]
struct Open {
    frame: Frame,
    context: Context,
    /// Blocks it may fill.
    blocks: u64,
}

impl Open {
    const fn fits(&self, bytes: usize) -> bool {
        self.frame.bytes.len().saturating_add(bytes) <= self.blocks as usize * BLOCK
    }
}

impl LogBuffer {
    pub(super) const fn new(number: u16) -> Self {
        Self {
            number,
            full: Vec::new(),
            open: None,
        }
    }

    /// Has it no frames?
    pub(super) fn is_empty(&self) -> bool {
        self.open.is_none() && self.full.is_empty()
    }

    /// Appends one batch with an LSN greater than those of the batches before. Returns whether it
    /// took another frame.
    #[inline]
    pub(super) fn append<R: AsRecord>(
        &mut self,
        supply: &Supply,
        head: BatchHead,
        records: &[R],
    ) -> Result<bool> {
        hop!();
        let longest = encode::longest(records);
        let fits = self.open.as_ref().is_some_and(|open| open.fits(longest));
        if !fits && !self.open_frame(supply, head.lsn, longest)? {
            self.append_pieces(supply, head, records)?;
            return Ok(true);
        }
        let Some(open) = &mut self.open else {
            unreachable!("a frame was opened");
        };
        let frame = &mut open.frame;
        encode::batch(&mut frame.bytes, &mut open.context, head, records);
        frame.last = head.lsn;
        frame.batches += 1;
        Ok(!fits)
    }

    /// Opens a frame for a batch with LSN `first` of up to `longest` bytes; `false` if no frame may
    /// be that long.
    fn open_frame(&mut self, supply: &Supply, first: Lsn, longest: usize) -> Result<bool> {
        let needed = (HEADER + longest).div_ceil(BLOCK);
        if needed > FRAME_BLOCKS {
            return Ok(false);
        }
        let blocks = [FRAME_BLOCKS as u64, needed as u64];
        let Some(blocks) = blocks.into_iter().find(|blocks| self.take(supply, *blocks)) else {
            return Err(Error::Full);
        };
        self.close(supply);
        self.open = Some(Open {
            frame: Frame::new(supply.buffer(blocks), self.number, first),
            context: Context::new(first),
            blocks,
        });
        Ok(true)
    }

    fn take(&self, supply: &Supply, blocks: u64) -> bool {
        if self.number == COMMIT {
            supply.room.take_reserved(blocks)
        } else {
            supply.room.take(blocks)
        }
    }

    /// Appends a batch that needs several frames.
    fn append_pieces<R: AsRecord>(
        &mut self,
        supply: &Supply,
        head: BatchHead,
        records: &[R],
    ) -> Result<()> {
        const PAYLOAD: usize = FRAME_BLOCKS * BLOCK - HEADER;
        let mut bytes = Vec::new();
        encode::batch(&mut bytes, &mut Context::new(head.lsn), head, records);
        let count = bytes.len().div_ceil(PAYLOAD);
        let end = bytes.len() - (count - 1) * PAYLOAD;
        let blocks = ((count - 1) * FRAME_BLOCKS + (end + HEADER).div_ceil(BLOCK)) as u64;
        if blocks > supply.most {
            let most = supply.most;
            return Err(Error::TooLarge { blocks, most });
        }
        if !self.take(supply, blocks) {
            return Err(Error::Full);
        }
        self.close(supply);
        for (index, piece) in bytes.chunks(PAYLOAD).enumerate() {
            let frame_blocks = (HEADER + piece.len()).div_ceil(BLOCK) as u64;
            let mut frame = Frame::new(supply.buffer(frame_blocks), self.number, head.lsn);
            frame.bytes.extend_from_slice(piece);
            frame.piece = Piece {
                continues: index > 0,
                continued: index + 1 < count,
            };
            frame.batches = u32::from(!frame.piece.continued);
            self.full.push(frame);
        }
        Ok(())
    }

    /// Closes the open frame to further batches.
    fn close(&mut self, supply: &Supply) {
        if let Some(open) = self.open.take() {
            if open.frame.batches == 0 {
                supply.room.give(open.blocks);
                supply.recycle([open.frame]);
            } else {
                supply.room.give(open.blocks - open.frame.blocks());
                self.full.push(open.frame);
            }
        }
    }

    /// Moves all frames to `group`.
    pub(super) fn empty(&mut self, supply: &Supply, group: &mut Vec<Frame>) {
        self.close(supply);
        group.append(&mut self.full);
    }
}
