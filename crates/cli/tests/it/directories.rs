//! A directory of the host, mounted.

use crate::fixture::{Place, holdfast};
use rustix::fs::{Mode, OFlags, RawDir, SeekFrom};
use std::fs;
use std::mem::MaybeUninit;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// A place with a directory `dir` that has files of all kinds.
fn place() -> Option<Place> {
    Some(with_a_directory(Place::with_mounts()?))
}

fn with_a_directory(place: Place) -> Place {
    let at = |name: &str| place.path("dir").join(name);
    fs::create_dir_all(at("one/two/three")).unwrap();
    fs::write(at("one/file"), vec![7; 400_000]).unwrap();
    fs::set_permissions(at("one/file"), fs::Permissions::from_mode(0o640)).unwrap();
    fs::hard_link(at("one/file"), at("one/two/again")).unwrap();
    symlink("../file", at("one/two/link")).unwrap();
    let sparse = fs::File::create(at("sparse")).unwrap();
    sparse.set_len(5 << 20).unwrap();
    for number in 0..300 {
        fs::write(at(&format!("one/two/three/{number}")), format!("{number}")).unwrap();
    }
    place
}

fn mount(place: &Place, options: &str) {
    let dir = place.path("dir");
    let dir = dir.to_str().expect("a plain path");
    holdfast(["mount", "-o", options, dir, &place.mnt()]).ok();
    assert!(place.is_mounted(), "returned before the mount is live");
}

/// The output of find(1) for a tree, without the mount point's own attributes; and the content of
/// files.
#[track_caller]
fn shown(root: &Path) -> String {
    listed(root).unwrap_or_else(|error| panic!("{error}"))
}

/// As [`shown`]; an error while names change between the programs.
fn listed(root: &Path) -> Result<String, String> {
    let format = "%P %y %m %n %U %G %s %T@ %C@ %l %i\\n";
    let run = |program: &str, arguments: &[&str]| {
        let output = Command::new(program)
            .args(arguments)
            .current_dir(root)
            .output()
            .expect("it runs");
        match output.status.success() {
            true => Ok(String::from_utf8(output.stdout).expect("text")),
            false => Err(format!("{output:?}")),
        }
    };
    let found = run("find", &[".", "-mindepth", "1", "-printf", format])?;
    let mut lines: Vec<&str> = found.lines().collect();
    lines.sort_unstable();
    let sums = run(
        "sh",
        &["-c", "find . -type f -print0 | sort -z | xargs -0 cksum"],
    )?;
    Ok(lines.join("\n") + &sums)
}

/// How often the kernel looked a name up.
fn lookups(place: &Place) -> u64 {
    let told = holdfast(["info", &place.mnt()]).ok();
    let line = told.lines().find(|line| line.contains("LOOKUP"));
    let count = line.and_then(|line| line.split_whitespace().next_back());
    count.map_or(0, |count| count.replace(',', "").parse().expect("a count"))
}

/// Names of a directory from a position on, each with the position after it.
fn names_from(dir: &Path, position: u64) -> Vec<(String, u64)> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let dir = rustix::fs::open(dir, flags, Mode::empty()).unwrap();
    rustix::fs::seek(&dir, SeekFrom::Start(position)).unwrap();
    let mut buffer = [MaybeUninit::uninit(); 4096];
    let mut listing = RawDir::new(&dir, &mut buffer);
    let mut names = Vec::new();
    while let Some(entry) = listing.next() {
        let entry = entry.unwrap();
        let name = entry.file_name().to_str().unwrap().to_owned();
        names.push((name, entry.next_entry_cookie()));
    }
    names
}

#[test]
fn a_remembered_position_shows_no_name_that_was_removed() {
    for options in ["exclusive", "valid=1", "told"] {
        let Some(place) = place() else { return };
        mount(&place, options);
        let dir = place.path("mnt").join("one/two/three");
        let positions = names_from(&dir, 0);
        assert_eq!(names_from(&dir, 0), positions);
        let (gone, left): (Vec<_>, Vec<_>) = positions
            .iter()
            .enumerate()
            .partition(|(n, _)| (10..35).contains(n));
        for (_, (name, _)) in &gone {
            fs::remove_file(dir.join(name)).unwrap();
        }
        for (n, (_, position)) in positions.iter().enumerate().take(40) {
            let expected = left.iter().filter(|(at, _)| *at > n);
            let expected: Vec<(String, u64)> = expected.map(|(_, it)| (*it).clone()).collect();
            assert_eq!(
                names_from(&dir, *position),
                expected,
                "{options}, behind {n}"
            );
        }
        place.umount();
    }
}

#[test]
fn a_tree_that_is_listed_again_has_its_attributes_in_its_listings() {
    let Some(place) = place() else { return };
    mount(&place, "ro");
    let find = || {
        let mut find = Command::new("find");
        find.args([&*place.mnt(), "-size", "+1k"]);
        assert!(find.status().expect("it runs").success());
    };
    find();
    let before = lookups(&place);
    // The kernel's cached attributes have expired.
    std::thread::sleep(Duration::from_millis(1100));
    find();
    let again = lookups(&place) - before;
    assert!(again < 50, "{again} lookups for 300 files");
    place.umount();
}

/// Waits until changes by others are seen, for less than the validity of cached data.
fn wait_for(what: &str, holds: impl Fn() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < Duration::from_secs(15), "{what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn what_others_change_on_a_local_host_is_told_and_nothing_else_is_asked_for_again() {
    let Some(place) = place() else { return };
    for options in ["ro", "told"] {
        mount(&place, options);
        let (dir, mnt) = (place.path("dir"), place.path("mnt"));
        // The kernel caches a directory only after it was listed.
        for _ in 0..3 {
            assert_eq!(shown(&mnt), shown(&dir));
            std::thread::sleep(Duration::from_millis(1100));
        }
        let before = lookups(&place);
        assert_eq!(shown(&mnt), shown(&dir));
        let again = lookups(&place) - before;
        assert!(
            again < 10,
            "{again} lookups for 300 files that nobody changed"
        );

        // The kernel has cached each of these.
        fs::write(dir.join("one/two/three/7"), b"longer than it was").unwrap();
        wait_for("content", || {
            fs::read(mnt.join("one/two/three/7")).unwrap() == b"longer than it was"
        });
        let permissions = fs::Permissions::from_mode(0o600);
        fs::set_permissions(dir.join("one/two/three/8"), permissions).unwrap();
        wait_for("permissions", || {
            let metadata = fs::metadata(mnt.join("one/two/three/8")).unwrap();
            metadata.mode() & 0o777 == 0o600
        });
        let new = |root: &Path| root.join("one/two/three/new");
        assert!(!new(&mnt).exists());
        fs::write(new(&dir), b"").unwrap();
        wait_for("a new name", || new(&mnt).exists());
        fs::remove_file(new(&dir)).unwrap();
        wait_for("a name that went", || !new(&mnt).exists());
        fs::rename(dir.join("one/two"), dir.join("moved")).unwrap();
        wait_for("a directory that moved", || {
            mnt.join("moved/three/9").exists()
        });
        wait_for("all", || listed(&mnt) == Ok(shown(&dir)));
        fs::rename(dir.join("moved"), dir.join("one/two")).unwrap();
        wait_for("all as it was", || listed(&mnt) == Ok(shown(&dir)));
        place.umount();
    }
}

#[test]
fn an_open_file_shows_what_others_write_by_its_mapping_too_and_by_a_name_that_nobody_watches() {
    let script = "
import mmap, os, sys, time
below, seen, aside = sys.argv[1:]
def write(path, content):
    fd = os.open(path, os.O_WRONLY)
    os.pwrite(fd, content, 0)
    os.close(fd)
def shows(what, get, content):
    begun = time.monotonic()
    while get() != content:
        assert time.monotonic() - begun < 20, (what, get())
        time.sleep(0.001)
write(below, b'one')
shows('read', lambda: open(seen, 'rb').read(), b'one')
with open(seen, 'rb') as f:
    mapped = mmap.mmap(f.fileno(), 3, prot=mmap.PROT_READ)
    assert mapped[:] == b'one'
    for content in b'two', b'abc':
        write(below, content)
        shows('mapping', lambda: mapped[:], content)
    # No event tells of this.
    for content in b'ten', b'xyz':
        os.link(below, aside)
        write(aside, content)
        os.unlink(aside)
        shows('mapping', lambda: mapped[:], content)
    mapped.close()
# The same of a file that is not open meanwhile: what is older than a second is not read.
os.link(below, aside)
write(aside, b'end')
os.unlink(aside)
time.sleep(1)
assert open(seen, 'rb').read() == b'end'
";
    for options in ["told", "valid=1"] {
        let Some(place) = place() else { return };
        fs::write(place.path("dir").join("one/two/three/7"), b"old").unwrap();
        mount(&place, options);
        let output = Command::new("python3")
            .args(["-c", script])
            .arg(place.path("dir").join("one/two/three/7"))
            .arg(place.path("mnt").join("one/two/three/7"))
            .arg(place.path("aside"))
            .output()
            .expect("python3 runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{options}: {said}");
        place.umount();
    }
}

#[test]
fn what_is_changed_through_the_mount_is_not_told_to_it() {
    let Some(place) = place() else { return };
    mount(&place, "told");
    let at = place.path("mnt/one/two/three");
    for number in 0..300 {
        fs::write(at.join(format!("own {number}")), b"content").unwrap();
    }
    // Events in flight.
    std::thread::sleep(Duration::from_millis(200));
    let before = lookups(&place);
    for number in 0..300 {
        let read = fs::read(at.join(format!("own {number}"))).unwrap();
        assert_eq!(read, b"content");
    }
    let again = lookups(&place) - before;
    assert!(
        again < 30,
        "{again} lookups for 300 files that were just made"
    );
    assert_eq!(shown(&place.path("mnt")), shown(&place.path("dir")));
    place.umount();
}

#[test]
fn a_directory_looks_as_it_does_beside_the_mount() {
    let Some(place) = place() else { return };
    for options in ["ro", "ro,exclusive", "ro,valid=0"] {
        mount(&place, options);
        assert_eq!(shown(&place.path("mnt")), shown(&place.path("dir")));
        let source = format!("dir:{}", place.path("dir").display());
        assert_eq!(place.info()["source"], source);
        assert_eq!(place.info()["state"], "read_only");
        let write = fs::write(place.path("mnt/new"), b"").unwrap_err();
        assert_eq!(write.kind(), std::io::ErrorKind::ReadOnlyFilesystem);
        place.umount();
    }
}

#[test]
fn a_directory_may_be_its_own_mount_point_or_hold_it() {
    let Some(place) = place() else { return };
    let dir = place.path("dir");
    let path = |path: &PathBuf| path.to_str().expect("a plain path").to_owned();
    let before = shown(&dir);
    holdfast(["mount", "-o", "ro,nonempty", &path(&dir), &path(&dir)]).ok();
    assert_eq!(shown(&dir), before);
    crate::fixture::umount(&path(&dir)).ok();
    let below = dir.join("one/two/here");
    fs::create_dir(&below).unwrap();
    holdfast(["mount", "-o", "ro,valid=0", &path(&dir), &path(&below)]).ok();
    let sum = fs::metadata(below.join("one/file")).unwrap().size();
    assert_eq!(sum, 400_000);
    // The mount below is listed, and not entered.
    let itself = below.join("one/two/here");
    assert!(fs::metadata(&itself).unwrap().is_dir());
    let entered = fs::read_dir(&itself).and_then(|mut names| names.next().transpose());
    assert_eq!(entered.unwrap_err().raw_os_error(), Some(libc::EXDEV));
    crate::fixture::umount(&path(&below)).ok();
}

/// How many requests of a kind there were.
fn requests(place: &Place, name: &str) -> u64 {
    place.info()["requests"][name].as_u64().unwrap_or(0)
}

#[test]
fn the_kernel_reads_and_writes_large_files_by_itself_and_all_if_it_is_told_to() {
    let Some(place) = place() else { return };
    fs::write(place.path("dir/large"), vec![5; 3 << 20]).unwrap();
    let is_able = |options: &str| {
        mount(&place, options);
        let reason = place.info()["no_passthrough"].clone();
        if reason.is_string() {
            place.umount();
            println!("skipped: {reason}");
        }
        !reason.is_string()
    };
    if !is_able("defaults") {
        return;
    }
    let transfers = |place: &Place| requests(place, "READ") + requests(place, "WRITE");
    assert_eq!(fs::read(place.path("mnt/large")).unwrap(), vec![5; 3 << 20]);
    assert_eq!(transfers(&place), 0);
    assert_eq!(fs::read(place.path("mnt/one/file")).unwrap().len(), 400_000);
    assert!(transfers(&place) > 0);
    place.umount();
    for options in ["passthrough=on", "passthrough=on,ro", "valid=0"] {
        mount(&place, options);
        assert_eq!(shown(&place.path("mnt")), shown(&place.path("dir")));
        if !options.contains("ro") {
            fs::write(place.path("mnt/new"), b"new").unwrap();
            assert_eq!(fs::read(place.path("dir/new")).unwrap(), b"new");
        }
        assert_eq!(transfers(&place), 0, "{options}");
        place.umount();
    }
    for options in ["ro,opens=local", "passthrough=off"] {
        mount(&place, options);
        fs::read(place.path("mnt/large")).unwrap();
        assert!(transfers(&place) > 0, "{options}");
        place.umount();
    }
}

#[test]
fn a_daemon_without_the_right_to_pass_files_through_says_so_or_serves_them() {
    let Some(place) = Place::alone().map(with_a_directory) else {
        return;
    };
    let (dir, mnt) = (place.path("dir"), place.path("mnt"));
    // Root of a user namespace mounts, and is not root for the kernel.
    let apart = |options: &str| {
        let script = format!(
            "set -e; {program} mount -o {options} {dir} {mnt}; cat {mnt}/one/file | wc -c; {program} umount {mnt}",
            program = env!("CARGO_BIN_EXE_holdfast"),
            dir = dir.display(),
            mnt = mnt.display(),
        );
        Command::new("unshare")
            .args(["--user", "--map-root-user", "--mount", "sh", "-c", &script])
            .output()
            .expect("it runs")
    };
    let served = apart("passthrough=auto");
    if !served.status.success() {
        println!("skipped: no mount in a user namespace: {served:?}");
        return;
    }
    assert_eq!(served.stdout, b"400000\n");
    let refused = apart("passthrough=on");
    let error = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success(), "{error}");
    assert!(error.contains("CAP_SYS_ADMIN"), "{error}");
    assert!(error.contains("passthrough=auto"), "{error}");
}
