//! A host directory that stops answering, and a daemon that has read a request and does not answer.

use crate::fixture::{Foreground, Place, holdfast};
use crate::notified::Manager;
use holdfast::types::{Attr, Errno, FileType, Ino, Result, Time};
use holdfast_fuse::{
    Answer, Config, Context, Operations, Session, TransportChoice, mount::UmountFlags,
    wire::Request,
};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, mpsc};
use std::thread;
use std::time::Duration;

/// Limit of each wait.
const SOON: Duration = Duration::from_secs(60);
/// Lookups of names that begin so block.
const STUCK: &[u8] = b"stuck";

/// A host: an empty directory. Lookups of some names, and each mkdir, block until they are
/// released.
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

    /// Waits until a call blocks.
    fn is_asked(&self) -> bool {
        let state = self.state.lock().unwrap();
        let asked = |state: &mut State| state.waiting == 0;
        let waited = self.changed.wait_timeout_while(state, SOON, asked);
        waited.unwrap().0.waiting > 0
    }
}

impl Operations for Host {
    fn answer(&self, _: &Context<'_>, ino: Ino, request: Request<'_>) -> Result<Answer> {
        let state = self.state.lock().unwrap();
        match request {
            Request::Lookup { name } if name.starts_with(STUCK) => self.hang(state),
            Request::Mkdir { .. } => {
                self.hang(state);
                return Err(Errno::EIO);
            }
            Request::StatFs if state.mute => self.hang(state),
            Request::GetAttr => return Ok(Answer::Attr(attr(ino))),
            Request::StatX => return Ok(Answer::StatX(attr(ino))),
            Request::Release(_) => return Ok(Answer::Done),
            _ => {}
        }
        Err(match request {
            Request::Lookup { .. } => Errno::ENOENT,
            _ => Errno::ENOSYS,
        })
    }
}

fn attr(ino: Ino) -> Attr {
    let time = Time::new(1_700_000_000, 0);
    Attr {
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
    }
}

/// A host and its mount in a new directory.
fn mounted(path: &Path) -> (Arc<Host>, Session) {
    let host = Arc::new(Host::default());
    fs::create_dir(path).unwrap();
    let config = Config {
        transport: TransportChoice::Dev,
        ..Config::default()
    };
    let session = Session::mount(host.clone(), path, &config).unwrap();
    (host, session)
}

/// Releases blocked calls on drop, also when the test fails.
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
    let path = place.path("mnt");
    let (host, session) = mounted(&path);
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

/// More than a queue has threads with 64 MiB of memory.
const CALLERS: usize = 64;

#[test]
fn the_watchdog_gets_no_answer_while_all_threads_of_a_queue_wait_for_the_host() {
    let Some(place) = Place::with_mounts() else {
        return;
    };
    let path = place.path("host");
    let (host, session) = mounted(&path);
    let released = Released(&host);
    let manager = Manager::of(&place);
    let mut unit = manager.unit();
    unit.env("WATCHDOG_USEC", "1500000");
    let options = "ro,memory=64m,transport=dev,valid=60";
    unit.args([
        "mount",
        "--foreground",
        "-o",
        options,
        path.to_str().unwrap(),
        &place.mnt(),
    ]);
    let unit = Foreground {
        child: unit.spawn().unwrap(),
    };
    manager.find("READY=1");
    manager.find("WATCHDOG=1");
    let ask = |number| {
        let mut stat = Command::new("stat");
        stat.arg(place.path(&format!("mnt/stuck{number}")));
        stat.stdout(Stdio::null()).stderr(Stdio::null());
        stat.spawn().unwrap()
    };
    let mut callers: Vec<_> = (0..CALLERS).map(ask).collect();
    let status = manager.find("STATUS=");
    assert!(status.contains("all threads serve requests"), "{status}");
    assert!(
        manager.is_silent_for(Duration::from_secs(2)),
        "the watchdog was answered"
    );
    drop(released);
    manager.find("WATCHDOG=1");
    assert!(manager.next().starts_with("STATUS=serving "));
    for caller in &mut callers {
        caller.wait().unwrap();
    }
    place.umount();
    assert_eq!(unit.end(), Some(0));
    session.unmount(UmountFlags::default()).unwrap();
}

/// Tests a mount of a host that does not answer.
fn forced_unmount(options: &str, program: &str, name: &str) {
    let Some(place) = Place::with_mounts() else {
        return;
    };
    let path = place.path("host");
    let (host, session) = mounted(&path);
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
