//! A daemon that cannot start another thread: it serves with those it has, and no caller hangs.
//!
//! The limit of memory is the process's, so each test is a process of its own: the test starts
//! itself, and the child mounts, takes the limit and reports.

use super::{eventually, read_directly, toy::Toy};
use crate::support::config;
use holdfast_fuse::{Session, TransportChoice};
use rustix::{
    fs::{FlockOperation, flock},
    mount::UnmountFlags,
    process::{Resource, Rlimit, getrlimit, setrlimit},
};
use std::{
    env,
    fs::{self, File},
    path::Path,
    process::{Child, Command, Stdio},
    thread,
    time::Duration,
};

const DIR: &str = "HOLDFAST_TEST_DIR";
const TRANSPORT: &str = "HOLDFAST_TEST_TRANSPORT";

/// Where the two sides tell each other something past the mount.
const NOTES: &str = "HOLDFAST_TEST_NOTES";
/// The child has mounted, and has its limit.
const READY: &str = "ready";
/// Reads need not wait any more.
const GO: &str = "go";

/// The child: serves until it is unmounted, without memory for a single thread more.
#[test]
fn child() {
    let (Ok(dir), Ok(transport), Ok(notes)) = (env::var(DIR), env::var(TRANSPORT), env::var(NOTES))
    else {
        return;
    };
    let notes = Path::new(&notes);
    let transport = match transport.as_str() {
        "uring" => TransportChoice::Uring,
        _ => TransportChoice::Dev,
    };
    let toy = Toy::new();
    let session =
        Session::mount(toy.clone(), Path::new(&dir), &config(transport).unwrap()).unwrap();
    eventually("threads are not all started", all_others_sleep);
    let pages = fs::read_to_string("/proc/self/statm").unwrap();
    let pages: u64 = pages.split(' ').next().unwrap().parse().unwrap();
    let limit = Rlimit {
        // Less than a thread's stack or a frame takes, enough for small things.
        current: Some(pages * 4096 + (512 << 10)),
        maximum: getrlimit(Resource::As).maximum,
    };
    setrlimit(Resource::As, limit).unwrap();
    assert!(
        thread::Builder::new().spawn(|| ()).is_err(),
        "there is memory for a thread"
    );
    fs::write(notes.join(READY), b"").unwrap();
    while !session.is_over() {
        if notes.join(GO).exists() {
            toy.let_go();
        }
        thread::sleep(Duration::from_millis(5));
    }
    session.wait();
    assert_eq!(session.failure(), None);
}

/// Has every other thread come to where it waits? One that is only starting maps memory for its
/// signal stack, and the standard library ends the process if it gets none.
fn all_others_sleep() -> bool {
    let own = rustix::thread::gettid().as_raw_nonzero().to_string();
    let sleeps = || {
        fs::read_dir("/proc/self/task").unwrap().all(|task| {
            let task = task.unwrap();
            let stat = fs::read_to_string(task.path().join("stat")).unwrap_or_default();
            let state = stat
                .rsplit(") ")
                .next()
                .and_then(|rest| rest.chars().next());
            task.file_name() == *own || state == Some('S')
        })
    };
    // Twice: one that waited for another's lock on its way is seen the second time.
    sleeps() && {
        thread::sleep(Duration::from_millis(50));
        sleeps()
    }
}

struct Daemon {
    child: Child,
    dir: tempfile::TempDir,
    notes: tempfile::TempDir,
}

impl Daemon {
    fn start(transport: &str) -> Option<Self> {
        let choice = match transport {
            "uring" => TransportChoice::Uring,
            _ => TransportChoice::Dev,
        };
        config(choice)?;
        let (dir, notes) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let child = Command::new(env::current_exe().unwrap())
            .args(["--exact", "transports::scarce::child", "--nocapture"])
            .env(DIR, dir.path())
            .env(TRANSPORT, transport)
            .env(NOTES, notes.path())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let daemon = Self { child, dir, notes };
        let ready = daemon.notes.path().join(READY);
        eventually("the daemon has not started", || ready.exists());
        Some(daemon)
    }

    fn let_go(&self) {
        fs::write(self.notes.path().join(GO), b"").unwrap();
    }

    fn end(mut self) {
        // Another test of this process may be starting a program, which has copies of all open
        // files until it runs: so "busy" is asked again.
        eventually("the mount stays busy", || {
            let umount = Command::new("umount").arg(self.dir.path()).status();
            umount.unwrap().success()
        });
        assert!(self.child.wait().unwrap().success());
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // After a test that failed; else there is neither any more.
        let _ = self.child.kill();
        let _ = self.child.wait();
        let how = UnmountFlags::DETACH | UnmountFlags::FORCE;
        let _ = rustix::mount::unmount(self.dir.path(), how);
    }
}

#[test]
fn without_memory_for_a_thread_requests_wait_for_those_there_are_and_all_are_answered() {
    for transport in ["dev", "uring"] {
        let Some(daemon) = Daemon::start(transport) else {
            continue;
        };
        let path = daemon.dir.path().join("slow-file");
        fs::write(&path, b"slowly").unwrap();
        // Announced and not, they take every thread there is, and more.
        let readers: Vec<_> = (0..32)
            .map(|_| {
                let path = path.clone();
                thread::spawn(move || read_directly(&path))
            })
            .collect();
        thread::sleep(Duration::from_millis(200));
        daemon.let_go();
        for reader in readers {
            assert_eq!(reader.join().unwrap().unwrap(), b"slowly");
        }
        daemon.end();
    }
}

#[test]
fn a_lock_that_would_keep_its_own_unlock_out_is_refused() {
    for transport in ["dev", "uring"] {
        let Some(daemon) = Daemon::start(transport) else {
            continue;
        };
        let path = daemon.dir.path().join("locked");
        let holder = File::create(&path).unwrap();
        flock(&holder, FlockOperation::LockExclusive).unwrap();
        let waiters: Vec<_> = (0..16)
            .map(|_| {
                let path = path.clone();
                thread::spawn(move || {
                    let file = File::open(path).unwrap();
                    flock(&file, FlockOperation::LockExclusive)?;
                    flock(&file, FlockOperation::Unlock)
                })
            })
            .collect();
        eventually("nobody is refused", || {
            waiters.iter().any(thread::JoinHandle::is_finished)
        });
        // The unlock gets in.
        flock(&holder, FlockOperation::Unlock).unwrap();
        for waiter in waiters {
            let locked = waiter.join().unwrap();
            assert!(
                matches!(locked, Ok(()) | Err(rustix::io::Errno::NOLCK)),
                "{locked:?}"
            );
        }
        drop(holder);
        daemon.end();
    }
}
