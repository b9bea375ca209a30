//! A pseudoterminal in which a command runs.

use crate::fixture::{HOLDFAST, wait_until};
use rustix::fs::{Mode, OFlags, open};
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::process::{Child, Command};
use std::sync::{Arc, Mutex};
use std::thread;

/// A terminal, and the command in it, which ends with it.
pub(crate) struct Terminal {
    outside: File,
    inside: OwnedFd,
    child: Child,
    /// All that the command has written.
    written: Arc<Mutex<Vec<u8>>>,
    modes: LocalModes,
}

impl Terminal {
    /// Starts the command in a terminal of so many columns and rows.
    pub(crate) fn start(arguments: &[&str], columns: u16, rows: u16) -> Self {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let outside = openpt(flags).expect("a terminal");
        grantpt(&outside).expect("it is ours");
        unlockpt(&outside).expect("it is ours");
        let name = ptsname(&outside, Vec::new()).expect("a name");
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        let inside = open(&name, flags, Mode::empty()).expect("the terminal");
        tcsetwinsize(&inside, size(columns, rows)).expect("a size");
        let modes = tcgetattr(&inside).expect("modes").local_modes;
        let end = || inside.try_clone().expect("a descriptor");
        let child = Command::new(HOLDFAST)
            .args(arguments)
            .env("TERM", "xterm")
            .stdin(end())
            .stdout(end())
            .stderr(end())
            .spawn()
            .expect("the command starts");
        let outside = File::from(outside);
        let written = Arc::default();
        let mut output = outside.try_clone().expect("a descriptor");
        let sink: Arc<Mutex<Vec<u8>>> = Arc::clone(&written);
        thread::spawn(move || {
            let mut part = [0; 4096];
            while let Ok(count @ 1..) = output.read(&mut part) {
                sink.lock()
                    .expect("no panic")
                    .extend_from_slice(&part[..count]);
            }
        });
        Self {
            outside,
            inside,
            child,
            written,
            modes,
        }
    }

    /// All that was written, escape sequences among it.
    pub(crate) fn written(&self) -> String {
        let written = self.written.lock().expect("no panic");
        String::from_utf8_lossy(&written).into_owned()
    }

    /// Waits until this was written.
    #[track_caller]
    pub(crate) fn wait_for(&self, text: &str) {
        wait_until(&format!("{text:?} is shown"), || {
            self.written().contains(text)
        });
    }

    /// Presses keys.
    pub(crate) fn press(&mut self, keys: &str) {
        self.outside.write_all(keys.as_bytes()).expect("a terminal");
    }

    /// Changes its size, as dragging its corner does.
    pub(crate) fn resize(&self, columns: u16, rows: u16) {
        tcsetwinsize(&self.inside, size(columns, rows)).expect("a size");
        // It is not the controlling terminal, so the kernel sends no SIGWINCH.
        self.signal(Signal::WINCH);
    }

    /// Sends the command a signal.
    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("it runs");
    }

    /// Waits for the command's end; asserts that the terminal is restored; returns the exit code.
    #[track_caller]
    pub(crate) fn end(mut self) -> (Option<i32>, String) {
        let mut status = None;
        wait_until("the command ends", || {
            status = self.child.try_wait().expect("a child");
            status.is_some()
        });
        // Read behind all that the command wrote, by a thread that may be late.
        let mut inside = File::from(self.inside.try_clone().expect("a descriptor"));
        inside.write_all(b"<end>").expect("a terminal");
        self.wait_for("<end>");
        // Back from the other screen, with a cursor.
        self.wait_for("\x1b[?1049l");
        self.wait_for("\x1b[?25h");
        let modes = tcgetattr(&self.inside).expect("modes").local_modes;
        assert_eq!(
            modes, self.modes,
            "the terminal stays as the command had it"
        );
        (status.and_then(|status| status.code()), self.written())
    }
}

fn size(columns: u16, rows: u16) -> Winsize {
    Winsize {
        ws_row: rows,
        ws_col: columns,
        ws_xpixel: 0,
        ws_ypixel: 0,
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // Fails if it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
