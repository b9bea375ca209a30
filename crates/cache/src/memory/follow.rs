//! The thread that follows how much memory a process takes.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::feedback::Feedback;
use super::resident::Resident;
use super::{Followed, Memory};

/// What a mount takes at least, unless it is told otherwise.
const LEAST: u64 = 64 << 20;
/// So often the thread looks while anything moves.
const TICK: Duration = Duration::from_millis(100);
/// So many looks that find nothing moved it makes before it sleeps.
const QUIET: u32 = 20;

/// The thread that follows; it ends with this.
#[derive(Debug)]
pub struct Follower {
    memory: Arc<Memory>,
    thread: Option<JoinHandle<()>>,
}

impl Memory {
    /// Follows what is resident of this process, which holds nothing but file systems that use this memory: the budget
    /// is that of the process from now on, and 64 MiB at least unless it was told. `trim` has the
    /// allocator return what it keeps.
    ///
    /// # Errors
    /// There is no `/proc`, or no thread to be had.
    pub fn follow(self: &Arc<Self>, trim: fn()) -> io::Result<Follower> {
        {
            let mut state = self.state.lock();
            state.least = LEAST;
            state.asked = None;
            state.followed = Some(Followed {
                resident: Resident::open()?,
                feedback: Feedback::default(),
                trim,
                trimmed: None,
            });
        }
        self.look();
        let memory = Arc::clone(self);
        let thread = thread::Builder::new()
            .name("holdfast-reclaim".to_owned())
            .spawn(move || while memory.wait_for_moves() && memory.follow_moves() {})?;
        Ok(Follower {
            memory: Arc::clone(self),
            thread: Some(thread),
        })
    }

    /// Sleeps until something is added; false: the thread ends.
    fn wait_for_moves(&self) -> bool {
        let mut bell = self.bell.lock();
        self.asleep.store(true, Relaxed);
        // What was added in this moment is found by the next addition.
        while !bell.rung && !bell.stop && !self.moved.load(Relaxed) {
            self.rung.wait(&mut bell);
        }
        self.asleep.store(false, Relaxed);
        bell.rung = false;
        !bell.stop
    }

    /// Looks until nothing moves; false: the thread ends.
    fn follow_moves(&self) -> bool {
        let mut quiet = 0;
        while quiet < QUIET {
            quiet = match self.moved.swap(false, Relaxed) {
                true => 0,
                false => quiet + 1,
            };
            self.look();
            // That is no news.
            self.moved.store(false, Relaxed);
            self.shrinkers.relieve();
            let mut bell = self.bell.lock();
            if !bell.stop {
                self.rung.wait_for(&mut bell, TICK);
            }
            if bell.stop {
                return false;
            }
        }
        true
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.memory.bell.lock().stop = true;
        self.memory.rung.notify_all();
        if let Some(thread) = self.thread.take() {
            // A panic was told of when it happened.
            let _ = thread.join();
        }
        self.memory.bell.lock().stop = false;
        self.memory.state.lock().followed = None;
    }
}
