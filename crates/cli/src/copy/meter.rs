//! The progress of a copy, and the summary at its end.

use super::place::Place;
use crate::info::units::{bytes, number};
use crate::message::Failure;
use holdfast::{Copied, CopyError, CopyEvent, Side};
use indicatif::{ProgressBar, ProgressStyle};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;

/// A progress bar on standard error, if that is a terminal, and messages about single names.
pub(crate) struct Meter {
    bar: ProgressBar,
    /// The target, for messages.
    to: Place,
    from: Place,
    scan: Option<Scan>,
}

/// A thread that counts the names to be copied.
struct Scan {
    names: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl Scan {
    fn start(dir: PathBuf) -> Option<Self> {
        let (names, stop) = (Arc::<AtomicU64>::default(), Arc::<AtomicBool>::default());
        let (count, end) = (Arc::clone(&names), Arc::clone(&stop));
        let thread = std::thread::Builder::new()
            .name("holdfast-count".into())
            .spawn(move || count_names(dir, &count, &end))
            .ok()?;
        Some(Self {
            names,
            stop,
            thread,
        })
    }
}

/// Counts the names below a directory. Directories that cannot be read are not counted: the total
/// is only a hint.
fn count_names(dir: PathBuf, count: &AtomicU64, stop: &AtomicBool) {
    let mut dirs = vec![dir];
    while let Some(dir) = dirs.pop() {
        for entry in std::fs::read_dir(&dir).into_iter().flatten().flatten() {
            if stop.load(Ordering::Relaxed) {
                return;
            }
            count.fetch_add(1, Ordering::Relaxed);
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                dirs.push(entry.path());
            }
        }
    }
}

impl Meter {
    pub(crate) fn new(from: &Place, to: &Place) -> Self {
        // `indicatif` hides it where standard error is no terminal.
        let bar = ProgressBar::new(0);
        let style = "{spinner} {human_pos}/{human_len} names, {msg}, {elapsed} {wide_bar}";
        if let Ok(style) = ProgressStyle::with_template(style) {
            bar.set_style(style);
        }
        let scan = match from {
            Place::Host(path) if !bar.is_hidden() => Scan::start(path.clone()),
            _ => None,
        };
        Self {
            bar,
            from: from.clone(),
            to: to.clone(),
            scan,
        }
    }

    /// Handles an event of the copy.
    pub(crate) fn note(&self, event: &CopyEvent<'_>) {
        match event {
            CopyEvent::Progress(copied) => self.draw(copied),
            CopyEvent::Failed(error) => self.print(&self.failure(error)),
            CopyEvent::Warning { path, text } => self.print(&Failure::new(text).at(path)),
            CopyEvent::Skipped(path) => {
                self.print(&Failure::new("is skipped: it is the target").at(path));
            }
        }
    }

    fn print(&self, failure: &Failure) {
        self.bar.suspend(|| failure.print());
    }

    fn draw(&self, copied: &Copied) {
        if self.bar.is_hidden() {
            return;
        }
        let names = copied.names();
        let all = self
            .scan
            .as_ref()
            .map_or(0, |scan| scan.names.load(Ordering::Relaxed));
        self.bar.set_length(all.max(names));
        self.bar.set_message(bytes(copied.bytes));
        self.bar.set_position(names);
    }

    /// What went wrong with one name, by its whole path.
    pub(crate) fn failure(&self, error: &CopyError) -> Failure {
        let side = match error.side {
            Side::From => &self.from,
            Side::To => &self.to,
        };
        let place = side.with(error.path.clone());
        Failure::new(&error.error).about(place)
    }

    /// Ends the bar.
    pub(crate) fn end(self) {
        if let Some(scan) = self.scan {
            scan.stop.store(true, Ordering::Relaxed);
            // `count_names` does not panic.
            let _ = scan.thread.join();
        }
        self.bar.finish_and_clear();
    }
}

/// The counts, unless `quiet`, and the attributes that were lost, as lines of text.
pub(crate) fn summary(to: &Path, copied: &Copied, quiet: bool) -> String {
    let mut text = format!("{}: ", to.display());
    let counts = [
        (copied.directories, "directory", "directories"),
        (copied.files, "file", "files"),
        (copied.symlinks, "symbolic link", "symbolic links"),
        (copied.links, "further name", "further names"),
        (copied.special, "special file", "special files"),
    ];
    let shown = counts.iter().filter(|(count, ..)| *count > 0);
    let words = shown.map(|(count, one, many)| {
        let word = if *count == 1 { one } else { many };
        format!("{} {word}", number(*count))
    });
    let mut words: Vec<String> = words.collect();
    words.push(bytes(copied.bytes));
    text.push_str(&words.join(", "));
    text.push('\n');
    if quiet {
        text.clear();
    }
    let lost = &copied.lost;
    let losses = [
        (
            &lost.owners,
            "have another owner: this user may not give files away",
        ),
        (
            &lost.xattrs,
            "lack extended attributes that are not to be had there",
        ),
        (
            &lost.times,
            "have other times: they lay outside 1901 to 2486",
        ),
    ];
    for ((count, first), what) in losses {
        if let Some(first) = first {
            // Writing to a string does not fail.
            let _ = writeln!(
                text,
                "{} names {what} (the first: {})",
                number(*count),
                first.display()
            );
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_told_and_so_is_what_was_left_behind() {
        let mut copied = Copied {
            files: 1234,
            directories: 1,
            bytes: 2048,
            ..Copied::default()
        };
        let shown = |copied: &Copied| summary(Path::new("data.hf"), copied, false);
        assert_eq!(
            shown(&copied),
            "data.hf: 1 directory, 1,234 files, 2.0 KiB\n"
        );
        copied.lost.owners = (3, Some("a/b".into()));
        assert!(
            shown(&copied).contains("3 names have another owner"),
            "{}",
            shown(&copied)
        );
        assert!(shown(&copied).contains("(the first: a/b)"));
        let quiet = summary(Path::new("data.hf"), &copied, true);
        assert!(quiet.starts_with("3 names have another owner"), "{quiet}");
    }
}
