//! SIGINT and SIGTERM unmount. Other signals end the process after its changes are written.
//!
//! The first SIGINT or SIGTERM unmounts; if the mount is busy, it names the processes that use it,
//! and the daemon serves on. The second detaches the mount, which ends with its last user. The
//! third ends the process, as other signals do, after the changes are written to the host.
//!
//! After a forced unmount only open files keep the daemon, and nothing but closing works on them.
//! The first signal closes the volume then, and ends the process.

use super::{last_commit, opened::Ending, refusal::umount_failure};
use crate::log::ALWAYS;
use holdfast_fuse::{
    Session,
    mount::{UmountError, UmountFlags},
};
use holdfast_volume::VolumeStore;
use signal_hook::{
    consts::{
        SIGABRT, SIGALRM, SIGHUP, SIGINT, SIGIO, SIGPROF, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2,
        SIGVTALRM, SIGXCPU, SIGXFSZ,
    },
    iterator::{Handle, Signals},
    low_level,
};
use std::{
    ffi::c_int,
    io,
    sync::Arc,
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

/// How long unmounting a busy mount is retried: a short-lived user is no reason to stay.
const TIMEOUT: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_millis(20);

/// The exit code after the third SIGINT or SIGTERM.
const KILLED: i32 = 1;
/// Added to the number of a signal, as shells do.
const OF_SIGNAL: i32 = 128;

const UNMOUNT: [c_int; 2] = [SIGINT, SIGTERM];
/// Ignored: a hangup of the terminal, and limits of the shell. A write beyond a limit fails with an
/// error instead. (Every Rust program ignores SIGPIPE.)
const IGNORED: [c_int; 3] = [SIGHUP, SIGXFSZ, SIGXCPU];
/// Signals that end a process by default, and do not come from a fault of the process itself.
const ENDING: [c_int; 9] = [
    SIGQUIT,
    SIGABRT,
    SIGUSR1,
    SIGUSR2,
    SIGALRM,
    SIGVTALRM,
    SIGPROF,
    SIGIO,
    libc::SIGPWR,
];

/// The caught signals.
pub(super) struct Caught {
    signals: Signals,
}

/// The thread that acts on them.
pub(super) struct Watch {
    handle: Handle,
    thread: JoinHandle<()>,
}

impl Caught {
    /// Starts catching. A signal that comes before the mount is live is kept.
    pub(super) fn begin() -> io::Result<Self> {
        let all = UNMOUNT.iter().chain(&IGNORED).chain(&ENDING);
        Ok(Self {
            signals: Signals::new(all)?,
        })
    }

    /// Starts the thread that acts on signals, for this session and its volume, if any.
    pub(super) fn watch(
        mut self,
        session: Arc<Session>,
        store: Option<Arc<VolumeStore>>,
        ending: Arc<Ending>,
    ) -> io::Result<Watch> {
        let handle = self.signals.handle();
        let thread = thread::Builder::new()
            .name("holdfast-signal".into())
            .spawn(move || {
                let mut count = 0;
                while !self.signals.is_closed() {
                    let some: Vec<c_int> = self.signals.wait().collect();
                    for signal in some {
                        count += u32::from(UNMOUNT.contains(&signal));
                        match (UNMOUNT.contains(&signal), count) {
                            _ if IGNORED.contains(&signal) => {}
                            (true, 1) => unmount_or_tell(&session, &ending),
                            (true, 2) => detach(&session),
                            _ => end(signal, &mut self.signals, store.as_ref()),
                        }
                    }
                }
            })?;
        Ok(Watch { handle, thread })
    }
}

impl Watch {
    /// Ends the thread.
    pub(super) fn end(self) {
        self.handle.close();
        // The thread does not panic.
        let _ = self.thread.join();
    }
}

/// Ends the process.
fn end(signal: c_int, signals: &mut Signals, store: Option<&Arc<VolumeStore>>) {
    let name = low_level::signal_name(signal).unwrap_or("a signal");
    tracing::error!("{name}: the daemon ends, and nothing serves the mount");
    let mut hurry = || signals.pending().any(|other| !IGNORED.contains(&other));
    last_commit::last_commit(store, &mut hurry);
    if UNMOUNT.contains(&signal) {
        std::process::exit(KILLED);
    }
    // `emulate_default_handler` does not know all of [`ENDING`].
    let _ = low_level::emulate_default_handler(signal);
    std::process::exit(OF_SIGNAL + signal);
}

fn unmount_or_tell(session: &Session, ending: &Ending) {
    let begun = Instant::now();
    loop {
        match session.unmount(UmountFlags::default()) {
            Ok(()) => return,
            Err(UmountError::NotMounted { .. }) if session.is_revoked() => close_and_exit(ending),
            Err(UmountError::Busy { .. }) if begun.elapsed() < TIMEOUT => thread::sleep(PAUSE),
            Err(error @ UmountError::Busy { .. }) => {
                return umount_failure(&error)
                    .hint("end them and signal again, or signal again to detach the mount")
                    .print();
            }
            Err(error) => return umount_failure(&error).print(),
        }
    }
}

/// Ends the process with the files that are still open.
fn close_and_exit(ending: &Ending) -> ! {
    match ending.closed() {
        Ok(()) => std::process::exit(0),
        Err(failure) => {
            tracing::error!(target: ALWAYS, "the daemon ends: {failure}");
            std::process::exit(KILLED)
        }
    }
}

fn detach(session: &Session) {
    if let Err(error) = session.unmount(UmountFlags {
        lazy: true,
        force: false,
    }) {
        umount_failure(&error).print();
    }
}
