//! The thread that runs the connections of a session.

use std::future::Future;
use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;
use tokio::runtime::{Builder, Handle};
use tokio::sync::Notify;

/// The thread `holdfast-db`. It ends when this is dropped, with all connections.
pub(crate) struct Runtime {
    handle: Handle,
    stop: Arc<Notify>,
    thread: Option<JoinHandle<()>>,
}

impl Runtime {
    /// Starts the thread.
    ///
    /// # Errors
    /// The system has no thread or no event queue to give.
    pub(crate) fn start() -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let stop = Arc::new(Notify::new());
        let stopped = Arc::clone(&stop);
        let thread = std::thread::Builder::new()
            .name("holdfast-db".to_owned())
            .spawn(move || runtime.block_on(stopped.notified()))?;
        Ok(Self {
            handle,
            stop,
            thread: Some(thread),
        })
    }

    /// Waits for a future, on the calling thread.
    pub(crate) fn wait<F: Future>(&self, future: F) -> F::Output {
        self.handle.block_on(future)
    }

    /// Runs a future on the thread.
    pub(crate) fn spawn(&self, future: impl Future<Output = ()> + Send + 'static) {
        drop(self.handle.spawn(future));
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        self.stop.notify_one();
        if let Some(thread) = self.thread.take() {
            // A panic there was reported by the panic hook, and there is nobody to pass it to.
            let _ = thread.join();
        }
    }
}
