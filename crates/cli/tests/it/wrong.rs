//! Wrong uses that take more than a command line: each is refused with the right exit code, and its
//! message names the subject and the remedy. `scripts/wrong-uses.txt` has the others.

use crate::fixture::{HOLDFAST, Place, Run, call, holdfast, named};
use holdfast_volume::BLOCK;
use holdfast_volume::superblock::{SLOTS, Superblock};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// A folder with the files that the calls name.
fn furnish(place: &Place) {
    let path = |name: &str| place.path(name);
    let image = path("v.hf");
    fs::create_dir(path("d")).unwrap();
    fs::create_dir_all(path("from/dir")).unwrap();
    fs::write(path("from/file"), "x").unwrap();
    call(&[
        &"mkfs",
        &"-q",
        &"--size",
        &"64m",
        &"--from",
        &path("from"),
        &image,
    ])
    .ok();
    fs::copy(&image, path("root.hf")).unwrap();
    let mut headless = fs::read(&image).unwrap();
    headless[..8192].fill(0);
    fs::write(path("headless.hf"), headless).unwrap();
    let mut old = fs::read(&image).unwrap();
    for (slot, block) in SLOTS.into_iter().zip(old.chunks_mut(BLOCK)) {
        let mut superblock = Superblock::decode(block, slot).unwrap();
        superblock.bundle = 0;
        block.copy_from_slice(&superblock.encode(slot));
    }
    fs::write(path("old.hf"), old).unwrap();
    fs::write(path("empty"), "").unwrap();
    let mut ext = vec![0; 4 << 20];
    ext[1080..1082].copy_from_slice(b"\x53\xef");
    fs::write(path("e4"), ext).unwrap();
}

#[test]
fn a_volume_of_an_older_format_is_told_from_a_damaged_one() {
    let place = Place::new();
    furnish(&place);
    let old = place.path("old.hf");
    for (command, code) in [("fsck", 8), ("info", 1)] {
        let said = call(&[&command, &old]).fails(code);
        let what = "no usable superblock (its format is older than version 1";
        assert!(
            said.contains(what) && said.contains("holdfast mkfs"),
            "{said}"
        );
    }
}

/// Runs `$2 mount` in the root directory `$1`, with a `/dev` of its own that `$3` fills. (A mount
/// namespace would keep the mounts of all other tests alive.)
const MOUNT_ELSEWHERE: &str = r#"
    set -e
    root=$1
    mkdir "$root"
    mount -t tmpfs none "$root"
    trap 'umount -R -l "$root"' EXIT
    mkdir "$root/dev" "$root/proc" "$root/tmp" "$root/nodev"
    for dir in /usr /bin /lib /lib64; do
        if [ -L $dir ]; then cp -P $dir "$root$dir"
        elif [ -d $dir ]; then mkdir "$root$dir"; mount --bind $dir "$root$dir"
        fi
    done
    mount -t proc none "$root/proc"
    mknod -m 666 "$root/dev/null" c 1 3
    : >"$root/holdfast"
    mount --bind "$2" "$root/holdfast"
    cd "$root/dev"
    eval "$3"
    cd /
    code=0
    chroot "$root" /holdfast mount mem: /tmp/mnt || code=$?
    [ ! -e "$root/tmp/mnt" ] || code=made
    exit $code
"#;

#[test]
fn a_device_of_fuse_that_is_not_to_be_had_is_named_with_the_remedy() {
    let Some(place) = Place::with_mounts() else {
        return;
    };
    for (make, thing, remedy) in [
        (
            "true",
            "/dev/fuse: is not there",
            "modprobe fuse; for a container",
        ),
        // No process has this number.
        (
            "mknod fuse c 10 222",
            "/dev/fuse: cannot be opened: No such device",
            "modprobe fuse",
        ),
        (
            "mount -t tmpfs -o nodev none ../nodev; mknod ../nodev/fuse c 10 229; : >fuse; mount --bind ../nodev/fuse fuse",
            "/dev/fuse: cannot be opened: Permission denied",
            "chmod 666 /dev/fuse",
        ),
        ("rm null", "the daemon cannot be started", "/dev/null"),
    ] {
        let mut command = Command::new("sh");
        command.args(["-c", MOUNT_ELSEWHERE, "sh"]);
        command.args([&place.path("root"), Path::new(HOLDFAST)]);
        let output = command.arg(make).stdin(Stdio::null()).output().unwrap();
        fs::remove_dir(place.path("root")).unwrap();
        let said = Run::from(output).fails(1);
        assert!(
            said.contains(thing) && said.contains(remedy),
            "{make}: {said}"
        );
    }
}

#[test]
fn a_reader_that_goes_away_is_no_error_worth_words() {
    let Some(place) = Place::with_mounts() else {
        return;
    };
    furnish(&place);
    let image = place.path("v.hf");
    holdfast(["mount", image.to_str().unwrap(), &place.mnt()]).ok();
    for words in [
        "top --json --interval 0.1 mnt",
        "info mnt",
        "info --json root.hf",
        "bulkstat mnt",
        "bulkstat root.hf",
        "fsck root.hf",
        "fsck --json root.hf",
        "warm mnt",
        "cp -r root.hf:/ out",
        "completions bash",
        "man",
        "--help",
        "mount --help",
        "--version",
    ] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = Command::new(HOLDFAST);
        command
            .args(words.split_whitespace())
            .current_dir(place.path(""));
        command
            .stdin(Stdio::null())
            .stdout(writer)
            .stderr(Stdio::piped());
        let output = command.spawn().unwrap().wait_with_output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{words}");
        assert!(output.status.code().is_some(), "{words}: {}", output.status);
    }
    place.umount();
}

#[test]
fn output_that_cannot_be_written_is_named() {
    let place = Place::new();
    furnish(&place);
    for words in [
        "info v.hf",
        "bulkstat v.hf",
        "fsck v.hf",
        "man",
        "completions zsh",
    ] {
        let full = fs::File::options().write(true).open("/dev/full").unwrap();
        let mut command = Command::new(HOLDFAST);
        command
            .args(words.split_whitespace())
            .current_dir(place.path(""));
        let output = command.stdout(full).stderr(Stdio::piped()).output();
        let said = String::from_utf8_lossy(&output.unwrap().stderr).into_owned();
        let expected = "holdfast: standard output: No space left on device";
        assert!(said.contains(expected), "{words}: {said}");
    }
}

#[test]
fn a_volume_that_does_not_fit_leaves_no_image_and_what_was_there() {
    let Some(place) = Place::with_mounts() else {
        return;
    };
    furnish(&place);
    fs::write(place.path("from/big"), vec![1; 8 << 20]).unwrap();
    for (size, words) in [
        ("2m", "mkfs --size 64m tiny/new.hf"),
        ("2m", "mkfs tiny/new.hf"),
        ("2m", "mkfs --force --size 64m tiny/there"),
        ("2m", "mkfs tiny/zeros"),
        ("5m", "mkfs --force --size 64m tiny/there"),
        ("12m", "mkfs --size 64m --from from tiny/new.hf"),
        ("2m", "mount --create --size 64m tiny/new.hf m"),
    ] {
        let script = r#"
            mkdir -p tiny
            mount -t tmpfs -o "size=$1" none tiny
            trap 'umount -l tiny' EXIT
            shift
            echo content >tiny/there
            truncate -s 64m tiny/zeros
            "$@"
            code=$?
            ls -s tiny
            cat tiny/there
            exit $code"#;
        let mut command = Command::new("sh");
        command.args(["-c", script, "sh", size, HOLDFAST]);
        command
            .args(words.split_whitespace())
            .current_dir(place.path(""));
        let run = Run::from(command.stdin(Stdio::null()).output().unwrap());
        assert_eq!(run.code, Some(1), "{words}: {}{}", run.out, run.error);
        assert!(run.error.contains("room"), "{words}: {}", run.error);
        let left: Vec<&str> = run.out.lines().skip(1).map(str::trim).collect();
        assert!(left.last() == Some(&"content"), "{words}: {}", run.out);
        assert!(!run.out.contains("new.hf"), "{words}: {}", run.out);
    }
}

#[test]
fn helpers_give_the_exit_codes_of_mount_and_fsck() {
    let place = Place::new();
    furnish(&place);
    let path = |name: &str| place.path(name).to_str().unwrap().to_owned();
    for (program, words, code) in [
        ("mount.holdfast", vec![], 1),
        ("mount.holdfast", vec!["--frobnicate".into()], 1),
        ("mount.holdfast", vec![path("none"), path("none/m")], 32),
        // A fake mount: it mounts nothing, and ignores what it does not know.
        (
            "mount.holdfast",
            ["mem:", "m", "-s", "-f", "-o", "frobnicate"]
                .map(String::from)
                .into(),
            0,
        ),
        ("umount.holdfast", vec![path("d")], 32),
        ("umount.holdfast", vec![], 1),
        ("mkfs.holdfast", vec![path("v.hf")], 1),
        ("fsck.holdfast", vec![], 16),
        ("fsck.holdfast", vec!["-x".into()], 16),
        ("fsck.holdfast", vec![path("none")], 8),
        ("fsck.holdfast", vec![path("e4")], 8),
        ("fsck.holdfast", vec!["-a".into(), path("e4")], 8),
        ("fsck.holdfast", vec!["-y".into(), path("empty")], 8),
        (
            "fsck.holdfast",
            vec!["-y".into(), "-n".into(), path("v.hf")],
            16,
        ),
        ("fsck.holdfast", vec![path("headless.hf")], 4),
        ("fsck.holdfast", vec![path("v.hf")], 0),
    ] {
        let run = named(program, &words);
        assert_eq!(run.code, Some(code), "{program} {words:?}: {}", run.error);
    }
}
