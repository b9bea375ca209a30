//! Inodes in memory: counting them, walking over them, letting them go, taking them away.

use std::io;
use std::sync::Arc;

use super::FileSystem;
use crate::types::{Caps, Errno};
use crate::view::View;
use crate::{Dir, Dropped, InodeCensus, InodeWalk, Node, Shutdown, Visit};

impl FileSystem {
    /// How many inodes are in memory: by state (in use, not in use, in use without a name, on
    /// their way out) and by type. Takes time in proportion to their number;
    /// [`FileSystem::stats`] does not.
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

    /// Shows every inode in memory to `visit`, in the order of numbers, until it wants no more,
    /// fails, or the walk is done. Nothing is locked meanwhile: `visit` may block, and may change
    /// what it walks over. Inodes that are there from the beginning to the end are shown exactly
    /// once, those that come or go meanwhile once or not at all.
    ///
    /// The walk goes on from where it stands: later, or on several threads, each with its share
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
                // A core's visitor fails by number; this one's error is kept whole.
                failure = Err(error);
                Ok(Visit::Stop)
            })
        })?;
        failure
    }

    /// Walks divided among `parts` threads: together they show what one walk would.
    #[must_use]
    pub fn inode_walks(&self, parts: usize) -> Vec<InodeWalk> {
        self.core().inode_walks(parts)
    }

    /// Lets go of the inodes that nobody uses and the store can bring back, with their names and
    /// content. A file system in memory can bring back nothing, and lets go of nothing.
    ///
    /// # Errors
    /// `EPERM` without `CAP_SYS_ADMIN`; `EIO` when what has not reached the store cannot be
    /// written: the inodes stay then.
    pub fn drop_caches(&self) -> io::Result<Dropped> {
        self.as_administrator()?;
        Ok(self.core().drop_caches()?)
    }

    /// Ends the file system, whose last handle this is, on all threads that help. Dropping the handle ends it too, on
    /// this thread and, where there are very many inodes, on some that are woken or started for it. Nothing is made durable.
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
    /// This handle, if there are others, or directories or files that came from it.
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
            root: Dir::root(View { core, who }),
        })
    }

    /// Takes the file system away from all who use it, as a forced unmount: from now on every
    /// call fails with `EIO`, on open files and directories too. What was done before is made
    /// durable first; watchers are told that their inodes are gone.
    ///
    /// Open files can be dropped at any time, and each gives back what it holds: the content of a
    /// file belongs to those who have it open. Everything else goes at once.
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
    /// The kernel's caches of a mount are not known here: to take away what is mounted,
    /// `holdfast umount --force`, or `revoke` of the session.
    ///
    /// # Errors
    /// `EPERM` without `CAP_SYS_ADMIN`; `EIO` when what was done before could not be made durable:
    /// the file system is revoked all the same.
    pub fn revoke(&self) -> io::Result<()> {
        self.as_administrator()?;
        Ok(self.core().revoke()?)
    }

    /// Was it taken away by [`FileSystem::revoke`]?
    #[must_use]
    pub fn is_revoked(&self) -> bool {
        self.core().is_revoked()
    }

    /// Lets pass who may do to a file system what umount(8) does.
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
