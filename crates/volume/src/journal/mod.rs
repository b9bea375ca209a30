//! The journal: committed changes that are not in the trees yet.
//!
//! Every operation is one batch of typed redo records ([`Record`]). An append encodes it into the
//! log buffer of its core, as differences from the batch before: about 30 bytes for a creation. Log
//! sequence numbers come from one counter. Appends that change the same object exclude one another,
//! so their LSNs are in order. A commit takes the content of all log buffers at one moment and
//! writes it to a ring on the device as one group of frames. One flush then serves all waiters. A
//! replay returns the groups one by one, the batches of each merged by LSN. `docs/format.md` has
//! the bytes.
//! - A group is replayed whole or not at all, and so is a batch.
//! - No batch is durable before another on which it depends: an append excludes those of the same
//!   objects (its caller's locks), and a cut excludes all appends.
//! - A block of the ring is written at most once per incarnation. Each opening that writes begins
//!   an incarnation later than that of any frame that may still lie in the ring. A later
//!   incarnation is never followed by an earlier one, so a replay never takes stale frames behind a
//!   torn end.
//! - After a failed write or flush, nothing becomes durable that was not durable before.
//!
//! *Locking.* `turn` (taken by the commit leader, and released before the others), `writer` (the
//! ring, held while a commit writes), all log buffers, spare buffers. An append takes its log
//! buffer only.

mod context;
mod decode;
mod encode;
mod error;
mod frame;
mod group;
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

pub use error::{Error, Reason, Result};
pub(crate) use frame::HEADER as FRAME_HEADER;
pub use group::Group;
pub use journal::{CommitTurn, Journal};
pub(crate) use opcode::{HEAD_MAX, RECORD_MAX};
pub use record::{Map, Overwrite, Record};
pub use region::{BLOCKS_MIN, Position, Region};
pub use replay::{Batch, Replay};
pub use ring::Mode;
