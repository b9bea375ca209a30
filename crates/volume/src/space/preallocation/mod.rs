//! Preallocations: blocks set aside for files that may grow, so that they come to lie in one piece.
//!
//! A large file has pieces of its own, each for a stretch of it ([`Preallocations`]); small files
//! share the pieces of their core. Both are used and not recorded, vanish with a crash, and are
//! given up when room is short: nobody is told that there is none while they are there.
//!
//! The mechanism is that of ext4's allocator after its preallocations moved from a list to a tree
//! (Ojaswin Mujoo, 2022), without marks of deletion: pieces leave the index when they are used up.
//!
//! *Invariants.* Pieces of a file overlap neither in the file nor on the volume (P1). The free
//! blocks of a piece are those that the file has not got from it: at least one while it is in the
//! index; for which the file may have others, so nobody asks for what has a place (P2). A piece is
//! in one index and on the list of one group, from the moment it can be found (P3); an entry whose
//! piece is gone is removed by who took the piece out.
//!
//! *Locking.* A group, then an index. A core's locality is held over the groups, never the other
//! way round: sweeps take it with nothing held.

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

/// What a group knows of a piece.
#[derive(Debug)]
pub(super) struct Listed {
    owner: Weak<Preallocations>,
    logical: u64,
    id: u64,
}

/// The preallocations of one file. Who changes the file's extents serialises that: two threads
/// may not ask for the same block.
///
/// They are given up when it is dropped.
#[derive(Debug)]
pub struct Preallocations {
    space: Arc<Space>,
    index: Mutex<Index>,
}

impl Preallocations {
    /// None yet.
    #[must_use]
    pub fn new(space: &Arc<Space>) -> Arc<Self> {
        Arc::new(Self {
            space: Arc::clone(space),
            index: Mutex::default(),
        })
    }

    /// Places blocks of the file, from the request's first one on, maybe fewer than asked for:
    /// data that is to be [recorded](Space::record) or [given back](Space::give_back). Out of a
    /// promise, if one is given.
    ///
    /// # Errors
    /// [`Error::Later`], [`Error::Full`]: never while preallocations could be given up. With a
    /// promise of all that is asked for: never.
    pub fn place(
        self: &Arc<Self>,
        request: &FileRequest,
        promise: Option<&mut Reservation>,
    ) -> Result<Extent, Error> {
        let mut promise = promise;
        let wanted = wanted(request.length, promise.as_deref());
        if let Some(extent) = self.set_aside(request.logical, wanted, promise.as_deref_mut()) {
            return Ok(extent);
        }
        let layout = self.space.layout();
        let Some(window) = Window::of(request, layout.room()) else {
            return Err(Error::Full {
                wanted,
                free: self.space.ledger().balance().0,
            });
        };
        let small = request.size() <= SMALL;
        let exact = Request {
            goal: window.goal(request),
            ..Request::data(wanted)
        };
        let attempt = || match (small, request.sets_aside()) {
            (true, _) => self.space.place_small(wanted, exact.goal),
            (false, true) => self.place_window(request, window, wanted),
            (false, false) => None,
        };
        if let Some(promise) = promise {
            // What can be set aside is not promised to anybody, so the promise is free again.
            if let Some(extent) = attempt() {
                promise.spare(extent.length);
                return Ok(extent);
            }
            return self.space.allocate_promised(promise, &exact);
        }
        if let Some(extent) = attempt() {
            return Ok(extent);
        }
        self.space.allocate(&exact)
    }

    /// Takes blocks that were set aside for this place in the file, maybe fewer than asked for, if there are any: as
    /// [`place`](Self::place), which nobody asks for blocks that the file has.
    pub fn set_aside(
        &self,
        logical: u64,
        length: u64,
        promise: Option<&mut Reservation>,
    ) -> Option<Extent> {
        let extent = self.lookup(logical, wanted(length, promise.as_deref()))?;
        if let Some(promise) = promise {
            promise.spare(extent.length);
        }
        Some(extent)
    }

    /// Takes blocks that were set aside for this place in the file.
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

    /// Looks for room for the window, and sets aside what is left of it. `None` if room is short.
    fn place_window(
        self: &Arc<Self>,
        request: &FileRequest,
        window: Window,
        wanted: u64,
    ) -> Option<Extent> {
        let window = self.fit(window, request.logical);
        let length = window.length();
        let goal = self.behind(window.start).or(window.goal(request));
        let extent = self.space.unpromised(goal, 1, length, length)?;
        let logical = window.place(request, extent.length);
        let mut piece = Piece::new(0, logical, extent);
        let taken = piece.take(request.logical, wanted);
        self.publish(piece);
        taken
    }

    /// The window without what other pieces are for.
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
            // The file had this block from there, and gave it up: the piece is of no more use.
            let piece = index.remove(covering).expect("the piece just found");
            drop(index);
            self.space.discard_piece(&piece);
        }
    }

    /// The block behind what is set aside for the stretch of the file that ends there: of the file itself the end of that
    /// may have nothing yet.
    fn behind(&self, logical: u64) -> Option<u64> {
        let mut index = self.index.lock();
        let left = index.at_or_before(logical.checked_sub(1)?)?;
        (left.end() == logical).then(|| left.extent.end())
    }

    /// Lets the piece be found, if there is anything left of it.
    fn publish(self: &Arc<Self>, mut piece: Piece) {
        if piece.free() == 0 {
            return;
        }
        let space = &*self.space;
        // Relaxed: a number that no other piece has.
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

    /// Takes out a piece for somebody who has its group locked, if it is still there.
    fn take_out(&self, logical: u64, id: u64) -> Option<Piece> {
        let mut index = self.index.lock();
        let same = index
            .at_or_before(logical)
            .is_some_and(|piece| piece.id == id);
        same.then(|| index.remove(logical)).flatten()
    }

    /// Gives up what is set aside for the file from block `logical` on, and pieces that reach
    /// there: when it is truncated or punched, when the last writer closes it, when it goes. Gives
    /// how many blocks became free.
    pub fn discard(&self, logical: u64) -> u64 {
        let pieces = self.index.lock().remove_from(logical);
        pieces
            .iter()
            .map(|piece| self.space.discard_piece(piece))
            .sum()
    }

    /// Blocks that are set aside for the file.
    #[must_use]
    pub fn blocks(&self) -> u64 {
        self.index.lock().iter().map(Piece::free).sum()
    }
}

/// How many of so many blocks can be placed out of a promise: at least one.
fn wanted(length: u64, promise: Option<&Reservation>) -> u64 {
    let most = promise.map_or(length, Reservation::blocks);
    length.min(most).max(1)
}

impl Drop for Preallocations {
    fn drop(&mut self) {
        self.discard(0);
    }
}

impl Space {
    /// Places `least` to `wanted` blocks, if `room` are free and promised to nobody.
    fn unpromised(&self, goal: Option<u64>, least: u64, wanted: u64, room: u64) -> Option<Extent> {
        let given = self.ledger().take(room, wanted, Kind::Data)?;
        let found = self.search(goal, least, given, Purpose::Unrecorded);
        let length = found.map_or(0, |extent| extent.length);
        self.ledger().put_back(given - length);
        found
    }

    /// Takes the entry of a piece, which is in no index any more, off its group's list.
    fn unlist(&self, piece: &Piece) {
        // Its group is that of its first block, which a piece never loses.
        let (group, range) = self.range(piece.extent).expect("blocks of a group");
        let mut state = self.table().lock(group);
        state.preallocated.remove(&(range.from, piece.id));
    }

    /// Gives up a piece that was taken out of its index.
    fn discard_piece(&self, piece: &Piece) -> u64 {
        self.unlist(piece);
        for extent in piece.unused() {
            self.unset_aside(extent);
        }
        piece.free()
    }
}
