//! SIGINT and SIGTERM: unmount, or say who is in the way. Others end the process, and lose nothing by that.
//!
//! The first SIGINT or SIGTERM unmounts if nobody uses the mount, or else says who does and serves on. The
//! second detaches it, to end with its last user. The third ends the process, as other signals do: what was
//! changed is handed to the host first.

use super::{last_words, refusal::umount_failure};
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

/// How long a busy mount is tried again: programs come and go, and one of them is no reason to
/// stay.
const PATIENCE: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_millis(20);

/// What a process gets that is ended by a signal it does not mind.
const KILLED: i32 = 1;
/// What a shell adds to the number of a signal.
const OF_SIGNAL: i32 = 128;

const UNMOUNT: [c_int; 2] = [SIGINT, SIGTERM];
/// A terminal that hangs up is no reason to end, nor is a limit of the shell's: a file that may not grow is told by its write. SIGPIPE is ignored by every
/// Rust program.
const IGNORED: [c_int; 3] = [SIGHUP, SIGXFSZ, SIGXCPU];
/// Those that end a process that does not mind them, unless it is broken: code can run before that.
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

/// The signals, from now on caught.
pub(super) struct Caught {
    signals: Signals,
}

/// The thread that acts on them.
pub(super) struct Watch {
    handle: Handle,
    thread: JoinHandle<()>,
}

impl Caught {
    /// Catches them. One that comes before there is a mount waits for it.
    pub(super) fn begin() -> io::Result<Self> {
        let all = UNMOUNT.iter().chain(&IGNORED).chain(&ENDING);
        Ok(Self {
            signals: Signals::new(all)?,
        })
    }

    /// Acts on them for this session, and the volume that is mounted, if it is one.
    pub(super) fn watch(
        mut self,
        session: Arc<Session>,
        store: Option<Arc<VolumeStore>>,
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
                            (true, 1) => unmount_or_tell(&session),
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
    /// The session is over.
    pub(super) fn end(self) {
        self.handle.close();
        // It runs no code of others that could panic.
        let _ = self.thread.join();
    }
}

/// Ends the process.
fn end(signal: c_int, signals: &mut Signals, store: Option<&Arc<VolumeStore>>) {
    let name = low_level::signal_name(signal).unwrap_or("a signal");
    tracing::error!("{name}: the daemon ends, and nothing serves the mount");
    let mut hurry = || signals.pending().any(|other| !IGNORED.contains(&other));
    last_words::hand_over(store, &mut hurry);
    if UNMOUNT.contains(&signal) {
        std::process::exit(KILLED);
    }
    // As if it had not been caught; it does not know all that end a process.
    let _ = low_level::emulate_default_handler(signal);
    std::process::exit(OF_SIGNAL + signal);
}

fn unmount_or_tell(session: &Session) {
    let begun = Instant::now();
    loop {
        match session.unmount(UmountFlags::default()) {
            Ok(()) => return,
            Err(UmountError::Busy { .. }) if begun.elapsed() < PATIENCE => thread::sleep(PAUSE),
            Err(error @ UmountError::Busy { .. }) => {
                return umount_failure(&error)
                    .hint("end them and signal again, or signal again to detach the mount")
                    .print();
            }
            Err(error) => return umount_failure(&error).print(),
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
