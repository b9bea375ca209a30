//! The journal: committed changes that are not in the trees yet.
//!
//! Every operation is one batch of typed redo records ([`Record`]), appended in memory to the lane
//! of its core: delta-coded against the batch before, some 30 bytes for a creation. Its stamp comes from one
//! counter, so batches of one object, whose appends exclude one another, are in order. A commit takes
//! what all lanes hold at one moment, writes it to a ring on the device as one group of frames,
//! and flushes once for all who wait. A replay gives the groups back, each merged by stamps. The
//! bytes are in `docs/format.md`.
//!
//! *Invariants.*
//! - A group is replayed whole or not at all, and so is a batch.
//! - No batch is durable before another on which it depends: an append excludes those of the same
//!   objects (its caller's locks), and a cut excludes all appends.
//! - A place of the ring is written at most once in a life. Each opening that writes begins a life
//!   later than any whose frames may still lie in the ring, and a later life is never followed by
//!   an earlier one: so what a crash left behind its torn end is never replayed.
//! - After a failed write or flush nothing is durable any more that was not before.
//!
//! *Locking.* `turn` (who commits; released before the rest), `writer` (the ring; held while a
//! commit writes), all lanes, spare buffers. An append takes its lane only.

mod context;
mod decode;
mod encode;
mod error;
mod frame;
#[expect(clippy::module_inception, reason = "the journal itself")]
mod journal;
mod log_buffer;
mod log_buffers;
mod opcode;
mod record;
mod region;
mod replay;
mod rest;
mod ring;
mod room;
mod scan;
#[cfg(test)]
mod tests;
mod varint;

pub use error::{Error, Reason, Result};
pub(crate) use frame::HEADER as FRAME_HEADER;
pub use journal::{BeforeCommit, Commit, Journal};
pub(crate) use opcode::{HEAD_MAX, RECORD_MAX};
pub use record::{Map, Overwrite, Record};
pub use region::{BLOCKS_MIN, Position, Region};
pub use replay::{Batch, Replay};
