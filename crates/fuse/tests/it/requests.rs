//! Requests that the kernel must not send, and caches that must not be stale without them.

use crate::support::on_each_transport;
use holdfast_core::{
    EventMask, FileSystem,
    types::{Caller, Errno, FileType},
};
use holdfast_fuse::{Session, wire::Opcode};
use rustix::fs::{FlockOperation, XattrFlags, flock};
use std::{
    fs::{self, File},
    io::{self, Write},
    os::unix::fs::{DirEntryExt, FileExt, MetadataExt},
    path::Path,
    thread,
    time::Duration,
};

fn count(session: &Session, opcodes: &[Opcode]) -> u64 {
    let totals = session.totals();
    let of = totals.requests.iter();
    let wanted = of.filter(|(opcode, _)| opcodes.contains(opcode));
    wanted.map(|(_, count)| count).sum()
}

fn names(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).unwrap();
    entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect()
}

const LISTINGS: [Opcode; 2] = [Opcode::ReadDir, Opcode::ReadDirPlus];

#[test]
fn a_listing_is_asked_for_once_and_again_when_a_name_changed() {
    on_each_transport(
        |_| {},
        |core, session, dir| {
            let sub = dir.join("sub");
            fs::create_dir(&sub).unwrap();
            for n in 0..500 {
                File::create(sub.join(n.to_string())).unwrap();
            }
            assert_eq!(names(&sub).len(), 500);
            let asked = count(session, &LISTINGS);
            for _ in 0..3 {
                assert_eq!(names(&sub).len(), 500);
            }
            assert_eq!(count(session, &LISTINGS), asked, "asked again");
            // By the mount.
            fs::rename(sub.join("7"), sub.join("new")).unwrap();
            let listed = names(&sub);
            assert!(listed.contains(&"new".into()) && !listed.contains(&"7".into()));
            assert!(count(session, &LISTINGS) > asked);
            // By the library: a name that the kernel never heard of, and one that it knows.
            let who = Caller::root();
            let node = core.lookup(&who, &core.root(), b"sub").unwrap();
            let before = fs::metadata(&sub).unwrap().nlink();
            core.mkdir(&who, &node, b"made", 0o755).unwrap();
            core.unlink(&who, &node, b"8").unwrap();
            session.notifier().flush();
            let listed = names(&sub);
            assert!(listed.contains(&"made".into()) && !listed.contains(&"8".into()));
            assert_eq!(fs::metadata(&sub).unwrap().nlink(), before + 1);
        },
    );
}

/// A tree of which the kernel has heard nothing: so many directories of 60 files, one hidden, and a
/// directory each.
fn make_tree(core: &FileSystem, directories: usize) {
    let who = Caller::root();
    for n in 0..directories {
        let name = format!("dir {n}");
        let dir = core.mkdir(&who, &core.root(), name.as_bytes(), 0o755);
        let dir = dir.unwrap();
        core.mkdir(&who, &dir, b"sub", 0o755).unwrap();
        for n in 0..59 {
            let name = format!("file {n}");
            core.mknod(&who, &dir, name.as_bytes(), FileType::Regular, 0o644, 0)
                .unwrap();
        }
        core.mknod(&who, &dir, b".hidden", FileType::Regular, 0o644, 0)
            .unwrap();
    }
}

/// Lists all of it as a walk does, and asks for each file's attributes or not.
fn walk(dir: &Path, stats: bool, seen: &mut Vec<(String, bool, u64)>) {
    let mut below = Vec::new();
    for entry in fs::read_dir(dir).unwrap() {
        let entry = entry.unwrap();
        let is_dir = entry.file_type().unwrap().is_dir();
        if stats {
            assert_eq!(entry.metadata().unwrap().ino(), entry.ino());
        }
        let path = entry.path();
        seen.push((path.display().to_string(), is_dir, entry.ino()));
        if is_dir {
            below.push(path);
        }
    }
    for dir in below {
        walk(&dir, stats, seen);
    }
}

#[test]
fn a_walk_over_names_brings_no_files_into_the_kernel_and_one_with_attributes_asks_for_few() {
    on_each_transport(
        |_| {},
        |core, session, dir| {
            make_tree(core, 40);
            // What the kernel is told of the names would have it ask for them.
            session.notifier().flush();
            // The file that was left without attributes to see, and none of the others; nor of
            // directories.
            let mut named = Vec::new();
            walk(dir, false, &mut named);
            assert_eq!(named.len(), 40 * 62);
            assert_eq!(count(session, &[Opcode::Lookup]), 0);
            let who = Caller::root();
            let known = (0..40).map(|n| {
                let name = format!("dir {n}");
                let dir = core.lookup(&who, &core.root(), name.as_bytes()).unwrap();
                let names = (0..59).map(|n| format!("file {n}"));
                names
                    .filter(|name| {
                        let file = core.lookup(&who, &dir, name.as_bytes()).unwrap();
                        file.is_known_by_number()
                    })
                    .count()
            });
            let known: usize = known.sum();
            assert!(known < 60, "{known} files in the kernel");
            // What a listing shows does not depend on what it brings along.
            for (path, is_dir, number) in &named {
                let meta = fs::symlink_metadata(path).unwrap();
                assert_eq!((meta.is_dir(), meta.ino()), (*is_dir, *number), "{path}");
            }
        },
    );
    on_each_transport(
        |_| {},
        |core, session, dir| {
            make_tree(core, 40);
            // What the kernel is told of the names would have it ask for them.
            session.notifier().flush();
            let mut seen = Vec::new();
            walk(dir, true, &mut seen);
            let asked = count(session, &[Opcode::Lookup, Opcode::GetAttr]);
            // One for each directory that was on trial, the first and one in eight; and what a
            // kernel that is short of memory meanwhile forgets.
            assert!(asked < 40 * 60 / 10, "{asked}: {:?}", session.totals());
            assert_eq!(seen.len(), 40 * 62);
        },
    );
}

#[test]
fn a_listing_under_way_that_loses_its_cache_goes_on_and_comes_to_an_end() {
    on_each_transport(
        |_| {},
        |_, _, dir| {
            let sub = dir.join("sub");
            fs::create_dir(&sub).unwrap();
            for n in 0..5000 {
                File::create(sub.join(n.to_string())).unwrap();
            }
            assert_eq!(names(&sub).len(), 5000);
            // From the cache, until a new name empties it; then from the middle, by a handle that
            // never began. A name is added for each that is listed.
            let mut listed = Vec::new();
            for (n, entry) in fs::read_dir(&sub).unwrap().enumerate() {
                listed.push(entry.unwrap().file_name().into_string().unwrap());
                File::create(sub.join(format!("new {n}"))).unwrap();
                assert!(n < 15_000, "it has no end");
            }
            listed.retain(|name| !name.starts_with("new"));
            let mut numbers: Vec<u32> = listed.iter().map(|name| name.parse().unwrap()).collect();
            numbers.sort_unstable();
            assert!(numbers.into_iter().eq(0..5000), "lost or repeated");
        },
    );
}

#[test]
fn locks_of_the_kernel_exclude_each_other_and_cost_no_request() {
    on_each_transport(
        |config| config.serve_locks = false,
        |core, session, dir| {
            let path = dir.join("file");
            let first = File::create(&path).unwrap();
            flock(&first, FlockOperation::LockExclusive).unwrap();
            let second = File::open(&path).unwrap();
            let refused = flock(&second, FlockOperation::NonBlockingLockExclusive);
            assert_eq!(refused, Err(rustix::io::Errno::WOULDBLOCK));
            let waiting = thread::spawn(move || {
                flock(&second, FlockOperation::LockExclusive).unwrap();
            });
            thread::sleep(Duration::from_millis(50));
            assert!(!waiting.is_finished());
            drop(first);
            waiting.join().unwrap();
            let served = [Opcode::Flush, Opcode::GetLk, Opcode::SetLk, Opcode::SetLkW];
            assert_eq!(count(session, &served), 0);
            assert_eq!(core.stats().locks, 0);
        },
    );
}

#[test]
fn labels_are_absent_as_a_whole_where_no_module_uses_them_and_kept_where_given() {
    if fs::read_to_string("/proc/filesystems").is_ok_and(|known| known.contains("selinuxfs")) {
        eprintln!("skipped: this kernel runs SELinux");
        return;
    }
    on_each_transport(
        |_| {},
        |_, _, dir| {
            let path = dir.join("file");
            fs::write(&path, b"x").unwrap();
            let get = |name: &str| {
                let mut value = [0; 64];
                let len = rustix::fs::getxattr(&path, name, &mut value).map_err(io::Error::from)?;
                io::Result::Ok(value[..len].to_vec())
            };
            let code = |name| get(name).unwrap_err().raw_os_error();
            assert_eq!(code("security.selinux"), Some(libc::EOPNOTSUPP));
            assert_eq!(code("security.other"), Some(libc::ENODATA));
            let flags = XattrFlags::empty();
            rustix::fs::setxattr(&path, "security.selinux", b"a:b:c", flags).unwrap();
            assert_eq!(get("security.selinux").unwrap(), b"a:b:c");
        },
    );
}

#[test]
fn files_that_the_kernel_opens_cost_no_open_and_keep_their_rules() {
    on_each_transport(
        |config| config.no_open = true,
        |core, session, dir| {
            let path = dir.join("file");
            fs::write(&path, b"content").unwrap();
            assert_eq!(fs::read(&path).unwrap(), b"content");
            let asked = [
                Opcode::Open,
                Opcode::Create,
                Opcode::Flush,
                Opcode::Read,
                Opcode::Release,
                Opcode::SetLk,
            ];
            // Each is asked once, to be refused for good; then what is cached costs nothing.
            let before = count(session, &asked);
            for _ in 0..10 {
                assert_eq!(fs::read(&path).unwrap(), b"content");
                let locked = File::open(&path).unwrap();
                flock(locked, FlockOperation::LockExclusive).unwrap();
            }
            assert_eq!(count(session, &asked), before);
            // O_TRUNC and ftruncate move the times of what is empty already.
            fs::write(&path, b"").unwrap();
            let moved = |act: &dyn Fn()| {
                let before = fs::metadata(&path).unwrap().modified().unwrap();
                thread::sleep(Duration::from_millis(20));
                act();
                fs::metadata(&path).unwrap().modified().unwrap() > before
            };
            assert!(moved(&|| drop(File::create(&path).unwrap())));
            let opened = File::options().append(true).open(&path).unwrap();
            assert!(moved(&|| opened.set_len(0).unwrap()));
            // What has no name any more lives until its last close, and then ends.
            let file = File::options().read(true).append(true).open(&path).unwrap();
            fs::remove_file(&path).unwrap();
            (&file).write_all(b"un").unwrap();
            (&opened).write_all(b"named").unwrap();
            let mut back = [0; 7];
            file.read_exact_at(&mut back, 0).unwrap();
            assert_eq!((&back, file.metadata().unwrap().nlink()), (b"unnamed", 0));
            drop((file, opened));
            for _ in 0..500 {
                if core.stats().inodes == 1 {
                    return;
                }
                thread::sleep(Duration::from_millis(10));
            }
            panic!("a file without a name lives on: {:?}", core.stats());
        },
    );
}

#[test]
fn who_opened_a_file_past_the_daemon_is_cut_off_by_a_revocation() {
    on_each_transport(
        |config| config.no_open = true,
        |_, session, dir| {
            let path = dir.join("file");
            fs::write(&path, b"content").unwrap();
            let file = File::options().read(true).write(true).open(&path).unwrap();
            session.revoke().unwrap();
            let code = |result: io::Result<usize>| result.unwrap_err().raw_os_error();
            assert_eq!(code(file.read_at(&mut [0; 4], 0)), Some(libc::EIO));
            assert_eq!(code(file.write_at(b"more", 0)), Some(libc::EIO));
            assert!(File::open(&path).is_err());
        },
    );
}

#[test]
fn directories_that_the_kernel_opens_cost_no_request_once_they_were_listed() {
    on_each_transport(
        |_| {},
        |_, session, dir| {
            let sub = dir.join("sub");
            fs::create_dir(&sub).unwrap();
            for n in 0..100 {
                File::create(sub.join(n.to_string())).unwrap();
            }
            // The first listing moves the access time, of which the second one asks.
            for _ in 0..2 {
                assert_eq!(names(&sub).len(), 100);
            }
            let asked = session.totals().requests;
            for _ in 0..10 {
                assert_eq!(names(&sub).len(), 100);
            }
            assert_eq!(session.totals().requests, asked);
            // What opens a directory for more than its names works without its number as well.
            let open = File::open(&sub).unwrap();
            open.sync_all().unwrap();
            assert_eq!(open.metadata().unwrap().nlink(), 2);
        },
    );
}

#[test]
fn two_listings_of_one_directory_at_once_that_rename_what_they_see_come_to_an_end() {
    on_each_transport(
        |_| {},
        |_, _, dir| {
            let sub = dir.join("sub");
            fs::create_dir(&sub).unwrap();
            for n in 0..3000 {
                File::create(sub.join(n.to_string())).unwrap();
            }
            let rename_all = || {
                for (n, entry) in fs::read_dir(&sub).unwrap().enumerate() {
                    let from = entry.unwrap().path();
                    let name = from.file_name().unwrap().to_str().unwrap();
                    // The other one may have been faster.
                    let _ = fs::rename(&from, sub.join(format!("{name}'")));
                    assert!(n < 60_000, "it has no end");
                }
            };
            thread::scope(|scope| {
                scope.spawn(rename_all);
                scope.spawn(rename_all);
            });
            assert_eq!(names(&sub).len(), 3000);
        },
    );
}

#[test]
fn a_listing_repeats_no_attributes_of_what_the_kernel_knows() {
    let acls = [Opcode::GetXattr];
    on_each_transport(
        |_| {},
        |_, session, dir| {
            let sub = dir.join("sub");
            fs::create_dir(&sub).unwrap();
            let file = sub.join("file");
            File::create(&file).unwrap();
            let acl = || {
                let none = rustix::fs::getxattr(&file, "system.posix_acl_access", &mut [0; 64][..]);
                assert!(none.is_err());
            };
            acl();
            let asked = count(session, &acls);
            acl();
            assert_eq!(count(session, &acls), asked, "the kernel keeps none");
            // The listing tells of the file, and the kernel keeps what it had of it.
            assert_eq!(names(&sub), ["file"]);
            acl();
            assert_eq!(count(session, &acls), asked);
            assert_eq!(fs::metadata(&file).unwrap().len(), 0);
        },
    );
}

#[test]
fn a_file_that_appears_past_the_mount_is_opened_where_creating_it_would_do() {
    on_each_transport(
        |config| config.no_open = true,
        |core, _, dir| {
            let who = Caller::root();
            for n in 0..1500 {
                let name = n.to_string();
                // The kernel believes that it is not there.
                assert!(fs::metadata(dir.join(&name)).is_err());
                thread::scope(|scope| {
                    scope.spawn(|| {
                        let made = core.mknod(
                            &who,
                            &core.root(),
                            name.as_bytes(),
                            FileType::Regular,
                            0o644,
                            0,
                        );
                        assert!(matches!(made, Ok(_) | Err(Errno::EEXIST)));
                    });
                    let options = File::options().write(true).create(true).to_owned();
                    options.open(dir.join(&name)).unwrap();
                });
                let again = File::options().write(true).create_new(true).to_owned();
                let refused = again.open(dir.join(&name)).unwrap_err();
                assert_eq!(refused.kind(), io::ErrorKind::AlreadyExists);
            }
        },
    );
}

#[test]
fn watches_hear_of_what_is_done_to_a_file_and_not_of_opens_that_the_kernel_keeps() {
    on_each_transport(
        |config| config.no_open = true,
        |core, _, dir| {
            let path = dir.join("file");
            File::create(&path).unwrap();
            let node = core.lookup(&Caller::root(), &core.root(), b"file").unwrap();
            let watch = core.watch(&node, EventMask::ALL_EVENTS).unwrap();
            let file = File::options().write(true).open(&path).unwrap();
            for n in 0..5 {
                file.write_at(b"x", n * 4096).unwrap();
            }
            drop(file);
            let mut notified = Vec::new();
            while let Some(event) = watch.try_next() {
                notified.push(event.mask);
            }
            let opens = EventMask::OPEN | EventMask::CLOSE;
            assert!(notified.iter().any(|mask| mask.contains(EventMask::MODIFY)));
            assert!(
                !notified.iter().any(|mask| mask.intersects(opens)),
                "{notified:?}"
            );
        },
    );
}
