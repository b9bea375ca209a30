//! The `holdfast` command that mounts our targets, and what its daemon tells of itself.

use anyhow::{Context, Result};
use clap::Args;
use holdfast_fuse::serve::INFO_XATTR;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What the command is called.
const NAME: &str = "holdfast";

/// The largest value that an extended attribute can have.
const VALUE_MAX: usize = 1 << 16;

/// How our targets are mounted
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct HoldfastArgs {
    /// The program that mounts `mem:` and `hf:IMAGE` (default: `holdfast` beside this one)
    #[arg(long, value_name = "PROGRAM")]
    holdfast: Option<PathBuf>,
    /// Options of their mounts, as `holdfast mount -o` takes them
    #[arg(long, value_name = "OPTIONS")]
    mount_options: Option<String>,
}

/// The command, and the options it is given.
#[derive(Clone, Debug)]
pub(crate) struct Holdfast {
    program: PathBuf,
    options: Option<String>,
}

/// What a daemon tells of itself; there is more, which is of no interest here.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Info {
    pub(crate) pid: u32,
    pub(super) transport: String,
    requests: BTreeMap<String, u64>,
    pub(crate) cluster: Option<Cluster>,
}

/// Of a mount of a file system of several machines.
#[derive(Debug, Deserialize)]
pub(crate) struct Cluster {
    /// Round trips to the database so far, by the function that was called.
    pub(crate) trips: BTreeMap<String, u64>,
}

impl Info {
    /// Requests so far, forgets left out: those come when the kernel finds time.
    pub(super) fn requests(&self) -> u64 {
        let asked = self
            .requests
            .iter()
            .filter(|(name, _)| !name.contains("FORGET"));
        asked.map(|(_, count)| count).sum()
    }
}

impl Holdfast {
    /// As the arguments say.
    ///
    /// # Errors
    /// If there is no such program.
    pub(crate) fn find(args: &HoldfastArgs) -> Result<Self> {
        let program = match &args.holdfast {
            Some(program) => program.clone(),
            None => env::current_exe()
                .context("where is this program?")?
                .with_file_name(NAME),
        };
        anyhow::ensure!(
            program.is_file(),
            "there is no {}: name the command that mounts with --holdfast",
            program.display()
        );
        Ok(Self {
            program,
            options: args.mount_options.clone(),
        })
    }

    /// The options, as they are told with the figures.
    pub(crate) fn options(&self) -> Option<&str> {
        self.options.as_deref()
    }

    fn command(&self, word: &str) -> Command {
        let mut command = Command::new(&self.program);
        command.arg(word);
        command
    }

    /// Makes a volume in this image file.
    pub(super) fn make(&self, image: &Path, bytes: u64) -> Command {
        let mut command = self.command("mkfs");
        command
            .args(["--quiet", "--size", &bytes.to_string()])
            .arg(image);
        command
    }

    /// Mounts a source; the daemon is live when this has ended.
    pub(crate) fn mount(&self, source: &Path, point: &Path) -> Command {
        let mut command = self.command("mount");
        if let Some(options) = &self.options {
            command.args(["-o", options]);
        }
        command.args([source, point]);
        command
    }

    /// Mounts a directory of the host, which is only read.
    pub(crate) fn mount_read_only(&self, source: &Path, point: &Path) -> Command {
        let mut command = self.command("mount");
        command.args(["-o", "ro"]);
        if let Some(options) = &self.options {
            command.args(["-o", options]);
        }
        command.args([source, point]);
        command
    }

    /// Unmounts what is mounted there, and waits for the daemon's end; `lazily`: when its last user
    /// has gone.
    pub(crate) fn unmount(&self, point: &Path, lazily: bool) -> Command {
        let mut command = self.command("umount");
        command.args(lazily.then_some("--lazy")).arg(point);
        command
    }
}

/// Asks the daemon of the mount at `point`.
///
/// # Errors
/// If it gives no answer, or one that makes no sense.
pub(crate) fn ask(point: &Path) -> Result<Info> {
    let mut value = vec![0; VALUE_MAX];
    let length = rustix::fs::getxattr(point, INFO_XATTR, &mut value[..])
        .with_context(|| format!("the daemon of {} does not answer", point.display()))?;
    serde_json::from_slice(&value[..length]).context("what the daemon told makes no sense")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_that_is_not_there_is_refused_by_its_name() {
        let args = HoldfastArgs {
            holdfast: Some("/nonexistent/holdfast".into()),
            mount_options: None,
        };
        let error = Holdfast::find(&args).expect_err("refused").to_string();
        assert!(
            error.contains("/nonexistent/holdfast") && error.contains("--holdfast"),
            "{error}"
        );
    }

    #[test]
    fn forgets_are_no_requests() {
        let text = r#"{"pid": 7, "transport": "uring", "more": [], "requests":
                       {"LOOKUP": 3, "FORGET": 10, "BATCH_FORGET": 2, "READ": 4}}"#;
        let info: Info = serde_json::from_str(text).expect("told");
        assert_eq!((info.pid, info.requests()), (7, 7));
    }
}
