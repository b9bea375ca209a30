use super::super::{Error, Extent, Request, Reservation, Space};
use super::index::{Index, Listed, Piece};
use super::window::{FileRequest, Window};
use crate::primitive::{Mutex, Ordering};
use std::sync::Arc;

/// Files up to this size (in blocks) share the pieces of their core.
const SMALL: u64 = 16;

/// The preallocations of one file. The caller serializes changes of the file's extents: two threads
/// may not ask for the same block.
///
/// Dropping it gives them up.
#[derive(Debug)]
pub struct Preallocations {
    pub(super) space: Arc<Space>,
    pub(super) index: Arc<Mutex<Index>>,
}

impl Preallocations {
    /// No preallocations.
    #[must_use]
    pub fn new(space: &Arc<Space>) -> Arc<Self> {
        Arc::new(Self {
            space: Arc::clone(space),
            index: Arc::default(),
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
                free: self.space.counter.balance().0,
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
            owner: Arc::downgrade(&self.index),
            logical: piece.logical,
            id: piece.id,
        };
        let mut state = space.table().lock(group);
        let mut index = self.index.lock();
        space.preallocated.add(piece.free() as i64);
        state.preallocated.insert((range.from, piece.id), listed);
        index.insert(piece);
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
