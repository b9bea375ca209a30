//! The daemon: its independence of the shell, signals, and its death.

use crate::fixture::{HOLDFAST, Place, Run, holdfast, is_gone, on_each_store, wait_until};
use rustix::process::{Pid, Signal, kill_process};
use std::{
    fs,
    io::{Read, Write},
    process::{Command, Stdio},
    sync::mpsc,
    thread,
    time::Duration,
};

fn kill(pid: i32, signal: Signal) {
    kill_process(Pid::from_raw(pid).expect("a process id"), signal).expect("it runs");
}

on_each_store! {
    fn the_daemon_keeps_nothing_of_who_started_it(place: &Place) {
        // The shell has another file open, as scripts do for locks.
        let status = Command::new("sh")
            .arg("-c")
            .arg("exec 9>\"$1\"; ulimit -Sn 256; \"$2\" mount \"$4\" \"$3\" -o noatime")
            .arg("sh")
            .args([
                place.path("lock").as_os_str(),
                HOLDFAST.as_ref(),
                place.path("mnt").as_os_str(),
                place.source().as_ref(),
            ])
            .stdin(Stdio::null())
            .status()
            .unwrap();
        assert!(status.success());
        let daemon = place.daemon();
        let link = |name: &str| fs::read_link(format!("/proc/{daemon}/{name}")).unwrap();
        assert_eq!(link("cwd").to_str(), Some("/"));
        for name in ["fd/0", "fd/1", "fd/2"] {
            assert_eq!(link(name).to_str(), Some("/dev/null"), "{name}");
        }
        let descriptors = fs::read_dir(format!("/proc/{daemon}/fd")).unwrap();
        let kept = descriptors.filter_map(|entry| fs::read_link(entry.unwrap().path()).ok());
        assert_eq!(kept.filter(|path| *path == place.path("lock")).count(), 0);
        let session = rustix::process::getsid(Pid::from_raw(daemon)).unwrap();
        assert_eq!(
            session.as_raw_nonzero().get(),
            daemon,
            "not a session of its own"
        );
        let limits = fs::read_to_string(format!("/proc/{daemon}/limits")).unwrap();
        let files: Vec<&str> = limits
            .lines()
            .find(|line| line.starts_with("Max open files"))
            .unwrap()
            .split_ascii_whitespace()
            .collect();
        assert_eq!(files[3], files[4], "soft and hard limit");
        kill(daemon, Signal::HUP);
        fs::write(place.path("mnt/file"), "x").unwrap();
        assert_eq!(place.daemon(), daemon);
        place.umount();
    }
}

#[test]
fn a_killed_daemon_leaves_what_umount_clears() {
    let Some(place) = Place::with_mounts() else {
        return;
    };
    place.mount(&[]);
    let (mnt, daemon) = (place.mnt(), place.daemon());
    fs::write(place.path("mnt/file"), "lost").unwrap();
    kill(daemon, Signal::KILL);
    wait_until("the daemon is gone", || is_gone(daemon));
    wait_until("the mount is dead", || fs::metadata(&mnt).is_err());
    let remedy = format!("holdfast umount {mnt}");
    let error = holdfast(["mount", "mem:", &mnt]).fails(1);
    assert!(
        error.contains("daemon that is gone") && error.contains(&remedy),
        "{error}"
    );
    let error = holdfast(["info", &mnt]).fails(1);
    assert!(
        error.contains("daemon that is gone") && error.contains(&remedy),
        "{error}"
    );
    place.umount();
    place.mount(&[]);
    assert_eq!(fs::read_dir(&mnt).unwrap().count(), 0);
    place.umount();
}

/// Opens the file, which is closed when another program is executed; says so, and executes one
/// after the next line.
const HOLD_AND_EXECUTE: &str = "import os, sys
file = os.open(sys.argv[1], os.O_CREAT | os.O_RDWR | os.O_CLOEXEC)
print('open', flush=True)
sys.stdin.readline()
os.execvp('sleep', ['sleep', '60'])";

on_each_store! {
    fn a_daemon_that_hangs_can_be_unmounted_by_force(place: &Place) {
        // Over io_uring the kernel waits for the rings' owner, even by force.
        place.mount(&["--transport", "dev"]);
        let daemon = place.daemon();
        // Held by another process, which executes a program while the daemon hangs. It closes the
        // file then, and waits for the daemon. The kernel lets no other process read its
        // `/proc/PID/ns` meanwhile.
        let mut holder = Command::new("python3")
            .args(["-c", HOLD_AND_EXECUTE, place.path("mnt/held").to_str().unwrap()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut executes = holder.stdin.take().unwrap();
        holder.stdout.take().unwrap().read_exact(&mut [0; 5]).unwrap();
        kill(daemon, Signal::STOP);
        executes.write_all(b"\n").unwrap();
        let namespace = format!("/proc/{}/ns/mnt", holder.id());
        wait_until("the holder closes the file", || {
            let (sender, receiver) = mpsc::channel();
            let namespace = namespace.clone();
            thread::spawn(move || sender.send(fs::read_link(namespace)));
            receiver.recv_timeout(Duration::from_millis(200)).is_err()
        });
        let run: Run = Command::new("timeout")
            .args(["--signal=KILL", "40", HOLDFAST, "umount", "--force", "--lazy", &place.mnt()])
            .output()
            .unwrap()
            .into();
        let mounted = place.is_mounted();
        kill(daemon, Signal::CONT);
        holder.kill().unwrap();
        holder.wait().unwrap();
        let told = run.ok();
        assert!(
            told.contains("its daemon does not answer, so its connection was cut"),
            "{told}"
        );
        assert!(!mounted);
        wait_until("the daemon ends", || is_gone(daemon));
    }
}

on_each_store! {
    fn a_mount_that_nobody_waits_for_is_undone(place: &Place) {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        fs::create_dir(place.path("mnt")).unwrap();
        // The daemon as its parent starts it, but the parent has gone.
        let status = Command::new(HOLDFAST)
            .args(["mount", "--daemon", "--", &place.source(), &place.mnt()])
            .stdin(Stdio::null())
            .stdout(writer)
            .stderr(Stdio::null())
            .status()
            .unwrap();
        assert_eq!(status.code(), Some(1));
        assert!(!place.is_mounted());
    }
}

on_each_store! {
    fn auto_unmount_clears_the_mount_point_of_a_killed_daemon(place: &Place) {
        place.mount(&["--auto-unmount"]);
        let daemon = place.daemon();
        kill(daemon, Signal::KILL);
        wait_until("the watcher has cleared the mount point", || {
            !place.is_mounted()
        });
        place.mount(&["-o", "auto_unmount"]);
        place.umount();
    }
}

on_each_store! {
    fn a_signal_ends_the_mount_in_the_foreground(place: &Place) {
        for signal in [Signal::TERM, Signal::INT] {
            let foreground = place.foreground(&[]);
            fs::write(place.path("mnt/file"), "x").unwrap();
            foreground.signal(signal);
            assert_eq!(foreground.end(), Some(0), "{}", place.errors());
            assert!(!place.is_mounted());
            assert!(
                !place.path("mnt").exists(),
                "the folder was made for the mount"
            );
        }
    }
}

on_each_store! {
    fn a_signal_to_the_daemon_unmounts_as_well(place: &Place) {
        place.mount(&[]);
        let daemon = place.daemon();
        kill(daemon, Signal::TERM);
        wait_until("the daemon ends", || is_gone(daemon));
        assert!(!place.is_mounted());
    }
}

on_each_store! {
    fn the_foreground_ends_when_somebody_else_unmounts(place: &Place) {
        let foreground = place.foreground(&[]);
        place.umount();
        assert_eq!(foreground.end(), Some(0), "{}", place.errors());
    }
}

on_each_store! {
    fn a_signal_to_a_busy_mount_names_the_holder_and_a_second_one_detaches(place: &Place) {
        let foreground = place.foreground(&[]);
        let held = fs::File::create(place.path("mnt/held")).unwrap();
        foreground.signal(Signal::TERM);
        let own = format!("(pid {})", std::process::id());
        wait_until("the holder is named", || place.errors().contains(&own));
        assert!(place.is_mounted());
        fs::write(place.path("mnt/more"), "still served").unwrap();
        foreground.signal(Signal::TERM);
        wait_until("the mount is detached", || !place.is_mounted());
        std::io::Write::write_all(&mut &held, b"still served").unwrap();
        drop(held);
        assert_eq!(foreground.end(), Some(0), "{}", place.errors());
    }
}

on_each_store! {
    fn the_log_is_written_where_it_is_asked_for(place: &Place) {
        let log = place.path("log");
        let status = Command::new(HOLDFAST)
            .args([
                "mount",
                &place.source(),
                &place.mnt(),
                "--log",
                log.to_str().unwrap(),
            ])
            .env("HOLDFAST_LOG", "holdfast=info")
            .stdin(Stdio::null())
            .status()
            .unwrap();
        assert!(status.success());
        place.umount();
        let text = fs::read_to_string(&log).unwrap();
        assert!(
            text.contains("live") && text.contains(&place.mnt()),
            "{text}"
        );
        assert!(!text.contains('\x1b'), "{text}");
        let error = holdfast(["mount", &place.source(), &place.mnt(), "--log", "/nowhere/log"]).fails(1);
        assert!(error.contains("/nowhere/log"), "{error}");
        assert!(!place.is_mounted() && !place.path("mnt").exists());
    }
}
