//! The error type of the command.
//!
//! Every failure prints one line `holdfast: SUBJECT: message`, followed by `hint: remedy` if one is
//! known. A daemon sends its failure as JSON to the process that started it.

use crate::info::units::number;
use anstyle::{AnsiColor, Style};
use rustix::event::{PollFd, PollFlags, Timespec};
use serde::{Deserialize, Serialize};
use std::{fmt, io, path::Path};

/// The reason for a failure, and a remedy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Failure {
    subject: Option<String>,
    message: String,
    hint: Option<String>,
    /// Was standard output closed by its reader? Then nothing is printed, but the exit code is that
    /// of a failure.
    #[serde(default)]
    quiet: bool,
}

pub(crate) type Result<T> = std::result::Result<T, Failure>;

const ERROR: Style = AnsiColor::Red.on_default().bold();
const HINT: Style = AnsiColor::Cyan.on_default().bold();

impl Failure {
    pub(crate) fn new(message: impl ToString) -> Self {
        Self {
            subject: None,
            message: message.to_string(),
            hint: None,
            quiet: false,
        }
    }

    /// The failure for an error of the system, with the usual remedy.
    pub(crate) fn of(error: &io::Error) -> Self {
        let failure = Self::new(error);
        match error.kind() {
            io::ErrorKind::NotFound => failure.hint("check the path"),
            io::ErrorKind::PermissionDenied => {
                failure.hint("run as root, or as a user that may do this")
            }
            io::ErrorKind::StorageFull => failure.hint("make room there first"),
            io::ErrorKind::ReadOnlyFilesystem => {
                failure.hint("it is mounted read-only: holdfast mount -o remount,rw")
            }
            _ => failure,
        }
    }

    /// Sets the subject of the message.
    pub(crate) fn about(self, subject: impl ToString) -> Self {
        Self {
            subject: Some(subject.to_string()),
            ..self
        }
    }

    /// Sets a path as the subject of the message.
    pub(crate) fn at(self, path: &Path) -> Self {
        self.about(path.display())
    }

    /// Sets the hint.
    pub(crate) fn hint(self, hint: impl ToString) -> Self {
        Self {
            hint: Some(hint.to_string()),
            ..self
        }
    }

    /// Sets the hint, unless there is one.
    pub(crate) fn or_hint(self, hint: &str) -> Self {
        match self.hint {
            None => self.hint(hint),
            Some(_) => self,
        }
    }

    /// Prints it to standard error, coloured if that is a terminal.
    pub(crate) fn print(&self) {
        if self.quiet {
            return;
        }
        anstream::eprintln!("{ERROR}holdfast:{ERROR:#} {}", self.line());
        if let Some(hint) = &self.hint {
            anstream::eprintln!("{HINT}hint:{HINT:#} {hint}");
        }
    }

    /// Does the message name the subject already, as those of lower layers may?
    fn names(&self, subject: &str) -> bool {
        let as_devices_do = ["image file", "block device", "cannot open"];
        let mut devices = as_devices_do.iter();
        self.message.contains(&format!("{subject}: "))
            || devices.any(|of| self.message.contains(&format!("{of} {subject} ")))
    }

    fn line(&self) -> String {
        match &self.subject {
            Some(subject) if !self.names(subject) => format!("{subject}: {}", self.message),
            _ => self.message.clone(),
        }
    }
}

/// Options that contradict: whether they do, the reason, the option and the remedy.
pub(crate) type Conflict = (bool, &'static str, &'static str, &'static str);

/// Refuses the first of these conflicts.
pub(crate) fn refuse<const N: usize>(conflicts: [Conflict; N]) -> Result<()> {
    match conflicts.into_iter().find(|conflict| conflict.0) {
        None => Ok(()),
        Some((_, reason, option, hint)) => Err(Failure::new(reason)
            .about(format!("option {option}"))
            .hint(hint)),
    }
}

/// Fails if names of a tree were not done.
pub(crate) fn unless_failed(failed: u64, done: &str) -> Result<()> {
    match failed {
        0 => Ok(()),
        _ => {
            let text = format!("{} names were not {done}", number(failed));
            Err(Failure::new(text).hint("the reason of each is printed above"))
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.line())?;
        match &self.hint {
            Some(hint) => write!(f, " (hint: {hint})"),
            None => Ok(()),
        }
    }
}

/// An error of JSON is one of its stream, or a malformed answer of a daemon.
impl From<serde_json::Error> for Failure {
    fn from(error: serde_json::Error) -> Self {
        if error.is_io() {
            return std::io::Error::from(error).into();
        }
        Self::new(format!("what its daemon answers cannot be read: {error}"))
            .hint("it is of another version: mount it again with this one")
    }
}

/// A closed standard output (`holdfast info | head -1`) prints nothing. An error with only an OS
/// number comes from standard output: all other errors name their subject in the text.
impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Self {
            quiet: is_broken_pipe(&error) && has_lost_its_reader(),
            subject: error.raw_os_error().map(|_| "standard output".to_owned()),
            ..Self::new(&error)
        }
    }
}

fn is_broken_pipe(error: &std::io::Error) -> bool {
    error.kind() == std::io::ErrorKind::BrokenPipe
}

/// Is standard output a pipe with a closed read end?
fn has_lost_its_reader() -> bool {
    let stdout = std::io::stdout();
    let mut waits = [PollFd::new(&stdout, PollFlags::OUT)];
    let none = Timespec::default();
    rustix::event::poll(&mut waits, Some(&none)).is_ok()
        && waits[0].revents().contains(PollFlags::ERR)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_keeps_its_parts_on_the_way_between_processes() {
        let failure = Failure::new("no").at(Path::new("/mnt")).hint("say please");
        let json = serde_json::to_string(&failure).unwrap();
        assert_eq!(serde_json::from_str::<Failure>(&json).unwrap(), failure);
        assert_eq!(failure.to_string(), "/mnt: no (hint: say please)");
    }

    #[test]
    fn a_message_that_names_its_subject_is_not_given_it_again() {
        let failure = |message| Failure::new(message).at(Path::new("/a.hf")).to_string();
        assert_eq!(failure("image file /a.hf: torn"), "image file /a.hf: torn");
        let holds = "image file /a.hf holds no Holdfast volume";
        assert_eq!(failure(holds), holds);
        assert_eq!(failure("not in /a.hf"), "/a.hf: not in /a.hf");
    }

    #[test]
    fn an_error_that_is_a_number_alone_is_that_of_standard_output() {
        let full = std::io::Error::from_raw_os_error(libc::ENOSPC);
        let text = "standard output: No space left on device (os error 28)";
        assert_eq!(Failure::from(full).to_string(), text);
        let named = std::io::Error::other("/proc/self/mounts: gone");
        assert_eq!(Failure::from(named).to_string(), "/proc/self/mounts: gone");
        let wrong = serde_json::from_str::<u32>("x").unwrap_err();
        assert!(Failure::from(wrong).to_string().contains("its daemon"));
    }
}
