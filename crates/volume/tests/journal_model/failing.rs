//! A commit takes the dirty pages, and then fails, as a volume's commit does at a data write.
//!
//! Not modelled: a commit that panics, since loom's locks are poisoned by code that runs while a
//! thread unwinds.

use super::World;
use super::journal::{Error, Mode, Result};
use holdfast_core::store::Change;
use holdfast_types::Ino;
use loom::sync::Mutex;
use loom::thread;
use std::sync::Arc;

/// A volume, as far as a commit is concerned.
struct Volume {
    world: Arc<World>,
    state: Mutex<State>,
}

/// *Invariant.* A page is dirty, is written, or was taken by a commit that stopped the volume.
#[derive(Default)]
struct State {
    waits: Vec<usize>,
    written: Vec<usize>,
    has_failed: bool,
    stopped: bool,
    /// Did a commit begin after the one that stopped it?
    went_on: bool,
}

impl Volume {
    fn state<R>(&self, look: impl FnOnce(&mut State) -> R) -> R {
        look(&mut self.state.lock().expect("not poisoned"))
    }

    /// Writes a page and syncs it; did that succeed?
    fn write_and_fsync(&self, page: usize) -> bool {
        self.state(|state| state.waits.push(page));
        let size = page as u64;
        let batch = [Change::Truncate { ino: Ino(1), size }];
        // Refused after a failure.
        let Ok(lsn) = self.world.journal.append(1, &batch) else {
            return false;
        };
        match self.world.journal.turn(lsn) {
            Some(_turn) => self.commit(Mode::Flushed).is_ok(),
            None => true,
        }
    }

    /// A failure stops the volume before another group can begin.
    fn commit(&self, wanted: Mode) -> Result<()> {
        let mut group = self.world.journal.begin_group(wanted)?;
        group.cut();
        let fails = self.state(|state| {
            // To be asserted when no lock is held.
            state.went_on |= state.stopped;
            let taken = std::mem::take(&mut state.waits);
            let fails = !taken.is_empty() && !std::mem::replace(&mut state.has_failed, true);
            if !fails {
                state.written.extend(taken);
            }
            fails
        });
        if fails {
            self.state(|state| state.stopped = true);
            return Err(Error::Full);
        }
        group.write()?;
        if group.flush()? {
            group.mark()?;
        }
        Ok(())
    }
}

/// One thread writes a page and writes it out, another writes one and syncs it. The one that takes
/// pages first fails.
pub(super) fn beside_an_error_of_a_write() {
    let volume = Arc::new(Volume {
        world: World::cached(),
        state: Mutex::default(),
    });
    let other = {
        let volume = Arc::clone(&volume);
        thread::spawn(move || {
            volume.state(|state| state.waits.push(1));
            // It may find that the commit has failed.
            let _ = volume.commit(Mode::Written);
        })
    };
    let promised = volume.write_and_fsync(0);
    other.join().expect("no panic");
    volume.state(|state| {
        assert!(!state.went_on, "a commit behind one that failed");
        assert!(!promised || state.written.contains(&0), "page 0 is lost");
        assert!(state.stopped);
    });
}

/// Two threads write a page and sync it; the first commit that takes pages fails.
pub(super) fn beside_an_error() {
    let volume = Arc::new(Volume {
        world: World::new(),
        state: Mutex::default(),
    });
    let other = {
        let volume = Arc::clone(&volume);
        thread::spawn(move || volume.write_and_fsync(1))
    };
    let promised = volume.write_and_fsync(0);
    let promised = [promised, other.join().expect("no panic")];
    volume.state(|state| {
        assert!(!state.went_on, "a commit behind one that failed");
        for (page, promised) in promised.iter().enumerate() {
            assert!(
                !promised || state.written.contains(&page),
                "page {page} is lost"
            );
        }
        assert!(state.stopped && !promised.iter().all(|promised| *promised));
    });
}
