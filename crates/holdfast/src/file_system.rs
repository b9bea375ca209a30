//! The file system as a whole.

mod canonical;
#[cfg(feature = "cluster")]
mod cluster;
mod inodes;
mod quota;

use std::fmt;
use std::io;
use std::ops::Deref;
use std::sync::Arc;

use holdfast_core::FileSystem as Core;

use crate::dir::Dir;
use crate::types::{Caller, StatFs};
use crate::view::View;
use crate::{Options, Stats, Store};

/// A file system: a cheap handle, to be cloned at will and used from any thread.
///
/// It dereferences to its root directory. The operations on paths are methods of [`Dir`], which are
/// named and behave as the functions of `std::fs`. There is no current directory: a relative path
/// starts at the root. Errors are [`std::io::Error`]s with the number that the kernel would answer
/// ([`raw_os_error`](std::io::Error::raw_os_error)).
///
/// A handle acts for one [`Caller`], by default the thread that made the file system: see
/// [`FileSystem::as_user`].
///
/// ```
/// use holdfast::FileSystem;
///
/// let fs = FileSystem::memory();
/// fs.create_dir_all("/var/cache/pkg")?;
/// fs.write("/var/cache/pkg/index", "zlib 1.3\n")?;
/// fs.symlink("pkg", "/var/cache/packages")?;
/// assert_eq!(fs.read_to_string("/var/cache/packages/index")?, "zlib 1.3\n");
/// fs.remove_dir_all("/var")?;
/// assert!(!fs.exists("/var"));
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone)]
pub struct FileSystem {
    pub(crate) root: Dir,
}

impl FileSystem {
    /// A file system over a store. A store without a root directory gets one, as the options say.
    ///
    /// ```
    /// use holdfast::{FileSystem, MemoryLimits, MemoryStore, Options};
    /// use std::sync::Arc;
    ///
    /// let store = Arc::new(MemoryStore::new(MemoryLimits::default()));
    /// let fs = FileSystem::with_store(store, Options::default())?;
    /// assert!(fs.metadata("/")?.is_dir());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// What the store answers; `EUCLEAN` when its root is not a directory.
    pub fn with_store(store: Arc<dyn Store>, options: Options) -> io::Result<Self> {
        Self::for_caller(store, options, Caller::current())
    }

    /// A file system over a store for this caller, which owns the new root directory of an empty
    /// store unless the options name others.
    pub(crate) fn for_caller(
        store: Arc<dyn Store>,
        options: Options,
        caller: Caller,
    ) -> io::Result<Self> {
        let core = Core::new(store, owned(options, &caller))?;
        Ok(Self::of(core, caller))
    }

    pub(crate) fn of(core: Core, who: Caller) -> Self {
        Self {
            root: Dir::at_root(View { core, who }),
        }
    }

    /// This library's view of a core that exists already, under a mount for example.
    #[must_use]
    pub fn from_core(core: Core) -> Self {
        Self::of(core, Caller::current())
    }

    /// The core, for features beyond this library: operations on [`Node`](crate::Node)s and
    /// [`OpenFile`](crate::OpenFile)s, options while in use, observers, `close`.
    ///
    /// ```
    /// use holdfast::FileSystem;
    ///
    /// let fs = FileSystem::memory();
    /// let file = fs.create("/data")?;
    /// let node = fs.core().node(file.node().ino())?;
    /// assert_eq!(node, *file.node());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[must_use]
    pub fn core(&self) -> &Core {
        &self.root.view.core
    }

    /// The same file system on behalf of another caller: user, groups, capabilities, umask.
    /// Files and directories that the view opens keep its caller.
    ///
    /// ```
    /// use holdfast::{Caller, FileSystem, Permissions};
    /// use std::io::ErrorKind;
    ///
    /// let fs = FileSystem::memory();
    /// fs.create_dir("/home")?;
    /// fs.set_permissions("/home", Permissions::from_mode(0o777))?;
    ///
    /// let ada = fs.as_user(Caller::user(1815, 1815).with_umask(0o077));
    /// ada.write("/home/diary", "Dear diary")?;
    /// assert_eq!(fs.metadata("/home/diary")?.uid(), 1815);
    ///
    /// let bob = fs.as_user(Caller::user(1791, 1791));
    /// let error = bob.read("/home/diary").unwrap_err();
    /// assert_eq!(error.kind(), ErrorKind::PermissionDenied);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[must_use]
    pub fn as_user(&self, caller: Caller) -> Self {
        Self {
            root: self.root.as_user(caller),
        }
    }

    /// A handle to the root directory.
    #[must_use]
    pub fn root_dir(&self) -> Dir {
        self.root.clone()
    }

    /// Space and inodes, used and free, as statfs(2). Without a limit, the machine's memory is
    /// shown as the size.
    ///
    /// ```
    /// use holdfast::FileSystem;
    ///
    /// let fs = FileSystem::builder().bytes_max(1 << 20).build();
    /// fs.write("/page", [1; 4096])?;
    /// let space = fs.space()?;
    /// // One for the page, and one for the name, which others share.
    /// assert_eq!((space.blocks, space.blocks_free, space.block_size), (256, 254, 4096));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// What the store answers.
    pub fn space(&self) -> io::Result<StatFs> {
        Ok(self.core().statfs()?)
    }

    /// Counts of what is in memory now: inodes, names, pages, open files, watches, locks.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.core().stats()
    }

    /// Makes everything done so far durable, as far as the store can.
    ///
    /// # Errors
    /// `EIO` when it could not.
    pub fn sync(&self) -> io::Result<()> {
        Ok(self.core().sync()?)
    }
}

/// These options, with the caller as the owner of a new root directory unless they name another.
pub(crate) fn owned(options: Options, caller: &Caller) -> Options {
    Options {
        root_uid: options.root_uid.or(Some(caller.uid)),
        root_gid: options.root_gid.or(Some(caller.gid)),
        ..options
    }
}

impl Deref for FileSystem {
    type Target = Dir;

    fn deref(&self) -> &Dir {
        &self.root
    }
}

impl fmt::Debug for FileSystem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileSystem")
            .field("caller", self.caller())
            .field("stats", &self.stats())
            .finish_non_exhaustive()
    }
}
