//! What the command says when it cannot do its work.
//!
//! Every failure is one line `holdfast: SUBJECT: message`, followed by `hint: remedy` where one
//! is known. A daemon sends its failure to the process that started it, so it can be written as
//! JSON too.

use anstyle::{AnsiColor, Style};
use rustix::event::{PollFd, PollFlags, Timespec};
use serde::{Deserialize, Serialize};
use std::{fmt, path::Path};

/// Why a command failed, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Failure {
    subject: Option<String>,
    message: String,
    hint: Option<String>,
    /// Is there nobody to tell? Then it is no failure worth words, but the command has not done its work.
    #[serde(default)]
    quiet: bool,
}

pub(crate) type Result<T> = std::result::Result<T, Failure>;

const ERROR: Style = AnsiColor::Red.on_default().bold();
const HINT: Style = AnsiColor::Cyan.on_default().bold();

impl Failure {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self {
            subject: None,
            message: message.into(),
            hint: None,
            quiet: false,
        }
    }

    /// Of what the message speaks.
    pub(crate) fn about(self, subject: impl Into<String>) -> Self {
        Self {
            subject: Some(subject.into()),
            ..self
        }
    }

    /// Of which path the message speaks.
    pub(crate) fn at(self, path: &Path) -> Self {
        self.about(path.display().to_string())
    }

    /// What to do about it.
    pub(crate) fn hint(self, hint: impl Into<String>) -> Self {
        Self {
            hint: Some(hint.into()),
            ..self
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

    /// Does the message name it already, as one from below may?
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

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.line())?;
        match &self.hint {
            Some(hint) => write!(f, " (hint: {hint})"),
            None => Ok(()),
        }
    }
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        let mut causes = error.chain();
        let is_broken_pipe = causes.any(|cause| cause.downcast_ref().is_some_and(is_broken_pipe));
        Self {
            quiet: is_broken_pipe && has_lost_its_reader(),
            ..Self::new(format!("{error:#}"))
        }
    }
}

/// What is written or read as JSON fails as its stream does, or contradicts itself.
impl From<serde_json::Error> for Failure {
    fn from(error: serde_json::Error) -> Self {
        if error.is_io() {
            return std::io::Error::from(error).into();
        }
        Self::new(format!("what its daemon answers cannot be read: {error}"))
            .hint("it is of another version: mount it again with this one")
    }
}

/// Standard output that went away (`holdfast info | head -1`) is no failure worth words. An error that is a number alone is
/// that of standard output: what else fails says in its text what it is about.
impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Self {
            quiet: is_broken_pipe(&error) && has_lost_its_reader(),
            subject: error.raw_os_error().map(|_| "standard output".to_owned()),
            ..Self::new(error.to_string())
        }
    }
}

fn is_broken_pipe(error: &std::io::Error) -> bool {
    error.kind() == std::io::ErrorKind::BrokenPipe
}

/// Is standard output a pipe that nobody reads any more?
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
