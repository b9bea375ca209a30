//! Access times of what the kernel keeps, where files are opened by the file system: as on a tmpfs
//! that is mounted with the same options, in the same test.

use super::on_each_transport_with;
use holdfast_core::{AtimePolicy, Options};
use holdfast_testkit::skip::skipped;
use rustix::fs::{AtFlags, CWD, Mode, OFlags, Timespec, Timestamps};
use std::{
    fs::{self, File, Permissions},
    io::{Read, Write},
    os::unix::fs::{MetadataExt, PermissionsExt, symlink},
    path::Path,
    process::Command,
    thread,
    time::{Duration, SystemTime},
};

/// A tmpfs, for as long as this lives.
struct Tmpfs(tempfile::TempDir);

impl Tmpfs {
    fn mount(options: &str) -> Option<Self> {
        let dir = tempfile::tempdir().unwrap();
        let mount = Command::new("mount")
            .args(["-t", "tmpfs", "-o", options, "none"])
            .arg(dir.path())
            .status();
        match mount {
            Ok(status) if status.success() => Some(Self(dir)),
            _ => {
                skipped("no tmpfs can be mounted");
                None
            }
        }
    }
}

impl Drop for Tmpfs {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0.path()).status();
    }
}

/// Does this move the access time of what is at `path`?
fn moves(path: &Path, act: impl FnOnce()) -> bool {
    let time = || {
        let meta = fs::symlink_metadata(path).unwrap();
        (meta.atime(), meta.atime_nsec())
    };
    // More than a tick of the clock, so that what is moved now gets a time of its own.
    thread::sleep(Duration::from_millis(11));
    let before = time();
    act();
    time() != before
}

fn read(path: &Path) {
    assert!(!fs::read(path).unwrap().is_empty());
}

fn read_with(path: &Path, flags: OFlags) {
    let flags = flags | OFlags::CLOEXEC;
    let mut file = File::from(rustix::fs::open(path, flags, Mode::empty()).unwrap());
    let _ = file.read(&mut [0; 10]).unwrap();
}

fn set_times(path: &Path, days: u64) {
    let now = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap();
    let at = |days: u64| Timespec {
        tv_sec: (now.as_secs() - days * 86_400).cast_signed(),
        tv_nsec: 0,
    };
    let times = Timestamps {
        last_access: at(days),
        last_modification: at(days + 1),
    };
    rustix::fs::utimensat(CWD, path, &times, AtFlags::SYMLINK_NOFOLLOW).unwrap();
}

/// What moves the access times of a file, in an order.
fn of_file(dir: &Path) -> Vec<bool> {
    let path = dir.join("file");
    fs::write(&path, b"content").unwrap();
    let append = || {
        let file = File::options().append(true).open(&path).unwrap();
        (&file).write_all(b"more").unwrap();
    };
    let mut moved = vec![moves(&path, || read(&path)), moves(&path, || read(&path))];
    moved.push(moves(&path, append));
    moved.push(moves(&path, || {
        read_with(&path, OFlags::RDONLY | OFlags::NOATIME)
    }));
    moved.push(moves(&path, || drop(File::open(&path).unwrap())));
    moved.push(moves(&path, || read_with(&path, OFlags::RDWR)));
    moved.push(moves(&path, || read(&path)));
    moved.push(moves(&path, || {
        fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
    }));
    moved.extend([moves(&path, || read(&path)), moves(&path, || read(&path))]);
    // Its change is later than any access time that can be set: a day counts only behind that.
    set_times(&path, 2);
    moved.extend([moves(&path, || read(&path)), moves(&path, || read(&path))]);
    moved
}

fn of_program(dir: &Path) -> Vec<bool> {
    let path = dir.join("program");
    fs::copy("/bin/true", &path).unwrap();
    let run = || {
        // A child of another test may still have it open for writing.
        while Command::new(&path).status().is_err() {
            thread::sleep(Duration::from_millis(1));
        }
    };
    vec![moves(&path, run), moves(&path, run)]
}

fn of_directory(dir: &Path) -> Vec<bool> {
    let path = dir.join("dir");
    fs::create_dir(&path).unwrap();
    let list = || assert!(fs::read_dir(&path).unwrap().count() <= 1);
    let mut moved = vec![moves(&path, list), moves(&path, list)];
    moved.push(moves(&path, || {
        drop(File::create(path.join("new")).unwrap())
    }));
    moved.extend([moves(&path, list), moves(&path, list), moves(&path, list)]);
    fs::set_permissions(&path, Permissions::from_mode(0o700)).unwrap();
    moved.extend([moves(&path, list), moves(&path, list)]);
    moved
}

fn of_link(dir: &Path) -> Vec<bool> {
    let path = dir.join("link");
    symlink("target", &path).unwrap();
    let look = || drop(fs::read_link(&path).unwrap());
    vec![moves(&path, look), moves(&path, look)]
}

fn all(dir: &Path) -> [Vec<bool>; 4] {
    [
        of_file(dir),
        of_program(dir),
        of_directory(dir),
        of_link(dir),
    ]
}

#[test]
fn reads_of_what_the_kernel_keeps_move_access_times_as_on_a_tmpfs() {
    for (words, policy, nodiratime) in [
        ("relatime", AtimePolicy::Relatime, false),
        ("strictatime", AtimePolicy::Strict, false),
        ("strictatime,nodiratime", AtimePolicy::Strict, true),
        ("noatime", AtimePolicy::None, false),
    ] {
        let Some(tmpfs) = Tmpfs::mount(words) else {
            return;
        };
        let expected = all(tmpfs.0.path());
        let is_strict = policy == AtimePolicy::Strict;
        on_each_transport_with(
            &|config| {
                config.no_open = false;
                config.cache_listings = !is_strict || nodiratime;
                config.cache_links = !is_strict;
            },
            |fs, _, dir| {
                fs.set_options(Options {
                    atime: policy,
                    nodiratime,
                    ..Options::default()
                });
                assert_eq!(all(dir), expected, "{words}");
            },
        );
    }
}
