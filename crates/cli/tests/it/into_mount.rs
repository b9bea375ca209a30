//! `holdfast cp` from the host into a mount.

use crate::engine::{NOBODY, as_nobody, assert_same, prepared};
use crate::fixture::{call, holdfast};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};

#[test]
fn a_tree_of_the_host_is_copied_into_a_mount_as_cp_copies_it() {
    let Some(place) = prepared() else {
        return;
    };
    let (tree, mnt) = (place.path("tree"), place.path("mnt"));
    let old = rustix::fs::Timespec {
        tv_sec: 1_000_000_000,
        tv_nsec: 5,
    };
    let times = rustix::fs::Timestamps {
        last_access: old,
        last_modification: old,
    };
    rustix::fs::utimensat(
        rustix::fs::CWD,
        tree.join("dir/3"),
        &times,
        rustix::fs::AtFlags::empty(),
    )
    .unwrap();
    // It becomes DST, and is copied into DST once that is there.
    let out = call(&[&"cp", &"-r", &tree, &mnt.join("copy")]).ok();
    assert!(
        out.contains("203 files") && out.contains("1 further name"),
        "{out}"
    );
    let three = fs::metadata(mnt.join("copy/dir/3")).unwrap();
    assert_eq!(
        (three.mtime(), three.mtime_nsec()),
        (old.tv_sec, old.tv_nsec)
    );
    assert_eq!(
        (three.atime(), three.atime_nsec()),
        (old.tv_sec, old.tv_nsec)
    );
    // Reading moves times of access, so this comes last.
    assert_same(&tree, &mnt.join("copy"));
    call(&[&"cp", &"-r", &tree, &mnt.join("copy")]).ok();
    assert_same(&tree, &mnt.join("copy/tree"));
    // Existing names are replaced, and directories are merged.
    fs::write(mnt.join("copy/dir/100"), "old").unwrap();
    fs::write(mnt.join("copy/dir/more"), "kept").unwrap();
    call(&[&"cp", &"-r", &tree.join("dir"), &mnt.join("copy")]).ok();
    assert_eq!(
        fs::read(mnt.join("copy/dir/100")).unwrap(),
        fs::read(tree.join("dir/100")).unwrap()
    );
    assert_eq!(fs::read(mnt.join("copy/dir/more")).unwrap(), b"kept");
    place.umount();
    holdfast(["fsck", place.path("data.hf").to_str().unwrap()]).ok();
}

#[test]
fn single_names_of_the_host_are_copied_into_a_mount() {
    let Some(place) = prepared() else {
        return;
    };
    let (tree, mnt) = (place.path("tree"), place.path("mnt"));
    symlink("tree", place.path("link")).unwrap();
    call(&[&"cp", &"-q", &tree.join("dir/8"), &mnt.join("eight")]).ok();
    assert_eq!(
        fs::metadata(mnt.join("eight")).unwrap().mode() & 0o7777,
        0o4711
    );
    call(&[&"cp", &"-rq", &place.path("link"), &mnt]).ok();
    assert_eq!(
        fs::read_link(mnt.join("link")).unwrap(),
        std::path::Path::new("tree")
    );
    let missing = call(&[&"cp", &tree.join("dir/8"), &mnt.join("no/where")]).fails(1);
    assert!(missing.contains("No such file"), "{missing}");
    place.umount();
}

#[test]
fn a_mount_below_its_source_is_not_copied_into_itself() {
    let Some(place) = prepared() else {
        return;
    };
    let top = place.path("top");
    fs::create_dir(&top).unwrap();
    fs::write(top.join("file"), "x").unwrap();
    let inner = top.join("inner");
    holdfast(["mount", "mem:", inner.to_str().unwrap()]).ok();
    let error = call(&[&"cp", &"-r", &top, &inner.join("copy")]).fails(1);
    assert!(
        error.contains("inner/copy: is where it is copied to"),
        "{error}"
    );
    assert_eq!(fs::read(inner.join("copy/file")).unwrap(), b"x");
    assert!(!inner.join("copy/inner/copy").exists());
    holdfast(["umount", inner.to_str().unwrap()]).ok();
    place.umount();
}

#[test]
fn a_copy_into_a_mount_has_the_rights_of_its_user_on_both_sides() {
    let Some(place) = prepared() else {
        return;
    };
    let (tree, mnt) = (place.path("tree"), place.path("mnt"));
    fs::set_permissions(place.path(""), fs::Permissions::from_mode(0o777)).unwrap();
    for (name, mode) in [("shown", 0o755), ("open", 0o777)] {
        fs::create_dir(mnt.join(name)).unwrap();
        fs::set_permissions(mnt.join(name), fs::Permissions::from_mode(mode)).unwrap();
    }
    // The daemon is root's, and could read it.
    fs::set_permissions(tree.join("dir/5"), fs::Permissions::from_mode(0o600)).unwrap();
    fs::create_dir(tree.join("closed")).unwrap();
    fs::write(tree.join("closed/secret"), "secret").unwrap();
    fs::set_permissions(tree.join("closed"), fs::Permissions::from_mode(0o700)).unwrap();
    let copy = |goal: &str| {
        let goal = mnt.join(goal);
        as_nobody(&[
            OsStr::new("cp"),
            OsStr::new("-r"),
            tree.as_os_str(),
            goal.as_os_str(),
        ])
    };
    let (code, error) = copy("open/copy");
    assert_eq!(code, Some(1), "{error}");
    for name in [
        "dir/5: Permission denied",
        "closed: Permission denied",
        "3 names were not copied",
    ] {
        assert!(error.contains(name), "{name}: {error}");
    }
    assert!(!mnt.join("open/copy/dir/5").exists() && !mnt.join("open/copy/closed").exists());
    let meta = fs::metadata(mnt.join("open/copy/dir/6")).unwrap();
    assert_eq!((meta.uid(), meta.gid()), (NOBODY, NOBODY));
    assert_eq!(
        fs::read(mnt.join("open/copy/dir/6")).unwrap(),
        fs::read(tree.join("dir/6")).unwrap()
    );
    for goal in ["shown", "shown/new"] {
        let (code, error) = copy(goal);
        assert_eq!(code, Some(1), "{error}");
        assert!(error.contains("ermission denied"), "{error}");
    }
    assert_eq!(fs::read_dir(mnt.join("shown")).unwrap().count(), 0);
    place.umount();
}
