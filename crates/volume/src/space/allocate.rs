use super::search::Purpose;
use super::{Error, Extent, Kind, Remedy, Reservation, Space};
use std::sync::Arc;

/// A request for adjacent blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// The block to begin at if it is free, else near it. `None`: behind this core's last
    /// allocation.
    pub goal: Option<u64>,
    /// The fewest blocks, at least 1.
    pub least: u64,
    /// The most blocks; all of them if there is a run of so many.
    pub wanted: u64,
    /// The use of the blocks.
    pub kind: Kind,
}

impl Request {
    /// `wanted` blocks of data, or fewer.
    #[must_use]
    pub fn data(wanted: u64) -> Self {
        Self {
            goal: None,
            least: 1,
            wanted,
            kind: Kind::Data,
        }
    }

    /// A node of exactly `blocks` blocks.
    #[must_use]
    pub fn node(blocks: u64) -> Self {
        Self {
            goal: None,
            least: blocks,
            wanted: blocks,
            kind: Kind::Node,
        }
    }

    /// The same, near `goal`.
    #[must_use]
    pub fn near(self, goal: u64) -> Self {
        Self {
            goal: Some(goal),
            ..self
        }
    }
}

impl Space {
    /// Reserves `blocks`.
    ///
    /// # Errors
    /// [`Error::Later`] while a commit or a checkpoint would free blocks; [`Error::Full`].
    pub fn reserve(self: &Arc<Self>, blocks: u64) -> Result<Reservation, Error> {
        self.reserve_blocks(blocks)?;
        Ok(Reservation::of(Arc::clone(self), blocks))
    }

    /// Like [`reserve`](Self::reserve), as a number: to be [added](Reservation::take_in) to a
    /// reservation or [given back](Self::unreserve).
    pub(crate) fn reserve_blocks(&self, blocks: u64) -> Result<(), Error> {
        for _ in 0..ATTEMPTS {
            if blocks == 0 || self.counter.take(blocks, blocks, Kind::Data).is_some() {
                return Ok(());
            }
            if self.sweep(blocks) == 0 {
                break;
            }
        }
        Err(self.shortage(blocks))
    }

    /// Places adjacent blocks: used from now on. Nodes count as recorded by the checkpoint in
    /// progress, data as soon as it is [recorded](Self::record).
    ///
    /// # Errors
    /// [`Error::Later`], [`Error::Full`].
    pub fn allocate(&self, request: &Request) -> Result<Extent, Error> {
        self.ready()?;
        let (least, wanted) = (
            request.least.max(1),
            request.wanted.max(request.least).max(1),
        );
        for _ in 0..ATTEMPTS {
            let Some(given) = self.counter.take(least, wanted, request.kind) else {
                if self.sweep(wanted) == 0 {
                    break;
                }
                continue;
            };
            if let Some(extent) = self.place(request, least, given) {
                self.counter.put_back(given - extent.length);
                return Ok(extent);
            }
            self.counter.put_back(given);
            // No run is long enough; giving up preallocations may make one.
            if self.sweep(u64::MAX) == 0 {
                break;
            }
        }
        Err(self.shortage(wanted))
    }

    /// Like [`allocate`](Self::allocate), with reserved blocks: no more than are reserved.
    ///
    /// # Errors
    /// [`Error::Full`] or [`Error::Later`] if no run of free blocks has the requested least length;
    /// never for single blocks.
    ///
    /// # Panics
    /// If fewer blocks are reserved than the least requested.
    pub fn allocate_reserved(
        &self,
        reservation: &mut Reservation,
        request: &Request,
    ) -> Result<Extent, Error> {
        self.ready()?;
        let least = request.least.max(1);
        assert!(
            reservation.blocks() >= least,
            "nobody promised so many blocks"
        );
        let wanted = request.wanted.clamp(least, reservation.blocks());
        for _ in 0..ATTEMPTS {
            if let Some(extent) = self.place(request, least, wanted) {
                reservation.place(extent.length);
                return Ok(extent);
            }
            if least > 1 && self.sweep(u64::MAX) == 0 {
                break;
            }
        }
        Err(self.shortage(wanted))
    }

    fn place(&self, request: &Request, least: u64, wanted: u64) -> Option<Extent> {
        let purpose = match request.kind {
            Kind::Node => Purpose::Node,
            Kind::Data => Purpose::Unrecorded,
        };
        self.search(request.goal, least, wanted, purpose)
    }

    /// The error when `wanted` blocks are not available.
    fn shortage(&self, wanted: u64) -> Error {
        match self.records.deferred() {
            (0, 0) => Error::Full {
                wanted,
                free: self.counter.balance().0,
            },
            (0, _) => Error::Later {
                remedy: Remedy::Checkpoint,
            },
            (..) => Error::Later {
                remedy: Remedy::Commit,
            },
        }
    }
}

/// Attempts in case other threads take the blocks that a sweep freed.
const ATTEMPTS: usize = 3;
