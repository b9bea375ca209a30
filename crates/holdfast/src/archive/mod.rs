//! Unpacking tar archives into a file system, and packing trees into archives.
//!
//! All common formats are read, as GNU tar reads them: POSIX (PAX records), GNU (long names, sparse
//! files, incremental archives), ustar and older ones. The format written is that of GNU tar with
//! `--format=posix --xattrs --acls --sparse`. Names and owners' names of any bytes, modes, owners,
//! and modification times to the nanosecond are kept. So are symbolic and hard links, pipes,
//! devices, holes, extended attributes and ACLs.
//!
//! *Invariant.* Unpacking changes nothing outside of its target directory: each step goes from an
//! open directory to one name in it, and follows no symbolic link. A member with `..` in its name
//! is refused.
//!
//! The caller handles compression: archives are any [`Read`] or [`Write`].

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

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::copy::{Copied, CopyError, CopyEvent, Host};
use crate::{Caps, FileSystem};

/// How an archive is unpacked.
#[derive(Clone, Debug)]
pub struct UnpackOptions {
    /// Set owners as in the archive (`true`), or to the caller (`false`)? Only a caller with
    /// `CHOWN` can set them.
    pub owners: bool,
    /// Set permissions as in the archive, or without set-id bits and the bits of the caller's
    /// umask?
    pub permissions: bool,
    /// Names of users and groups of this host; without them, owners are set by number.
    pub names: Option<Arc<dyn Owners>>,
    /// Read the stream to its end after the end of the archive? A decompressor checks its checksums
    /// only there, so that damage of the last files is found.
    pub drain: bool,
    /// Once true, the work ends with `ECANCELED`.
    pub stop: Option<Arc<AtomicBool>>,
}

impl UnpackOptions {
    /// The defaults of tar(1) for this caller: the superuser sets owners and permissions, others do
    /// not.
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
    /// Names of users and groups of this host, which are added to the archive.
    pub names: Option<Arc<dyn Owners>>,
    /// The name in the archive of a single file that is packed; `None`: its own.
    pub name: Option<OsString>,
    /// Add times of access to the archive, as `tar --format=posix` does?
    pub access_times: bool,
    /// Device and number of a directory of the host that is refused: the target of the copy.
    pub skip: Option<(u64, u64)>,
    /// Once true, the work ends with `ECANCELED`.
    pub stop: Option<Arc<AtomicBool>>,
}

impl FileSystem {
    /// Unpacks a tar archive into an existing directory. Directories are merged with existing ones;
    /// other names replace existing names, except non-empty directories.
    ///
    /// Members that cannot be unpacked completely are reported to `watch` and counted as failed,
    /// and the work goes on. After a damaged header, all blocks up to the next header are skipped.
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
    /// If the archive cannot be read further, with the path of the current member (`InvalidData`:
    /// it is damaged, or no tar archive). If nothing more can be written: no space, read-only,
    /// `EIO`. `ECANCELED` when stopped.
    pub fn unpack(
        &self,
        archive: &mut dyn Read,
        to: impl AsRef<Path>,
        options: &UnpackOptions,
        watch: &mut dyn FnMut(CopyEvent<'_>),
    ) -> Result<Copied, CopyError> {
        unpack::unpack(self, archive, to.as_ref(), options, watch)
    }

    /// Packs the content of a directory, or one file, link or device, into a tar archive. Sockets
    /// have no form in an archive, and are reported as skipped.
    ///
    /// # Errors
    /// If `from` cannot be read, or the archive cannot be written; `ECANCELED` when stopped.
    pub fn pack(
        &self,
        from: impl AsRef<Path>,
        archive: &mut dyn Write,
        options: &PackOptions,
        watch: &mut dyn FnMut(CopyEvent<'_>),
    ) -> Result<Copied, CopyError> {
        pack::pack(&self.side(), from.as_ref(), archive, options, watch)
    }
}

/// Packs a path of the host, as [`FileSystem::pack`] packs one of a file system.
///
/// # Errors
/// As [`FileSystem::pack`].
pub fn pack_host(
    from: impl AsRef<Path>,
    archive: &mut dyn Write,
    options: &PackOptions,
    watch: &mut dyn FnMut(CopyEvent<'_>),
) -> Result<Copied, CopyError> {
    pack::pack(&Host, from.as_ref(), archive, options, watch)
}

/// An error of the archive's content.
fn damaged(what: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.into())
}
