//! Programs of the host that a run starts, and what they print.
//!
//! *Invariants.* A command is a process group of its own: a ^C at the terminal reaches only the
//! measuring process, which ends the group. Every process that was started has been waited for,
//! also after an interrupted run.

use crate::sys;
use anyhow::{Context, Result, bail};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};
use std::fs::File;
use std::io::{ErrorKind, Read, Seek};
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::{env, io};

/// How long a signal to end may wait to be passed on.
const GLANCE: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 100_000_000,
};

/// Most of what is told of a program's errors.
const SHOWN_BYTES: usize = 2000;

/// Bytes that are taken from a pipe at once.
const PIECE: usize = 256 << 10;

/// Where programs are found that are not everywhere: by their Debian package.
const PACKAGES: [(&str, &str); 9] = [
    ("git", "git"),
    ("mkfs.ext4", "e2fsprogs"),
    ("mkfs.xfs", "xfsprogs"),
    ("mkfs.btrfs", "btrfs-progs"),
    ("mount", "mount"),
    ("xz", "xz-utils"),
    ("zstd", "zstd"),
    ("gzip", "gzip"),
    ("bzip2", "bzip2"),
];

/// Sees to it that programs are there before a run begins.
///
/// # Errors
/// Names the first that is missing, and its package.
pub(crate) fn require<'a>(programs: impl IntoIterator<Item = &'a str>) -> Result<()> {
    for program in programs {
        if !is_installed(program) {
            bail!("{}", missing(program));
        }
    }
    Ok(())
}

fn is_installed(program: &str) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

fn missing(program: &str) -> String {
    let named = PACKAGES.iter().find(|(name, _)| *name == program);
    match named {
        Some((_, package)) => {
            format!("there is no program `{program}`: install the package {package}")
        }
        None => format!("there is no program `{program}`"),
    }
}

/// A program that runs.
pub(crate) struct Running {
    child: Child,
    /// The command's words, for errors.
    line: String,
    /// What it printed, where that goes to a file.
    out: Option<File>,
    errors: File,
    ended: bool,
}

/// What a program did that ended well.
pub(crate) struct Printed {
    out: Option<File>,
    /// What it said to standard error.
    pub(crate) errors: String,
}

impl Running {
    /// Starts it; what it prints goes to a file without a name in `scratch`.
    ///
    /// # Errors
    /// If there is no such program.
    pub(crate) fn start(command: &mut Command, scratch: &Path) -> Result<Self> {
        let out = tempfile::tempfile_in(scratch).context("cannot keep what a program prints")?;
        let copy = out.try_clone()?;
        Self::start_with(command, Stdio::from(copy), Some(out), scratch)
    }

    fn start_with(
        command: &mut Command,
        stdout: Stdio,
        out: Option<File>,
        scratch: &Path,
    ) -> Result<Self> {
        let name = command.get_program().to_string_lossy().into_owned();
        let words = std::iter::once(command.get_program()).chain(command.get_args());
        let line: Vec<_> = words.map(|word| word.to_string_lossy()).collect();
        let line = line.join(" ");
        let errors = tempfile::tempfile_in(scratch).context("cannot keep what a program prints")?;
        let child = command
            .stdin(Stdio::null())
            .stdout(stdout)
            .stderr(errors.try_clone()?)
            .process_group(0)
            .spawn()
            .map_err(|error| match error.kind() {
                ErrorKind::NotFound => anyhow::Error::msg(missing(&name)),
                _ => anyhow::Error::new(error).context(line.clone()),
            })?;
        Ok(Self {
            child,
            line,
            out,
            errors,
            ended: false,
        })
    }

    /// Waits for its end. `good`: the exit codes that are no failure.
    ///
    /// # Errors
    /// Any other end, with what the program said; a signal to end the run.
    pub(crate) fn end(mut self, good: &[i32]) -> Result<Printed> {
        self.wait()?;
        if sys::end_asked() {
            bail!("interrupted");
        }
        self.finish(good)
    }

    /// Waits for its end, also when the run is to end. `good`: the exit codes that are no failure.
    ///
    /// # Errors
    /// Any other end, with what the program said.
    fn finish(mut self, good: &[i32]) -> Result<Printed> {
        let status = self.child.wait()?;
        self.ended = true;
        let errors = self.said()?;
        if !status.code().is_some_and(|code| good.contains(&code)) {
            bail!("`{}` ended with {status}: {}", self.line, shown(&errors));
        }
        Ok(Printed {
            out: self.out.take(),
            errors,
        })
    }

    /// Waits until it has ended; a signal to end the run ends it.
    fn wait(&mut self) -> Result<()> {
        let pid = Pid::from_child(&self.child);
        // A process that has not been waited for keeps its number.
        let end = pidfd_open(pid, PidfdFlags::empty()).context("pidfd_open")?;
        while !ready(end.as_fd())? {
            if sys::end_asked() {
                self.terminate();
                break;
            }
        }
        Ok(())
    }

    fn terminate(&self) {
        // Its end is waited for in any case; one that has ended already needs no signal.
        let _ = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
    }

    fn said(&mut self) -> io::Result<String> {
        self.errors.rewind()?;
        let mut text = Vec::new();
        (&self.errors).take(1 << 20).read_to_end(&mut text)?;
        Ok(String::from_utf8_lossy(&text).into_owned())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.ended {
            self.terminate();
            let _ = self.child.wait();
        }
    }
}

impl Printed {
    /// Lines of its output for which this holds.
    ///
    /// # Errors
    /// If it cannot be read back.
    pub(crate) fn lines(&self, mut counts: impl FnMut(&[u8]) -> bool) -> Result<u64> {
        let mut count = 0;
        let mut rest = Vec::new();
        let mut piece = vec![0; PIECE];
        let mut offset = 0;
        let Some(out) = &self.out else { return Ok(0) };
        loop {
            let length = out.read_at(&mut piece, offset)?;
            if length == 0 {
                break;
            }
            offset += length as u64;
            let mut lines = piece[..length].split(|&byte| byte == b'\n').peekable();
            while let Some(line) = lines.next() {
                rest.extend_from_slice(line);
                if lines.peek().is_some() {
                    count += u64::from(counts(&rest));
                    rest.clear();
                }
            }
        }
        Ok(count + u64::from(!rest.is_empty() && counts(&rest)))
    }
}

/// Runs a program to its end; exit code 0 or an error.
///
/// # Errors
/// As [`Running::end`].
pub(crate) fn run(command: &mut Command, scratch: &Path) -> Result<Printed> {
    Running::start(command, scratch)?.end(&[0])
}

/// Runs a program to its end, even when the run is interrupted: for short programs that would leave
/// a half-made state.
///
/// # Errors
/// Any exit code but 0, with what the program said.
pub(crate) fn finish(command: &mut Command, scratch: &Path) -> Result<Printed> {
    Running::start(command, scratch)?.finish(&[0])
}

/// Runs a program; what it prints is this file's new content.
///
/// # Errors
/// As [`Running::end`].
pub(crate) fn run_into(command: &mut Command, path: &Path, scratch: &Path) -> Result<()> {
    let out = File::create(path).with_context(|| path.display().to_string())?;
    Running::start_with(command, Stdio::from(out), None, scratch)?.end(&[0])?;
    Ok(())
}

/// Runs a program and counts the bytes that it prints.
///
/// # Errors
/// As [`Running::end`].
pub(crate) fn count_bytes(command: &mut Command, scratch: &Path) -> Result<u64> {
    let mut running = Running::start_with(command, Stdio::piped(), None, scratch)?;
    let mut stdout = running.child.stdout.take().context("no output")?;
    let bytes = drain(&mut stdout)?;
    running.end(&[0])?;
    Ok(bytes)
}

fn drain(stdout: &mut ChildStdout) -> Result<u64> {
    let mut piece = vec![0; PIECE];
    let mut bytes = 0;
    loop {
        while !ready(stdout.as_fd())? {
            if sys::end_asked() {
                bail!("interrupted");
            }
        }
        match stdout.read(&mut piece) {
            Ok(0) => return Ok(bytes),
            Ok(length) => bytes += length as u64,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error).context("cannot read what a program prints"),
        }
    }
}

/// Is there something to read? Waits a little for it.
fn ready(descriptor: std::os::fd::BorrowedFd<'_>) -> Result<bool> {
    let mut ears = [PollFd::from_borrowed_fd(descriptor, PollFlags::IN)];
    match poll(&mut ears, Some(&GLANCE)) {
        Ok(count) => Ok(count > 0),
        Err(rustix::io::Errno::INTR) => Ok(false),
        Err(error) => Err(error).context("poll"),
    }
}

/// The end of what a program said.
fn shown(errors: &str) -> &str {
    let errors = errors.trim();
    let mut start = errors.len().saturating_sub(SHOWN_BYTES);
    while !errors.is_char_boundary(start) {
        start += 1;
    }
    &errors[start..]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sh(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn lines_are_counted_across_pieces_and_without_an_end() {
        let scratch = tempfile::tempdir().expect("temporary directory");
        let script = "seq 1 100000; printf last";
        let printed = run(&mut sh(script), scratch.path()).expect("ran");
        assert_eq!(printed.lines(|_| true).expect("read"), 100_001);
        let nines = printed.lines(|line| line == b"99999" || line == b"last");
        assert_eq!(nines.expect("read"), 2);
        let bytes = count_bytes(&mut sh(script), scratch.path()).expect("ran");
        assert_eq!(bytes, 588_895 + 4);
    }

    #[test]
    fn a_failure_tells_the_command_and_what_it_said() {
        let scratch = tempfile::tempdir().expect("temporary directory");
        let error = run(&mut sh("echo no such luck >&2; exit 3"), scratch.path());
        let error = format!("{:#}", error.err().expect("failed"));
        assert!(
            error.contains("no such luck") && error.contains("3"),
            "{error}"
        );
        let started = Running::start(&mut sh("exit 1"), scratch.path()).expect("started");
        started.end(&[0, 1]).expect("a good code");
        assert_eq!(shown(&"ä".repeat(SHOWN_BYTES)).len(), SHOWN_BYTES);
    }

    #[test]
    fn a_missing_program_is_told_with_its_package() {
        let scratch = tempfile::tempdir().expect("temporary directory");
        let gone = run(&mut Command::new("no-such-program"), scratch.path());
        let error = gone.err().expect("missing").to_string();
        assert_eq!(error, "there is no program `no-such-program`");
        assert!(missing("mkfs.xfs").ends_with("install the package xfsprogs"));
        require(["sh"]).expect("everywhere");
        require(["sh", "no-such-program"]).expect_err("missing");
    }

    #[test]
    fn a_program_that_is_given_up_has_ended() {
        let scratch = tempfile::tempdir().expect("temporary directory");
        let running = Running::start(&mut sh("sleep 1000"), scratch.path()).expect("started");
        let pid = running.child.id();
        drop(running);
        assert!(!Path::new(&format!("/proc/{pid}")).exists());
    }
}
