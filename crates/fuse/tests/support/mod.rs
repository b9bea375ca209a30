//! What tests need to mount something.

use holdfast_fuse::{Config, TransportChoice};
use std::path::Path;

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
