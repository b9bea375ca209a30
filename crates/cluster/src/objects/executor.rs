//! The thread `holdfast-bucket`, which makes all requests to the bucket.

use holdfast_core::interrupt::{self, is_interrupted};
use std::future::Future;
use std::io;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::{self, JoinHandle};
use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

/// Threads that read and write the files of a folder.
const FILE_THREADS: usize = 8;

pub(super) struct Executor {
    handle: Handle,
    /// Dropped to end the thread.
    end: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Executor {
    pub(super) fn start() -> io::Result<Self> {
        let runtime = Builder::new_current_thread()
            .enable_all()
            .max_blocking_threads(FILE_THREADS)
            .thread_name("holdfast-file")
            .build()?;
        let handle = runtime.handle().clone();
        let (end, ended) = oneshot::channel::<()>();
        let thread = thread::Builder::new().name("holdfast-bucket".into());
        let thread = thread.spawn(move || {
            // It ends when the sender is dropped, which is the error of this future.
            let _ = runtime.block_on(ended);
            runtime.shutdown_background();
        })?;
        Ok(Self {
            handle,
            end: Some(end),
            thread: Some(thread),
        })
    }

    /// Waits for a future that runs on the thread. `None`: it panicked, or the caller was ended; it
    /// goes on then.
    pub(super) fn run<T: Send + 'static>(
        &self,
        future: impl Future<Output = T> + Send + 'static,
    ) -> Option<T> {
        let (sender, receiver) = mpsc::sync_channel(1);
        self.handle.spawn(async move {
            // The receiver waits below, or is not interested any more.
            let _ = sender.send(future.await);
        });
        loop {
            match receiver.recv_timeout(interrupt::POLL) {
                Ok(answer) => return Some(answer),
                Err(RecvTimeoutError::Timeout) if !is_interrupted() => {}
                Err(_) => return None,
            }
        }
    }
}

impl Drop for Executor {
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(thread) = self.thread.take() {
            // A panic of the thread was reported by the panic itself.
            let _ = thread.join();
        }
    }
}
