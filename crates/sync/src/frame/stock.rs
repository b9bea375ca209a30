//! Memory for frames that was touched before anybody needs it.
//!
//! Who touches memory first waits until the kernel has found and cleared it, and below a virtual machine until
//! the host has: a writer who fills files may wait half of his time. While there is a [`Supplier`], its thread
//! does that beside the writers. As much is kept in stock as they took lately, within bounds, and nothing after a
//! second in which nobody took any.
//!
//! *Locking.* A shelf's lock and the bell's are leaves, and never held together.
#![expect(unsafe_code, reason = "memory without an owner")]

use super::block::{Block, CLASSES};
use crate::service::Service;
use parking_lot::{Condvar, Mutex};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Classes of which there is a stock, the largest ones.
pub(super) const STOCKED: usize = 3;

/// Bytes on a shelf, at most.
const SHELF_MAX: usize = 16 << 20;
/// Blocks on a shelf at first.
const SHELF_MIN: usize = 64;
/// Blocks that come onto a shelf, or leave it, together.
pub(super) const BATCH: usize = 16;
/// After so long without a customer a shelf is cleared.
const IDLE: Duration = Duration::from_secs(1);

/// The blocks of one class.
struct Shelf {
    class: usize,
    blocks: Vec<NonNull<u8>>,
    /// How many there should be.
    target: usize,
    /// Did anybody come lately?
    asked: bool,
}

// SAFETY: memory that nobody else knows of.
unsafe impl Send for Shelf {}

static SHELVES: [Mutex<Shelf>; STOCKED] = [
    Mutex::new(Shelf::new(CLASSES - 3)),
    Mutex::new(Shelf::new(CLASSES - 2)),
    Mutex::new(Shelf::new(CLASSES - 1)),
];

/// Is there a supplier?
static SUPPLIED: AtomicBool = AtomicBool::new(false);

/// What suppliers and customers say to the thread.
struct Bell {
    rung: bool,
    service: Service,
}

static BELL: Mutex<Bell> = Mutex::new(Bell {
    rung: false,
    service: Service::new(),
});
static RUNG: Condvar = Condvar::new();

impl Shelf {
    const fn new(class: usize) -> Self {
        Self {
            class,
            blocks: Vec::new(),
            target: SHELF_MIN,
            asked: false,
        }
    }

    fn target_max(&self) -> usize {
        SHELF_MAX / Block::of_class(self.class)
    }

    /// Takes some; true if there should be more then.
    fn take(&mut self, mut to: impl FnMut(NonNull<u8>)) -> bool {
        self.asked = true;
        if self.blocks.len() < BATCH {
            self.target = (2 * self.target).min(self.target_max());
        }
        let left = self.blocks.len().saturating_sub(BATCH);
        self.blocks.drain(left..).for_each(&mut to);
        left <= self.target / 2
    }

    /// Clears it.
    fn clear(&mut self) {
        self.target = SHELF_MIN;
        for start in std::mem::take(&mut self.blocks) {
            // SAFETY: allocated by `fill` in this class, and given to nobody.
            unsafe { Block::at(start, self.class).deallocate() };
        }
    }
}

/// Hands out some blocks of the stocked class with this number, if there are any.
pub(super) fn take(stocked: usize, to: impl FnMut(NonNull<u8>)) {
    // Relaxed: nothing depends on it; shelves without a supplier are empty.
    if !SUPPLIED.load(Ordering::Relaxed) {
        return;
    }
    let low = SHELVES[stocked].lock().take(to);
    if low {
        let mut bell = BELL.lock();
        if !bell.rung {
            bell.rung = true;
            RUNG.notify_all();
        }
    }
}

/// Fills a shelf as far as it should be; `go_on` is asked now and then.
fn fill(shelf: &Mutex<Shelf>, go_on: impl Fn() -> bool) {
    let (class, mut there, mut target) = {
        let shelf = shelf.lock();
        (shelf.class, shelf.blocks.len(), shelf.target)
    };
    while there < target && go_on() {
        let batch: [NonNull<u8>; BATCH] = std::array::from_fn(|_| {
            let block = Block::allocate(class);
            // SAFETY: the block's first byte, which nobody else knows of yet.
            unsafe { block.start.write_volatile(0) };
            block.start
        });
        let mut shelf = shelf.lock();
        shelf.blocks.extend(batch);
        (there, target) = (shelf.blocks.len(), shelf.target);
    }
}

/// Serves as long as it is this thread's turn.
fn serve(turn: u64) {
    let mine = |bell: &Bell| bell.service.is_turn(turn);
    loop {
        let stocked = SHELVES.iter().any(|it| !it.lock().blocks.is_empty());
        let mut bell = BELL.lock();
        while !bell.rung && mine(&bell) {
            if !stocked {
                RUNG.wait(&mut bell);
            } else if RUNG.wait_for(&mut bell, IDLE).timed_out() {
                break;
            }
        }
        if !mine(&bell) {
            return;
        }
        let rung = std::mem::take(&mut bell.rung);
        drop(bell);
        for shelf in &SHELVES {
            if rung {
                fill(shelf, || mine(&BELL.lock()));
                continue;
            }
            let mut shelf = shelf.lock();
            if !std::mem::take(&mut shelf.asked) {
                shelf.clear();
            }
        }
    }
}

/// While one of these lives, a thread keeps memory for frames in stock, the same for all of the process.
#[derive(Debug)]
pub struct Supplier(());

impl Supplier {
    /// Sees to it that there is a thread. (If there can be none, everybody finds memory himself, as always.)
    #[must_use]
    pub fn start() -> Self {
        let mut bell = BELL.lock();
        if bell.service.enter() {
            bell.service.start("holdfast-memory", serve);
            SUPPLIED.store(bell.service.is_served(), Ordering::Relaxed);
        }
        Self(())
    }
}

impl Drop for Supplier {
    fn drop(&mut self) {
        let farewell = {
            let mut bell = BELL.lock();
            let Some(farewell) = bell.service.leave() else {
                return;
            };
            SUPPLIED.store(false, Ordering::Relaxed);
            RUNG.notify_all();
            farewell
        };
        farewell.wait();
        if !SUPPLIED.load(Ordering::Relaxed) {
            SHELVES.iter().for_each(|shelf| shelf.lock().clear());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shelf(blocks: usize) -> Shelf {
        let class = CLASSES - 1;
        let blocks = (0..blocks).map(|_| Block::allocate(class).start).collect();
        Shelf {
            blocks,
            ..Shelf::new(class)
        }
    }

    fn taken(shelf: &mut Shelf) -> (usize, bool) {
        let (mut blocks, class) = (Vec::new(), shelf.class);
        let low = shelf.take(|start| blocks.push(start));
        let count = blocks.len();
        for start in blocks {
            // SAFETY: just taken from the shelf, which had allocated it.
            unsafe { Block::at(start, class).deallocate() };
        }
        (count, low)
    }

    #[test]
    fn a_shelf_that_runs_out_grows_up_to_its_bound_and_shrinks_when_it_is_cleared() {
        let mut shelf = shelf(SHELF_MIN);
        assert_eq!(taken(&mut shelf), (BATCH, false));
        assert_eq!(taken(&mut shelf), (BATCH, true));
        assert_eq!(shelf.target, SHELF_MIN);
        while taken(&mut shelf).0 > 0 {}
        assert_eq!(shelf.target, 2 * SHELF_MIN);
        for _ in 0..30 {
            assert_eq!(taken(&mut shelf), (0, true));
        }
        assert_eq!(shelf.target, SHELF_MAX / super::super::FRAME_SIZE);
        shelf.clear();
        assert_eq!(shelf.target, SHELF_MIN);
    }

    #[test]
    fn while_there_is_a_supplier_there_comes_to_be_a_stock_and_without_one_there_is_none() {
        let suppliers = [Supplier::start(), Supplier::start()];
        let mut count = 0;
        while count < 2 * SHELF_MIN {
            take(0, |start| {
                count += 1;
                // SAFETY: just taken from the shelf of this class.
                unsafe { Block::at(start, CLASSES - STOCKED).deallocate() };
            });
            std::thread::yield_now();
        }
        drop(suppliers);
        let left: usize = SHELVES.iter().map(|it| it.lock().blocks.len()).sum();
        assert_eq!(left, 0);
        take(0, |_| unreachable!("nothing is left"));
    }
}
