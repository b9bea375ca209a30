//! Revoking a mounted file system, over both transports.

use crate::support;
use holdfast_core::{FileSystem, MemoryLimits, Options};
use holdfast_fuse::{
    Session, TransportChoice,
    mount::{UmountFlags, revoke},
    serve,
};
use holdfast_testkit::skip::skipped_by_kernel;
use rustix::{
    fs::{
        AtFlags, FlockOperation, Mode, OFlags, SeekFrom, fgetxattr, flock, openat, readlinkat,
        statat,
    },
    io::Errno,
    process::Uid,
    thread::{CapabilitySet, capabilities, set_capabilities, set_thread_res_uid},
};
use std::{
    fs::{self, File, Permissions},
    io::{Read, Write},
    os::unix::{
        fs::{FileExt, PermissionsExt, symlink},
        process::ExitStatusExt,
    },
    path::Path,
    process::{Command, Stdio},
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

/// The kernel's minor version of the ABI since which all names can be expired at once.
const EPOCHS: u32 = 44;
/// The minor version from which unused inodes can be pruned.
const PRUNES: u32 = 45;

fn kernel(session: &Session) -> u32 {
    session.info().negotiated.kernel_minor
}

/// As [`on_each_transport_with`], with permissions checked by the kernel.
fn on_each_transport(test: impl Fn(&FileSystem, &Session, &Path)) {
    on_each_transport_with(true, test);
}

/// Runs `test` on a mount of a new memory file system over each transport there is. The test
/// revokes it and lets go of everything; then nothing may be left.
fn on_each_transport_with(permissions: bool, test: impl Fn(&FileSystem, &Session, &Path)) {
    for transport in [TransportChoice::Dev, TransportChoice::Uring] {
        let Some(mut config) = support::config(transport) else {
            continue;
        };
        config.mount.default_permissions = permissions;
        // The kernel cannot do one without the other.
        config.posix_acl = permissions;
        let fs = FileSystem::memory(MemoryLimits::default(), Options::default());
        let dir = tempfile::tempdir().unwrap();
        fs::set_permissions(dir.path(), Permissions::from_mode(0o755)).unwrap();
        let session = serve::mount(&fs, dir.path(), &config, None).unwrap();
        test(&fs, &session, dir.path());
        assert!(fs.is_revoked());
        support::unmount(&session);
        let totals = session.totals();
        assert_eq!((totals.panics, totals.malformed), (0, 0), "{totals:?}");
        let stats = fs.stats();
        assert_eq!((stats.open_files, stats.inodes, stats.pages), (0, 1, 0));
        let empty = FileSystem::memory(MemoryLimits::default(), Options::default());
        assert_eq!(fs.inode_census(), empty.inode_census());
    }
}

/// Asserts that all of these failed with `EIO`.
macro_rules! assert_eio {
    ($($call:expr),* $(,)?) => {
        $(assert_eq!(code($call), Some(libc::EIO), stringify!($call));)*
    };
}

/// The number of a failure, if it is one.
fn code<T, E: Into<std::io::Error>>(result: Result<T, E>) -> Option<i32> {
    result.err().and_then(|error| error.into().raw_os_error())
}

fn both(path: &Path) -> File {
    let mut options = File::options();
    let options = options.read(true).write(true).create(true).truncate(false);
    options.open(path).unwrap()
}

/// Waits for what the kernel tells in the background.
fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(
            begun.elapsed() < Duration::from_secs(20),
            "still not: {what}"
        );
        thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn ten_opens_one_revocation_and_ten_closes_return_every_reference() {
    on_each_transport(|fs, session, dir| {
        fs::create_dir_all(dir.join("a/b")).unwrap();
        let mut files: Vec<File> = (0..10)
            .map(|number| {
                let path = match number {
                    0 | 1 => dir.join("same"),
                    2 => dir.join("a/b/deep"),
                    _ => dir.join(format!("{number}")),
                };
                let file = both(&path);
                file.write_all_at(&[number; 9000], 0).unwrap();
                // Now the kernel has it in its cache.
                file.read_exact_at(&mut [0; 9000], 0).unwrap();
                file
            })
            .collect();
        fs::remove_file(dir.join("9")).unwrap();
        fs::write(dir.join("unused"), [1; 5000]).unwrap();
        session.revoke().unwrap();
        wait_until("only they are open", || fs.stats().open_files == 10);
        // Older kernels keep what they know until the mount ends.
        if kernel(session) >= PRUNES {
            wait_until("what is not open has gone", || {
                // Nine files, the root, and the two directories above one of them.
                fs.stats().inodes <= 12
            });
        }
        for file in &mut files {
            assert_eio!(
                file.read_at(&mut [0; 100], 0),
                file.read_at(&mut [0; 100], 1 << 20),
                file.write(b"x"),
                file.write_at(b"x", 4096),
                file.metadata(),
                file.sync_all(),
                file.set_len(0),
            );
        }
        while let Some(file) = files.pop() {
            drop(file);
            wait_until("a close is told", || {
                fs.stats().open_files == files.len() as u64
            });
        }
    });
}

#[test]
fn no_cache_of_the_kernel_answers_afterwards() {
    on_each_transport(nothing_cached_answers);
    on_each_transport_with(false, |fs, session, dir| {
        if kernel(session) < EPOCHS {
            skipped_by_kernel("it believes names that it need not check permissions of");
            return session.revoke().unwrap();
        }
        nothing_cached_answers(fs, session, dir);
    });
}

fn nothing_cached_answers(fs: &FileSystem, session: &Session, dir: &Path) {
    fs::create_dir_all(dir.join("d/e")).unwrap();
    fs::write(dir.join("d/file"), b"content").unwrap();
    fs::write(dir.join("empty"), b"").unwrap();
    symlink("d/file", dir.join("link")).unwrap();
    let root = File::open(dir).unwrap();
    let sub = File::open(dir.join("d")).unwrap();
    let (file, empty) = (both(&dir.join("d/file")), both(&dir.join("empty")));
    // Everything is asked for once, which fills the caches: absence too.
    let none = Mode::empty();
    let ask = || {
        let name = |dir: &File, name: &str| code(statat(dir, name, AtFlags::empty()));
        let open = |dir: &File, name: &str| code(openat(dir, name, OFlags::RDONLY, none));
        let path = |name: &str| code(openat(&root, name, OFlags::PATH, none));
        [
            name(&root, "d"),
            name(&root, "d/e"),
            name(&sub, "e"),
            name(&sub, "."),
            name(&sub, "../d/file"),
            name(&sub, "file"),
            open(&root, "d/file"),
            open(&sub, "file"),
            open(&root, "d"),
            path("d/e"),
            code(readlinkat(&root, "link", Vec::new())),
            code(rustix::fs::Dir::read_from(&sub).and_then(|mut dir| dir.read().unwrap())),
            code(file.read_at(&mut [0; 7], 0)),
            code(empty.read_at(&mut [0; 1], 0)),
            code(file.metadata()),
            code(sub.metadata()),
            code(rustix::fs::seek(&file, SeekFrom::End(0))),
            code(rustix::fs::fstatvfs(&file)),
        ]
    };
    let absent = || {
        let name = |dir: &File, name: &str| code(statat(dir, name, AtFlags::empty()));
        [
            name(&root, "none"),
            name(&sub, "none"),
            name(&root, "d/none"),
        ]
    };
    assert_eq!(ask(), [None; 18]);
    assert_eq!(absent(), [Some(libc::ENOENT); 3]);
    session.revoke().unwrap();
    assert_eq!(ask(), [Some(libc::EIO); 18]);
    assert_eq!(absent(), [Some(libc::EIO); 3]);
    assert_eio!(
        fs::metadata(dir),
        fs::metadata(dir.join("d")),
        fs::read_dir(dir).and_then(|mut names| names.next().unwrap()),
        fs::write(dir.join("new"), b""),
        fs::remove_file(dir.join("empty")),
        fs::rename(dir.join("d"), dir.join("z")),
        fgetxattr(&file, "user.x", &mut [0; 10][..]),
        flock(&file, FlockOperation::NonBlockingLockExclusive),
    );
    drop((root, sub, file, empty));
    wait_until("all is closed", || fs.stats().open_files == 0);
}

#[test]
fn whoever_waits_for_a_lock_is_sent_away() {
    on_each_transport(|_, session, dir| {
        let path = dir.join("file");
        let first = File::create(&path).unwrap();
        flock(&first, FlockOperation::LockExclusive).unwrap();
        let waiter = thread::spawn(move || {
            let second = File::open(path).unwrap();
            flock(&second, FlockOperation::LockExclusive)
        });
        thread::sleep(Duration::from_millis(100));
        assert!(!waiter.is_finished());
        session.revoke().unwrap();
        assert_eq!(waiter.join().unwrap(), Err(Errno::IO));
    });
}

/// Maps a file as the second argument says, uses it, tells, waits for a word, closes the file, and
/// uses it again.
const MAPPER: &str = "
import mmap, os, sys
writes = sys.argv[2] == 'write'
fd = os.open(sys.argv[1], os.O_RDWR if writes else os.O_RDONLY)
m = mmap.mmap(fd, 8192, access=mmap.ACCESS_WRITE if writes else mmap.ACCESS_READ)
def use():
    if writes:
        m[0:5] = b'dirty'
    else:
        m[0:5]
use()
print('mapped', flush=True)
sys.stdin.readline()
os.close(fd)
print('closed', flush=True)
use()
print('survived', flush=True)
";

/// Runs the mapper on a mount that is revoked meanwhile; tells how many bytes were written then.
fn map_and_revoke(session: &Session, path: &Path, how: &str) -> u64 {
    fs::write(path, vec![b'-'; 8192]).unwrap();
    let mut child = Command::new("python3")
        .args(["-c", MAPPER])
        .arg(path)
        .arg(how)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut output = child.stdout.take().unwrap();
    let mut line = [0; 7];
    output.read_exact(&mut line).unwrap();
    assert_eq!(&line, b"mapped\n");
    let before = session.totals().bytes_written;
    session.revoke().unwrap();
    let written = session.totals().bytes_written - before;
    child.stdin.take().unwrap().write_all(b"go\n").unwrap();
    let mut rest = String::new();
    output.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "closed\n", "closing works, using does not");
    let status = child.wait().unwrap();
    assert_eq!(status.signal(), Some(libc::SIGBUS));
    written
}

#[test]
fn pages_that_are_mapped_go() {
    on_each_transport(|fs, session, dir| {
        let written = map_and_revoke(session, &dir.join("file"), "read");
        assert_eq!(written, 0);
        wait_until("all is closed", || fs.stats().open_files == 0);
    });
}

#[test]
fn mapped_pages_that_were_changed_are_written_first() {
    on_each_transport(|fs, session, dir| {
        let written = map_and_revoke(session, &dir.join("file"), "write");
        assert_eq!(written, 4096);
        wait_until("all is closed", || fs.stats().open_files == 0);
    });
}

#[test]
fn only_administrators_may_ask() {
    on_each_transport(|fs, _, dir| {
        let ask = |limit: &(dyn Fn() + Sync)| {
            let asked = || {
                limit();
                code(revoke(dir))
            };
            // Of this thread only.
            thread::scope(|scope| scope.spawn(asked).join().unwrap())
        };
        let as_user = ask(&|| {
            let user = Uid::from_raw(1000);
            set_thread_res_uid(user, user, user).unwrap();
        });
        assert_eq!(as_user, Some(libc::EPERM));
        // The superuser's number without the power is not enough either.
        let powerless = ask(&|| {
            let mut sets = capabilities(None).unwrap();
            sets.effective.remove(CapabilitySet::SYS_ADMIN);
            set_capabilities(None, sets).unwrap();
        });
        assert_eq!(powerless, Some(libc::EPERM));
        assert!(!fs.is_revoked());
        let held = File::create(dir.join("file")).unwrap();
        // Of block devices.
        let other = rustix::fs::ioctl_blksszget(&held);
        assert_eq!(
            code(other),
            Some(libc::ENOTTY),
            "other commands stay unknown"
        );
        // The kernel sends RELEASE after close(2) has returned, here those of the processes above.
        wait_until("only the file is open", || fs.stats().open_files == 1);
        assert_eq!(revoke(dir).unwrap(), 1);
        assert_eq!(code(revoke(dir)), Some(libc::EIO));
        assert_eq!(code(revoke(Path::new("/proc"))), Some(libc::ENOTTY));
    });
}

#[test]
fn requests_under_way_leave_nothing_in_the_caches() {
    on_each_transport(|fs, session, dir| {
        for round in 0..20 {
            fs::create_dir(dir.join(format!("{round}"))).unwrap();
            for name in 0..50 {
                fs::write(dir.join(format!("{round}/{name}")), [1; 5000]).unwrap();
            }
        }
        let root = File::open(dir).unwrap();
        let (over, fine) = (AtomicBool::new(false), AtomicBool::new(false));
        thread::scope(|scope| {
            for worker in 0..4 {
                let (root, over, fine) = (&root, &over, &fine);
                scope.spawn(move || {
                    let mut step = worker * 7;
                    while !over.load(Ordering::Relaxed) {
                        step += 1;
                        let name = format!("{}/{}", step % 20, step * 13 % 60);
                        if let Ok(file) = openat(root, &name, OFlags::RDWR, Mode::empty()) {
                            let file = File::from(file);
                            let _ = file.read_at(&mut [0; 5000], 0);
                            let _ = file.write_at(b"x", 4999);
                            fine.store(true, Ordering::Relaxed);
                        }
                        let _ = statat(root, &name, AtFlags::empty());
                        let _ = rustix::fs::unlinkat(root, format!("{step}"), AtFlags::empty());
                    }
                });
            }
            wait_until("all are at it", || fine.load(Ordering::Relaxed));
            thread::sleep(Duration::from_millis(50));
            session.revoke().unwrap();
            for step in 0..1200 {
                let name = format!("{}/{}", step % 20, step % 60);
                assert_eio!(statat(&root, &name, AtFlags::empty()));
            }
            over.store(true, Ordering::Relaxed);
        });
        drop(root);
        wait_until("all is closed", || fs.stats().open_files == 0);
    });
}

#[test]
fn a_session_that_ends_gives_back_what_the_kernel_never_forgot() {
    for transport in [TransportChoice::Dev, TransportChoice::Uring] {
        let Some(config) = support::config(transport) else {
            continue;
        };
        let fs = FileSystem::memory(MemoryLimits::default(), Options::default());
        let dir = tempfile::tempdir().unwrap();
        let session = serve::mount(&fs, dir.path(), &config, None).unwrap();
        let orphan = both(&dir.path().join("orphan"));
        orphan.write_all_at(&[1; 5000], 0).unwrap();
        fs::remove_file(dir.path().join("orphan")).unwrap();
        fs::write(dir.path().join("kept"), [1; 5000]).unwrap();
        // The connection is cut, and with it every way to forget anything.
        let flags = UmountFlags {
            lazy: true,
            force: true,
        };
        session.unmount(flags).unwrap();
        assert!(orphan.metadata().is_err());
        let census = fs.inode_census();
        assert_eq!((census.used, census.orphans, census.unused), (1, 0, 1));
        assert_eq!(fs.stats().open_files, 0);
    }
}
