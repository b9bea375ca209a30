//! The daemon's side: jobs of a mount, each on a thread of its own, with the rights of the process that asks.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use holdfast::FileSystem;
use holdfast::core::FileSystem as Core;
use holdfast::types::Caller;
use holdfast_fuse::Notifier;
use parking_lot::{Condvar, Mutex};

use super::job::{Order, Told};
use super::run::run;
use super::socket::{Listener, Socket};

/// How long a job may take to come after it was announced.
const PATIENCE: Duration = Duration::from_secs(10);
/// Jobs at a time, at most: each is a thread.
const JOBS_MAX: usize = 32;

/// The jobs of a mount.
#[derive(Debug)]
pub(crate) struct Jobs {
    core: Core,
    /// What tells the kernel that its caches are out of date, once the mount is live.
    notifier: Mutex<Option<Notifier>>,
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    /// Guards the jobs under way: what stops each.
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

    /// Makes ready for a job of a process; gives the name of the socket that it is to come by.
    ///
    /// # Errors
    /// `WouldBlock` where too many are under way; those of sockets and threads.
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

    /// Stops all jobs, and waits until they have stopped.
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

/// A job's end, however it comes.
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

/// Waits for the process that asked, and does its job.
fn serve(
    core: Core,
    notifier: Option<Notifier>,
    caller: Caller,
    listener: &Listener,
    stop: &Arc<AtomicBool>,
) -> io::Result<()> {
    let Some(socket) = listener.accept(PATIENCE)? else {
        return Ok(());
    };
    let (pid, uid) = socket.peer()?;
    // A process that this one's namespace does not know has no number here.
    if uid != caller.uid || (caller.pid != 0 && pid != caller.pid) {
        tracing::warn!(pid, uid, "a job came from another process than asked");
        return Ok(());
    }
    if !socket.wait(PATIENCE)? {
        return Ok(());
    }
    let Some((order, archive)) = socket.receive()? else {
        return Ok(());
    };
    let Order { job, umask } = serde_json::from_slice(&order)?;
    let fs = FileSystem::from_core(core).as_user(caller.with_umask(umask));
    let told = run(&fs, &job, archive, stop, &mut |told| {
        // A command that does not listen any more has stopped the job.
        if send(&socket, &told).is_err() || has_left(&socket) {
            stop.store(true, Ordering::Relaxed);
        }
    });
    // The caller's next look is not to find what was there before.
    if let Some(notifier) = notifier {
        notifier.flush();
    }
    // It may have left, and does not want to know then.
    let _ = send(&socket, &told);
    Ok(())
}

fn send(socket: &Socket, told: &Told) -> io::Result<()> {
    socket.send(&serde_json::to_vec(told)?, None)
}

/// Is the other end gone? It sends nothing more, so there is something only then.
fn has_left(socket: &Socket) -> bool {
    socket.wait(Duration::ZERO).unwrap_or(true)
}
