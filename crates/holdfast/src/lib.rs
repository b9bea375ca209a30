//! Holdfast: a POSIX file system in your process, for trees of very many small files.
//!
//! A [`FileSystem`] reads like [`std::fs`] and behaves like it, down to the error numbers. It
//! needs no mount, no privileges and no async runtime. (It may start threads: those of a [`Volume`]
//! commit in the background.)
//!
//! ```
//! use holdfast::FileSystem;
//!
//! let fs = FileSystem::memory();
//! fs.create_dir_all("/src/net")?;
//! fs.write("/src/net/socket.rs", "struct Socket;")?;
//! fs.rename("/src/net", "/src/network")?;
//! for entry in fs.read_dir("/src/network")? {
//!     let entry = entry?;
//!     println!("{} {}", entry.path().display(), entry.metadata()?.len());
//! }
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! # Files
//!
//! [`Dir::open`], [`Dir::create`] and [`Dir::open_with`] (which takes
//! [`OpenOptions`]) give a [`File`]. It implements [`Read`](std::io::Read),
//! [`Write`](std::io::Write) and [`Seek`](std::io::Seek), has the standard library's locks, and
//! more: [`File::read_at`] and its kin, [`File::lock_range`], [`File::punch_hole`],
//! [`File::seek_data`], [`File::copy_range_to`].
//!
//! ```
//! use holdfast::FileSystem;
//! use std::io::{BufRead, BufReader, Write};
//!
//! let fs = FileSystem::memory();
//! let mut log = fs.create("/log")?;
//! writeln!(log, "one")?;
//! writeln!(log, "two")?;
//! let lines = BufReader::new(fs.open("/log")?).lines();
//! assert_eq!(lines.count(), 2);
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! # Directories as handles
//!
//! There is no current directory: relative paths start at the root. A [`Dir`] is a directory held
//! open, with all the same calls relative to it. It stays the same directory when it is moved, is
//! not fooled by links put in its way, and reaches deeper than the longest path.
//!
//! # Callers
//!
//! A handle acts for one [`Caller`]: user, groups, capabilities, umask. By default they are those
//! of the thread that made or opened the file system. [`FileSystem::as_user`] makes a handle for
//! another user. [`Caller::root`] is the superuser, which needs no privilege of this process.
//! Permissions, ACLs, sticky directories and set-id bits hold as they do in the kernel.
//!
//! # Watches
//!
//! [`Dir::watch`] gives a [`Watcher`], which receives the events of inotify.
//!
//! # Limits, stores, and what lies below
//!
//! [`FileSystem::builder`] sets limits (`ENOSPC` beyond them) and [`Options`], those of mount(8).
//! The method [`FileSystem::quota_on`] enables quotas of users and groups (`EDQUOT`).
//! [`FileSystem::with_store`] puts another [`Store`] than memory below. [`FileSystem::core`] is the
//! core that front ends use: everything here is a thin layer over it.
//!
//! # Volumes
//!
//! A [`Volume`] is durable: it is stored in an image file or on a block device, and survives
//! crashes. A [`VolumeError`] has the reason of a failure, and is made from the errors of files: a
//! function that returns it keeps both through `?`.
//!
//! ```
//! use holdfast::{Volume, VolumeError};
//! use std::path::Path;
//!
//! /// Adds a message, which is durable when the function returns.
//! fn deliver(image: &Path, message: &str) -> Result<(), VolumeError> {
//!     let volume = Volume::builder().size(64 << 20).open_or_create(image)?;
//!     volume.create_dir_all("/mail")?;
//!     volume.write("/mail/1", message)?;
//!     volume.close()
//! }
//!
//! # let dir = tempfile::tempdir().unwrap();
//! deliver(&dir.path().join("mail.hf"), "Dear ...")?;
//! # Ok::<(), VolumeError>(())
//! ```
//!
//! # Threads
//!
//! All handles are used from any number of threads, and calls on different files do not wait for
//! one another. A file system in memory starts no thread. An open volume has `holdfast-volume`,
//! which commits, and `holdfast-write`, which writes dirty pages back. Both end when the volume is
//! closed. [`FileSystem::shut_down`] uses the threads that call [`Shutdown::help`].
//!
//! ```
//! use holdfast::FileSystem;
//! use std::thread;
//!
//! let fs = FileSystem::memory();
//! thread::scope(|scope| {
//!     for n in 0..4 {
//!         let fs = &fs;
//!         scope.spawn(move || fs.write(format!("/{n}"), vec![n; 1000]));
//!     }
//! });
//! assert_eq!(fs.read_dir("/")?.count(), 4);
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! # Async programs
//!
//! Calls can wait for a device or a lock. An async program makes them in `spawn_blocking` of its
//! runtime; the handles are `Send`, `Sync`, and cheap to clone.
//!
//! ```
//! use holdfast::FileSystem;
//! use tokio::task::spawn_blocking;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
//! let fs = FileSystem::memory();
//! let view = fs.clone();
//! spawn_blocking(move || view.write("/config", "port = 80\n")).await??;
//! let text = spawn_blocking(move || fs.read_to_string("/config")).await??;
//! assert_eq!(text, "port = 80\n");
//! # Ok(())
//! # })
//! # }
//! ```
//!
//! # Ending a file system
//!
//! A file system in memory is freed with its last handle, file and directory. The method
//! [`FileSystem::shut_down`] frees it on several threads. The method [`FileSystem::revoke`] ends a
//! file system that is in use: all calls fail from then on, and closing a file frees its content.
//!
//! # Errors
//!
//! Every error is a [`std::io::Error`] with Linux's number, so [`kind`](std::io::Error::kind) and
//! [`raw_os_error`](std::io::Error::raw_os_error) answer as for the kernel's file systems. An error
//! about a [`Volume`] itself is a [`VolumeError`]. All operations on
//! paths can fail with `ENOENT`, `ENOTDIR`, and with `EACCES` without permission to search. `ELOOP`
//! means more than 40 symbolic links, `ENAMETOOLONG` a path of over 4095 or a name of over 255
//! bytes, `EINVAL` a NUL byte.

mod archive;
mod builder;
mod change;
mod copy;
mod dir;
mod dir_builder;
mod file;
mod file_system;
mod file_times;
mod file_type;
mod metadata;
mod open_options;
mod permissions;
mod read_dir;
pub mod row;
mod stop;
mod tree_walk;
mod view;
mod volume;
mod watch;

pub use archive::{Named, Owners, PackOptions, UnpackOptions, pack_host};
pub use builder::Builder;
pub use change::{ChangeEvent, ChangeOptions, Changed, ModeChange};
pub use copy::{Copied, CopyError, CopyEvent, CopyOptions, Losses, Side};
pub use dir::Dir;
pub use dir_builder::DirBuilder;
pub use file::File;
pub use file_system::FileSystem;
pub use file_times::FileTimes;
pub use file_type::FileType;
pub use metadata::Metadata;
pub use open_options::OpenOptions;
pub use permissions::Permissions;
pub use read_dir::{DirEntry, ReadDir};
pub use tree_walk::{TreeEntry, TreeWalk, TreeWalkError};
pub use volume::{
    Volume, builder::VolumeBuilder, error::VolumeError, info::VolumeInfo, shared::Shared,
};
pub use watch::{Event, Events, Watcher};

pub use holdfast_core as engine;
pub use holdfast_core::types::{
    self, Access, Caller, Caps, Fallocate, FileType as NodeKind, RenameFlags, StatFs, XattrSet,
};
pub use holdfast_core::{
    AtimePolicy, Cancel, Dropped, EventMask, HeldLock, InodeCensus, InodeWalk, LockKind, LockRange,
    MemoryLimits, MemoryStore, Node, OpenFile, Options, QuotaGrace, QuotaKind, QuotaLimit,
    QuotaLimits, QuotaRecord, QuotaUsage, Shutdown, Stats, Store, Visit,
};

/// Its examples are tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
