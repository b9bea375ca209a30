//! Features beyond std::fs: directory handles, callers, unnamed files, several file systems.

use std::io::{ErrorKind, Read, Write};
use std::path::Path;

use crate::superuser;
use holdfast::types::Errno;
use holdfast::{
    Access, Caller, FileSystem, FileTimes, NodeKind, OpenOptions, Options, Permissions, RenameFlags,
};

/// The operating system's number of a failure.
fn errno<T: std::fmt::Debug>(result: std::io::Result<T>) -> Errno {
    let error = result.expect_err("this fails");
    Errno::from_raw(error.raw_os_error().expect("every error has its number"))
}

#[test]
fn everything_is_send_and_sync_that_should_be() {
    fn both<T: Send + Sync>() {}
    fn send<T: Send>() {}
    both::<FileSystem>();
    both::<holdfast::File>();
    both::<holdfast::Dir>();
    both::<holdfast::ReadDir>();
    both::<holdfast::DirEntry>();
    send::<holdfast::Watcher>();
}

#[test]
fn a_handle_stays_with_its_directory() {
    let fs = superuser();
    fs.create_dir_all("/a/b").unwrap();
    let dir = fs.open_dir("/a/b").unwrap();
    fs.rename("/a", "/z").unwrap();
    fs.create_dir_all("/a/b").unwrap();
    dir.write("f", "here").unwrap();
    assert_eq!(fs.read("/z/b/f").unwrap(), b"here");
    assert!(!fs.exists("/a/b/f"));
    assert_eq!(dir.read("../b/f").unwrap(), b"here");
    assert_eq!(
        dir.metadata("/a").unwrap().ino(),
        fs.metadata("/a").unwrap().ino()
    );
    dir.remove_file("f").unwrap();
    fs.remove_dir("/z/b").unwrap();
    assert_eq!(errno(dir.write("f", "nowhere")), Errno::ENOENT);
    assert_eq!(dir.dir_metadata().unwrap().nlink(), 0);
    assert_eq!(dir.read_dir(".").unwrap().count(), 0);
}

#[test]
fn a_handle_needs_a_directory() {
    let fs = superuser();
    fs.write("/f", "").unwrap();
    assert_eq!(errno(fs.open_dir("/f")), Errno::ENOTDIR);
    assert_eq!(errno(fs.open_dir("/none")), Errno::ENOENT);
}

#[test]
fn all_calls_work_from_a_handle() {
    let fs = superuser();
    fs.create_dir("/d").unwrap();
    let dir = fs.open_dir("d").unwrap();
    dir.create_dir_all("x/y").unwrap();
    dir.create("f").unwrap().write_all(b"text").unwrap();
    dir.copy("f", "x/copy").unwrap();
    dir.rename("x/copy", "x/y/moved").unwrap();
    dir.hard_link("f", "x/link").unwrap();
    dir.symlink("../f", "x/soft").unwrap();
    assert_eq!(dir.read_link("x/soft").unwrap(), Path::new("../f"));
    assert_eq!(dir.read_to_string("x/soft").unwrap(), "text");
    dir.set_permissions("f", Permissions::from_mode(0o600))
        .unwrap();
    dir.set_times("f", FileTimes::now()).unwrap();
    dir.chown("f", Some(7), None).unwrap();
    dir.mkfifo("pipe", 0o600).unwrap();
    dir.access("f", Access::READ).unwrap();
    assert_eq!(fs.metadata("/d/x/link").unwrap().uid(), 7);
    assert_eq!(errno(dir.create_new("f")), Errno::EEXIST);
    let mut paths: Vec<_> = dir
        .read_dir("x")
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    paths.sort();
    assert_eq!(paths, ["x/link", "x/soft", "x/y"].map(Path::new));
    dir.remove_dir_all("x").unwrap();
    dir.remove_file("pipe").unwrap();
    assert_eq!(dir.read_dir(".").unwrap().count(), 1);
}

#[test]
fn names_move_between_handles() {
    let fs = superuser();
    fs.create_dir("/from").unwrap();
    fs.create_dir("/to").unwrap();
    let (from, to) = (fs.open_dir("/from").unwrap(), fs.open_dir("/to").unwrap());
    from.write("f", "1").unwrap();
    from.rename_to("f", &to, "g", RenameFlags::NOREPLACE)
        .unwrap();
    to.hard_link_to("g", &from, "f").unwrap();
    assert_eq!(
        errno(from.rename_to("f", &to, "g", RenameFlags::NOREPLACE)),
        Errno::EEXIST
    );
    assert_eq!(fs.metadata("/from/f").unwrap().nlink(), 2);
}

#[test]
fn two_file_systems_do_not_mix() {
    let (one, two) = (superuser(), superuser());
    one.write("/f", "1").unwrap();
    let file = one.open("/f").unwrap();
    let other = two.create("/g").unwrap();
    assert_eq!(errno(two.link_file(&file, "/f")), Errno::EXDEV);
    assert_eq!(errno(file.copy_range_to(0, &other, 0, 1)), Errno::EXDEV);
    let (from, to) = (one.root_dir(), two.root_dir());
    assert_eq!(
        errno(from.rename_to("f", &to, "f", RenameFlags::empty())),
        Errno::EXDEV
    );
    assert_eq!(errno(from.hard_link_to("f", &to, "f")), Errno::EXDEV);
    // Handles of one file system with different callers can be mixed.
    let view = FileSystem::from_core(one.core().clone()).as_user(Caller::root());
    view.link_file(&file, "/h").unwrap();
    assert_eq!(std::io::copy(&mut &file, &mut &other).unwrap(), 1);
}

#[test]
fn a_caller_sees_what_permissions_let_it_see() {
    let fs = superuser();
    fs.create_dir("/shared").unwrap();
    fs.set_permissions("/shared", Permissions::from_mode(0o1777))
        .unwrap();
    let ada = fs.as_user(Caller::user(10, 10).with_umask(0o027).with_groups(&[50]));
    let bob = fs.as_user(Caller::user(11, 11).with_groups(&[50]));
    ada.write("/shared/f", "1").unwrap();
    assert_eq!(ada.metadata("/shared/f").unwrap().mode() & 0o777, 0o640);
    assert_eq!(errno(bob.read("/shared/f")), Errno::EACCES);
    assert_eq!(errno(ada.chown("/shared/f", Some(11), None)), Errno::EPERM);
    ada.chown("/shared/f", None, Some(50)).unwrap();
    assert_eq!(bob.read("/shared/f").unwrap(), b"1");
    assert_eq!(errno(bob.access("/shared/f", Access::WRITE)), Errno::EACCES);
    assert_eq!(errno(bob.remove_file("/shared/f")), Errno::EPERM);
    assert_eq!(
        errno(bob.set_permissions("/shared/f", Permissions::from_mode(0o777))),
        Errno::EPERM
    );
    assert_eq!(errno(bob.write("/new", "")), Errno::EACCES);
    let dir = bob.open_dir("/shared").unwrap();
    assert_eq!(dir.caller().uid, 11);
    dir.write("mine", "").unwrap();
    assert_eq!(fs.metadata("/shared/mine").unwrap().uid(), 11);
    assert_eq!(
        dir.as_user(Caller::root()).remove_file("mine").ok(),
        Some(())
    );
}

#[test]
fn an_unnamed_file_gets_its_name_when_it_is_whole() {
    let fs = superuser();
    let mut options = OpenOptions::new();
    options.read(true).write(true).tmpfile(true).mode(0o600);
    let before = fs.stats();
    drop(fs.open_with("/", &options).unwrap());
    assert_eq!(fs.stats().inodes, before.inodes);

    let mut file = fs.open_with("/", &options).unwrap();
    file.write_all(b"whole").unwrap();
    assert_eq!(
        (
            file.metadata().unwrap().nlink(),
            fs.read_dir("/").unwrap().count()
        ),
        (0, 0)
    );
    fs.link_file(&file, "/f").unwrap();
    assert_eq!(fs.read("/f").unwrap(), b"whole");
    assert_eq!(file.metadata().unwrap().nlink(), 1);
    fs.remove_file("/f").unwrap();
    assert_eq!(errno(fs.link_file(&file, "/f")), Errno::ENOENT);
}

#[test]
fn limits_and_options_hold() {
    let fs = FileSystem::builder()
        // Names take space, too.
        .bytes_max(8 * 4096 + 1000)
        .inodes_max(3)
        .build();
    fs.write("/f", [1; 4 * 4096]).unwrap();
    fs.create_dir("/d").unwrap();
    assert_eq!(errno(fs.write("/g", "")), Errno::ENOSPC);
    assert_eq!(errno(fs.write("/f", [1; 9 * 4096])), Errno::ENOSPC);
    fs.remove_file("/f").unwrap();
    let space = fs.space().unwrap();
    assert_eq!((space.blocks_free, space.files_free), (8, 1));

    let mut options = fs.core().options();
    options.read_only = true;
    fs.core().set_options(options);
    assert_eq!(errno(fs.create_dir("/e")), Errno::EROFS);
    let options = Options {
        root_uid: Some(5),
        root_perm: 0o700,
        ..Options::default()
    };
    let fs = FileSystem::builder()
        .options(options)
        .caller(Caller::user(6, 6))
        .build();
    assert_eq!(errno(fs.read_dir("/")), Errno::EACCES);
    assert_eq!(fs.metadata("/").unwrap().uid(), 5);
}

#[test]
fn the_root_directory_belongs_to_the_caller_that_the_file_system_is_made_for() {
    let fs = FileSystem::builder().caller(Caller::user(6, 7)).build();
    fs.create_dir("/d").unwrap();
    for path in ["/", "/d"] {
        let meta = fs.metadata(path).unwrap();
        assert_eq!((meta.uid(), meta.gid()), (6, 7), "{path}");
    }
    let root = FileSystem::memory().metadata("/").unwrap();
    let this = Caller::current();
    assert_eq!((root.uid(), root.gid()), (this.uid, this.gid));
}

#[test]
fn special_files_are_names_only() {
    let fs = superuser();
    fs.mkfifo("/pipe", 0o644).unwrap();
    fs.mknod("/socket", NodeKind::Socket, 0o644, 0).unwrap();
    fs.mknod("/disk", NodeKind::BlockDevice, 0o600, 0x801)
        .unwrap();
    assert!(fs.metadata("/socket").unwrap().file_type().is_socket());
    assert_eq!(fs.metadata("/disk").unwrap().rdev(), 0x801);
    assert_eq!(errno(fs.open("/pipe")), Errno::ENXIO);
    assert_eq!(
        errno(fs.mknod("/x", NodeKind::Directory, 0, 0)),
        Errno::EPERM
    );
    fs.set_permissions("/", Permissions::from_mode(0o777))
        .unwrap();
    let user = fs.as_user(Caller::user(1, 1));
    assert_eq!(
        errno(user.mknod("/x", NodeKind::CharDevice, 0, 1)),
        Errno::EPERM
    );
}

#[test]
fn a_listing_survives_changes_and_brings_attributes() {
    let fs = superuser();
    fs.create_dir("/d").unwrap();
    for number in 0..1000 {
        fs.write(format!("/d/{number}"), vec![0; number]).unwrap();
    }
    let mut seen = 0;
    for entry in fs.read_dir("/d").unwrap() {
        let entry = entry.unwrap();
        let number: u64 = entry.file_name().to_str().unwrap().parse().unwrap();
        assert_eq!(entry.metadata().unwrap().len(), number);
        assert!(entry.file_type().unwrap().is_file());
        fs.remove_file(entry.path()).unwrap();
        seen += 1;
    }
    assert_eq!((seen, fs.read_dir("/d").unwrap().count()), (1000, 0));
}

#[test]
fn a_sparse_file_beyond_memory_is_an_error_to_read() {
    let fs = superuser();
    fs.create("/huge")
        .unwrap()
        .set_len(i64::MAX as u64)
        .unwrap();
    let error = fs.read("/huge").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OutOfMemory);
    let mut start = [1; 10];
    fs.open("/huge").unwrap().read_exact(&mut start).unwrap();
    assert_eq!(start, [0; 10]);
}
