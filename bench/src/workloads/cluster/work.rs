//! What is done.

use super::target::Clients;
use crate::commands;
use crate::sys;
use crate::workloads::trees::archive::TreeArchive;
use anyhow::{Context, Result, bail, ensure};
use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

/// Threads that make the directory that is listed.
const MAKERS: usize = 12;

/// Bytes of one write of the big file.
const PIECE: usize = 1 << 20;

/// Other clients may not see a new directory for so long.
const LEASE: Duration = Duration::from_millis(1500);

/// One work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Work {
    Create {
        clients: usize,
        /// Of each client.
        threads: usize,
        bytes: usize,
    },
    Untar,
    Remove,
    List,
    ListWarm,
    Clone,
    BigWrite,
    BigRead,
}

const fn create(clients: usize, threads: usize, bytes: usize) -> Work {
    Work::Create {
        clients,
        threads,
        bytes,
    }
}

/// All works with their names, in the order in which they are done.
pub(super) const WORKS: [(&str, Work); 15] = [
    ("create-1", create(1, 1, 0)),
    ("create-4k-1", create(1, 1, 4096)),
    ("create-t12", create(1, 12, 0)),
    ("create-4k-t12", create(1, 12, 4096)),
    ("create-4", create(4, 1, 0)),
    ("create-4k-4", create(4, 1, 4096)),
    ("create-12", create(12, 1, 0)),
    ("create-4k-12", create(12, 1, 4096)),
    ("untar", Work::Untar),
    ("rm", Work::Remove),
    ("ls", Work::List),
    ("ls-warm", Work::ListWarm),
    ("clone", Work::Clone),
    ("big-write", Work::BigWrite),
    ("big-read", Work::BigRead),
];

/// What the works are about.
pub(super) struct Material {
    /// Creations of each thread.
    pub(super) files: usize,
    /// Names of the directory that is listed.
    pub(super) names: usize,
    /// Pieces of the big file.
    pub(super) pieces: usize,
    pub(super) archive: TreeArchive,
    /// A repository of the tree, if one is cloned.
    pub(super) repository: PathBuf,
    pub(super) scratch: PathBuf,
}

/// How much was done.
pub(super) struct Did {
    pub(super) items: u64,
    pub(super) bytes: u64,
    pub(super) seconds: f64,
}

impl Work {
    fn writes(self) -> bool {
        !matches!(self, Self::List | Self::ListWarm | Self::BigRead)
    }
}

impl Material {
    /// Makes the repository.
    ///
    /// # Errors
    /// If git(1) or tar(1) fails.
    pub(super) fn make_repository(&self) -> Result<()> {
        fs::create_dir(&self.repository)?;
        let mut tar = Command::new("tar");
        tar.arg("-xf")
            .arg(self.archive.path())
            .arg("-C")
            .arg(&self.repository);
        commands::run(&mut tar, &self.scratch)?;
        let words: [&[&str]; 3] = [
            &["init", "-q"],
            &["add", "-A", "-f"],
            &["commit", "-qm", "tree"],
        ];
        for words in words {
            let mut git = git();
            git.arg("-C").arg(&self.repository).args(words);
            commands::run(&mut git, &self.scratch)?;
        }
        Ok(())
    }

    /// Gets the clients ready for a work in this directory of theirs, which is not measured.
    ///
    /// # Errors
    /// If that fails.
    pub(super) fn prepare(&self, work: Work, clients: &mut Clients<'_>, place: &str) -> Result<()> {
        clients.set_count(match work {
            Work::Create { clients, .. } => clients,
            _ => 1,
        })?;
        let here = clients.root(0).join(place);
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o755)
            .create(&here)?;
        match work {
            Work::Create {
                clients: count,
                threads,
                bytes,
            } => {
                let made = here.join(format!("create-{count}-{threads}-{bytes}"));
                fs::create_dir(&made)?;
                for thread in 0..count * threads {
                    fs::create_dir(made.join(thread.to_string()))?;
                }
                if count > 1 {
                    thread::sleep(LEASE);
                }
            }
            Work::Untar => self.archive.warm_up()?,
            Work::Remove if !here.join("tree").exists() => self.untar(&here)?,
            Work::List => {
                self.make_listed(clients)?;
                clients.chill()?;
            }
            Work::ListWarm => {
                self.make_listed(clients)?;
                self.list(clients)?;
            }
            Work::BigRead => {
                if !here.join("big").exists() {
                    self.write_big(&here)?;
                    clients.sync()?;
                }
                clients.chill()?;
            }
            _ => {}
        }
        Ok(())
    }

    /// Does it, with the sync at its end.
    ///
    /// # Errors
    /// Those of the first call or program that failed; an interruption.
    pub(super) fn perform(&self, work: Work, clients: &Clients<'_>, place: &str) -> Result<Did> {
        let here = clients.root(0).join(place);
        let entries = self.archive.census.entries();
        let big = (self.pieces * PIECE) as u64;
        let begun = Instant::now();
        let (items, bytes) = match work {
            Work::Create {
                clients: count,
                threads,
                bytes,
            } => {
                let below = format!("{place}/create-{count}-{threads}-{bytes}");
                let folders = (0..count * threads).map(|thread| {
                    clients
                        .root(thread / threads)
                        .join(&below)
                        .join(thread.to_string())
                });
                self.create(&folders.collect::<Vec<_>>(), self.files, bytes)?;
                let files = (count * threads * self.files) as u64;
                (files, files * bytes as u64)
            }
            Work::Untar => {
                self.untar(&here)?;
                (entries, self.archive.census.bytes)
            }
            Work::Remove => {
                let mut rm = Command::new("rm");
                commands::run(rm.arg("-r").arg(here.join("tree")), &self.scratch)?;
                (entries, 0)
            }
            Work::List | Work::ListWarm => {
                self.list(clients)?;
                (self.names as u64, 0)
            }
            Work::Clone => {
                let mut git = git();
                git.args(["clone", "-q"])
                    .arg(format!("file://{}", self.repository.display()));
                commands::run(git.arg(here.join("clone")), &self.scratch)?;
                (entries, self.archive.census.bytes)
            }
            Work::BigWrite => {
                self.write_big(&here)?;
                (1, big)
            }
            Work::BigRead => {
                let mut file = File::open(here.join("big"))?;
                let mut piece = vec![0; PIECE];
                let mut length = 0;
                while let read @ 1.. = file.read(&mut piece)? {
                    length += read as u64;
                }
                ensure!(length == big, "{length} bytes instead of {big}");
                (1, big)
            }
        };
        if work.writes() {
            clients.sync()?;
        }
        Ok(Did {
            items,
            bytes,
            seconds: begun.elapsed().as_secs_f64(),
        })
    }

    /// A thread in each of these directories makes files.
    fn create(&self, folders: &[PathBuf], files: usize, bytes: usize) -> Result<()> {
        let start = Barrier::new(folders.len());
        let make = |folder: &Path| {
            let content = vec![b'x'; bytes];
            start.wait();
            for number in 0..files {
                if sys::end_asked() {
                    bail!("interrupted");
                }
                let mut file = File::create_new(folder.join(format!("file-{number}")))?;
                file.write_all(&content)?;
            }
            Ok(())
        };
        together(folders.len(), |thread| make(&folders[thread]))
    }

    fn untar(&self, here: &Path) -> Result<()> {
        fs::create_dir(here.join("tree"))?;
        let mut tar = Command::new("tar");
        tar.arg("-xf")
            .arg(self.archive.path())
            .arg("-C")
            .arg(here.join("tree"));
        commands::run(&mut tar, &self.scratch).map(drop)
    }

    fn listed(&self, clients: &Clients<'_>) -> PathBuf {
        clients
            .root(0)
            .join(format!("holdfast-bench-list-{}", self.names))
    }

    /// The directory that is listed stays: it takes minutes to make. A name beside it says that it
    /// is complete.
    fn make_listed(&self, clients: &Clients<'_>) -> Result<()> {
        let listed = self.listed(clients);
        let complete = listed.with_extension("complete");
        if complete.exists() {
            return Ok(());
        }
        fs::create_dir(&listed)?;
        let make = |thread: usize| {
            let mine = (0..self.names).skip(thread).step_by(MAKERS);
            mine.into_iter().try_for_each(|number| {
                ensure!(!sys::end_asked(), "interrupted");
                File::create_new(listed.join(format!("file-{number:06}")))?;
                Ok(())
            })
        };
        together(MAKERS, make)?;
        File::create_new(complete)?;
        Ok(())
    }

    fn list(&self, clients: &Clients<'_>) -> Result<()> {
        let mut ls = Command::new("ls");
        ls.env("LC_ALL", "C").arg("-l").arg(self.listed(clients));
        let lines = commands::run(&mut ls, &self.scratch)?.lines(|_| true)?;
        ensure!(
            lines == self.names as u64 + 1,
            "{lines} lines for {} names",
            self.names
        );
        Ok(())
    }

    fn write_big(&self, here: &Path) -> Result<()> {
        let mut file = File::create(here.join("big"))?;
        let mut piece = vec![0; PIECE];
        for number in 0..self.pieces {
            // No two blocks are alike.
            let mut word = number as u64 + 1;
            for place in piece.chunks_exact_mut(8) {
                word = word.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(17) ^ number as u64;
                place.copy_from_slice(&word.to_le_bytes());
            }
            file.write_all(&piece)?;
        }
        file.sync_all().context("fsync")
    }
}

/// Runs so many threads, and returns the first error.
fn together(threads: usize, work: impl Fn(usize) -> Result<()> + Sync) -> Result<()> {
    thread::scope(|scope| {
        let work = &work;
        let started = (0..threads).map(|thread| scope.spawn(move || work(thread)));
        let started: Vec<_> = started.collect();
        let mut ended = started.into_iter().map(thread::ScopedJoinHandle::join);
        ended.try_for_each(|thread| thread.unwrap_or_else(|_| bail!("a thread failed")))
    })
}

/// git(1) without any settings of the user, and without background tasks.
fn git() -> Command {
    let mut command = Command::new("git");
    command.args([
        "-c",
        "gc.auto=0",
        "-c",
        "maintenance.auto=false",
        "-c",
        "safe.directory=*",
    ]);
    command.args(["-c", "user.name=bench", "-c", "user.email=bench@localhost"]);
    command
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null");
    command
}
