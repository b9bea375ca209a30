//! The core's memory file system through the kernel, over both transports.

mod atimes;
mod listings;
mod mapped;

use crate::support;
use holdfast_core::{
    FileSystem, MemoryLimits, Options,
    types::{Caller, OpenFlags},
};
use holdfast_fuse::{
    Config, Session, TransportChoice,
    serve::{self, InfoDetail},
};
use holdfast_testkit::scratch::ScratchVolume;
use rustix::fs::{
    AtFlags, CWD, FallocateFlags, FlockOperation, Mode, OFlags, RenameFlags, SeekFrom, StatxFlags,
    XattrFlags, flock,
};
use std::{
    fs::{self, File, Permissions},
    io::{ErrorKind, Read, Write},
    os::{
        fd::AsRawFd,
        unix::fs::{FileExt, MetadataExt, PermissionsExt, symlink},
    },
    path::Path,
    process::Command,
    sync::Arc,
    thread,
    time::Duration,
};

/// Runs `test` on a mount of a new file system, in memory and on a volume, over each transport there is.
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
fn trees_are_made_moved_listed_and_removed() {
    on_each_transport(|fs, _, dir| {
        for n in 0..300 {
            let sub = dir.join(format!("d{}", n % 7)).join(format!("e{}", n % 3));
            fs::create_dir_all(&sub).unwrap();
            fs::write(sub.join(format!("f{n}")), vec![n as u8; n * 10]).unwrap();
        }
        fs::rename(dir.join("d0"), dir.join("d1/moved")).unwrap();
        fs::hard_link(dir.join("d1/moved/e0/f0"), dir.join("link")).unwrap();
        assert_eq!(fs::metadata(dir.join("link")).unwrap().nlink(), 2);
        symlink("d1/moved/e0/f21", dir.join("symlink")).unwrap();
        assert_eq!(fs::read(dir.join("symlink")).unwrap(), vec![21; 210]);
        let flags = RenameFlags::NOREPLACE;
        let error = rustix::fs::renameat_with(CWD, dir.join("link"), CWD, dir.join("d1"), flags);
        assert_eq!(error, Err(rustix::io::Errno::EXIST));
        assert_eq!(
            fs::remove_dir(dir.join("d1")).unwrap_err().kind(),
            ErrorKind::DirectoryNotEmpty
        );
        for entry in fs::read_dir(dir).unwrap() {
            let entry = entry.unwrap();
            if entry.file_type().unwrap().is_dir() {
                fs::remove_dir_all(entry.path()).unwrap();
            } else {
                fs::remove_file(entry.path()).unwrap();
            }
        }
        assert_eq!(fs::read_dir(dir).unwrap().count(), 0);
        assert_eq!(fs.stats().names, 0);
    });
}

#[test]
fn unlinked_files_live_until_they_are_closed() {
    on_each_transport(|_, _, dir| {
        let path = dir.join("file");
        let mut file = File::options()
            .read(true)
            .write(true)
            .create_new(true)
            .open(&path)
            .unwrap();
        file.write_all(b"alive").unwrap();
        fs::remove_file(&path).unwrap();
        let mut back = [0; 5];
        file.read_exact_at(&mut back, 0).unwrap();
        assert_eq!((&back, file.metadata().unwrap().nlink()), (b"alive", 0));
    });
}

#[test]
fn a_file_without_a_name_gets_one() {
    on_each_transport(|_, _, dir| {
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
        let file = File::from(rustix::fs::open(dir, flags, Mode::from_raw_mode(0o640)).unwrap());
        (&file).write_all(b"unnamed").unwrap();
        let source = format!("/proc/self/fd/{}", file.as_raw_fd());
        let target = dir.join("named");
        rustix::fs::linkat(CWD, source, CWD, &target, AtFlags::SYMLINK_FOLLOW).unwrap();
        assert_eq!(fs::read(&target).unwrap(), b"unnamed");
        assert_eq!(fs::metadata(&target).unwrap().mode() & 0o7777, 0o640);
    });
}

#[test]
fn holes_are_found_punched_and_copied() {
    on_each_transport(|_, _, dir| {
        let file = File::options()
            .read(true)
            .write(true)
            .create_new(true)
            .open(dir.join("sparse"))
            .unwrap();
        file.write_all_at(&[1; 4096], 1 << 20).unwrap();
        assert_eq!(rustix::fs::seek(&file, SeekFrom::Data(0)), Ok(1 << 20));
        assert_eq!(
            rustix::fs::seek(&file, SeekFrom::Hole(1 << 20)),
            Ok((1 << 20) + 4096)
        );
        let punch = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        rustix::fs::fallocate(&file, punch, 1 << 20, 4096).unwrap();
        assert_eq!(
            rustix::fs::seek(&file, SeekFrom::Data(0)),
            Err(rustix::io::Errno::NXIO)
        );
        file.write_all_at(b"copy me", 0).unwrap();
        let copy = File::create(dir.join("copy")).unwrap();
        let mut from = 0;
        let copied = rustix::fs::copy_file_range(&file, Some(&mut from), &copy, None, 7).unwrap();
        assert_eq!((copied, from), (7, 7));
        assert_eq!(fs::read(dir.join("copy")).unwrap(), b"copy me");
        rustix::fs::fallocate(&copy, FallocateFlags::empty(), 0, 64 << 20).unwrap();
        assert_eq!(copy.metadata().unwrap().len(), 64 << 20);
    });
}

#[test]
fn times_owners_and_modes_are_kept_to_the_bit() {
    on_each_transport(|_, _, dir| {
        let path = dir.join("file");
        fs::write(&path, b"x").unwrap();
        let file = File::options().write(true).open(&path).unwrap();
        let time = std::time::UNIX_EPOCH + Duration::new(1_234_567_890, 123_456_789);
        file.set_modified(time).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().modified().unwrap(), time);
        std::os::unix::fs::chown(&path, Some(1000), Some(2000)).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o6711)).unwrap();
        let meta = fs::metadata(&path).unwrap();
        assert_eq!(
            (meta.uid(), meta.gid(), meta.mode() & 0o7777),
            (1000, 2000, 0o6711)
        );
        std::os::unix::fs::chown(&path, Some(1001), None).unwrap();
        assert_eq!(
            fs::metadata(&path).unwrap().mode() & 0o7777,
            0o711,
            "a new owner clears them"
        );
        let stat = rustix::fs::statx(CWD, &path, AtFlags::empty(), StatxFlags::ALL).unwrap();
        assert_ne!(stat.stx_mask & StatxFlags::BTIME.bits(), 0);
        assert!(stat.stx_btime.tv_sec > 1_500_000_000);
    });
}

/// Runs a shell command as an ordinary user; tells what it printed and whether it succeeded.
fn as_user(dir: &Path, script: &str) -> (String, bool) {
    let output = Command::new("setpriv")
        .args([
            "--reuid=1000",
            "--regid=1000",
            "--clear-groups",
            "sh",
            "-c",
            script,
        ])
        .current_dir(dir)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    (text, output.status.success())
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
fn the_kernel_checks_permissions_and_umask_and_set_id_bits_follow_the_rules() {
    on_each_transport(|_, _, dir| {
        fs::set_permissions(dir, Permissions::from_mode(0o777)).unwrap();
        fs::write(dir.join("secret"), b"x").unwrap();
        fs::set_permissions(dir.join("secret"), Permissions::from_mode(0o600)).unwrap();
        assert!(!as_user(dir, "cat secret").1);
        let (made, done) = as_user(dir, "umask 027; touch f; mkdir d; stat -c '%a %u %g' f d");
        assert!(done);
        assert_eq!(made, "640 1000 1000\n750 1000 1000");
        fs::write(dir.join("suid"), b"x").unwrap();
        fs::set_permissions(dir.join("suid"), Permissions::from_mode(0o6777)).unwrap();
        assert!(as_user(dir, "echo more >> suid").1);
        assert_eq!(
            fs::metadata(dir.join("suid")).unwrap().mode() & 0o7777,
            0o777
        );
        fs::set_permissions(dir.join("suid"), Permissions::from_mode(0o4777)).unwrap();
        assert!(as_user(dir, "truncate -s 0 suid").1);
        assert_eq!(
            fs::metadata(dir.join("suid")).unwrap().mode() & 0o7777,
            0o777
        );
        fs::set_permissions(dir.join("suid"), Permissions::from_mode(0o4777)).unwrap();
        assert!(as_user(dir, ": > suid").1);
        assert_eq!(
            fs::metadata(dir.join("suid")).unwrap().mode() & 0o7777,
            0o777
        );
        fs::set_permissions(dir.join("suid"), Permissions::from_mode(0o4777)).unwrap();
        File::options()
            .append(true)
            .open(dir.join("suid"))
            .unwrap()
            .write_all(b"r")
            .unwrap();
        assert_eq!(
            fs::metadata(dir.join("suid")).unwrap().mode() & 0o7777,
            0o4777,
            "root keeps"
        );
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
fn extended_attributes_and_the_mounts_information_are_read() {
    on_each_transport(|_, _, dir| {
        let path = dir.join("file");
        fs::write(&path, b"").unwrap();
        rustix::fs::setxattr(&path, "user.a", b"value", XattrFlags::CREATE).unwrap();
        let again = rustix::fs::setxattr(&path, "user.a", b"value", XattrFlags::CREATE);
        assert_eq!(again, Err(rustix::io::Errno::EXIST));
        let mut out = [0; 256];
        let len = rustix::fs::listxattr(&path, &mut out[..]).unwrap();
        assert_eq!(&out[..len], b"user.a\0");
        let len = rustix::fs::getxattr(dir, serve::INFO_XATTR, &mut out[..]).unwrap();
        assert_eq!(&out[..len], br#"{"source":"mem:"}"#);
        let len = rustix::fs::getxattr(dir, serve::INODES_XATTR, &mut out[..]).unwrap();
        assert_eq!(&out[..len], br#"{"inodes":"all"}"#);
        rustix::fs::removexattr(&path, "user.a").unwrap();
        assert_eq!(rustix::fs::listxattr(&path, &mut out[..]), Ok(0));
    });
}

/// Sets or asks for a record lock with fcntl(2), by python's own wrapper of it.
fn python(script: &str, path: &Path) -> String {
    let output = Command::new("python3")
        .args(["-c", script])
        .arg(path)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
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

#[test]
fn flock_is_given_back_at_close() {
    on_each_transport(|_, _, dir| {
        let path = dir.join("file");
        let first = File::create(&path).unwrap();
        flock(&first, FlockOperation::LockExclusive).unwrap();
        let waiting = {
            let path = path.clone();
            thread::spawn(move || {
                let second = File::open(path).unwrap();
                flock(&second, FlockOperation::LockExclusive).unwrap();
            })
        };
        thread::sleep(Duration::from_millis(100));
        assert!(!waiting.is_finished());
        drop(first);
        waiting.join().unwrap();
    });
}

#[test]
fn long_names_deep_paths_and_large_directories_are_borne() {
    on_each_transport(|_, _, dir| {
        let long = dir.join("x".repeat(255));
        fs::write(&long, b"x").unwrap();
        let error = fs::write(dir.join("x".repeat(256)), b"x").unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ENAMETOOLONG));
        fs::write(dir.join("new\nline"), b"x").unwrap();
        for n in 0..3000 {
            File::create(dir.join(format!("{n}"))).unwrap();
        }
        assert_eq!(fs::read_dir(dir).unwrap().count(), 3002);
        let file = File::create(dir.join("far")).unwrap();
        file.set_len(i64::MAX as u64).unwrap_or_else(|error| {
            assert_eq!(error.raw_os_error(), Some(libc::EFBIG));
        });
    });
}
