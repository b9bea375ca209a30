//! Processes that the daemon of a mount starts beside itself.

use super::{launch::program, service_manager};
use crate::message::Result;
use holdfast_fuse::mount::{Mounted, mounted_at};
use std::{
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

/// The mount that such a process is for.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    connection: u32,
    pub(super) dir: PathBuf,
}

impl Arguments {
    /// Is the mount at this place still the one of this connection?
    pub(super) fn is_mounted(&self) -> Result<bool> {
        let mounted = mounted_at(&self.dir)?;
        Ok(mounted.is_some_and(|mounted| mounted.connection() == self.connection))
    }
}

/// The process of a hidden command for the mount at `dir`. A pipe is its standard input.
pub(super) fn process(command: &str, mounted: &Mounted, dir: &Path) -> Command {
    let mut process = Command::new(program());
    process
        .arg0("holdfast")
        .arg(command)
        .arg(mounted.connection().to_string())
        .arg(dir)
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    service_manager::silence(&mut process);
    process
}
