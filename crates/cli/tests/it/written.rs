//! A directory of the host that is changed through a mount.

use crate::fixture::{Place, holdfast, is_gone, wait_until};
use holdfast_testkit::skip::skipped;
use rustix::fs::FallocateFlags;
use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{FileExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::{Command, Stdio};

/// A place with an empty directory `dir`.
fn place() -> Option<Place> {
    let place = Place::with_mounts()?;
    fs::create_dir(place.path("dir")).unwrap();
    Some(place)
}

fn mount(place: &Place, options: &str) {
    let dir = place.path("dir");
    let dir = dir.to_str().expect("a plain path");
    let options: &[&str] = if options.is_empty() {
        &[]
    } else {
        &["-o", options]
    };
    holdfast([&["mount", dir, &place.mnt()], options].concat()).ok();
    assert!(place.is_mounted(), "returned before the mount is live");
}

/// The visible state of a tree.
fn shown(root: &Path) -> String {
    let format = "%P %y %m %n %U %G %s %T@ %C@ %l %i\\n";
    let script = format!(
        "find . -mindepth 1 -printf '{format}' | sort; find . -type f -print0 | sort -z | xargs -0r cksum"
    );
    let output = Command::new("sh")
        .args(["-c", &script])
        .current_dir(root)
        .output()
        .expect("it runs");
    assert!(
        output.status.success() && output.stderr.is_empty(),
        "{output:?}"
    );
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn what_a_program_changes_is_on_the_host_at_once() {
    let Some(place) = place() else { return };
    for options in ["", "valid=30", "exclusive", "valid=0"] {
        mount(&place, options);
        let (mnt, dir) = (place.path("mnt"), place.path("dir"));
        let compare = |what: &str| assert_eq!(shown(&mnt), shown(&dir), "{what} with {options:?}");
        fs::create_dir_all(mnt.join("a/b")).unwrap();
        fs::write(mnt.join("a/file"), vec![7; 300_000]).unwrap();
        compare("after a file was written");
        let mut file = OpenOptions::new()
            .read(true)
            .append(true)
            .open(mnt.join("a/file"))
            .unwrap();
        file.write_all(b"the end").unwrap();
        compare("after it was appended to");
        file.seek(SeekFrom::Start(299_998)).unwrap();
        let mut end = String::new();
        file.read_to_string(&mut end).unwrap();
        assert_eq!(end, "\u{7}\u{7}the end");
        let mode = fs::Permissions::from_mode(0o4711);
        fs::set_permissions(mnt.join("a/file"), mode).unwrap();
        std::os::unix::fs::chown(mnt.join("a/b"), Some(12), Some(34)).unwrap();
        file.set_modified(std::time::UNIX_EPOCH).unwrap();
        drop(file);
        compare("after attributes were set");
        fs::hard_link(mnt.join("a/file"), mnt.join("a/b/again")).unwrap();
        symlink("../nowhere", mnt.join("a/link")).unwrap();
        compare("after links were made");
        fs::rename(mnt.join("a"), mnt.join("moved")).unwrap();
        fs::write(mnt.join("over"), b"goes").unwrap();
        fs::rename(mnt.join("moved/file"), mnt.join("over")).unwrap();
        compare("after names were moved");
        let file = OpenOptions::new().write(true).open(mnt.join("over"));
        let file = file.unwrap();
        file.set_len(100_000).unwrap();
        let punch = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        rustix::fs::fallocate(&file, punch, 0, 50_000).unwrap();
        rustix::fs::fallocate(&file, FallocateFlags::empty(), 90_000, 60_000).unwrap();
        fs::copy(mnt.join("over"), mnt.join("copy")).unwrap();
        compare("after lengths were set");
        let refused = fs::remove_dir(mnt.join("moved")).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::DirectoryNotEmpty);
        file.sync_all().unwrap();
        fs::remove_dir_all(mnt.join("moved")).unwrap();
        fs::remove_file(mnt.join("over")).unwrap();
        file.write_all_at(b"goes on", 3).unwrap();
        fs::remove_file(mnt.join("copy")).unwrap();
        drop(file);
        compare("after all was removed");
        assert_eq!(fs::read_dir(&dir).unwrap().count(), 0);
        place.umount();
    }
}

#[test]
fn what_is_stored_in_a_mapping_comes_to_the_host() {
    const LEN: usize = 1 << 20;
    let Some(place) = place() else { return };
    mount(&place, "");
    let (mnt, dir) = (place.path("mnt/file"), place.path("dir/file"));
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create_new(true)
        .open(&mnt)
        .unwrap();
    file.set_len(LEN as u64).unwrap();
    // Every page of the file, in turn.
    let script = "import mmap, sys
f = open(sys.argv[1], 'r+b')
m = mmap.mmap(f.fileno(), 0)
for at in range(0, len(m), 4096):
    m[at:at + 4] = at.to_bytes(4, 'little')
m.flush()
";
    match Command::new("python3")
        .args(["-c", script])
        .arg(&mnt)
        .status()
    {
        Err(error) if error.kind() == ErrorKind::NotFound => return skipped("no python3"),
        status => assert!(status.unwrap().success()),
    }
    let content = fs::read(&dir).unwrap();
    assert_eq!(content.len(), LEN);
    for at in (0..LEN).step_by(4096) {
        assert_eq!(content[at..at + 4], (at as u32).to_le_bytes());
    }
    assert!(fs::read(&mnt).unwrap() == content);
    drop(file);
    place.umount();
}

#[test]
fn a_host_that_is_full_says_so_and_has_room_again() {
    let Some(place) = place() else { return };
    let dir = place.path("dir");
    let host = dir.to_str().expect("a plain path");
    let run = |program: &str, arguments: &[&str]| {
        let status = Command::new(program).args(arguments).status();
        assert!(status.expect("it runs").success(), "{program}");
    };
    run("mount", &["-t", "tmpfs", "-o", "size=1m", "none", host]);
    mount(&place, "");
    let mnt = place.path("mnt");
    let full = fs::write(mnt.join("large"), vec![1; 4 << 20]).unwrap_err();
    assert_eq!(full.kind(), ErrorKind::StorageFull);
    let kept = fs::metadata(dir.join("large")).unwrap().len();
    assert!((1 << 19..=1 << 20).contains(&kept), "{kept} bytes fitted");
    fs::write(mnt.join("small"), b"x").unwrap_err();
    fs::remove_file(mnt.join("large")).unwrap();
    wait_until("there is room again", || {
        fs::write(mnt.join("small"), vec![2; 100_000]).is_ok()
    });
    assert_eq!(fs::read(dir.join("small")).unwrap(), vec![2; 100_000]);
    place.umount();
    run("umount", &[host]);
}

#[test]
fn two_mounts_that_change_a_directory_in_turn_see_each_others_changes() {
    let Some(place) = place() else { return };
    mount(&place, "valid=0");
    let second = place.path("second");
    let dir = format!("dir:{}", place.path("dir").display());
    let second_name = second.to_str().expect("a plain path");
    holdfast(["mount", "-o", "valid=0", &dir, second_name]).ok();
    let mounts = [place.path("mnt"), second.clone()];
    for round in 0..20 {
        let (one, other) = (&mounts[round % 2], &mounts[(round + 1) % 2]);
        fs::write(one.join("file"), format!("round {round}")).unwrap();
        let read = fs::read_to_string(other.join("file")).unwrap();
        assert_eq!(read, format!("round {round}"));
        fs::rename(other.join("file"), other.join("moved")).unwrap();
        assert!(!one.join("file").exists() && one.join("moved").exists());
        let mut file = OpenOptions::new()
            .append(true)
            .open(one.join("moved"))
            .unwrap();
        file.write_all(b", more").unwrap();
        let read = fs::read_to_string(other.join("moved")).unwrap();
        assert_eq!(read, format!("round {round}, more"));
        fs::remove_file(other.join("moved")).unwrap();
        assert_eq!(fs::read_dir(one).unwrap().count(), 0);
    }
    crate::fixture::umount(second_name).ok();
    place.umount();
}

#[test]
fn all_that_was_answered_is_on_the_host_when_a_daemon_is_killed() {
    let Some(place) = place() else { return };
    mount(&place, "");
    let (mnt, dir) = (place.path("mnt"), place.path("dir"));
    let log = File::create(place.path("log")).unwrap();
    // Each line was written after the file that it names.
    let script = "i=0; while mkdir $i && echo $i > $i/file && mv $i/file $i/done; do echo $i; i=$((i+1)); done";
    let mut writer = Command::new("sh")
        .args(["-c", script])
        .current_dir(&mnt)
        .stdout(log)
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let answered = || {
        let log = fs::read_to_string(place.path("log")).unwrap();
        log.lines().count()
    };
    wait_until("some are written", || answered() > 200);
    let daemon = place.daemon();
    let pid = rustix::process::Pid::from_raw(daemon).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    writer.wait().unwrap();
    wait_until("the daemon is gone", || is_gone(daemon));
    for number in 0..answered() {
        let content = fs::read_to_string(dir.join(format!("{number}/done"))).unwrap();
        assert_eq!(content, format!("{number}\n"));
    }
    let status = Command::new("umount").args(["-l", &place.mnt()]).status();
    assert!(status.unwrap().success());
}

#[test]
fn git_works_in_a_directory_that_is_mounted() {
    let Some(place) = place() else { return };
    if Command::new("git").arg("--version").output().is_err() {
        return skipped("there is no git");
    }
    mount(&place, "");
    let script = "
        git init -q . && git config user.email a@b && git config user.name n
        for i in 1 2 3 4 5; do
            mkdir -p d$i; seq 1 $((i * 2000)) > d$i/f; echo $i > common
            git add -A && git commit -qm $i
        done
        git checkout -qb other HEAD~2 && echo x > common && git commit -qam x
        git checkout -q - && git gc -q && git fsck --strict && git status --porcelain";
    let output = Command::new("sh")
        .args(["-ec", script])
        .current_dir(place.path("mnt"))
        .env("HOME", place.path("dir"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "");
    let beside = Command::new("git")
        .args(["-c", "safe.directory=*", "fsck", "--strict"])
        .current_dir(place.path("dir"))
        .status();
    assert!(beside.unwrap().success());
    place.umount();
}
