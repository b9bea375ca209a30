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

    fn line(&self) -> String {
        match &self.subject {
            // A message from below may name it already.
            Some(subject) if !self.message.contains(&format!("{subject}: ")) => {
                format!("{subject}: {}", self.message)
            }
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
        Self::new(format!("{error:#}"))
    }
}

impl From<serde_json::Error> for Failure {
    fn from(error: serde_json::Error) -> Self {
        Self::new(error.to_string())
    }
}

/// Standard output that went away (`holdfast info | head -1`) is no failure worth words.
impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Self {
            quiet: error.kind() == std::io::ErrorKind::BrokenPipe && has_lost_its_reader(),
            ..Self::new(error.to_string())
        }
    }
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
        assert_eq!(failure("not in /a.hf"), "/a.hf: not in /a.hf");
    }
}
