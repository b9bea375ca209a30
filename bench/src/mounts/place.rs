//! One target while it is measured: made, mounted, cold and warm, and gone again.

use super::Mountable;
use super::holdfast::{Holdfast, Info, ask};
use super::kernel;
use crate::commands;
use crate::process::Process;
use crate::targets::{Folder, drop_host_caches};
use anyhow::{Context, Result, bail, ensure};
use holdfast_fuse::mount::mounted_at;
use rustix::fs::{fsync, statvfs, syncfs};
use std::fs::{self, File, OpenOptions};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

/// How often a busy mount is unmounted again: the kernel releases what a program's last thread held
/// a moment after the program has ended.
const TRIES: u32 = 50;
const PAUSE: Duration = Duration::from_millis(20);

/// The smallest image: xfs makes none below 300 MiB.
const IMAGE_MIN: u64 = 1 << 30;

/// Bytes of an image for each inode in it: one of ext4 has an inode for each 16 KiB, and no more.
const BYTES_PER_INODE: u64 = 16 << 10;

/// What is going to be put into a target.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Need {
    /// Bytes of content, each file's in whole blocks.
    pub(crate) bytes: u64,
    /// Files and directories.
    pub(crate) inodes: u64,
}

impl Need {
    /// Bytes of an image that it fits in with ease.
    fn image(self) -> u64 {
        let bytes = (self.bytes / 2 * 3).max(self.inodes * BYTES_PER_INODE);
        (bytes + IMAGE_MIN).next_multiple_of(1 << 20)
    }
}

/// A target that is mounted. Dropping it unmounts it and removes what was made.
pub(crate) struct Place<'h> {
    target: Mountable,
    /// The command, for targets that are ours.
    holdfast: Option<&'h Holdfast>,
    /// For what programs print.
    scratch: PathBuf,
    /// The folder in a directory that was there already.
    folder: Option<Folder>,
    /// The mount point, as long as there is one.
    point: Option<PathBuf>,
    /// The image file, once it is made.
    image: Option<PathBuf>,
}

impl<'h> Place<'h> {
    /// Makes the target with room for this, and mounts it.
    ///
    /// # Errors
    /// If it cannot be made or mounted; an image that is there already; too little space.
    pub(crate) fn make(
        target: &Mountable,
        need: Need,
        holdfast: Option<&'h Holdfast>,
        scratch: &Path,
    ) -> Result<Self> {
        let mut place = Self {
            target: target.clone(),
            holdfast,
            scratch: scratch.to_owned(),
            folder: None,
            point: None,
            image: None,
        };
        match target {
            Mountable::Directory(path) => place.folder = Some(Folder::fresh_in(path)?),
            Mountable::Memory => place.mount()?,
            Mountable::Volume(image) => {
                place.make_image(image, need)?;
                place.run(&mut place.command()?.make(image, need.image()))?;
                place.mount()?;
            }
            Mountable::Kernel(kind, image) => {
                place.make_image(image, need)?;
                place.run(&mut kind.make(image))?;
                place.mount()?;
            }
        }
        Ok(place)
    }

    /// A new, sparse file.
    fn make_image(&mut self, image: &Path, need: Need) -> Result<()> {
        let what = || format!("cannot make the image {}", image.display());
        let folder = match image.parent() {
            Some(parent) if parent != Path::new("") => parent,
            _ => Path::new("."),
        };
        let space = statvfs(folder).with_context(what)?;
        let free = space.f_bavail.saturating_mul(space.f_frsize);
        ensure!(
            free >= need.bytes,
            "{}: {} MiB are free there, and {} are needed: put the image elsewhere, or take a smaller tree",
            what(),
            free >> 20,
            need.bytes >> 20
        );
        let made = OpenOptions::new().write(true).create_new(true).open(image);
        let made = made.with_context(what)?;
        self.image = Some(image.to_owned());
        made.set_len(need.image()).with_context(what)
    }

    fn run(&self, command: &mut Command) -> Result<()> {
        commands::finish(command, &self.scratch).map(drop)
    }

    fn mount(&mut self) -> Result<()> {
        let path = match &self.point {
            Some(point) => point.clone(),
            None => {
                let made = tempfile::Builder::new().prefix("holdfast-bench-").tempdir();
                self.point
                    .insert(made.context("cannot make a mount point")?.keep())
                    .clone()
            }
        };
        let mut command = match &self.target {
            Mountable::Memory => self.command()?.mount(Path::new("mem:"), &path),
            Mountable::Volume(image) => self.command()?.mount(image, &path),
            Mountable::Kernel(kind, image) => kind.mount(image, &path),
            Mountable::Directory(_) => bail!("a directory is not mounted"),
        };
        self.run(&mut command)
    }

    fn command(&self) -> Result<&'h Holdfast> {
        self.holdfast
            .context("a target that is ours needs the command that mounts it")
    }

    fn unmount_command(&self, path: &Path, lazily: bool) -> Command {
        match self.holdfast {
            Some(holdfast) if self.target.is_ours() => holdfast.unmount(path, lazily),
            _ => kernel::unmount(path, lazily),
        }
    }

    fn unmount(&mut self) -> Result<()> {
        let Some(path) = self.point.clone() else {
            return Ok(());
        };
        let mut tries = 1;
        while let Err(error) = self.run(&mut self.unmount_command(&path, false)) {
            if tries == TRIES {
                return Err(error);
            }
            tries += 1;
            sleep(PAUSE);
        }
        Ok(())
    }

    /// Its root.
    ///
    /// # Panics
    /// Never: a place that was made has one.
    pub(crate) fn root(&self) -> &Path {
        let folder = self.folder.as_ref().map(Folder::path);
        folder
            .or(self.point.as_deref())
            .expect("mounted, or a folder")
    }

    /// Makes everything durable that was done in it. The kernel does not pass syncfs(2) on to a
    /// mount of ours, but a sync of any of its directories makes everything durable.
    ///
    /// # Errors
    /// If that fails.
    pub(crate) fn sync(&self) -> Result<()> {
        let what = || format!("cannot sync {}", self.target);
        let root = File::open(self.root()).with_context(what)?;
        syncfs(&root).with_context(what)?;
        fsync(&root).with_context(what)
    }

    /// Lets nothing of it be in memory, the pages of its image included: unmounts it, drops the
    /// host's caches, and mounts it again. A directory that was there already is only dropped from
    /// the host's caches.
    ///
    /// # Errors
    /// If it is in use; without the right to drop caches.
    pub(crate) fn chill(&mut self) -> Result<()> {
        self.sync()?;
        if self.folder.is_none() {
            self.unmount()?;
        }
        if let Some(image) = &self.image {
            File::open(image)?.sync_all()?;
        }
        drop_host_caches().context("dropping the host's caches needs root")?;
        match self.folder {
            Some(_) => Ok(()),
            None => self.mount(),
        }
    }

    /// What our daemon tells; nothing if it is not ours.
    fn info(&self) -> Result<Option<Info>> {
        let ours = self.target.is_ours();
        ours.then(|| ask(self.root())).transpose()
    }

    /// Requests that our daemon has had so far.
    ///
    /// # Errors
    /// If it does not answer.
    pub(crate) fn requests(&self) -> Result<Option<u64>> {
        Ok(self.info()?.map(|info| info.requests()))
    }

    /// How requests come to our daemon.
    ///
    /// # Errors
    /// If it does not answer.
    pub(crate) fn transport(&self) -> Result<Option<String>> {
        Ok(self.info()?.map(|info| info.transport))
    }

    /// Our daemon.
    ///
    /// # Errors
    /// If it does not answer.
    pub(crate) fn daemon(&self) -> Result<Option<Process>> {
        Ok(self.info()?.map(|info| Process::Other(info.pid)))
    }

    /// Unmounts it and removes what was made.
    ///
    /// # Errors
    /// If it is in use, or what was made cannot be removed.
    pub(crate) fn close(mut self) -> Result<()> {
        if let Some(folder) = self.folder.take() {
            return folder.close();
        }
        self.unmount()?;
        self.remove()
    }

    fn remove(&mut self) -> Result<()> {
        if let Some(point) = self.point.take() {
            fs::remove_dir(&point).with_context(|| point.display().to_string())?;
        }
        if let Some(image) = self.image.take() {
            fs::remove_file(&image).with_context(|| image.display().to_string())?;
        }
        Ok(())
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        // What is mounted there is asked of the kernel: a mount may have failed, and so may an
        // unmount.
        if let Some(path) = &self.point
            && matches!(mounted_at(path), Ok(Some(_)))
        {
            let gentle = self.run(&mut self.unmount_command(path, false));
            let ended = gentle.or_else(|_| self.run(&mut self.unmount_command(path, true)));
            if let Err(error) = ended {
                eprintln!(
                    "{} stays mounted at {}: {error:#}",
                    self.target,
                    path.display()
                );
            }
        }
        if let Err(error) = self.remove() {
            eprintln!("what was made for {} stays: {error:#}", self.target);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mounts::HoldfastArgs;

    fn any_command() -> Holdfast {
        let args: HoldfastArgs = crate::arguments::parsed(["--holdfast", "/bin/sh"]).expect("args");
        Holdfast::find(&args).expect("a program")
    }

    #[test]
    fn an_image_that_is_there_is_not_touched() {
        let scratch = tempfile::tempdir().expect("temporary directory");
        let image = scratch.path().join("image");
        fs::write(&image, "precious").expect("written");
        let holdfast = any_command();
        let need = Need {
            bytes: 1,
            inodes: 1,
        };
        for target in [
            Mountable::Volume(image.clone()),
            Mountable::Kernel(kernel::Kind::Ext4, image.clone()),
        ] {
            let error = Place::make(&target, need, Some(&holdfast), scratch.path()).err();
            let error = format!("{:#}", error.expect("refused"));
            assert!(
                error.contains("image") && error.contains("exists"),
                "{error}"
            );
            assert_eq!(fs::read(&image).expect("there"), b"precious");
        }
        let huge = Need {
            bytes: 1 << 62,
            inodes: 1,
        };
        let target = Mountable::Volume(scratch.path().join("new"));
        let error = Place::make(&target, huge, Some(&holdfast), scratch.path()).err();
        let error = error.expect("refused").to_string();
        assert!(error.contains("a smaller tree"), "{error}");
        assert_eq!(fs::read_dir(scratch.path()).expect("listed").count(), 1);
    }

    #[test]
    fn an_image_has_room_for_content_and_for_inodes() {
        let image = |bytes, inodes| Need { bytes, inodes }.image();
        assert!(image(0, 0) >= 300 << 20);
        assert!(image(100 << 30, 0) >= 110 << 30);
        assert!(image(0, 1_000_000) >= 1_000_000 * BYTES_PER_INODE);
    }

    #[test]
    fn a_directory_that_was_there_keeps_all_but_what_was_made() {
        let scratch = tempfile::tempdir().expect("temporary directory");
        let target = Mountable::Directory(scratch.path().to_owned());
        let holdfast = any_command();
        let need = Need {
            bytes: 1,
            inodes: 1,
        };
        let place = Place::make(&target, need, Some(&holdfast), scratch.path()).expect("made");
        fs::write(place.root().join("file"), "x").expect("written");
        place.sync().expect("synced");
        assert_eq!(place.requests().expect("not ours"), None);
        place.close().expect("removed");
        assert_eq!(fs::read_dir(scratch.path()).expect("listed").count(), 0);
    }
}
