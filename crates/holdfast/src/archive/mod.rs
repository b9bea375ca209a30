//! Trees as tar archives: unpacked into a file system, and packed from one, inside the process.
//!
//! What is read is any tar of the last forty years: POSIX (PAX records), GNU (long names, sparse
//! files, incremental archives), ustar and what came before it, member by member as GNU tar does. What is written is POSIX, as GNU tar writes it with `--format=posix --xattrs --acls
//! --sparse`. Kept are names and owners' names of any bytes, modes, owners, modification times to the
//! nanosecond, symbolic and hard links, pipes, devices, holes, extended attributes and ACLs.
//!
//! *Invariant.* Unpacking makes and changes nothing outside of the directory it unpacks into: each step
//! goes from a directory that is held to one name in it, and follows no symbolic link. A member whose
//! name has a `..` is refused.
//!
//! Compression is left to the caller: any [`Read`] or [`Write`] does.

mod acl_text;
mod header;
mod members;
mod owners;
mod pack;
mod pax;
mod sparse;
#[cfg(test)]
mod tests;
mod unpack;

pub use owners::{Named, Owners};

use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::copy::{Copied, CopyError, CopyEvent};
use crate::{Caps, FileSystem};

/// How an archive is unpacked.
#[derive(Clone, Debug)]
pub struct UnpackOptions {
    /// Do files get the owners that the archive names (`true`), or the caller (`false`)? Only a caller
    /// with `CHOWN` can have them.
    pub owners: bool,
    /// Do files get the permissions that the archive names as they are, or without the caller's umask
    /// and without set-id bits?
    pub permissions: bool,
    /// Names of users and groups on this host; without them owners go by number.
    pub names: Option<Arc<dyn Owners>>,
    /// Read on to the end of the stream behind the end of the archive? A decompressor compares its
    /// checksums only there, so that damage of the last files is an error.
    pub drain: bool,
    /// Once true, the work ends with `ECANCELED`.
    pub stop: Option<Arc<AtomicBool>>,
}

impl UnpackOptions {
    /// As tar(1) unpacks for this caller: for the superuser with owners and permissions, for others
    /// without.
    #[must_use]
    pub fn of(caller: &crate::Caller) -> Self {
        let privileged = caller.has(Caps::CHOWN);
        Self {
            owners: privileged,
            permissions: privileged,
            names: None,
            drain: true,
            stop: None,
        }
    }
}

/// How an archive is packed.
#[derive(Clone, Debug, Default)]
pub struct PackOptions {
    /// Names of users and groups on this host, which the archive tells beside their numbers.
    pub names: Option<Arc<dyn Owners>>,
    /// Once true, the work ends with `ECANCELED`.
    pub stop: Option<Arc<AtomicBool>>,
}

impl FileSystem {
    /// Unpacks a tar archive into a directory that is there. Directories are merged with those that
    /// are there; other names replace what is there, but no directory with names in it.
    ///
    /// What cannot be unpacked, or only in part, is told to `watch` and counted as failed, and the
    /// rest goes on. A damaged header is skipped, up to the next one.
    ///
    /// ```
    /// use holdfast::{FileSystem, PackOptions, UnpackOptions};
    ///
    /// let fs = FileSystem::memory();
    /// fs.create_dir_all("/src/net")?;
    /// fs.write("/src/net/socket.rs", "struct Socket;")?;
    /// let mut archive = Vec::new();
    /// fs.pack("/src", &mut archive, &PackOptions::default(), &mut |_| ())?;
    ///
    /// fs.create_dir("/copy")?;
    /// let options = UnpackOptions::of(fs.caller());
    /// let copied = fs.unpack(&mut &archive[..], "/copy", &options, &mut |_| ())?;
    /// assert_eq!((copied.files, copied.directories), (1, 1));
    /// assert_eq!(fs.read_to_string("/copy/net/socket.rs")?, "struct Socket;");
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the archive cannot be read further (`InvalidData`: it is damaged, or no tar), with the
    /// path of the member that was read; if nothing
    /// more can be written: no space, read-only, `EIO`; `ECANCELED` when stopped.
    pub fn unpack(
        &self,
        archive: &mut dyn Read,
        to: impl AsRef<Path>,
        options: &UnpackOptions,
        watch: &mut dyn FnMut(CopyEvent<'_>),
    ) -> Result<Copied, CopyError> {
        unpack::unpack(self, archive, to.as_ref(), options, watch)
    }

    /// Packs what a directory holds into a tar archive, or one file, link or device. Sockets cannot be
    /// in an archive, and are told as skipped.
    ///
    /// # Errors
    /// If `from` cannot be looked at, or the archive cannot be written; `ECANCELED` when stopped.
    pub fn pack(
        &self,
        from: impl AsRef<Path>,
        archive: &mut dyn Write,
        options: &PackOptions,
        watch: &mut dyn FnMut(CopyEvent<'_>),
    ) -> Result<Copied, CopyError> {
        pack::pack(self, from.as_ref(), archive, options, watch)
    }
}

/// Ends what was told to stop.
///
/// # Errors
/// `ECANCELED`.
pub(crate) fn check_stop(stop: Option<&Arc<AtomicBool>>) -> io::Result<()> {
    // Relaxed: the flag carries nothing else.
    if stop.is_some_and(|stop| stop.load(Ordering::Relaxed)) {
        return Err(crate::types::Errno::ECANCELED.into());
    }
    Ok(())
}

/// What is wrong with an archive.
fn damaged(what: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.into())
}
