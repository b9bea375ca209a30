//! A temporary folder, the built command, and mounts that are ended with the test.

use holdfast_testkit::skip::{mount_obstacle, skipped};
use parking_lot::{RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::{
    ffi::OsStr,
    fs, io,
    os::unix::process::CommandExt,
    path::PathBuf,
    process::{Child, Command, Output, Stdio},
    thread,
    time::{Duration, Instant},
};

/// The command under test.
pub(crate) const HOLDFAST: &str = env!("CARGO_BIN_EXE_holdfast");

/// The result of a run.
pub(crate) struct Run {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) error: String,
}

impl From<Output> for Run {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code(),
            out: String::from_utf8(output.stdout).expect("text"),
            error: String::from_utf8(output.stderr).expect("text"),
        }
    }
}

impl Run {
    /// Asserts success; gives the output.
    #[track_caller]
    pub(crate) fn ok(self) -> String {
        assert_eq!(self.code, Some(0), "{}{}", self.out, self.error);
        assert_eq!(self.error, "");
        self.out
    }

    /// Asserts the exit code; gives the errors.
    #[track_caller]
    pub(crate) fn fails(self, code: i32) -> String {
        assert_eq!(self.code, Some(code), "{}{}", self.out, self.error);
        self.error
    }
}

/// Runs the command.
pub(crate) fn holdfast<I: AsRef<OsStr>>(arguments: impl IntoIterator<Item = I>) -> Run {
    named("holdfast", arguments)
}

/// Runs the command with arguments of several types.
pub(crate) fn call(arguments: &[&dyn AsRef<OsStr>]) -> Run {
    holdfast(arguments.iter().map(|argument| argument.as_ref()))
}

/// Runs the command under another name.
pub(crate) fn named<I: AsRef<OsStr>>(name: &str, arguments: impl IntoIterator<Item = I>) -> Run {
    let output = Command::new(HOLDFAST)
        .arg0(name)
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .expect("the command runs");
    output.into()
}

/// What is mounted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Store {
    /// `mem:`.
    Memory,
    /// An image file, of 64 MiB.
    Volume,
}

/// Makes tests of a mount, each over memory and over a volume. At the end the volume must be clean
/// or as after a crash.
macro_rules! on_each_store {
    ($(fn $name:ident($place:ident: &Place) $body:block)*) => {$(
        mod $name {
            use super::*;
            use crate::fixture::Store;

            fn test($place: &Place) $body

            #[test]
            fn over_memory() {
                if let Some(place) = Place::over(Store::Memory) {
                    test(&place);
                }
            }

            #[test]
            fn over_a_volume() {
                if let Some(place) = Place::over(Store::Volume) {
                    test(&place);
                    place.check();
                }
            }
        }
    )*};
}
pub(crate) use on_each_store;

/// A test that makes a mount namespace runs alone: its namespace has copies of all other tests'
/// mounts, and keeps them alive.
static NAMESPACES: RwLock<()> = RwLock::new(());

/// A folder; dropping it ends the mounts in it.
pub(crate) struct Place {
    folder: tempfile::TempDir,
    store: Store,
    beside: Among,
}

/// Does the test run in parallel with others, or alone?
enum Among {
    Nothing,
    Others(#[expect(dead_code, reason = "held")] RwLockReadGuard<'static, ()>),
    Alone(#[expect(dead_code, reason = "held")] RwLockWriteGuard<'static, ()>),
}

impl Place {
    pub(crate) fn new() -> Self {
        Self {
            folder: tempfile::tempdir().expect("a folder"),
            store: Store::Memory,
            beside: Among::Nothing,
        }
    }

    /// A place where mounting works, or a message why there is none.
    pub(crate) fn with_mounts() -> Option<Self> {
        Self::among(|| Among::Others(NAMESPACES.read()))
    }

    /// A place where mounting works, for a test that makes a mount namespace.
    pub(crate) fn alone() -> Option<Self> {
        Self::among(|| Among::Alone(NAMESPACES.write()))
    }

    fn among(others: impl FnOnce() -> Among) -> Option<Self> {
        if let Some(obstacle) = mount_obstacle() {
            skipped(obstacle);
            return None;
        }
        let mut place = Self::new();
        place.beside = others();
        Some(place)
    }

    /// A place where this is mounted.
    pub(crate) fn over(store: Store) -> Option<Self> {
        Some(Self::with_mounts()?.of(store))
    }

    /// As [`over`](Self::over), for a test that makes a mount namespace.
    pub(crate) fn alone_over(store: Store) -> Option<Self> {
        Some(Self::alone()?.of(store))
    }

    fn of(mut self, store: Store) -> Self {
        self.store = store;
        if store == Store::Volume {
            holdfast(["mkfs", "--quiet", "--size", "64m", &self.source()]).ok();
        }
        self
    }

    /// What is mounted, as an argument.
    pub(crate) fn source(&self) -> String {
        match self.store {
            Store::Memory => "mem:".to_owned(),
            Store::Volume => {
                let image = self.path("data.hf").into_os_string();
                image.into_string().expect("a plain path")
            }
        }
    }

    /// Checks the volume, which is not mounted any more.
    #[track_caller]
    pub(crate) fn check(&self) {
        holdfast(["fsck", &self.source()]).ok();
    }

    /// Itself.
    pub(crate) fn folder(&self) -> PathBuf {
        fs::canonicalize(self.folder.path()).expect("a folder")
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder().join(name)
    }

    /// `mnt`, as an argument.
    pub(crate) fn mnt(&self) -> String {
        self.path("mnt")
            .into_os_string()
            .into_string()
            .expect("a plain path")
    }

    /// Mounts at `mnt` with more arguments.
    #[track_caller]
    pub(crate) fn mount(&self, more: &[&str]) -> String {
        let mnt = self.mnt();
        let out = holdfast([&["mount", &self.source(), &mnt], more].concat()).ok();
        assert!(self.is_mounted(), "returned before the mount is live");
        out
    }

    /// Unmounts `mnt`.
    #[track_caller]
    pub(crate) fn umount(&self) {
        umount(&self.mnt()).ok();
        assert!(!self.is_mounted());
    }

    /// Is something mounted at `mnt`, dead or alive?
    pub(crate) fn is_mounted(&self) -> bool {
        let mnt = self.mnt();
        // Other tests mount at names that are not UTF-8.
        let table = fs::read("/proc/self/mounts").expect("the mount table");
        String::from_utf8_lossy(&table)
            .lines()
            .any(|line| line.split(' ').nth(1) == Some(&mnt))
    }

    /// The report of the daemon of `mnt`.
    #[track_caller]
    pub(crate) fn info(&self) -> serde_json::Value {
        let out = holdfast(["info", "--json", &self.mnt()]).ok();
        assert_eq!(out.lines().count(), 1);
        serde_json::from_str(&out).expect("JSON")
    }

    /// The process id of the daemon of `mnt`.
    #[track_caller]
    pub(crate) fn daemon(&self) -> i32 {
        let pid = self.info()["pid"].as_i64().expect("a number");
        i32::try_from(pid).expect("a process id")
    }

    /// Starts the command in the foreground, with its errors in the file `errors`, and waits
    /// until `mnt` is live.
    pub(crate) fn foreground(&self, more: &[&str]) -> Foreground {
        let errors = fs::File::create(self.path("errors")).expect("a file");
        let child = Command::new(HOLDFAST)
            .args(["mount", &self.source(), &self.mnt(), "--foreground"])
            .args(more)
            .stdin(Stdio::null())
            .stderr(errors)
            .spawn()
            .expect("the command starts");
        let foreground = Foreground { child };
        wait_until("the mount is live", || self.errors().contains("live"));
        foreground
    }

    /// The output of the command in the foreground.
    pub(crate) fn errors(&self) -> String {
        fs::read_to_string(self.path("errors")).expect("a file")
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if self.is_mounted() {
            // The test has failed already; this is only cleanup.
            let _ = Command::new("umount").args(["-l", &self.mnt()]).status();
        }
    }
}

/// Runs `holdfast umount`, and again while the mount is busy: a child that another test starts has
/// copies of all open files of this process until its exec.
pub(crate) fn umount(mnt: &str) -> Run {
    let mut run = holdfast(["umount", mnt]);
    for _ in 0..20 {
        if run.code == Some(0) || !run.error.contains("is in use") {
            break;
        }
        thread::sleep(Duration::from_millis(20));
        run = holdfast(["umount", mnt]);
    }
    run
}

/// A command in the foreground, ended with the test.
pub(crate) struct Foreground {
    pub(crate) child: Child,
}

impl Foreground {
    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, signal).expect("it runs");
    }

    /// Waits for its end; gives the exit code.
    #[track_caller]
    pub(crate) fn end(mut self) -> Option<i32> {
        let mut status = None;
        wait_until("the command ends", || {
            status = self.child.try_wait().expect("a child");
            status.is_some()
        });
        status.and_then(|status| status.code())
    }
}

impl Drop for Foreground {
    fn drop(&mut self) {
        // Fails if it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits until a condition holds.
#[track_caller]
pub(crate) fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(
            begun.elapsed() < Duration::from_secs(60),
            "after a minute still not: {what}"
        );
        thread::sleep(Duration::from_millis(10));
    }
}

/// Has this process ended? A zombie has.
pub(crate) fn is_gone(pid: i32) -> bool {
    match fs::read_to_string(format!("/proc/{pid}/stat")) {
        Ok(stat) => stat
            .rsplit(')')
            .next()
            .is_some_and(|rest| rest.trim_start().starts_with('Z')),
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    }
}
