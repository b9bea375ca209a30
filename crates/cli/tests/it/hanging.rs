//! A directory of a host that does not answer any more, and a daemon that read the question and does not.

use crate::fixture::{Place, holdfast};
use holdfast::types::{Attr, Errno, FileType, Ino, Result, StatFs, Time};
use holdfast_fuse::{Config, Context, Operations, Session, TransportChoice, mount::UmountFlags};
use std::fs;
use std::process::{Command, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, mpsc};
use std::thread;
use std::time::Duration;

/// Bound of what is waited for.
const SOON: Duration = Duration::from_secs(60);
/// The name of which nothing is told.
const STUCK: &[u8] = b"stuck";

/// A host: an empty directory, in which a lookup of one name, and each making of a directory, waits until it is released.
#[derive(Default)]
struct Host {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    waiting: u32,
    released: bool,
    /// Does it not answer statfs(2) either?
    mute: bool,
}

impl Host {
    fn release(&self) {
        self.state.lock().unwrap().released = true;
        self.changed.notify_all();
    }

    fn hang(&self, mut state: MutexGuard<'_, State>) {
        state.waiting += 1;
        self.changed.notify_all();
        drop(self.changed.wait_while(state, |state| !state.released));
    }

    /// Waits until somebody does.
    fn is_asked(&self) -> bool {
        let state = self.state.lock().unwrap();
        let asked = |state: &mut State| state.waiting == 0;
        let waited = self.changed.wait_timeout_while(state, SOON, asked);
        waited.unwrap().0.waiting > 0
    }
}

impl Operations for Host {
    fn lookup(&self, _: &Context<'_>, _: Ino, name: &[u8]) -> Result<Attr> {
        if name == STUCK {
            let state = self.state.lock().unwrap();
            self.hang(state);
        }
        Err(Errno::ENOENT)
    }

    fn mkdir(&self, _: &Context<'_>, _: Ino, _: &[u8], _: u32) -> Result<Attr> {
        self.hang(self.state.lock().unwrap());
        Err(Errno::EIO)
    }

    fn statfs(&self, _: &Context<'_>, _: Ino) -> Result<StatFs> {
        let state = self.state.lock().unwrap();
        if state.mute {
            self.hang(state);
        }
        Err(Errno::ENOSYS)
    }

    fn getattr(&self, _: &Context<'_>, ino: Ino, _: Option<u64>) -> Result<Attr> {
        let time = Time::new(1_700_000_000, 0);
        Ok(Attr {
            ino,
            kind: FileType::Directory,
            perm: 0o755,
            nlink: 2,
            uid: 0,
            gid: 0,
            rdev: 0,
            size: 40,
            blocks: 0,
            atime: time,
            mtime: time,
            ctime: time,
            btime: time,
        })
    }
}

/// Lets it answer, whatever becomes of the test.
struct Released<'h>(&'h Host);

impl Drop for Released<'_> {
    fn drop(&mut self) {
        self.0.release();
    }
}

#[test]
fn a_forced_unmount_does_not_wait_for_a_host_that_hangs() {
    forced_unmount("ro", "stat", "stuck");
}

#[test]
fn a_forced_unmount_does_not_wait_for_a_change_that_hangs() {
    forced_unmount("rw", "mkdir", "made");
}

#[test]
fn unmounting_ends_though_the_daemon_does_not_answer_what_it_has_read() {
    let Some(place) = Place::with_mounts() else {
        return;
    };
    let (host, path) = (Arc::new(Host::default()), place.path("mnt"));
    fs::create_dir(&path).unwrap();
    let config = Config {
        transport: TransportChoice::Dev,
        ..Config::default()
    };
    let session = Session::mount(host.clone(), &path, &config).unwrap();
    let released = Released(&host);
    host.state.lock().unwrap().mute = true;
    let (sender, ended) = mpsc::channel();
    let mnt = place.mnt();
    thread::spawn(move || sender.send(holdfast(["umount", &mnt])));
    assert!(host.is_asked(), "nothing was asked");
    let told = ended.recv_timeout(SOON).expect("it waits").fails(1);
    assert!(told.contains("its daemon does not answer"), "{told}");
    assert!(place.is_mounted());
    drop(released);
    session
        .unmount(UmountFlags {
            lazy: true,
            force: true,
        })
        .unwrap();
}

/// What becomes of a mount of a host that does not answer this program.
fn forced_unmount(options: &str, program: &str, name: &str) {
    let Some(place) = Place::with_mounts() else {
        return;
    };
    let (host, path) = (Arc::new(Host::default()), place.path("host"));
    fs::create_dir(&path).unwrap();
    let config = Config {
        transport: TransportChoice::Dev,
        ..Config::default()
    };
    let session = Session::mount(host.clone(), &path, &config).unwrap();
    let released = Released(&host);
    holdfast(["mount", "-o", options, path.to_str().unwrap(), &place.mnt()]).ok();
    let mut caller = Command::new(program)
        .arg(place.path("mnt").join(name))
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    assert!(host.is_asked(), "nothing came to the host");
    let (sender, unmounted) = mpsc::channel();
    let mnt = place.mnt();
    thread::spawn(move || {
        let run = holdfast(["umount", "--force", &mnt]);
        let _ = sender.send((run.code, run.error));
    });
    let (code, error) = unmounted.recv_timeout(SOON).expect("it waits for the host");
    assert_eq!(code, Some(0), "{error}");
    assert!(!place.is_mounted());
    assert!(!caller.wait().unwrap().success());
    assert!(!host.state.lock().unwrap().released);
    drop(released);
    session
        .unmount(UmountFlags {
            lazy: true,
            force: true,
        })
        .unwrap();
}
