//! The daemon's side: jobs of a mount, each on a thread of its own, with the rights of the process
//! that asked.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use holdfast::FileSystem;
use holdfast::engine::FileSystem as Core;
use holdfast::types::Caller;
use holdfast_fuse::Notifier;
use parking_lot::{Condvar, Mutex};

use super::job::{Event, Order};
use super::run::run;
use super::socket::{Listener, Socket};

/// How long the client may take to connect, and to send its job.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Most jobs at a time: each is a thread.
const JOBS_MAX: usize = 32;

/// The jobs of a mount.
#[derive(Debug)]
pub(crate) struct Jobs {
    core: Core,
    /// Invalidates the kernel's caches; set once the mount is live.
    notifier: Mutex<Option<Notifier>>,
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    /// Guards the stop flags of the running jobs.
    running: Mutex<Vec<Arc<AtomicBool>>>,
    gone: Condvar,
}

impl Jobs {
    pub(crate) fn new(core: Core) -> Self {
        Self {
            core,
            notifier: Mutex::default(),
            shared: Arc::default(),
        }
    }

    /// The mount is live.
    pub(crate) fn attach(&self, notifier: Notifier) {
        *self.notifier.lock() = Some(notifier);
    }

    /// Starts a thread for one job of `caller`; gives the name of the socket for it.
    ///
    /// # Errors
    /// `WouldBlock` if too many jobs run; those of sockets and threads.
    pub(crate) fn announce(&self, caller: Caller) -> io::Result<Vec<u8>> {
        let listener = Listener::new()?;
        let name = listener.name().to_vec();
        let stop = Arc::new(AtomicBool::new(false));
        let mut running = self.shared.running.lock();
        if running.len() >= JOBS_MAX {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let end = End {
            shared: Arc::clone(&self.shared),
            stop: Arc::clone(&stop),
        };
        let (core, notifier) = (self.core.clone(), self.notifier.lock().clone());
        let work = move || {
            if let Err(error) = serve(core, notifier, caller, &listener, &end.stop) {
                tracing::warn!("a job was not done: {error}");
            }
        };
        let name_of_thread = "holdfast-job".to_owned();
        std::thread::Builder::new()
            .name(name_of_thread)
            .spawn(work)?;
        running.push(stop);
        Ok(name)
    }

    /// Stops all jobs and waits for their end.
    pub(crate) fn end(&self) {
        let mut running = self.shared.running.lock();
        while !running.is_empty() {
            for stop in &*running {
                stop.store(true, Ordering::Relaxed);
            }
            self.shared
                .gone
                .wait_for(&mut running, Duration::from_millis(100));
        }
    }
}

/// Removes a job from `Shared::running` when it ends, also by a panic.
struct End {
    shared: Arc<Shared>,
    stop: Arc<AtomicBool>,
}

impl Drop for End {
    fn drop(&mut self) {
        let mut running = self.shared.running.lock();
        running.retain(|other| !Arc::ptr_eq(other, &self.stop));
        self.shared.gone.notify_all();
    }
}

/// Waits for the client, and runs its job.
fn serve(
    core: Core,
    notifier: Option<Notifier>,
    caller: Caller,
    listener: &Listener,
    stop: &Arc<AtomicBool>,
) -> io::Result<()> {
    let Some(socket) = listener.accept(TIMEOUT)? else {
        return Ok(());
    };
    let (pid, uid) = socket.peer()?;
    // `caller.pid` is 0 for a process outside of this PID namespace.
    if uid != caller.uid || (caller.pid != 0 && !has_thread(pid, caller.pid)) {
        tracing::warn!(pid, uid, "a job came from another process than asked");
        return Ok(());
    }
    if !socket.wait(TIMEOUT)? {
        return Ok(());
    }
    let Some((order, archive)) = socket.receive()? else {
        return Ok(());
    };
    let Order { job, umask } = serde_json::from_slice(&order)?;
    let fs = FileSystem::from_core(core).as_user(caller.with_umask(umask));
    let event = run(&fs, &job, archive, stop, &mut |event| {
        // A client that has closed its socket stops the job.
        if send(&socket, &event).is_err() || has_left(&socket) {
            stop.store(true, Ordering::Relaxed);
        }
    });
    // The client must not see stale entries of the kernel's caches after the job.
    if let Some(notifier) = notifier {
        notifier.flush();
    }
    // The client may be gone.
    let _ = send(&socket, &event);
    Ok(())
}

/// Is `thread` one of the threads of this process? The kernel names the thread that sends a
/// request, but the process at the other end of a socket.
fn has_thread(process: u32, thread: u32) -> bool {
    process == thread || Path::new(&format!("/proc/{process}/task/{thread}")).exists()
}

fn send(socket: &Socket, event: &Event) -> io::Result<()> {
    socket.send(&serde_json::to_vec(event)?, None)
}

/// Is the client gone? It sends nothing after its order, so the socket is readable only at its end.
fn has_left(socket: &Socket) -> bool {
    socket.wait(Duration::ZERO).unwrap_or(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_known_by_any_of_its_threads() {
        let process = std::process::id();
        let other = || rustix::thread::gettid().as_raw_pid().cast_unsigned();
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                let thread = other();
                assert!(thread != process && has_thread(process, thread));
                assert!(!has_thread(1, thread));
            });
            thread.join().unwrap();
        });
        assert!(has_thread(process, process) && !has_thread(process, 1));
    }
}
