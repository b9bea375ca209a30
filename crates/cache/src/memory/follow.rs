//! The thread that keeps a process within its memory budget.

use std::io;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::budget::Memory;

/// The least budget of a mount, unless one is set.
const LEAST: u64 = 64 << 20;
/// The interval of looks while memory is being added.
const TICK: Duration = Duration::from_millis(100);
/// After so many looks without an addition it sleeps.
const QUIET: u32 = 20;

/// The handle of the thread; dropping it ends the thread.
#[derive(Debug)]
pub struct ReclaimThread {
    memory: Arc<Memory>,
    thread: Option<JoinHandle<()>>,
}

impl Memory {
    /// Follows the resident memory of this process, which holds nothing but file systems that use
    /// this `Memory`. The budget is that of the whole process from now on, and at least 64 MiB
    /// unless one was set. `trim` makes the allocator return its free memory.
    ///
    /// # Errors
    /// There is no `/proc`, or no thread can be spawned.
    pub fn follow(self: &Arc<Self>, trim: fn()) -> io::Result<ReclaimThread> {
        self.measure(LEAST, trim)?;
        let memory = Arc::clone(self);
        let thread = thread::Builder::new()
            .name("holdfast-reclaim".to_owned())
            .spawn(move || while memory.wakeup.sleep() && memory.follow_moves() {})?;
        Ok(ReclaimThread {
            memory: Arc::clone(self),
            thread: Some(thread),
        })
    }

    /// Looks until nothing is added any more; `false` if the thread is to end.
    fn follow_moves(&self) -> bool {
        let mut quiet = 0;
        while quiet < QUIET {
            quiet = match self.wakeup.take() {
                true => 0,
                false => quiet + 1,
            };
            self.look();
            // What this thread's own look added does not count.
            self.wakeup.take();
            self.shrinkers().shrink();
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
            // The panic was reported when it happened.
            let _ = thread.join();
        }
        self.memory.wakeup.restart();
        self.memory.unfollow();
    }
}
