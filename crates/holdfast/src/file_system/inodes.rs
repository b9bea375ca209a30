//! Inodes in memory: counting, walking, dropping and revoking them.

use std::io;
use std::sync::Arc;

use super::FileSystem;
use crate::types::{Caps, Errno};
use crate::view::View;
use crate::{Dir, Dropped, InodeCensus, InodeWalk, Node, Shutdown, Visit};

impl FileSystem {
    /// Counts the inodes in memory by state (used, unused, in use without a name, being freed) and
    /// by type. This visits every inode; [`FileSystem::stats`] does not.
    ///
    /// ```
    /// use holdfast::FileSystem;
    ///
    /// let fs = FileSystem::memory();
    /// fs.write("/kept", "")?;
    /// let draft = fs.create_new("/draft")?;
    /// fs.remove_file("/draft")?;
    /// let census = fs.inode_census();
    /// // The root directory is always in use.
    /// assert_eq!((census.used, census.unused, census.orphans), (1, 1, 1));
    /// assert_eq!((census.regular, census.directories), (2, 1));
    /// # drop(draft);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[must_use]
    pub fn inode_census(&self) -> InodeCensus {
        self.core().inode_census()
    }

    /// Calls `visit` for every inode in memory, in the order of numbers, until it stops, fails, or
    /// the walk is done. No lock is held: `visit` may block, and may change inodes. Inodes that
    /// exist during the whole walk are visited exactly once; others once or not at all.
    ///
    /// A stopped walk can be continued. Several threads can share the work
    /// ([`FileSystem::inode_walks`]).
    ///
    /// ```
    /// use holdfast::{FileSystem, InodeWalk, Visit};
    ///
    /// let fs = FileSystem::memory();
    /// for number in 0..100 {
    ///     fs.write(format!("/{number}"), [0; 10])?;
    /// }
    /// let (mut walk, mut bytes) = (InodeWalk::new(), 0);
    /// fs.walk_inodes(&mut walk, |node| {
    ///     let attr = fs.core().attributes(node)?;
    ///     bytes += if attr.kind.is_dir() { 0 } else { attr.size };
    ///     Ok(Visit::Continue)
    /// })?;
    /// assert_eq!(bytes, 1000);
    /// assert!(walk.is_done());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// `EPERM` without `CAP_SYS_ADMIN`, since no permissions are asked for; the visitor's.
    pub fn walk_inodes(
        &self,
        walk: &mut InodeWalk,
        mut visit: impl FnMut(&Node) -> io::Result<Visit>,
    ) -> io::Result<()> {
        self.as_administrator()?;
        let mut failure = Ok(());
        self.core().walk_inodes(walk, |node| {
            visit(node).or_else(|error| {
                // The core's visitor returns an `Errno`; the caller's error is kept here.
                failure = Err(error);
                Ok(Visit::Stop)
            })
        })?;
        failure
    }

    /// Splits a walk into `parts`: together they visit what one walk would.
    #[must_use]
    pub fn inode_walks(&self, parts: usize) -> Vec<InodeWalk> {
        self.core().inode_walks(parts)
    }

    /// Evicts unused inodes that the store can load again, with their names and content. A file
    /// system in memory has none.
    ///
    /// # Errors
    /// `EPERM` without `CAP_SYS_ADMIN`; `EIO` if dirty data cannot be written: those inodes stay.
    pub fn drop_caches(&self) -> io::Result<Dropped> {
        self.as_administrator()?;
        Ok(self.core().drop_caches()?)
    }

    /// Frees the file system by its last handle, on all threads that call [`Shutdown::help`].
    /// Dropping the handle frees it too: on this thread and, if there are very many inodes, on
    /// helper threads. Nothing is made durable.
    ///
    /// ```
    /// use holdfast::FileSystem;
    ///
    /// let fs = FileSystem::memory();
    /// for number in 0..1000 {
    ///     fs.write(format!("/{number}"), "")?;
    /// }
    /// let end = fs.shut_down().expect("no other handle");
    /// let inodes: u64 = std::thread::scope(|scope| {
    ///     let other = scope.spawn(|| end.help());
    ///     end.help() + other.join().unwrap()
    /// });
    /// assert_eq!(inodes, 1001);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns this handle if there are others, or open directories or files.
    pub fn shut_down(self) -> Result<Shutdown, Self> {
        let Dir { view, base } = self.root;
        let View { core, who } = Arc::try_unwrap(view).map_err(|view| Self {
            root: Dir {
                view,
                base: base.clone(),
            },
        })?;
        drop(base);
        core.shut_down().map_err(|core| Self {
            root: Dir::at_root(View { core, who }),
        })
    }

    /// Revokes the file system, as a forced unmount: from now on every call fails with `EIO`, also
    /// on open files and directories. Earlier changes are made durable first; watchers receive
    /// `IGNORED`.
    ///
    /// Open files can be dropped at any time; the last one of a file frees its content. Everything
    /// else is freed at once.
    ///
    /// ```
    /// use holdfast::FileSystem;
    /// use std::io::Read;
    ///
    /// let fs = FileSystem::memory();
    /// fs.write("/file", "content")?;
    /// let mut file = fs.open("/file")?;
    /// fs.revoke()?;
    /// let error = file.read(&mut [0; 7]).unwrap_err();
    /// assert_eq!(error.raw_os_error(), Some(5), "EIO");
    /// drop(file);
    /// assert_eq!((fs.stats().open_files, fs.stats().inodes), (0, 1));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// This does not reach the kernel's caches of a mount: to revoke a mount, use
    /// `holdfast umount --force`, or `revoke` of the session.
    ///
    /// # Errors
    /// `EPERM` without `CAP_SYS_ADMIN`; `EIO` if earlier changes could not be made durable: the
    /// file system is revoked all the same.
    pub fn revoke(&self) -> io::Result<()> {
        self.as_administrator()?;
        Ok(self.core().revoke()?)
    }

    /// Was it revoked by [`FileSystem::revoke`]?
    #[must_use]
    pub fn is_revoked(&self) -> bool {
        self.core().is_revoked()
    }

    /// Checks for `CAP_SYS_ADMIN`.
    ///
    /// # Errors
    /// `EPERM`.
    pub(super) fn as_administrator(&self) -> Result<(), Errno> {
        if self.caller().has(Caps::SYS_ADMIN) {
            Ok(())
        } else {
            Err(Errno::EPERM)
        }
    }
}
