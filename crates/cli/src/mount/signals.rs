//! SIGINT and SIGTERM: unmount, or say who is in the way.
//!
//! The first signal unmounts if nobody uses the mount, or else says who does and serves on. The
//! second detaches it, to end with its last user. The third ends the process at once.

use super::refusal::umount_failure;
use holdfast_fuse::{
    Session,
    mount::{UmountError, UmountFlags},
};
use signal_hook::{
    consts::{SIGHUP, SIGINT, SIGTERM},
    iterator::{Handle, Signals},
};
use std::{
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
    ///
    /// A terminal that hangs up is no reason to end: SIGHUP is caught and ignored. SIGPIPE is
    /// ignored by every Rust program.
    pub(super) fn begin() -> io::Result<Self> {
        Ok(Self {
            signals: Signals::new([SIGINT, SIGTERM, SIGHUP])?,
        })
    }

    /// Acts on them for this session.
    pub(super) fn watch(mut self, session: Arc<Session>) -> io::Result<Watch> {
        let handle = self.signals.handle();
        let thread = thread::Builder::new()
            .name("holdfast-signal".into())
            .spawn(move || {
                let mut count = 0;
                for signal in self.signals.forever() {
                    if signal == SIGHUP {
                        continue;
                    }
                    count += 1;
                    match count {
                        1 => unmount_or_tell(&session),
                        2 => detach(&session),
                        _ => std::process::exit(KILLED),
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
