//! The progress of a job on the terminal.

use std::path::PathBuf;

use indicatif::{ProgressBar, ProgressStyle};

use super::job::{Event, Wrong};
use crate::info::units::bytes;
use crate::message::Failure;

/// A progress bar on standard error, if that is a terminal, and messages about single names.
pub(super) struct Shown {
    bar: ProgressBar,
    root: String,
    /// The name of the job's archive, and whether the job reads it.
    archive: Option<(String, bool)>,
}

impl Shown {
    /// Paths in a file system are printed after `root`, those in an archive after the archive's
    /// name.
    pub(super) fn new(root: &str, archive: Option<(String, bool)>) -> Self {
        // `indicatif` hides it where standard error is no terminal.
        let bar = ProgressBar::no_length();
        if let Ok(style) =
            ProgressStyle::with_template("{spinner} {human_pos} names, {msg}{elapsed}")
        {
            bar.set_style(style);
        }
        Self {
            bar,
            root: root.trim_end_matches('/').to_owned(),
            archive,
        }
    }

    pub(super) fn note(&self, event: &Event) {
        match event {
            Event::Progress(counts) => {
                if counts.bytes > 0 {
                    self.bar.set_message(format!("{}, ", bytes(counts.bytes)));
                }
                self.bar.set_position(counts.names);
            }
            Event::Failed(wrong) | Event::Warning(wrong) => self.print(&self.failure(wrong)),
            Event::Skipped(path) => {
                let failure = Failure::new("is a socket, which no archive can hold: left out");
                self.print(&failure.at(&PathBuf::from(path)));
            }
            Event::Done(_) | Event::Ended(_) => {}
        }
    }

    fn print(&self, failure: &Failure) {
        self.bar.suspend(|| failure.print());
    }

    /// The message, with the whole path.
    pub(super) fn failure(&self, wrong: &Wrong) -> Failure {
        let path = PathBuf::from(&wrong.path);
        let failure = Failure::new(&wrong.text);
        // The path of a member; empty for the archive itself.
        if let Some((archive, _)) = self
            .archive
            .as_ref()
            .filter(|(_, is_source)| path.as_os_str().is_empty() || *is_source && wrong.is_source)
        {
            let member = format!("{archive}: {}", path.display());
            return failure.about(member.trim_end_matches(": "));
        }
        if path.starts_with(&self.root) {
            return failure.at(&path);
        }
        failure.about(format!(
            "{}/{}",
            self.root,
            path.strip_prefix("/").unwrap_or(&path).display()
        ))
    }

    pub(super) fn end(&self) {
        self.bar.finish_and_clear();
    }
}
