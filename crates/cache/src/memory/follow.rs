//! The thread that follows how much memory a process takes.

use std::io;
use std::sync::Arc;
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
pub struct ReclaimThread {
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
    pub fn follow(self: &Arc<Self>, trim: fn()) -> io::Result<ReclaimThread> {
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
            .spawn(move || while memory.wakeup.sleep() && memory.follow_moves() {})?;
        Ok(ReclaimThread {
            memory: Arc::clone(self),
            thread: Some(thread),
        })
    }

    /// Looks until nothing moves; false: the thread ends.
    fn follow_moves(&self) -> bool {
        let mut quiet = 0;
        while quiet < QUIET {
            quiet = match self.wakeup.take() {
                true => 0,
                false => quiet + 1,
            };
            self.look();
            // That is no news.
            self.wakeup.take();
            self.shrinkers.shrink();
            if !self.wakeup.pause(TICK) {
                return false;
            }
        }
        true
    }
}

impl Drop for ReclaimThread {
    fn drop(&mut self) {
        self.memory.wakeup.stop();
        if let Some(thread) = self.thread.take() {
            // A panic was told of when it happened.
            let _ = thread.join();
        }
        self.memory.wakeup.restart();
        self.memory.state.lock().followed = None;
    }
}
