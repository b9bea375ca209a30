//! What is shown while trees are copied, and what is told at the end.

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
use std::time::{Duration, Instant};

/// How often the bar is drawn at most.
const PACE: Duration = Duration::from_millis(100);

/// A progress bar on standard error, if that is a terminal, and the failures of single names.
pub(crate) struct Meter {
    bar: ProgressBar,
    drawn: Option<Instant>,
    /// What is copied to, for messages.
    to: Place,
    from: Place,
    before: Copied,
    scan: Option<Scan>,
}

/// A count of the names to come, made meanwhile.
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

/// Counts the names below a directory. What cannot be read is not counted: it is only a hint.
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
        // Hidden by itself where standard error is no terminal.
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
            drawn: None,
            from: from.clone(),
            to: to.clone(),
            before: Copied::default(),
            scan,
        }
    }

    /// Takes note of what a copy tells.
    pub(crate) fn note(&mut self, event: &CopyEvent<'_>) {
        match event {
            CopyEvent::Progress(copied) => self.draw(copied),
            CopyEvent::Failed(error) => {
                let failure = self.failure(error);
                self.bar.suspend(|| failure.print());
            }
            CopyEvent::Warning { path, text } => {
                let failure = Failure::new(*text).at(path);
                self.bar.suspend(|| failure.print());
            }
            CopyEvent::Skipped(path) => {
                let failure = Failure::new("is left out: it is what is copied into").at(path);
                self.bar.suspend(|| failure.print());
            }
        }
    }

    fn draw(&mut self, copied: &Copied) {
        if self.bar.is_hidden() || self.drawn.is_some_and(|drawn| drawn.elapsed() < PACE) {
            return;
        }
        self.drawn = Some(Instant::now());
        let names = self.before.names() + copied.names();
        let all = self
            .scan
            .as_ref()
            .map_or(0, |scan| scan.names.load(Ordering::Relaxed));
        self.bar.set_length(all.max(names));
        self.bar
            .set_message(bytes(self.before.bytes + copied.bytes));
        self.bar.set_position(names);
    }

    /// What went wrong with one name, by its whole path.
    pub(crate) fn failure(&self, error: &CopyError) -> Failure {
        let side = match error.side {
            Side::From => &self.from,
            Side::To => &self.to,
        };
        let place = side.with(error.path.clone());
        Failure::new(error.error.to_string()).about(place.to_string())
    }

    /// Ends the bar.
    pub(crate) fn end(self) {
        if let Some(scan) = self.scan {
            scan.stop.store(true, Ordering::Relaxed);
            // It runs no code of others that could panic.
            let _ = scan.thread.join();
        }
        self.bar.finish_and_clear();
    }
}

/// What was copied, unless `quiet`, and what was left behind, in lines.
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
        let told = |copied: &Copied| summary(Path::new("data.hf"), copied, false);
        assert_eq!(
            told(&copied),
            "data.hf: 1 directory, 1,234 files, 2.0 KiB\n"
        );
        copied.lost.owners = (3, Some("a/b".into()));
        assert!(
            told(&copied).contains("3 names have another owner"),
            "{}",
            told(&copied)
        );
        assert!(told(&copied).contains("(the first: a/b)"));
        let quiet = summary(Path::new("data.hf"), &copied, true);
        assert!(quiet.starts_with("3 names have another owner"), "{quiet}");
    }
}
