//! Jobs on whole trees: in mounts, by their daemons, and on volumes that are not mounted.

use crate::fixture::{HOLDFAST, Place, call, holdfast};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

pub(crate) const NOBODY: u32 = 65534;

/// A place with a mounted volume, and a tree on the host beside it.
pub(crate) fn prepared() -> Option<Place> {
    let place = Place::with_mounts()?;
    let image = place.path("data.hf");
    let image = image.to_str().expect("a plain path");
    holdfast(["mount", "--create", "--size", "256m", image, &place.mnt()]).ok();
    make_tree(&place.path("tree"));
    Some(place)
}

fn make_tree(tree: &Path) {
    fs::create_dir_all(tree.join("dir/deeper")).unwrap();
    for number in 0..200 {
        fs::write(
            tree.join(format!("dir/{number}")),
            vec![number as u8; number * 41],
        )
        .unwrap();
    }
    fs::write(tree.join("dir/deeper/large"), vec![7; 3 << 20]).unwrap();
    fs::hard_link(tree.join("dir/7"), tree.join("dir/deeper/seven")).unwrap();
    symlink("../7", tree.join("dir/deeper/link")).unwrap();
    let odd = OsStr::from_bytes(b"odd \xff\nname");
    fs::write(tree.join(odd), "odd").unwrap();
    fs::set_permissions(tree.join("dir/8"), fs::Permissions::from_mode(0o4711)).unwrap();
    std::os::unix::fs::chown(tree.join("dir/9"), Some(12), Some(34)).unwrap();
    File::create(tree.join("sparse"))
        .unwrap()
        .set_len(1 << 30)
        .unwrap();
}

#[track_caller]
fn run(program: &str, arguments: &[&dyn AsRef<OsStr>]) {
    let words = arguments.iter().map(|argument| argument.as_ref());
    let status = Command::new(program).args(words).status();
    assert!(status.expect("it runs").success(), "{program}");
}

/// Are both trees the same, attributes included?
#[track_caller]
pub(crate) fn assert_same(one: &Path, other: &Path) {
    run("diff", &[&"-r", &"--no-dereference", &one, &other]);
    for name in ["dir", "dir/7", "dir/8", "dir/9", "dir/deeper", "sparse"] {
        let told = |top: &Path| {
            let meta = fs::symlink_metadata(top.join(name)).unwrap();
            let links = if meta.is_dir() { 0 } else { meta.nlink() };
            (
                meta.mode(),
                meta.uid(),
                meta.gid(),
                meta.mtime(),
                meta.mtime_nsec(),
                links,
            )
        };
        assert_eq!(told(one), told(other), "{name}");
    }
    let allocated = fs::metadata(other.join("sparse")).unwrap().blocks();
    assert!(allocated < 1000, "{allocated} blocks of a file of holes");
}

fn tar(tree: &Path, archive: &Path) {
    let format = "--format=posix";
    run(
        "tar",
        &[&"-S", &format, &"-caf", &archive, &"-C", &tree, &"."],
    );
}

#[test]
fn an_archive_is_unpacked_in_a_mount_and_packed_again() {
    let Some(place) = prepared() else {
        return;
    };
    let (tree, mnt) = (place.path("tree"), place.path("mnt"));
    for name in ["a.tar", "a.tar.gz", "a.tar.xz"] {
        let (archive, goal) = (place.path(name), mnt.join("goal"));
        tar(&tree, &archive);
        // The kernel's caches are stale afterwards.
        assert!(fs::metadata(goal.join("dir")).is_err());
        fs::create_dir_all(goal.join("dir")).unwrap();
        fs::write(goal.join("dir/100"), "old").unwrap();
        assert_eq!(fs::read(goal.join("dir/100")).unwrap(), b"old");
        assert!(fs::metadata(goal.join("dir/199")).is_err());
        let out = call(&[&"unpack", &archive, &goal]).ok();
        assert!(out.contains("203 files"), "{out}");
        assert_same(&tree, &goal);
        let again = place.path("again.tar.zst");
        call(&[&"pack", &goal, &"-o", &again]).ok();
        let copy = mnt.join("copy");
        call(&[&"unpack", &"-q", &again, &copy]).ok();
        assert_same(&tree, &copy);
        call(&[&"rm", &"-r", &goal, &copy]).ok();
        assert_eq!(fs::read_dir(&mnt).unwrap().count(), 0);
        assert!(fs::metadata(&goal).is_err());
    }
    place.umount();
    call(&[&"fsck", &place.path("data.hf")]).ok();
}

#[test]
fn an_archive_in_the_mount_itself_is_carried_past_the_daemons_threads() {
    let Some(place) = prepared() else {
        return;
    };
    let (mnt, archive) = (place.mnt(), place.path("mnt/tree.tar"));
    tar(&place.path("tree"), &archive);
    let (tree, copy) = (place.path("mnt/tree"), place.path("copy"));
    let tree = tree.to_str().unwrap();
    let archive = archive.to_str().unwrap();
    // Data after the archive's end is not read.
    let mut file = File::options().append(true).open(archive).unwrap();
    file.write_all(&vec![0; 4 << 20]).unwrap();
    drop(file);
    holdfast(["unpack", archive, tree]).ok();
    let again = format!("{mnt}/again.tar");
    holdfast(["pack", "-o", &again, tree]).ok();
    fs::create_dir(&copy).unwrap();
    run("tar", &[&"-xpf", &again, &"-C", &copy]);
    assert_same(&place.path("tree"), &copy);
    // There is no space for the archive: the error printed is the archive's, not the pipe's.
    let filler = File::create(place.path("mnt/filler")).unwrap();
    let mut piece = 8 << 20;
    while piece >= 4096 {
        let written = std::os::unix::fs::FileExt::write_at(
            &filler,
            &vec![1; piece],
            filler.metadata().unwrap().len(),
        );
        piece = if written.is_ok() { piece } else { piece / 2 };
    }
    let error = holdfast(["pack", "-o", &format!("{mnt}/third.tar"), tree]).fails(1);
    assert!(error.contains("No space left"), "{error}");
    drop(filler);
    place.umount();
}

#[test]
fn a_tree_is_copied_changed_and_removed_in_a_mount() {
    let Some(place) = prepared() else {
        return;
    };
    let (tree, mnt) = (place.path("tree"), place.path("mnt"));
    make_tree(&mnt.join("tree"));
    run("cp", &[&"-a", &tree, &mnt.join("host")]);
    call(&[&"cp", &"-r", &mnt.join("host"), &mnt.join("copy")]).ok();
    assert_same(&tree, &mnt.join("copy"));
    fs::create_dir(mnt.join("into")).unwrap();
    call(&[&"cp", &"-r", &mnt.join("host"), &mnt.join("into")]).ok();
    assert_same(&tree, &mnt.join("into/host"));
    let copy = mnt.join("copy");
    assert_eq!(fs::metadata(copy.join("dir/5")).unwrap().uid(), 0);
    call(&[&"chown", &"-R", &"12:34", &copy]).ok();
    call(&[&"chmod", &"-R", &"u=rwX,go=", &copy]).ok();
    for (name, mode) in [("", 0o40700), ("dir/5", 0o100_600), ("dir/deeper", 0o40700)] {
        let meta = fs::metadata(copy.join(name)).unwrap();
        assert_eq!(
            (meta.uid(), meta.gid(), meta.mode()),
            (12, 34, mode),
            "{name}"
        );
    }
    let error = call(&[&"rm", &copy]).fails(1);
    assert!(
        error.contains("is a directory") && error.contains("-r removes it"),
        "{error}"
    );
    call(&[&"rm", &"-rf", &copy, &mnt.join("none")]).ok();
    assert!(!copy.exists());
    place.umount();
}

/// Runs the command as an unprivileged user.
pub(crate) fn as_nobody(arguments: &[&OsStr]) -> (Option<i32>, String) {
    let copy = tempfile::Builder::new().tempdir_in("/var/tmp").unwrap();
    fs::set_permissions(copy.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let command = copy.path().join("holdfast");
    // Other users may lack access to the path of the program. Another process copies it: a child of
    // another test would keep a file open that this process writes, and exec(2) would refuse it.
    let copied = Command::new("cp").arg(HOLDFAST).arg(&command).status();
    assert!(copied.unwrap().success());
    fs::set_permissions(&command, fs::Permissions::from_mode(0o755)).unwrap();
    let output = Command::new(command)
        .args(arguments)
        .uid(NOBODY)
        .gid(NOBODY)
        .output()
        .unwrap();
    (
        output.status.code(),
        String::from_utf8_lossy(&output.stderr).into_owned(),
    )
}

#[test]
fn the_engine_has_no_more_rights_than_the_user_who_asks() {
    let Some(place) = prepared() else {
        return;
    };
    let (tree, mnt) = (place.path("tree"), place.path("mnt"));
    for above in [place.path(""), mnt.clone()] {
        fs::set_permissions(above, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let archive = place.path("a.tar");
    tar(&tree, &archive);
    for (name, mode) in [("private", 0o700), ("shown", 0o755), ("open", 0o777)] {
        fs::create_dir(mnt.join(name)).unwrap();
        fs::write(mnt.join(name).join("kept"), "kept").unwrap();
        fs::set_permissions(mnt.join(name), fs::Permissions::from_mode(mode)).unwrap();
    }
    let refused = [
        "unpack ARCHIVE MNT/shown",
        "unpack ARCHIVE MNT/shown/new",
        "rm -r MNT/shown",
        "chmod -R 777 MNT/shown",
        "chown -R 65534 MNT/open/kept",
        "cp -r MNT/private MNT/open/copy",
        "pack MNT/private",
    ];
    for line in refused {
        let line = line.replace("MNT", &place.mnt());
        let line = line.replace("ARCHIVE", archive.to_str().unwrap());
        let arguments: Vec<&OsStr> = line.split(' ').map(OsStr::new).collect();
        let (code, error) = as_nobody(&arguments);
        assert_eq!(code, Some(1), "{arguments:?}");
        let said = ["ermission denied", "not permitted", "were not"];
        assert!(
            said.iter().any(|said| error.contains(said)),
            "{arguments:?}: {error}"
        );
    }
    assert!(!mnt.join("open/copy/kept").exists());
    for name in ["private", "shown", "open"] {
        let names = fs::read_dir(mnt.join(name)).unwrap().count();
        assert!(names == 1 || name == "open", "{name}");
        assert_eq!(fs::metadata(mnt.join(name).join("kept")).unwrap().uid(), 0);
    }
    let goal = mnt.join("open/goal");
    let (code, error) = as_nobody(&["unpack".as_ref(), archive.as_os_str(), goal.as_os_str()]);
    assert_eq!(code, Some(0), "{error}");
    let meta = fs::metadata(goal.join("dir/8")).unwrap();
    assert_eq!(
        (meta.uid(), meta.gid(), meta.mode() & 0o7777),
        (NOBODY, NOBODY, 0o711)
    );
    place.umount();
}

#[test]
fn work_ends_with_the_command_that_asked_for_it() {
    let Some(place) = prepared() else {
        return;
    };
    let archive = place.path("a.tar");
    tar(&place.path("tree"), &archive);
    let content = fs::read(&archive).unwrap();
    let goal = place.path("mnt/goal");
    let mut command = Command::new(HOLDFAST)
        .args(["unpack".as_ref(), "-".as_ref(), goal.as_os_str()])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let mut stdin = command.stdin.take().unwrap();
    // Half of the archive, and then the pipe stalls.
    stdin.write_all(&content[..content.len() / 2]).unwrap();
    crate::fixture::wait_until("it has begun", || goal.join("dir").exists());
    let busy = holdfast(["umount", &place.mnt()]);
    assert!(busy.error.contains("in use"), "{}", busy.error);
    command.kill().unwrap();
    command.wait().unwrap();
    place.umount();
    drop(stdin);
}

#[test]
fn trees_change_in_volumes_that_are_not_mounted() {
    let Some(place) = Place::with_mounts() else {
        return;
    };
    let (tree, archive) = (place.path("tree"), place.path("a.tar"));
    make_tree(&tree);
    tar(&tree, &archive);
    let image = place.path("data.hf");
    let image = image.to_str().unwrap();
    holdfast(["mkfs", image, "--size", "128m"]).ok();
    let inside = |path: &str| format!("{image}:{path}");
    holdfast(["unpack", archive.to_str().unwrap(), &inside("/tree")]).ok();
    holdfast(["chown", "-R", "5:6", &inside("/tree/dir/deeper")]).ok();
    holdfast([
        "pack",
        &inside("/tree"),
        "-o",
        place.path("b.tgz").to_str().unwrap(),
    ])
    .ok();
    holdfast(["rm", "-r", &inside("/tree/dir")]).ok();
    holdfast([
        "unpack",
        "-q",
        place.path("b.tgz").to_str().unwrap(),
        &inside("/again"),
    ])
    .ok();
    holdfast(["mount", image, &place.mnt()]).ok();
    assert!(!place.path("mnt/tree/dir").exists());
    assert_eq!(
        fs::metadata(place.path("mnt/again/dir/deeper/large"))
            .unwrap()
            .uid(),
        5
    );
    run(
        "diff",
        &[&"-r", &"--no-dereference", &tree, &place.path("mnt/again")],
    );
    place.umount();
}

#[test]
fn what_lies_elsewhere_is_left_to_the_usual_programs() {
    let Some(place) = prepared() else {
        return;
    };
    let tree = place.path("tree");
    for (arguments, instead) in [
        (
            vec!["rm".as_ref(), "-r".as_ref(), tree.as_os_str()],
            "rm(1)",
        ),
        (
            vec![
                "chmod".as_ref(),
                "-R".as_ref(),
                "700".as_ref(),
                tree.as_os_str(),
            ],
            "chmod(1)",
        ),
        (vec!["pack".as_ref(), tree.as_os_str()], "tar(1)"),
        (
            vec![
                "cp".as_ref(),
                "-r".as_ref(),
                tree.as_os_str(),
                place.path("x").as_os_str(),
            ],
            "cp(1)",
        ),
    ] {
        let error = holdfast(arguments).fails(1);
        assert!(
            error.contains("is in no volume") && error.contains(instead),
            "{error}"
        );
    }
    let archive = place.path("no.tar");
    fs::write(&archive, [b'x'; 5000]).unwrap();
    let error = call(&[&"unpack", &archive, &place.path("mnt")]).fails(1);
    assert!(error.contains("no tar archive"), "{error}");
    place.umount();
}

/// Packs a tree by tar(1), changes a byte, and unpacks it; returns the messages.
#[track_caller]
fn unpack_damaged(place: &Place, goal: &str, name: &str, change: fn(&mut Vec<u8>)) -> String {
    let archive = place.path(name);
    tar(&place.path("tree"), &archive);
    let mut bytes = fs::read(&archive).unwrap();
    change(&mut bytes);
    fs::write(&archive, bytes).unwrap();
    let error = holdfast(["unpack", "-q", archive.to_str().unwrap(), goal]).fails(1);
    assert!(
        error.starts_with(&format!("holdfast: {}: ", archive.display())),
        "{error}"
    );
    error
}

#[test]
fn damage_of_a_compressed_archive_is_told_with_its_name_and_the_members() {
    let Some(place) = prepared() else {
        return;
    };
    let image = place.path("other.hf");
    holdfast(["mkfs", image.to_str().unwrap(), "--size", "256m"]).ok();
    let goals = [
        place.path("mnt/goal").display().to_string(),
        format!("{}:/goal", image.display()),
    ];
    for goal in goals {
        for name in ["a.tar.gz", "a.tar.xz", "a.tar.zst"] {
            // gzip checks the checksum at the end of the stream.
            let changed = |bytes: &mut Vec<u8>| {
                let at = bytes.len() - 6;
                bytes[at] ^= 1;
            };
            unpack_damaged(&place, &goal, name, changed);
            let cut = |bytes: &mut Vec<u8>| bytes.truncate(bytes.len() / 2);
            let error = unpack_damaged(&place, &goal, name, cut);
            assert!(
                error.contains("the compressed stream was cut off"),
                "{error}"
            );
            // The others compress the whole tree as one block.
            let names_member = error.contains(&format!("{name}: ./"));
            assert!(names_member || name != "a.tar.gz", "{error}");
            let longer = |bytes: &mut Vec<u8>| bytes.extend(b"behind the end");
            let error = unpack_damaged(&place, &goal, name, longer);
            assert!(error.contains("behind the last member"), "{error}");
        }
    }
    place.umount();
}

#[test]
fn an_archive_that_nobody_reads_on_is_left_without_a_word_and_a_full_disk_is_told() {
    let Some(place) = prepared() else {
        return;
    };
    let (mnt, image) = (place.mnt(), place.path("other.hf"));
    let image = image.to_str().unwrap();
    let tree = place.path("tree");
    holdfast([
        "mkfs",
        image,
        "--size",
        "256m",
        "--from",
        tree.to_str().unwrap(),
    ])
    .ok();
    make_tree(&place.path("mnt/tree"));
    for from in [format!("{mnt}/tree"), format!("{image}:/")] {
        // More than the capacity of a pipe.
        let mut command = Command::new(HOLDFAST)
            .args(["pack", &from])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdout = command.stdout.take().unwrap();
        stdout.read_exact(&mut [0; 100]).unwrap();
        drop(stdout);
        let output = command.wait_with_output().unwrap();
        assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
        assert_eq!(output.status.code(), Some(1));
        for compression in ["none", "gzip"] {
            let error = holdfast(["pack", "-c", compression, "-o", "/dev/full", &from]).fails(1);
            let text = "holdfast: /dev/full: No space left";
            assert!(error.starts_with(text), "{error}");
        }
    }
    place.umount();
}
