//! What tests need to mount something.

use holdfast_fuse::{Config, Session, TransportChoice, mount::UmountError};
use std::{path::Path, thread, time::Duration};

/// A configuration for the transport, or none, with a word why, if it cannot be had.
pub(crate) fn config(transport: TransportChoice) -> Option<Config> {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: mounting takes root here");
        return None;
    }
    if !Path::new("/dev/fuse").exists() {
        eprintln!("skipped: there is no /dev/fuse");
        return None;
    }
    if transport == TransportChoice::Uring {
        let switch = "/sys/module/fuse/parameters/enable_uring";
        if std::fs::write(switch, "Y").is_err() {
            eprintln!("skipped: this kernel has no FUSE over io_uring");
            return None;
        }
    }
    Some(Config {
        transport,
        ..Config::default()
    })
}

/// Unmounts. Other tests of this process start children, which hold its files for the moment
/// between fork and exec: a mount that is busy gets a little time.
pub(crate) fn unmount(session: &Session) {
    for _ in 0..100 {
        match session.unmount(Default::default()) {
            Err(UmountError::Busy { .. }) => thread::sleep(Duration::from_millis(20)),
            result => return result.unwrap(),
        }
    }
    panic!("the mount stays busy");
}
