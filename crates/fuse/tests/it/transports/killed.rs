//! A daemon that is killed while one of its own threads waits for its mount.
//!
//! The kernel waits for the answer to a request that a daemon has taken, regardless of signals. If
//! the caller is a thread that shares the daemon's memory or descriptors, the connection stays, and
//! no answer comes. The process then cannot end, and every caller of the mount hangs.

use super::{eventually, read_directly, toy::Toy};
use crate::support::config;
use holdfast_fuse::{Session, TransportChoice};
use rustix::mount::UnmountFlags;
use std::{
    env, fs,
    path::Path,
    process::{Child, Command, Stdio},
    thread,
    time::Duration,
};

const DIR: &str = "HOLDFAST_TEST_KILLED";
/// Where the child says that a thread of its own waits, past the mount.
const NOTE: &str = "HOLDFAST_TEST_KILLED_NOTE";

/// The child: serves, and does not answer when asked for its space, as its own threads do when a
/// queue grows.
#[test]
fn child() {
    let (Ok(dir), Ok(note)) = (env::var(DIR), env::var(NOTE)) else {
        return;
    };
    let toy = Toy::new();
    let config = config(TransportChoice::Uring).unwrap();
    let _session = Session::mount(toy.clone(), Path::new(&dir), &config).unwrap();
    toy.hold_space();
    while toy.asked_for_space() == 0 {
        thread::sleep(Duration::from_millis(1));
    }
    fs::write(note, b"").unwrap();
    // Until it is killed.
    thread::sleep(Duration::from_secs(300));
}

/// A daemon in a process of its own. Cuts its connection when dropped, so that a test that fails
/// leaves nothing that hangs.
struct Daemon(Child, tempfile::TempDir);

impl Drop for Daemon {
    fn drop(&mut self) {
        let how = UnmountFlags::DETACH | UnmountFlags::FORCE;
        let _ = rustix::mount::unmount(self.1.path(), how);
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_killed_daemon_whose_thread_waits_for_its_own_mount_is_gone_and_hangs_nobody() {
    if config(TransportChoice::Uring).is_none() {
        return;
    }
    let (dir, notes) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let note = notes.path().join("waits");
    let child = Command::new(env::current_exe().unwrap())
        .args(["--exact", "transports::killed::child"])
        .env(DIR, dir.path())
        .env(NOTE, &note)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let mut daemon = Daemon(child, dir);
    let path = daemon.1.path().join("held");
    // Without asking the mount for its space.
    eventually("it has not mounted", || {
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
        mounts.contains(path.parent().unwrap().to_str().unwrap())
    });
    fs::write(&path, b"content").unwrap();
    let readers: Vec<_> = (0..8)
        .map(|_| {
            let path = path.clone();
            thread::spawn(move || read_directly(&path))
        })
        .collect();
    eventually("no queue has grown", || note.exists());
    daemon.0.kill().unwrap();
    eventually("the killed daemon is still there", || {
        daemon.0.try_wait().unwrap().is_some()
    });
    eventually("a caller of its mount waits still", || {
        readers.iter().all(thread::JoinHandle::is_finished)
    });
    for reader in readers {
        reader.join().unwrap().unwrap_err();
    }
}
