//! Files and directories of a mounted directory that are open while others change their names.

use crate::fixture::{Place, holdfast};
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const TRANSPORTS: [&str; 2] = ["dev", "uring"];
/// With and without passthrough.
const SIZES: [usize; 2] = [100, 2 << 20];

/// Runs a test on a mount of `dir`, over each available transport and with each of these options.
fn mounted(options: &[&str], act: impl Fn(&Path, &Path, &str)) {
    for transport in TRANSPORTS {
        for options in options {
            let Some(place) = Place::with_mounts() else {
                return;
            };
            let (dir, mnt) = (place.path("dir"), place.path("mnt"));
            fs::create_dir(&dir).unwrap();
            let all = format!("{options},transport={transport}");
            let run = holdfast(["mount", "-o", &all, dir.to_str().unwrap(), &place.mnt()]);
            if run.code != Some(0) && transport == "uring" {
                println!("skipped: {transport}: {}", run.error);
                continue;
            }
            run.ok();
            act(&dir, &mnt, &all);
            place.umount();
        }
    }
}

/// Waits until the cached state is outdated.
fn appears(path: &Path) {
    let begun = Instant::now();
    while fs::symlink_metadata(path).is_err() {
        assert!(begun.elapsed() < Duration::from_secs(15), "{path:?}");
        thread::sleep(Duration::from_millis(2));
    }
}

/// A change: its name, and the function that makes it in a directory.
type Fate = (&'static str, fn(&Path));

/// Changes by others to a name: removed, replaced, or its directory moved.
const FATES: [Fate; 4] = [
    ("removed", |dir| fs::remove_file(dir.join("file")).unwrap()),
    ("replaced", |dir| {
        fs::write(dir.join("new"), b"another").unwrap();
        fs::rename(dir.join("new"), dir.join("file")).unwrap();
    }),
    ("moved", |dir| {
        fs::rename(dir.join("file"), dir.join("moved")).unwrap()
    }),
    ("moved with its directory", |dir| {
        fs::rename(dir, dir.with_extension("moved")).unwrap();
    }),
];

#[test]
fn a_file_that_is_open_stays_the_same_whatever_others_do_to_its_name() {
    let options = ["told", "valid=0", "valid=1", "ro", "ro,valid=0"];
    mounted(&options, |dir, mnt, options| {
        for size in SIZES {
            for (fate, befall) in FATES {
                let case = format!("{options}: {size} bytes, {fate}");
                let below = format!("{} {size}", fate.replace(' ', "_"));
                fs::create_dir(dir.join(&below)).unwrap();
                fs::write(dir.join(&below).join("file"), vec![7; size]).unwrap();
                let path = mnt.join(&below).join("file");
                appears(&path);
                let reader = File::open(&path).expect(&case);
                let before = reader.metadata().expect(&case);
                let writer = OpenOptions::new().write(true).open(&path);
                befall(&dir.join(&below));
                let mut bytes = vec![0; size];
                reader.read_exact_at(&mut bytes, 0).expect(&case);
                assert!(bytes.iter().all(|byte| *byte == 7), "{case}");
                let after = reader.metadata().expect(&case);
                assert_eq!(after.ino(), before.ino(), "{case}");
                // Only the host has the file.
                let again = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&reader));
                File::open(again).expect(&case);
                let Ok(writer) = writer else { continue };
                writer.write_all_at(&[8; 50], 0).expect(&case);
                writer.set_len(60).expect(&case);
                let private = Permissions::from_mode(0o600);
                writer.set_permissions(private).expect(&case);
                writer.sync_all().expect(&case);
                drop(writer);
                let mut all = Vec::new();
                (&reader).read_to_end(&mut all).expect(&case);
                assert_eq!(all, [vec![8; 50], vec![7; 10]].concat(), "{case}");
                assert_eq!(reader.metadata().expect(&case).mode() & 0o777, 0o600);
            }
        }
    });
}

#[test]
fn directories_that_others_move_or_remove_while_they_are_in_use_stay_the_same() {
    mounted(&["told", "valid=0", "ro"], |dir, mnt, options| {
        fs::create_dir_all(dir.join("one/moved")).unwrap();
        fs::create_dir_all(dir.join("one/removed")).unwrap();
        fs::write(dir.join("one/moved/file"), b"content").unwrap();
        appears(&mnt.join("one/moved/file"));
        appears(&mnt.join("one/removed"));
        // Processes have these as working directories; the directories are not open.
        let begins = |name: &str, script: &str| {
            let mut shell = Command::new("sh");
            shell.args(["-c", &format!("echo begun; read line; {script}")]);
            shell.current_dir(mnt.join(name));
            shell.stdin(std::process::Stdio::piped());
            shell.stdout(std::process::Stdio::piped());
            let mut shell = shell.spawn().unwrap();
            let mut begun = [0; 6];
            let out = shell.stdout.as_mut().unwrap();
            out.read_exact(&mut begun).unwrap();
            shell
        };
        let in_moved = begins("one/moved", "cat file && ls && stat -c %F .");
        let in_removed = begins("one/removed", "stat -c %F .; ls; cat file 2>/dev/null");
        fs::rename(dir.join("one"), dir.join("two")).unwrap();
        fs::remove_dir(dir.join("two/removed")).unwrap();
        // The cached attributes have expired.
        thread::sleep(Duration::from_millis(1100));
        let ends = |mut shell: std::process::Child| {
            shell.stdin.take().unwrap().write_all(b"\n").unwrap();
            let output = shell.wait_with_output().unwrap();
            String::from_utf8(output.stdout).unwrap()
        };
        assert_eq!(ends(in_moved), "contentfile\ndirectory\n", "{options}");
        assert_eq!(ends(in_removed), "directory\n", "{options}");
    });
}

#[test]
fn a_name_that_others_replace_all_the_time_is_never_stale() {
    mounted(
        &["told", "valid=0", "valid=1", "ro"],
        |dir, mnt, options| {
            let over = AtomicBool::new(false);
            let replace = || {
                for round in 0_u64.. {
                    let byte = b'a' + (round % 26) as u8;
                    fs::write(dir.join("new"), vec![byte; 3000 + usize::from(byte)]).unwrap();
                    fs::rename(dir.join("new"), dir.join("file")).unwrap();
                    symlink("file", dir.join("new")).unwrap();
                    fs::rename(dir.join("new"), dir.join("link")).unwrap();
                    if over.load(Ordering::Relaxed) {
                        return;
                    }
                    thread::sleep(Duration::from_micros(300));
                }
            };
            let read = || {
                appears(&mnt.join("link"));
                for round in 0..1000 {
                    let case = format!("{options}, round {round}");
                    for name in ["file", "link"] {
                        let mut file = File::open(mnt.join(name)).expect(&case);
                        let mut bytes = Vec::new();
                        file.read_to_end(&mut bytes).expect(&case);
                        let first = bytes[0];
                        assert_eq!(bytes.len(), 3000 + usize::from(first), "{case}");
                        assert!(bytes.iter().all(|byte| *byte == first), "{case}");
                        assert_eq!(file.metadata().expect(&case).len(), bytes.len() as u64);
                        fs::metadata(mnt.join(name)).expect(&case);
                    }
                    fs::read_link(mnt.join("link")).expect(&case);
                }
            };
            thread::scope(|scope| {
                scope.spawn(replace);
                let read = std::panic::catch_unwind(std::panic::AssertUnwindSafe(read));
                over.store(true, Ordering::Relaxed);
                if let Err(panic) = read {
                    std::panic::resume_unwind(panic);
                }
            });
        },
    );
}

#[test]
fn files_whose_size_tells_nothing_are_read_to_their_end() {
    for transport in TRANSPORTS {
        for options in ["ro", "ro,valid=0", "ro,exclusive", "told=", "valid=1"] {
            let Some(place) = Place::with_mounts() else {
                return;
            };
            let options = options.trim_start_matches("told=");
            let all = format!("{options},transport={transport}");
            let all = all.trim_start_matches(',');
            let run = holdfast(["mount", "-o", all, "dir:/proc/sys", &place.mnt()]);
            if run.code != Some(0) && transport == "uring" {
                println!("skipped: {transport}: {}", run.error);
                continue;
            }
            run.ok();
            let read = fs::read(place.path("mnt/kernel/ostype")).expect(all);
            assert_eq!(read, b"Linux\n", "{all}");
            place.umount();
        }
    }
    let Some(place) = Place::with_mounts() else {
        return;
    };
    holdfast(["mount", "-o", "ro", "dir:/sys/kernel", &place.mnt()]).ok();
    match fs::read("/sys/kernel/fscaps") {
        // The size of these is not compared.
        Ok(expected) => assert_eq!(fs::read(place.path("mnt/fscaps")).unwrap(), expected),
        Err(error) => assert_eq!(error.kind(), ErrorKind::NotFound),
    }
    place.umount();
}
