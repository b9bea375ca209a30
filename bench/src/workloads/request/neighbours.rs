//! Threads that keep processors busy beside what is measured, wherever the kernel lets them.

use std::hint;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::{io, thread};

/// So many of them, until it is dropped.
pub(super) struct Neighbours {
    over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Neighbours {
    /// Starts them.
    ///
    /// # Errors
    /// If a thread cannot be started.
    pub(super) fn start(count: usize) -> io::Result<Self> {
        let mut neighbours = Self {
            over: Arc::default(),
            threads: Vec::new(),
        };
        for _ in 0..count {
            let over = Arc::clone(&neighbours.over);
            let spin = move || {
                while !over.load(Ordering::Relaxed) {
                    hint::spin_loop();
                }
            };
            let thread = thread::Builder::new().name("neighbour".to_owned());
            neighbours.threads.push(thread.spawn(spin)?);
        }
        Ok(neighbours)
    }
}

impl Drop for Neighbours {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // It has no way to panic.
            let _ = thread.join();
        }
    }
}
