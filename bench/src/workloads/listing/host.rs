//! A directory of a host that answers slowly: as it is, behind the host-directory store in this
//! process, and behind a mount of it.

use super::by_calls::ByCalls;
use super::cold::{Cold, Directory};
use super::in_process::InProcess;
use crate::commands;
use crate::fuse::mounted::Mounted;
use crate::fuse::serve::Kind;
use crate::mounts::Holdfast;
use crate::program::Program;
use anyhow::{Context, Result};
use holdfast_core::{FileSystem, Options};
use holdfast_hostdir::HostDirectory;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;

/// The slow host, which is mounted anew for each measurement: then the kernel has nothing of it in
/// memory.
pub(super) struct SlowHost<'a> {
    pub(super) program: &'a Program,
    pub(super) files: usize,
    pub(super) delay: Duration,
}

impl SlowHost<'_> {
    /// Mounts it in a new directory beside this path.
    ///
    /// # Errors
    /// If it cannot be mounted.
    fn mount(&self, beside: &Path) -> Result<Mounted> {
        let delay = self.delay.as_secs_f64() * 1e3;
        let arguments = [
            format!("--files={}", self.files),
            format!("--delay={delay}"),
        ];
        Mounted::start_beside(self.program, Kind::Slow, &arguments, beside)
    }

    /// The directory of the host as it is.
    ///
    /// # Errors
    /// If it cannot be mounted.
    pub(super) fn plain(&self, beside: &Path) -> Result<Plain> {
        Ok(Plain(self.mount(beside)?))
    }

    /// Behind the store, in this process.
    ///
    /// # Errors
    /// If it cannot be mounted or opened.
    pub(super) fn behind_store(&self, beside: &Path) -> Result<BehindStore> {
        let host = self.mount(beside)?;
        let store = HostDirectory::open(host.path(), holdfast_hostdir::Options::default())?;
        let options = Options {
            read_only: true,
            ..Options::default()
        };
        let fs = FileSystem::new(Arc::new(store), options)?;
        Ok(BehindStore { fs, host })
    }

    /// Behind a mount of the command's.
    ///
    /// # Errors
    /// If one of the two cannot be mounted.
    pub(super) fn behind_mount(&self, beside: &Path, holdfast: &Holdfast) -> Result<BehindMount> {
        let host = self.mount(beside)?;
        let (point, scratch) = (tempfile::tempdir()?, tempfile::tempdir()?);
        let mut command = holdfast.mount_read_only(host.path(), point.path());
        commands::finish(&mut command, scratch.path())
            .context("cannot mount the host's directory")?;
        let ours = Ours {
            holdfast: holdfast.clone(),
            point,
            scratch,
            is_mounted: true,
        };
        Ok(BehindMount { ours, host })
    }
}

/// The host's directory by system calls.
pub(super) struct Plain(Mounted);

impl Cold for Plain {
    fn directory(&self, path: &Path) -> Result<Box<dyn Directory + '_>> {
        Ok(Box::new(ByCalls::open(&self.0.path().join(path))?))
    }

    fn waits(&mut self) -> Result<u64> {
        self.0.requests()
    }

    fn close(self: Box<Self>) -> Result<()> {
        self.0.stop()
    }
}

/// The library over the host's directory.
pub(super) struct BehindStore {
    fs: FileSystem,
    host: Mounted,
}

impl Cold for BehindStore {
    fn directory(&self, path: &Path) -> Result<Box<dyn Directory + '_>> {
        Ok(Box::new(InProcess::open(&self.fs, path)?))
    }

    fn waits(&mut self) -> Result<u64> {
        self.host.requests()
    }

    fn close(self: Box<Self>) -> Result<()> {
        self.fs.close()?;
        drop(self.fs);
        self.host.stop()
    }
}

/// System calls on a mount of the host's directory.
pub(super) struct BehindMount {
    // In this order: the mount ends before what is below it.
    ours: Ours,
    host: Mounted,
}

impl Cold for BehindMount {
    fn directory(&self, path: &Path) -> Result<Box<dyn Directory + '_>> {
        Ok(Box::new(ByCalls::open(&self.ours.point.path().join(path))?))
    }

    fn waits(&mut self) -> Result<u64> {
        self.host.requests()
    }

    fn close(mut self: Box<Self>) -> Result<()> {
        self.ours.unmount()?;
        self.host.stop()
    }
}

/// Our mount. Dropping it unmounts it.
struct Ours {
    holdfast: Holdfast,
    point: TempDir,
    scratch: TempDir,
    is_mounted: bool,
}

impl Ours {
    fn unmount(&mut self) -> Result<()> {
        if !self.is_mounted {
            return Ok(());
        }
        let mut command = self.holdfast.unmount(self.point.path(), false);
        commands::finish(&mut command, self.scratch.path())?;
        self.is_mounted = false;
        Ok(())
    }
}

impl Drop for Ours {
    fn drop(&mut self) {
        if let Err(error) = self.unmount() {
            let point = self.point.path().display();
            eprintln!("the mount at {point} stays: {error:#}");
        }
    }
}
