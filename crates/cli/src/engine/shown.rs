//! What is shown while a job goes on.

use std::path::PathBuf;

use indicatif::{ProgressBar, ProgressStyle};

use super::job::{Told, Wrong};
use crate::info::units::bytes;
use crate::message::Failure;

/// A bar on standard error, if that is a terminal, and the failures of single names.
pub(super) struct Shown {
    bar: ProgressBar,
    root: String,
    /// The archive of the job, and whether the job reads it.
    archive: Option<(String, bool)>,
}

impl Shown {
    /// `root` stands before paths in a file system, the archive's name before those in an archive.
    pub(super) fn new(root: &str, archive: Option<(String, bool)>) -> Self {
        // Hidden by itself where standard error is no terminal.
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

    pub(super) fn note(&self, told: &Told) {
        match told {
            Told::Progress(counts) => {
                if counts.bytes > 0 {
                    self.bar.set_message(format!("{}, ", bytes(counts.bytes)));
                }
                self.bar.set_position(counts.names);
            }
            Told::Failed(wrong) | Told::Warning(wrong) => {
                let failure = self.failure(wrong);
                self.bar.suspend(|| failure.print());
            }
            Told::Skipped(path) => {
                let path = PathBuf::from(path);
                let failure =
                    Failure::new("is a socket, which no archive can hold: left out").at(&path);
                self.bar.suspend(|| failure.print());
            }
            Told::Done(_) | Told::Ended(_) => {}
        }
    }

    /// What went wrong, by its whole path.
    pub(super) fn failure(&self, wrong: &Wrong) -> Failure {
        let path = PathBuf::from(&wrong.path);
        let failure = Failure::new(wrong.text.clone());
        // A path of an archive's member, or an empty one for the archive itself.
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
