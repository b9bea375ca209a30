//! What is measured, and its mounts.

use super::proxy;
use crate::commands;
use crate::mounts::{Holdfast, ask};
use crate::process::Process;
use crate::targets::drop_host_caches;
use anyhow::{Context, Error, Result, bail, ensure};
use rustix::fs::{fsync, syncfs};
use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::str::FromStr;
use std::thread::sleep;
use std::time::Duration;
use tempfile::TempDir;

/// How often a busy mount is unmounted again: a program's last thread may hold it for a moment.
const TRIES: u32 = 50;
const PAUSE: Duration = Duration::from_millis(20);

/// Functions of the database that no operation waits for.
const BESIDE: [&str; 9] = [
    "beat",
    "sweep",
    "staged",
    "deletable",
    "deleted",
    "usage",
    "clients",
    "begin",
    "end",
];

/// What the command line names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// `pg:URL`: our mounts of a file system that is there.
    Ours(String),
    /// `juicefs:URL`: mounts of a file system of JuiceFS that is there.
    Juicefs(String),
    /// `dir:PATH,…`: mount points that are there, one a client, or one for all.
    Directories(Vec<PathBuf>),
}

impl FromStr for Target {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match text.split_once(':') {
            Some(("pg", rest)) if rest.starts_with("//") => Ok(Self::Ours(text.to_owned())),
            Some(("pg", url)) if url.starts_with("pg://") => Ok(Self::Ours(url.to_owned())),
            Some(("juicefs", url)) if url.contains("://") => Ok(Self::Juicefs(url.to_owned())),
            Some(("dir", paths)) if !paths.is_empty() => Ok(Self::Directories(
                paths.split(',').map(Into::into).collect(),
            )),
            _ => {
                bail!("not a target: `{text}` (known are `pg:URL`, `juicefs:URL` and `dir:PATH,…`)")
            }
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            // An address may have a password: it is not shown.
            Self::Ours(_) => f.write_str("pg"),
            Self::Juicefs(_) => f.write_str("juicefs"),
            Self::Directories(paths) => write!(f, "dir:{}", paths[0].display()),
        }
    }
}

/// `host:port` of a URL, and where in it that stands.
fn server(url: &str) -> Result<(std::ops::Range<usize>, String)> {
    let begin = url.find("://").context("no URL")? + 3;
    let end = url[begin..]
        .find(['/', '?'])
        .map_or(url.len(), |at| begin + at);
    let begin = url[begin..end]
        .rfind('@')
        .map_or(begin, |at| begin + at + 1);
    let host = &url[begin..end];
    ensure!(
        !host.is_empty() && !host.contains(','),
        "one server is needed in the URL"
    );
    let server = match host.rsplit_once(':') {
        Some((_, port)) if port.parse::<u16>().is_ok() => host.to_owned(),
        _ => format!("{host}:5432"),
    };
    Ok((begin..end, server))
}

/// The URL of the same database with so much delay in front of it.
fn delayed(url: &str, round_trip: Duration) -> Result<String> {
    if round_trip.is_zero() {
        return Ok(url.to_owned());
    }
    let (place, server) = server(url)?;
    let port = proxy::start(server, round_trip)?;
    Ok(format!(
        "{}127.0.0.1:{port}{}",
        &url[..place.start],
        &url[place.end..]
    ))
}

/// The mounts of one target, a client each.
pub(super) struct Clients<'a> {
    target: Target,
    programs: &'a Programs,
    scratch: &'a Path,
    roots: Vec<PathBuf>,
    /// What this run mounted: the mount point, and what the client keeps on disk.
    mounts: Vec<TempDir>,
}

/// The programs that mount.
pub(super) struct Programs {
    pub(super) holdfast: Option<Holdfast>,
    pub(super) juicefs: PathBuf,
    pub(super) juicefs_options: Vec<String>,
}

impl<'a> Clients<'a> {
    /// No client yet.
    ///
    /// # Errors
    /// If the address is none, or the relay cannot be started.
    pub(super) fn new(
        target: &Target,
        round_trip: Duration,
        programs: &'a Programs,
        scratch: &'a Path,
    ) -> Result<Self> {
        let (target, roots) = match target {
            Target::Ours(url) => (Target::Ours(delayed(url, round_trip)?), Vec::new()),
            Target::Juicefs(url) => (Target::Juicefs(delayed(url, round_trip)?), Vec::new()),
            Target::Directories(paths) => (target.clone(), paths.clone()),
        };
        Ok(Self {
            target,
            programs,
            scratch,
            roots,
            mounts: Vec::new(),
        })
    }

    /// The root of a client.
    pub(super) fn root(&self, client: usize) -> &Path {
        &self.roots[client % self.roots.len()]
    }

    /// Mounts or unmounts until there are so many.
    ///
    /// # Errors
    /// If that fails.
    pub(super) fn set_count(&mut self, count: usize) -> Result<()> {
        if matches!(self.target, Target::Directories(_)) {
            return Ok(());
        }
        while self.mounts.len() > count {
            self.unmount()?;
        }
        while self.mounts.len() < count {
            self.mount()?;
        }
        Ok(())
    }

    fn mount(&mut self) -> Result<()> {
        let made = tempfile::Builder::new()
            .prefix("holdfast-bench-")
            .tempdir()?;
        let (root, cache) = (made.path().join("root"), made.path().join("cache"));
        std::fs::create_dir(&root)?;
        let mut command = match &self.target {
            Target::Ours(url) => self.holdfast()?.mount(Path::new(url), &root),
            Target::Juicefs(url) => {
                let mut command = Command::new(&self.programs.juicefs);
                command.args(["mount", "-d", "--no-usage-report", "--backup-meta", "0"]);
                command.args(&self.programs.juicefs_options);
                command.arg("--log").arg(made.path().join("log"));
                command.arg("--cache-dir").arg(&cache).arg(url).arg(&root);
                command
            }
            Target::Directories(_) => bail!("a directory is not mounted"),
        };
        commands::finish(&mut command, self.scratch)?;
        self.roots.push(root);
        self.mounts.push(made);
        Ok(())
    }

    fn holdfast(&self) -> Result<&'a Holdfast> {
        self.programs
            .holdfast
            .as_ref()
            .context("there is no program holdfast")
    }

    fn unmount(&mut self) -> Result<()> {
        let root = self.roots.last().context("nothing is mounted")?;
        let mut tries = 1;
        loop {
            let mut command = match &self.target {
                Target::Ours(_) => self.holdfast()?.unmount(root, false),
                _ => {
                    let mut command = Command::new(&self.programs.juicefs);
                    command.arg("umount").arg(root);
                    command
                }
            };
            match commands::finish(&mut command, self.scratch) {
                Ok(_) => break,
                Err(error) if tries == TRIES => return Err(error),
                Err(_) => sleep(PAUSE),
            }
            tries += 1;
        }
        self.roots.pop();
        let made = self.mounts.pop().context("nothing is mounted")?;
        made.close().context("cannot remove a mount point")
    }

    /// Lets nothing be in memory or on a client's disk, with one client left. Of directories that
    /// were there, only what the kernel keeps is dropped.
    ///
    /// # Errors
    /// If it is in use; without the right to drop caches.
    pub(super) fn chill(&mut self) -> Result<()> {
        self.set_count(0)?;
        rustix::fs::sync();
        drop_host_caches().context("dropping the host's caches needs root")?;
        self.set_count(1)
    }

    /// Makes everything durable that was done by these clients.
    ///
    /// # Errors
    /// If that fails.
    pub(super) fn sync(&self) -> Result<()> {
        for root in &self.roots {
            let root = File::open(root)?;
            syncfs(&root)?;
            fsync(&root)?;
        }
        Ok(())
    }

    /// Round trips of our mounts so far that operations wait for, by function.
    ///
    /// # Errors
    /// If a daemon does not answer.
    pub(super) fn trips(&self) -> Result<Option<BTreeMap<String, u64>>> {
        let Target::Ours(_) = self.target else {
            return Ok(None);
        };
        let mut all = BTreeMap::new();
        for root in &self.roots {
            let answer = ask(root)?
                .cluster
                .context("the mount tells no round trips")?;
            for (function, count) in answer.trips {
                if !BESIDE.contains(&function.as_str()) {
                    *all.entry(function).or_default() += count;
                }
            }
        }
        Ok(Some(all))
    }

    /// Our first daemon.
    ///
    /// # Errors
    /// If it does not answer.
    pub(super) fn daemon(&self) -> Result<Process> {
        Ok(match self.target {
            Target::Ours(_) => Process::Other(ask(self.root(0))?.pid),
            _ => Process::Own,
        })
    }
}

impl Drop for Clients<'_> {
    fn drop(&mut self) {
        while !self.mounts.is_empty() {
            if let Err(error) = self.unmount() {
                eprintln!("{} stays mounted: {error:#}", self.target);
                // The mount point is not removed: that would go into the mount.
                self.mounts.drain(..).for_each(|made| drop(made.keep()));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_read_and_others_are_refused() {
        let read = |text: &str| text.parse::<Target>();
        let ours = Target::Ours("pg://u@h/d".to_owned());
        assert_eq!(read("pg://u@h/d").expect("a target"), ours);
        assert_eq!(read("pg:pg://u@h/d").expect("a target"), ours);
        let paths = Target::Directories(vec!["/a".into(), "/b".into()]);
        assert_eq!(read("dir:/a,/b").expect("a target"), paths);
        assert!(read("juicefs:postgres://h/d").is_ok());
        for text in ["", "pg:", "dir:", "mem:", "juicefs:d"] {
            let error = read(text).expect_err("refused").to_string();
            assert!(error.contains("known are `pg:URL`"), "{error}");
        }
        assert_eq!(
            read("pg://u:secret@h/d").expect("a target").to_string(),
            "pg"
        );
    }

    #[test]
    fn the_server_of_an_address_is_replaced() {
        let found = |url| server(url).expect("a server").1;
        assert_eq!(found("pg://u:p@db:5499/d?fs=x"), "db:5499");
        assert_eq!(found("postgres://db/d"), "db:5432");
        assert_eq!(found("pg://u@db?fs=x"), "db:5432");
        server("pg://a,b/d").expect_err("two servers");
        let url = "pg://u:p@127.0.0.1:1/d?fs=x";
        assert_eq!(delayed(url, Duration::ZERO).expect("as it is"), url);
        let behind = delayed(url, Duration::from_millis(1)).expect("a relay");
        let (front, back) = ("pg://u:p@127.0.0.1:", "/d?fs=x");
        assert!(behind.starts_with(front) && behind.contains(back) && behind != url);
    }
}
