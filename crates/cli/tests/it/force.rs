//! Unmounting by force: errors of users of the mount, and the state afterwards.

use crate::fixture::{Place, Store, holdfast, is_gone, wait_until};
use holdfast_testkit::skip::skipped_by_kernel;
use rustix::io::Errno;
use std::{
    fs::{self, File},
    io::{self, Read, Write},
    os::unix::fs::FileExt,
    path::Path,
    process::{Command, Stdio},
};

/// Runs `test` on a mount of each store over each available transport.
fn over_each_transport(test: impl Fn(&Place)) {
    for store in [Store::Memory, Store::Volume] {
        over_each_transport_of(store, "local", &test);
    }
}

fn over_each_transport_of(store: Store, opens: &str, test: impl Fn(&Place)) {
    for transport in ["dev", "uring"] {
        let Some(place) = Place::over(store) else {
            return;
        };
        let enabled = fs::read_to_string("/sys/module/fuse/parameters/enable_uring");
        if transport == "uring" && !enabled.is_ok_and(|value| value.trim() == "Y") {
            skipped_by_kernel("enable_uring of the fuse module is not Y");
            return;
        }
        place.mount(&["--transport", transport, "-o", &format!("opens={opens}")]);
        test(&place);
        assert!(!place.is_mounted());
        assert!(
            !place.path("mnt").exists(),
            "the folder was made for the mount"
        );
        if store == Store::Volume {
            place.check();
        }
    }
}

/// Asserts `EIO`.
#[track_caller]
fn refused<T>(result: io::Result<T>) {
    let error = result.err().expect("it is refused");
    assert_eq!(Errno::from_io_error(&error), Some(Errno::IO), "{error}");
}

fn open(path: &Path) -> File {
    let mut options = File::options();
    let options = options.read(true).write(true).create(true).truncate(false);
    options.open(path).unwrap()
}

#[test]
fn ten_opens_one_forced_unmount_and_ten_closes_end_the_daemon() {
    for store in [Store::Memory, Store::Volume] {
        ten_opens_and_ten_closes(store, "served", 10);
        // The daemon knows none of them; the kernel does, and keeps the connection.
        ten_opens_and_ten_closes(store, "local", 0);
    }
}

fn ten_opens_and_ten_closes(store: Store, opens: &str, counted: u64) {
    over_each_transport_of(store, opens, |place| {
        let daemon = place.daemon();
        fs::create_dir(place.path("mnt/sub")).unwrap();
        let mut files: Vec<File> = (0..10)
            .map(|number| {
                let name = if number < 5 { "mnt" } else { "mnt/sub" };
                let mut file = open(&place.path(name).join(format!("{}", number % 9)));
                if number % 2 == 0 {
                    file.write_all(&[number; 9000]).unwrap();
                    // Fills the kernel's cache.
                    file.read_exact_at(&mut [0; 9000], 0).unwrap();
                }
                file
            })
            .collect();
        assert_eq!(place.info()["open_files"], counted);
        let told = holdfast(["umount", "--force", &place.mnt()]).ok();
        let own = format!("(pid {})", std::process::id());
        for part in ["is detached", &own] {
            assert!(told.contains(part), "{part:?} in {told}");
        }
        let count = format!("; {counted} files are open; ");
        assert_eq!(told.contains(&count), counted != 0, "{told}");
        assert!(!place.is_mounted());
        for file in &mut files {
            refused(file.read(&mut [0; 100]));
            refused(file.read_at(&mut [0; 100], 0));
            refused(file.write(b"x"));
            refused(file.write_at(b"x", 1 << 20));
            refused(file.metadata());
            refused(file.set_len(0));
            refused(file.sync_all());
        }
        let last = files.pop();
        drop(files);
        assert!(!is_gone(daemon), "it waits for all of them");
        refused(last.as_ref().unwrap().metadata());
        drop(last);
        wait_until("the daemon ends with the last file", || is_gone(daemon));
        wait_until("its folder goes", || !place.path("mnt").exists());
    });
}

#[test]
fn a_mount_that_nobody_uses_is_unmounted_by_force_as_it_is_without() {
    over_each_transport(|place| {
        let daemon = place.daemon();
        fs::write(place.path("mnt/file"), "content").unwrap();
        let mut told = holdfast(["umount", "--force", &place.mnt()]).ok();
        // A child that another test starts has copies of this process' files until its exec.
        if told.contains("is detached") {
            wait_until("the daemon ends", || is_gone(daemon));
            wait_until("its folder goes", || !place.path("mnt").exists());
            told.clear();
        }
        assert_eq!(told, "");
        assert!(
            is_gone(daemon),
            "umount returned before the daemon had ended"
        );
        let again = holdfast(["umount", "--force", &place.mnt()]).fails(1);
        assert!(again.contains("nothing is mounted there"), "{again}");
    });
}

#[test]
fn whoever_works_in_the_mount_is_named_and_left_with_nothing() {
    over_each_transport(|place| {
        let daemon = place.daemon();
        fs::create_dir(place.path("mnt/inside")).unwrap();
        fs::write(place.path("mnt/inside/file"), "content").unwrap();
        let script = "cat file; read go; cat file; ls .; echo >new; echo over";
        let mut shell = Command::new("sh")
            .args(["-c", script])
            .current_dir(place.path("mnt/inside"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut output = shell.stdout.take().unwrap();
        output.read_exact(&mut [0; "content".len()]).unwrap();
        let told = holdfast(["umount", "--force", &place.mnt()]).ok();
        let holder = format!("sh (pid {}): working directory", shell.id());
        assert!(told.contains(&holder), "{told}");
        assert!(!told.contains("open;"), "{told}");
        assert!(!is_gone(daemon));
        shell.stdin.take().unwrap().write_all(b"go\n").unwrap();
        let mut rest = String::new();
        output.read_to_string(&mut rest).unwrap();
        let errors = shell.wait_with_output().unwrap().stderr;
        let errors = String::from_utf8_lossy(&errors).into_owned();
        assert_eq!(rest, "over\n");
        assert_eq!(errors.matches("Input/output error").count(), 3, "{errors}");
        wait_until("the daemon ends", || is_gone(daemon));
        wait_until("its folder goes", || !place.path("mnt").exists());
    });
}

#[test]
fn a_mount_that_was_taken_away_and_left_there_can_be_cleared() {
    for arguments in [&["umount"][..], &["umount", "--force"]] {
        over_each_transport(|place| {
            let daemon = place.daemon();
            let mnt = place.mnt();
            let held = open(&place.path("mnt/file"));
            // The state that a killed command leaves.
            holdfast_fuse::mount::revoke(mnt.as_ref()).unwrap();
            let error = holdfast(["info", &mnt]).fails(1);
            let remedy = format!("hint: holdfast umount {mnt}");
            assert!(error.contains("was revoked"), "{error}");
            assert!(error.contains(&remedy), "{error}");
            refused(held.metadata());
            drop(held);
            wait_until("nobody uses the mount", || {
                let umount = holdfast([arguments, &[&*mnt]].concat());
                umount.code == Some(0)
            });
            wait_until("the daemon ends", || is_gone(daemon));
            wait_until("its folder goes", || !place.path("mnt").exists());
        });
    }
}

#[test]
fn a_signal_ends_the_daemon_of_a_revoked_mount_though_files_are_open_and_closes_the_volume() {
    let Some(place) = Place::over(Store::Volume) else {
        return;
    };
    fs::create_dir(place.path("mnt")).unwrap();
    place.mount(&[]);
    let daemon = place.daemon();
    let mut file = open(&place.path("mnt/file"));
    file.write_all(b"before").unwrap();
    let said = holdfast(["umount", "--force", &place.mnt()]);
    assert!(
        said.out.contains("its daemon ends with the last user"),
        "{}{}",
        said.out,
        said.error
    );
    assert!(!is_gone(daemon), "it serves the open file");
    let pid = rustix::process::Pid::from_raw(daemon).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    wait_until("the daemon is gone", || is_gone(daemon));
    assert!(file.write_all(b"after").is_err());
    drop(file);
    let report = holdfast(["fsck", &place.source()]).ok();
    assert!(!report.contains("unclosed"), "{report}");
    place.mount(&[]);
    assert_eq!(fs::read(place.path("mnt/file")).unwrap(), b"before");
    place.umount();
}
