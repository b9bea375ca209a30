//! Preallocations: blocks set aside for growing files, so that each lies in few extents.
//!
//! A large file has pieces of its own, each for a stretch of it ([`Preallocations`]). Small files
//! share the pieces of their core. Both are used and not recorded, vanish with a crash, and are
//! given up before an allocation fails for lack of room.
//!
//! The mechanism is that of ext4's allocator since its preallocations moved from a list to a tree
//! (Ojaswin Mujoo, 2022). Unlike there, a used-up piece leaves the index at once, so pieces need no
//! marks of deletion.
//!
//! *Invariants.* Pieces of a file overlap neither in the file nor on the volume (P1). The free
//! blocks of a piece are those that the file has not taken from it, at least one while it is in the
//! index. The file may have other blocks for that range, so callers never ask for a block that is
//! mapped (P2). While a piece can be found, it is in one index and on the list of one group (P3).
//! The thread that removes a piece from its index also removes the list entry.
//!
//! *Locking.* A group, then an index. A core's locality is locked before groups: a sweep locks it
//! while it holds no other lock.

mod index;
mod locality;
mod sweep;
#[cfg(test)]
mod tests;
mod window;

pub use window::{FILE_BLOCKS_MAX, FileRequest, Mapped, Window};

use super::allocate::Purpose;
use super::{Error, Extent, Kind, Request, Reservation, Space};
use crate::primitive::{Mutex, Ordering};
use index::{Index, Piece};
pub(super) use locality::Locality;
use std::sync::{Arc, Weak};

/// Files up to this size (in blocks) share the pieces of their core.
const SMALL: u64 = 16;

/// The entry of a piece in its group.
#[derive(Debug)]
pub(super) struct Listed {
    owner: Weak<Preallocations>,
    logical: u64,
    id: u64,
}

/// The preallocations of one file. The caller serializes changes of the file's extents: two threads
/// may not ask for the same block.
///
/// Dropping it gives them up.
#[derive(Debug)]
pub struct Preallocations {
    space: Arc<Space>,
    index: Mutex<Index>,
}

impl Preallocations {
    /// No preallocations.
    #[must_use]
    pub fn new(space: &Arc<Space>) -> Arc<Self> {
        Arc::new(Self {
            space: Arc::clone(space),
            index: Mutex::default(),
        })
    }

    /// Places blocks of the file from the request's first one on, maybe fewer than requested. The
    /// data is then [recorded](Space::record) or [given back](Space::give_back). The blocks come
    /// out of `reservation`, if given.
    ///
    /// # Errors
    /// [`Error::Later`], [`Error::Full`]: never while preallocations could be given up, nor with
    /// all blocks reserved.
    pub fn place(
        self: &Arc<Self>,
        request: &FileRequest,
        reservation: Option<&mut Reservation>,
    ) -> Result<Extent, Error> {
        hop!();
        let mut reservation = reservation;
        let wanted = wanted(request.length, reservation.as_deref());
        if let Some(extent) =
            self.take_preallocated(request.logical, wanted, reservation.as_deref_mut())
        {
            return Ok(extent);
        }
        let layout = self.space.layout();
        let Some(window) = Window::of(request, layout.room()) else {
            return Err(Error::Full {
                wanted,
                free: self.space.counter().balance().0,
            });
        };
        let small = request.size() <= SMALL;
        let exact = Request {
            goal: window.goal(request),
            ..Request::data(wanted)
        };
        let attempt = || match (small, request.preallocates()) {
            (true, _) => self.space.place_small(wanted, exact.goal),
            (false, true) => self.place_window(request, window, wanted),
            (false, false) => None,
        };
        if let Some(reservation) = reservation {
            // Preallocated blocks are not reserved, so the reservation of as many is released.
            if let Some(extent) = attempt() {
                reservation.release(extent.length);
                return Ok(extent);
            }
            return self.space.allocate_reserved(reservation, &exact);
        }
        if let Some(extent) = attempt() {
            return Ok(extent);
        }
        self.space.allocate(&exact)
    }

    /// Takes preallocated blocks for this place in the file, maybe fewer than requested. As for
    /// [`place`](Self::place), the blocks are not mapped.
    pub fn take_preallocated(
        &self,
        logical: u64,
        length: u64,
        reservation: Option<&mut Reservation>,
    ) -> Option<Extent> {
        let extent = self.lookup(logical, wanted(length, reservation.as_deref()))?;
        if let Some(reservation) = reservation {
            reservation.release(extent.length);
        }
        Some(extent)
    }

    /// Takes preallocated blocks for this place in the file.
    fn lookup(&self, logical: u64, length: u64) -> Option<Extent> {
        let mut index = self.index.lock();
        // Pieces do not overlap: no other can contain the block.
        let piece = index.at_or_before(logical)?;
        let extent = piece.take(logical, length)?;
        self.space.preallocated.add(-(extent.length as i64));
        if piece.free() == 0 {
            let logical = piece.logical;
            let empty = index.remove(logical).expect("the piece just found");
            drop(index);
            self.space.unlist(&empty);
        }
        Some(extent)
    }

    /// Allocates the window, and preallocates the blocks that are left. `None` if room is short.
    fn place_window(
        self: &Arc<Self>,
        request: &FileRequest,
        window: Window,
        wanted: u64,
    ) -> Option<Extent> {
        let window = self.fit(window, request.logical);
        let length = window.length();
        let goal = self.behind(window.start).or(window.goal(request));
        let extent = self.space.allocate_unreserved(goal, 1, length, length)?;
        let logical = window.place(request, extent.length);
        let mut piece = Piece::new(0, logical, extent);
        let taken = piece.take(request.logical, wanted);
        self.publish(piece);
        taken
    }

    /// The window without the ranges of other pieces.
    fn fit(&self, mut window: Window, logical: u64) -> Window {
        loop {
            let mut index = self.index.lock();
            let covering = match index.at_or_before(logical) {
                Some(left) if left.end() > logical => left.logical,
                left => {
                    let left = left.map_or(0, |left| left.end());
                    window.begin_behind(left, logical);
                    if let Some(right) = index.behind(logical) {
                        window.end_before(right.logical, logical);
                    }
                    return window;
                }
            };
            // The file has taken this block from the piece and freed it since: the piece is
            // useless.
            let piece = index.remove(covering).expect("the piece just found");
            drop(index);
            self.space.discard_piece(&piece);
        }
    }

    /// The block behind the piece that ends at `logical`: the end of the file itself may not be
    /// mapped yet.
    fn behind(&self, logical: u64) -> Option<u64> {
        let mut index = self.index.lock();
        let left = index.at_or_before(logical.checked_sub(1)?)?;
        (left.end() == logical).then(|| left.extent.end())
    }

    /// Adds the piece to the index, if it has free blocks.
    fn publish(self: &Arc<Self>, mut piece: Piece) {
        if piece.free() == 0 {
            return;
        }
        let space = &*self.space;
        // Relaxed: a unique number.
        piece.id = space.pieces.fetch_add(1, Ordering::Relaxed);
        let (group, range) = space.range(piece.extent).expect("blocks of a group");
        let listed = Listed {
            owner: Arc::downgrade(self),
            logical: piece.logical,
            id: piece.id,
        };
        let mut state = space.table().lock(group);
        let mut index = self.index.lock();
        space.preallocated.add(piece.free() as i64);
        state.preallocated.insert((range.from, piece.id), listed);
        index.insert(piece);
    }

    /// Removes a piece, if it is still there. The caller has its group locked.
    fn take_out(&self, logical: u64, id: u64) -> Option<Piece> {
        let mut index = self.index.lock();
        let same = index
            .at_or_before(logical)
            .is_some_and(|piece| piece.id == id);
        same.then(|| index.remove(logical)).flatten()
    }

    /// Gives up the preallocations from block `logical` on, and pieces that reach beyond it. Called
    /// when the file is truncated or punched, closed by its last writer, or evicted. Returns how
    /// many blocks became free.
    pub fn discard(&self, logical: u64) -> u64 {
        let pieces = self.index.lock().remove_from(logical);
        pieces
            .iter()
            .map(|piece| self.space.discard_piece(piece))
            .sum()
    }

    /// Preallocated blocks of the file.
    #[must_use]
    pub fn blocks(&self) -> u64 {
        self.index.lock().iter().map(Piece::free).sum()
    }
}

/// How many of `length` blocks the reservation covers: at least one.
fn wanted(length: u64, reservation: Option<&Reservation>) -> u64 {
    let most = reservation.map_or(length, Reservation::blocks);
    length.min(most).max(1)
}

impl Drop for Preallocations {
    fn drop(&mut self) {
        self.discard(0);
    }
}

impl Space {
    /// Places `least` to `wanted` blocks, if `room` unreserved blocks are free.
    fn allocate_unreserved(
        &self,
        goal: Option<u64>,
        least: u64,
        wanted: u64,
        room: u64,
    ) -> Option<Extent> {
        let given = self.counter().take(room, wanted, Kind::Data)?;
        let found = self.search(goal, least, given, Purpose::Unrecorded);
        let length = found.map_or(0, |extent| extent.length);
        self.counter().put_back(given - length);
        found
    }

    /// Removes the list entry of a piece that is in no index any more.
    fn unlist(&self, piece: &Piece) {
        // Its group is that of its first block, which a piece never loses.
        let (group, range) = self.range(piece.extent).expect("blocks of a group");
        let mut state = self.table().lock(group);
        state.preallocated.remove(&(range.from, piece.id));
    }

    /// Gives up a piece that was removed from its index.
    fn discard_piece(&self, piece: &Piece) -> u64 {
        self.unlist(piece);
        for extent in piece.unused() {
            self.free_preallocated(extent);
        }
        piece.free()
    }
}
