//! The programs of each phase, and the proof that they did something: their exit codes, and what
//! they printed or left held against what is in the tree.

use super::archive::TreeArchive;
use super::census::Census;
use super::phase::Phase;
use crate::commands::{self, Printed, Running};
use crate::mounts::Place;
use anyhow::{Context, Result, ensure};
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// What no file has in it, so that every file is read to its end; in pieces here, so that this file
/// has it neither.
const NOWHERE: &str = concat!("no-file-has-", "this-in-it-4bd1e5");

/// Directories below the place.
const ONE: &str = "one";
const COPY: &str = "copy";
const TWO: [&str; 2] = ["two-a", "two-b"];

/// One target's trees in one round.
pub(super) struct Steps<'s> {
    place: Place<'s>,
    archive: &'s TreeArchive,
    scratch: &'s Path,
    /// What the tree has before a cold phase: more than the archive where it is a repository by
    /// then.
    found: Census,
}

/// What a phase did.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Did {
    pub(super) time: Duration,
    /// Files, directories and others that it was about.
    pub(super) items: u64,
    /// Content that it moved.
    pub(super) bytes: u64,
}

impl<'s> Steps<'s> {
    pub(super) fn new(place: Place<'s>, archive: &'s TreeArchive, scratch: &'s Path) -> Self {
        Self {
            place,
            archive,
            scratch,
            found: archive.census,
        }
    }

    pub(super) fn place(&self) -> &Place<'s> {
        &self.place
    }

    /// Removes everything.
    ///
    /// # Errors
    /// Those of the place.
    pub(super) fn close(self) -> Result<()> {
        self.place.close()
    }

    /// What has to be so before a phase, and is not measured.
    ///
    /// # Errors
    /// If it cannot be.
    pub(super) fn prepare(&mut self, phase: Phase) -> Result<()> {
        if phase.is_cold() {
            self.found = Census::of_directory(&self.path(ONE))?;
            return self.place.chill();
        }
        let folders: &[&str] = match phase {
            Phase::Untar => &[ONE],
            Phase::UntarTwo => &TWO,
            _ => return Ok(()),
        };
        self.archive.warm_up()?;
        for folder in folders {
            fs::create_dir(self.path(folder)).context("cannot make a directory")?;
        }
        Ok(())
    }

    /// Does it, and checks what became of it.
    ///
    /// # Errors
    /// A program that failed, or did not do its work; an interruption.
    pub(super) fn perform(&self, phase: Phase) -> Result<Did> {
        let begun = Instant::now();
        let outcome = self.run(phase)?;
        if phase.writes() {
            self.place.sync()?;
        }
        let time = begun.elapsed();
        self.check(phase, &outcome)?;
        let census = match phase {
            Phase::Cp => Census::of_directory(&self.path(COPY))?,
            Phase::ColdFind | Phase::ColdTar | Phase::ColdRm => self.found,
            _ => self.archive.census,
        };
        let moves = match phase {
            Phase::UntarTwo => 2,
            Phase::Untar | Phase::Grep | Phase::GrepAgain | Phase::GrepThird => 1,
            Phase::GitCommit | Phase::Cp | Phase::ColdTar => 1,
            _ => 0,
        };
        Ok(Did {
            time,
            items: census.entries() * if phase == Phase::UntarTwo { 2 } else { 1 },
            bytes: census.bytes * moves,
        })
    }

    fn path(&self, folder: &str) -> PathBuf {
        self.place.root().join(folder)
    }

    fn run(&self, phase: Phase) -> Result<Outcome> {
        match phase {
            Phase::Untar => Ok(Outcome::Printed(self.untar(ONE)?.end(&[0])?)),
            Phase::UntarTwo => {
                let [first, second] = TWO.map(|folder| self.untar(folder));
                let (first, second) = (first?, second?);
                first.end(&[0])?;
                Ok(Outcome::Printed(second.end(&[0])?))
            }
            Phase::Find | Phase::ColdFind => self.in_one("find", ["."]),
            Phase::Ls | Phase::LsAgain | Phase::ColdLs => self.in_one("ls", ["-lR", "."]),
            Phase::Du => self.in_one("du", ["-s", "."]),
            Phase::Grep | Phase::GrepAgain | Phase::GrepThird => {
                // Those in which it is not: each of them is read to its end.
                let mut command = self.command("grep", ["-r", "-L", "-F", NOWHERE, "."]);
                // Old ones call it a failure that nothing was found.
                let running = Running::start(&mut command, self.scratch)?;
                Ok(Outcome::Printed(running.end(&[0, 1])?))
            }
            Phase::GitCommit => {
                self.git(&["init", "-q"])?;
                // Also what a .gitignore in the tree names.
                self.git(&["add", "-A", "-f"])?;
                Ok(Outcome::Printed(self.git(&["commit", "-q", "-m", "tree"])?))
            }
            Phase::GitStatus | Phase::ColdGitStatus => {
                let status = ["status", "--porcelain", "--branch"];
                Ok(Outcome::Printed(self.git(&status)?))
            }
            Phase::Cp => self.in_root("cp", ["-a", ONE, COPY]),
            Phase::ColdTar => {
                // To a pipe: tar(1) reads nothing for /dev/null.
                let mut command = self.command("tar", ["cf", "-", "."]);
                let bytes = commands::count_bytes(&mut command, self.scratch)?;
                Ok(Outcome::Bytes(bytes))
            }
            Phase::ColdRm => self.in_root("rm", ["-rf", ONE]),
        }
    }

    fn untar(&self, folder: &str) -> Result<Running> {
        let mut command = program("tar");
        command
            .args(["--totals", "-xf"])
            .arg(self.archive.path())
            .current_dir(self.path(folder));
        Running::start(&mut command, self.scratch)
    }

    fn command<'a>(&self, name: &str, words: impl IntoIterator<Item = &'a str>) -> Command {
        let mut command = program(name);
        command.args(words).current_dir(self.path(ONE));
        command
    }

    fn in_one<'a>(&self, name: &str, words: impl IntoIterator<Item = &'a str>) -> Result<Outcome> {
        let printed = commands::run(&mut self.command(name, words), self.scratch)?;
        Ok(Outcome::Printed(printed))
    }

    fn in_root<'a>(&self, name: &str, words: impl IntoIterator<Item = &'a str>) -> Result<Outcome> {
        let mut command = program(name);
        command.args(words).current_dir(self.place.root());
        Ok(Outcome::Printed(commands::run(&mut command, self.scratch)?))
    }

    /// git(1) without any settings of the user, and without background tasks.
    fn git(&self, words: &[&str]) -> Result<Printed> {
        let settings = [
            "-c",
            "gc.auto=0",
            "-c",
            "maintenance.auto=false",
            "-c",
            "safe.directory=*",
        ];
        let mut command = self.command("git", settings);
        command.args(words);
        for (name, value) in [
            ("GIT_CONFIG_NOSYSTEM", "1"),
            ("GIT_CONFIG_GLOBAL", "/dev/null"),
            ("GIT_AUTHOR_NAME", "bench"),
            ("GIT_AUTHOR_EMAIL", "bench@localhost"),
            ("GIT_COMMITTER_NAME", "bench"),
            ("GIT_COMMITTER_EMAIL", "bench@localhost"),
        ] {
            command.env(name, value);
        }
        commands::run(&mut command, self.scratch)
    }

    fn check(&self, phase: Phase, outcome: &Outcome) -> Result<()> {
        let census = self.archive.census;
        match phase {
            // The phases that follow count what is there: to look here would warm it for them.
            Phase::Untar => least(outcome.total(), census.bytes, "bytes"),
            Phase::Find | Phase::ColdFind => {
                // The root, and when it is a repository, what that has.
                least(outcome.lines(|_| true)?, census.entries() + 1, "names")
            }
            Phase::Ls | Phase::LsAgain | Phase::ColdLs => {
                let kinds = b"-dlpscb";
                let entry = |line: &[u8]| line.first().is_some_and(|kind| kinds.contains(kind));
                same(outcome.lines(entry)?, census.visible, "entries")
            }
            Phase::Du => same(outcome.lines(|line| line.ends_with(b"\t."))?, 1, "sums"),
            Phase::Grep | Phase::GrepAgain | Phase::GrepThird => {
                same(outcome.lines(|_| true)?, census.files, "files")
            }
            Phase::GitCommit => {
                let listed = self.git(&["ls-files"])?.lines(|_| true)?;
                let nested = census.files + census.symlinks;
                least(listed, nested, "committed files")
            }
            Phase::GitStatus | Phase::ColdGitStatus => {
                same(
                    outcome.lines(|line| line.starts_with(b"## "))?,
                    1,
                    "branches",
                )?;
                same(outcome.lines(|_| true)?, 1, "lines")
            }
            Phase::Cp => {
                let [one, copy] =
                    [ONE, COPY].map(|folder| Census::of_directory(&self.path(folder)));
                let (one, copy) = (one?, copy?);
                ensure!(one == copy, "the copy of {one:?} has {copy:?}");
                least(copy.entries(), census.entries(), "entries")
            }
            Phase::UntarTwo => {
                for folder in TWO {
                    let found = Census::of_directory(&self.path(folder))?;
                    same(found.entries(), census.entries(), "entries")?;
                    same(found.files, census.files, "files")?;
                }
                Ok(())
            }
            Phase::ColdTar => least(outcome.bytes(), census.bytes, "bytes"),
            Phase::ColdRm => {
                ensure!(!self.path(ONE).exists(), "the tree is still there");
                Ok(())
            }
        }
    }
}

/// What is left of a phase's programs.
enum Outcome {
    Printed(Printed),
    Bytes(u64),
}

impl Outcome {
    fn lines(&self, counts: impl FnMut(&[u8]) -> bool) -> Result<u64> {
        match self {
            Self::Printed(printed) => printed.lines(counts),
            Self::Bytes(_) => Ok(0),
        }
    }

    fn total(&self) -> u64 {
        match self {
            Self::Printed(printed) => total(&printed.errors).unwrap_or(0),
            Self::Bytes(_) => 0,
        }
    }

    fn bytes(&self) -> u64 {
        match self {
            Self::Bytes(bytes) => *bytes,
            Self::Printed(_) => 0,
        }
    }
}

/// What tar(1) says that it has read.
fn total(errors: &str) -> Option<u64> {
    let (_, rest) = errors.split_once("Total bytes read: ")?;
    rest.split_whitespace().next()?.parse().ok()
}

/// A program that speaks the same everywhere.
fn program(name: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(name);
    command.env("LC_ALL", "C");
    command
}

fn same(found: u64, expected: u64, what: &str) -> Result<()> {
    ensure!(found == expected, "{found} {what} instead of {expected}");
    Ok(())
}

fn least(found: u64, expected: u64, what: &str) -> Result<()> {
    ensure!(
        found >= expected,
        "{found} {what}, and at least {expected} were due"
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_tar_has_read_is_taken_from_what_it_says() {
        let said = "tar: x\nTotal bytes read: 10240 (10KiB, 5MiB/s)\n";
        assert_eq!(total(said), Some(10_240));
        assert_eq!(total("tar: x"), None);
        let short = least(10, 11, "bytes").expect_err("too few").to_string();
        assert_eq!(short, "10 bytes, and at least 11 were due");
        assert!(same(1, 1, "lines").is_ok() && same(2, 1, "lines").is_err());
    }
}
