//! The core's memory file system through the kernel, over both transports.

mod atimes;
mod listings;
mod mapped;

use crate::support::{self, python};
use holdfast_core::{
    FileSystem, MemoryLimits, Options,
    types::{Caller, OpenFlags},
};
use holdfast_fuse::{
    Config, Session, TransportChoice,
    serve::{self, InfoDetail},
};
use holdfast_testkit::scratch::ScratchVolume;
use rustix::fs::{Mode, OFlags};
use std::{
    fs::{self, File, Permissions},
    io::{ErrorKind, Read, Write},
    os::unix::fs::PermissionsExt,
    path::Path,
    process::Command,
    sync::Arc,
    thread,
    time::Duration,
};

/// Runs `test` on a mount of a new file system, in memory and on a volume, over each transport
/// there is.
fn on_each_transport(test: impl Fn(&FileSystem, &Session, &Path)) {
    on_each_transport_with(&|_| (), test);
}

/// As [`on_each_transport`], with a configuration that is changed before.
fn on_each_transport_with(
    change: &dyn Fn(&mut Config),
    test: impl Fn(&FileSystem, &Session, &Path),
) {
    for transport in [TransportChoice::Dev, TransportChoice::Uring] {
        let fs = FileSystem::memory(MemoryLimits::default(), Options::default());
        on_mount(&fs, transport, change, &test);

        let volume = ScratchVolume::new(128 << 20);
        on_mount(volume.file_system(), transport, change, &test);
        volume.end();
    }
}

fn on_mount(
    fs: &FileSystem,
    transport: TransportChoice,
    change: &dyn Fn(&mut Config),
    test: impl Fn(&FileSystem, &Session, &Path),
) {
    if let Some(mut config) = support::config(transport) {
        change(&mut config);
        let dir = tempfile::tempdir().unwrap();
        fs::set_permissions(dir.path(), Permissions::from_mode(0o755)).unwrap();
        let info = Arc::new(|detail| match detail {
            InfoDetail::Brief => r#"{"source":"mem:"}"#.to_owned(),
            InfoDetail::Inodes => r#"{"inodes":"all"}"#.to_owned(),
        });
        let session = serve::mount(fs, dir.path(), &config, Some(info)).unwrap();
        test(fs, &session, dir.path());
        support::unmount(&session);
        let totals = session.info().totals;
        assert_eq!(
            (totals.panics, totals.malformed, totals.unknown),
            (0, 0, 0),
            "{totals:?}"
        );
        assert_eq!(fs.stats().open_files, 0);
    }
}

#[test]
fn a_program_that_runs_is_not_emptied_by_an_open_that_is_refused() {
    on_each_transport(|_, _, dir| {
        let program = dir.join("program");
        fs::copy("/bin/sleep", &program).unwrap();
        let size = fs::metadata(&program).unwrap().len();
        // A child of another test that is about to become a program still has it open for writing.
        let mut running = loop {
            match Command::new(&program).arg("60").spawn() {
                Err(error) if error.kind() == ErrorKind::ExecutableFileBusy => {
                    thread::sleep(Duration::from_millis(1));
                }
                running => break running.unwrap(),
            }
        };
        for flags in [
            OFlags::RDONLY | OFlags::TRUNC,
            OFlags::WRONLY | OFlags::TRUNC,
            OFlags::RDWR,
        ] {
            let opened = rustix::fs::open(&program, flags, Mode::empty());
            assert_eq!(opened.err(), Some(rustix::io::Errno::TXTBSY), "{flags:?}");
        }
        assert_eq!(fs::metadata(&program).unwrap().len(), size);
        assert!(running.try_wait().unwrap().is_none(), "it lives");
        running.kill().unwrap();
        running.wait().unwrap();
        // Then it may be: once the kernel has let go of it.
        let emptied = || {
            let flags = OFlags::RDONLY | OFlags::TRUNC;
            rustix::fs::open(&program, flags, Mode::empty()).is_ok()
        };
        while !emptied() {
            thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(fs::metadata(&program).unwrap().len(), 0);
    });
}

#[test]
fn appends_go_to_the_end_even_past_the_mount() {
    on_each_transport(|fs, _, dir| {
        let path = dir.join("log");
        fs::write(&path, b"one ").unwrap();
        let mut file = File::options().append(true).open(&path).unwrap();
        file.write_all(b"two ").unwrap();
        let who = Caller::root();
        let node = fs.lookup(&who, &fs.root(), b"log").unwrap();
        let library = fs
            .open(&who, &node, OpenFlags::WRITE_ONLY | OpenFlags::APPEND)
            .unwrap();
        fs.append(&who, &library, b"three ").unwrap();
        drop(library);
        file.write_all(b"four").unwrap();
        let mut text = String::new();
        for _ in 0..100 {
            text = fs::read_to_string(&path).unwrap();
            if text == "one two three four" {
                break;
            }
            thread::sleep(Duration::from_millis(10));
        }
        assert_eq!(text, "one two three four");
    });
}

#[test]
fn changes_by_the_library_reach_the_mount() {
    on_each_transport(|fs, session, dir| {
        fs::metadata(dir.join("new")).unwrap_err();
        fs::write(dir.join("old"), b"old content").unwrap();
        assert_eq!(fs::read(dir.join("old")).unwrap(), b"old content");
        let who = Caller::root();
        fs.mkdir(&who, &fs.root(), b"new", 0o700).unwrap();
        let node = fs.lookup(&who, &fs.root(), b"old").unwrap();
        let file = fs
            .open(&who, &node, OpenFlags::WRITE_ONLY | OpenFlags::TRUNCATE)
            .unwrap();
        fs.write(&who, &file, 0, b"new").unwrap();
        drop(file);
        session.notifier().flush();
        assert!(fs::metadata(dir.join("new")).unwrap().is_dir());
        assert_eq!(fs::read(dir.join("old")).unwrap(), b"new");
        fs.unlink(&who, &fs.root(), b"old").unwrap();
        session.notifier().flush();
        assert_eq!(
            fs::metadata(dir.join("old")).unwrap_err().kind(),
            ErrorKind::NotFound
        );
    });
}

#[test]
fn the_mounts_information_is_read() {
    on_each_transport(|_, _, dir| {
        let mut out = [0; 256];
        let len = rustix::fs::getxattr(dir, serve::INFO_XATTR, &mut out[..]).unwrap();
        assert_eq!(&out[..len], br#"{"source":"mem:"}"#);
        let len = rustix::fs::getxattr(dir, serve::INODES_XATTR, &mut out[..]).unwrap();
        assert_eq!(&out[..len], br#"{"inodes":"all"}"#);
    });
}

#[test]
fn record_locks_end_with_their_process_and_open_file_locks_with_their_file() {
    on_each_transport(|fs, _, dir| {
        let path = dir.join("file");
        fs::write(&path, b"0123456789").unwrap();
        let try_lock = "
import fcntl, sys
f = open(sys.argv[1], 'r+')
try:
    fcntl.lockf(f, fcntl.LOCK_EX | fcntl.LOCK_NB, 5, 0)
    print('taken')
except OSError:
    print('refused')
";
        let holder = "
import fcntl, struct, sys, subprocess, time
f = open(sys.argv[1], 'r+')
F_OFD_SETLK = 37
lock = struct.pack('hhqqi4x', fcntl.F_WRLCK, 0, 0, 5, 0)
fcntl.fcntl(f, F_OFD_SETLK, lock)
print('locked', flush=True)
sys.stdin.read()
f.close()
print('closed', flush=True)
time.sleep(60)
";
        assert_eq!(python(try_lock, &path), "taken");
        let mut child = Command::new("python3")
            .args(["-c", holder])
            .arg(&path)
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut output = child.stdout.take().unwrap();
        let mut line = [0; 7];
        output.read_exact(&mut line).unwrap();
        assert_eq!(python(try_lock, &path), "refused");
        drop(child.stdin.take());
        output.read_exact(&mut line).unwrap();
        let mut locks = 1;
        for _ in 0..200 {
            locks = fs.stats().locks;
            if locks == 0 {
                break;
            }
            thread::sleep(Duration::from_millis(5));
        }
        assert_eq!(locks, 0, "closing is told to the daemon in the background");
        assert_eq!(python(try_lock, &path), "taken");
        child.kill().unwrap();
        child.wait().unwrap();
    });
}
