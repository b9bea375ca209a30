//! The contract between the core and what stands behind it.
//!
//! A store loads what is not cached and makes changes durable. It never sees a path, a permission
//! or a lock: those are the core's. The core never sees a block. The core asks for inodes by
//! number, for names by directory, and hands over ordered batches of typed changes, one batch an
//! operation.
//!
//! *Order.* A batch is handed over while the locks of the objects it changes are held: two
//! batches that touch one object arrive in the order in which the core performed them. Batches
//! of unrelated objects may arrive at once, from several threads.
//!
//! *Atomicity.* A batch is one operation. After a crash a store shows all of it or nothing, and
//! never a later batch without an earlier one on the same object.
//!
//! *Refusal.* What a store may lack it is asked for first ([`Store::reserve`]), when nothing has happened
//! yet: `ENOSPC`, `EDQUOT` and `ENOMEM` come from there. What was reserved for cannot be refused.
//!
//! *Failure.* When [`Store::apply`] fails all the same (the device did), memory is already ahead of the
//! store: the core stops all further changes (`EROFS`). A store that loses what it has accepted closes its
//! [`Failure`] before anybody could commit behind that, and the core tells each open file once.
//!
//! What a store leaves to the core: the meaning of every operation, permissions, times, which
//! inodes are in use. What it leaves to wrappers (in `testkit`): faults, latency, recording.

pub use crate::failure::Failure;
pub use crate::name_run::NameRun;
pub use crate::reservation::{Class, Grant, Intent, Reservation, kept_bytes};
pub use crate::stored_space::StoredSpace;
use crate::types::{FileFlags, FileType, Ino, Result, Time};
use holdfast_cache::Memory;
use std::sync::Arc;

/// A page of a file as it was when it was handed over, behind whose filled bytes it is zero: the page
/// cache's own memory, which neither of both changes.
pub use holdfast_sync::frame::Shared as SharedPage;

/// A page that is shown for the length of a call: to be shared, or to be compared with one that is.
pub use holdfast_sync::frame::Stored as ShownPage;

/// Shows the pages of the file that a batch writes to, by their numbers, as they are after it: all bytes of
/// each. `None`: this one has to be copied, as one has that cannot be shared.
pub type PageOf<'p> = dyn Fn(u64) -> Option<ShownPage<'p>> + 'p;

/// What a store promises, asked once when a file system is made over it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Guarantees {
    /// Nothing stands behind the core: all it holds is all there is. Then [`Store::apply`] is
    /// never called and nothing is ever loaded.
    pub pinned: bool,
    /// Nobody else changes the store while it is open, so what was loaded may be kept for ever.
    pub exclusive: bool,
    /// Changes outlive the process once [`Store::commit`] has returned.
    pub durable: bool,
    /// Calls may wait for a device: a front end keeps them off threads that must not.
    pub blocks: bool,
    /// Files up to this length take no page of their own; 0, if all do. One that grows beyond it needs a page for
    /// what it had.
    pub small: u64,
    /// Space comes back with the changes that free it: [`Store::release`] need not hear of pages that were
    /// never loaded, which would have to be counted first.
    pub frees: bool,
    /// It keeps file flags, projects, and times after 2262. If not, flags are refused, and later times clamped.
    pub times_and_flags: bool,
}

/// An inode as a store keeps it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InodeRecord {
    /// Number.
    pub ino: Ino,
    /// Type; never changes.
    pub kind: FileType,
    /// Permission, set-id and sticky bits.
    pub perm: u16,
    /// Names; 0 for an orphan that is still open.
    pub nlink: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Device number.
    pub rdev: u64,
    /// Length in bytes (of a symbolic link: of its target).
    pub size: u64,
    /// Last access.
    pub atime: Time,
    /// Last change of content.
    pub mtime: Time,
    /// Last change of the inode.
    pub ctime: Time,
    /// Birth.
    pub btime: Time,
    /// A directory's parent (itself for the root); for others the directory of a name.
    pub parent: Ino,
    /// May it have extended attributes, or space behind its end? If not, nobody asks the store for them.
    pub xattrs: bool,
    /// The space that a regular file takes: of a record that the store hands out what [`Store::next_space`]
    /// would tell run by run. In one that the core hands over it means nothing: the store knows.
    pub space: StoredSpace,
    /// File flags. A bit that is not known here is damage.
    pub flags: FileFlags,
    /// The project; 0 for most.
    pub project: u32,
}

/// A name of a directory as a store keeps it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryRecord {
    /// The name's bytes.
    pub name: Box<[u8]>,
    /// Position: unique in the directory, growing with creation, never reused.
    pub cookie: u64,
    /// The inode it leads to.
    pub ino: Ino,
    /// That inode's type.
    pub kind: FileType,
}

/// One typed change. A batch of them is one operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change<'a> {
    /// A new inode; a symbolic link brings its target.
    Create {
        /// All its attributes.
        inode: InodeRecord,
        /// The target of a symbolic link.
        target: Option<&'a [u8]>,
    },
    /// These are an inode's attributes from now on.
    Attributes {
        /// All of them.
        inode: InodeRecord,
    },
    /// A name appears.
    Enter {
        /// In this directory.
        dir: Ino,
        /// The name.
        name: &'a [u8],
        /// Its position.
        cookie: u64,
        /// Its inode.
        ino: Ino,
        /// That inode's type.
        kind: FileType,
    },
    /// A name disappears.
    Leave {
        /// From this directory.
        dir: Ino,
        /// The name.
        name: &'a [u8],
        /// The position it had.
        cookie: u64,
    },
    /// Bytes of a regular file.
    Write {
        /// The file.
        ino: Ino,
        /// Where they begin.
        offset: u64,
        /// The bytes.
        data: &'a [u8],
    },
    /// A new length: what lies beyond is gone, what is new reads as zeros.
    Truncate {
        /// The file.
        ino: Ino,
        /// Its length.
        size: u64,
    },
    /// A range becomes a hole, or (`keep`) zeros that keep their space.
    Zero {
        /// The file.
        ino: Ino,
        /// First byte.
        offset: u64,
        /// Number of bytes.
        len: u64,
        /// Is the space kept (or taken)?
        keep: bool,
    },
    /// Space is taken for a range; bytes that exist stay.
    Allocate {
        /// The file.
        ino: Ino,
        /// First byte.
        offset: u64,
        /// Number of bytes.
        len: u64,
    },
    /// A range (page-aligned) is removed and what follows moves down.
    Collapse {
        /// The file.
        ino: Ino,
        /// First byte.
        offset: u64,
        /// Number of bytes.
        len: u64,
    },
    /// A hole (page-aligned) is opened and what follows moves up.
    Insert {
        /// The file.
        ino: Ino,
        /// First byte.
        offset: u64,
        /// Number of bytes.
        len: u64,
    },
    /// An extended attribute gets a value, or (`None`) goes.
    Xattr {
        /// The inode.
        ino: Ino,
        /// Full name with its namespace.
        name: &'a [u8],
        /// Value.
        value: Option<&'a [u8]>,
    },
    /// An inode without names is no longer in use: it and its content go.
    Free {
        /// The inode.
        ino: Ino,
    },
}

/// Extended attributes: full names and values.
pub type XattrList = Vec<(Box<[u8]>, Box<[u8]>)>;

/// What an inode has beside its record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rest {
    /// The target of a symbolic link.
    pub target: Option<Box<[u8]>>,
    /// Extended attributes.
    pub xattrs: XattrList,
}

/// The point in a store's order of changes up to which a [`Store::commit`] makes things durable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Stamp(pub u64);

/// What a file system gives back of the space that it used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Space {
    /// 4 KiB pages of file content.
    pub pages: u64,
    /// Inodes.
    pub inodes: u64,
    /// What names, values and targets took, as [`kept_bytes`] says.
    pub bytes: u64,
}

/// Space of a store, in pages of 4 KiB and in inodes. `None`: without limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpaceReport {
    /// Pages in all.
    pub pages: Option<u64>,
    /// Pages in use.
    pub pages_used: u64,
    /// Pages of the others that no file gets: what removals and the store itself need when all else is full.
    pub pages_reserved: u64,
    /// Inodes in all.
    pub inodes: Option<u64>,
    /// Inodes in use.
    pub inodes_used: u64,
}

/// Bytes of a file that take space, all written or all not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpaceRun {
    /// Where they begin.
    pub start: u64,
    /// How many there are; there may be more of the same kind behind them.
    pub len: u64,
    /// Were they written? If not, they read as zeros.
    pub written: bool,
}

/// What stands behind the core. See the module's text for order, atomicity and failure.
pub trait Store: Send + Sync + 'static {
    /// What this store promises. Constant over its life.
    fn guarantees(&self) -> Guarantees;

    /// Where this store says that it failed. The core, which asks once, closes it too when [`apply`](Self::apply) fails.
    fn failure(&self) -> Arc<Failure> {
        Arc::default()
    }

    /// The memory that the file system and its store share from now on. A store that keeps what it could write, or read
    /// again, joins it. Told once.
    fn join(&self, memory: &Arc<Memory>) {
        let _ = memory;
    }

    /// Loads inodes by number, in any order; numbers that do not exist are left out.
    ///
    /// # Errors
    /// `EIO` or `EUCLEAN` when they cannot be read.
    fn load_inodes(&self, inos: &[Ino], found: &mut Vec<InodeRecord>) -> Result<()>;

    /// The target of a symbolic link.
    ///
    /// # Errors
    /// `EIO` or `EUCLEAN` when it cannot be read.
    fn load_target(&self, ino: Ino) -> Result<Box<[u8]>>;

    /// All extended attributes of an inode.
    ///
    /// # Errors
    /// `EIO` or `EUCLEAN` when they cannot be read.
    fn load_xattrs(&self, ino: Ino) -> Result<XattrList>;

    /// What these inodes have beside their records, in this order: the targets of symbolic links, and the
    /// extended attributes of those that may have any.
    ///
    /// # Errors
    /// Those of [`Store::load_target`] and [`Store::load_xattrs`], of whichever of them.
    fn load_rests(&self, records: &[InodeRecord], found: &mut Vec<Rest>) -> Result<()> {
        for record in records {
            let mut rest = Rest::default();
            if record.xattrs {
                rest.xattrs = self.load_xattrs(record.ino)?;
            }
            if record.kind == FileType::Symlink {
                rest.target = Some(self.load_target(record.ino)?);
            }
            found.push(rest);
        }
        Ok(())
    }

    /// Looks one name up without loading its directory.
    ///
    /// # Errors
    /// `EIO` or `EUCLEAN` when it cannot be read.
    fn lookup(&self, dir: Ino, name: &[u8]) -> Result<Option<EntryRecord>>;

    /// A run of at most `max` names with cookies greater than `after`, in cookie order, each
    /// with its inode. An empty run: the directory ends there.
    ///
    /// # Errors
    /// `EIO` or `EUCLEAN` when it cannot be read.
    fn read_entries(
        &self,
        dir: Ino,
        after: u64,
        max: usize,
        run: &mut Vec<(EntryRecord, InodeRecord)>,
    ) -> Result<()>;

    /// No name of this directory ever had this cookie or a greater one, but for those that are there:
    /// asked when all its names are loaded, so that none comes back. 0: only those that are there had any.
    ///
    /// # Errors
    /// `EIO` or `EUCLEAN` when it cannot be read.
    fn next_cookie(&self, dir: Ino) -> Result<u64>;

    /// As [`Store::read_entries`], for a caller who needs no inodes.
    ///
    /// # Errors
    /// Those of `read_entries`.
    fn read_names(&self, dir: Ino, after: u64, max: usize, run: &mut NameRun) -> Result<()> {
        let mut both = Vec::new();
        self.read_entries(dir, after, max, &mut both)?;
        for (entry, _) in both {
            run.push(&entry.name, entry.cookie, entry.ino, entry.kind);
        }
        Ok(())
    }

    /// The first run of bytes at or after `offset` that is data, as (start, length); `None`: only
    /// holes follow. The run may be shorter than the data is.
    ///
    /// # Errors
    /// `EIO` or `EUCLEAN` when the map cannot be read.
    fn next_data(&self, ino: Ino, offset: u64) -> Result<Option<(u64, u64)>>;

    /// As [`Store::next_data`], for all that takes space: also what was allocated and not written, in front of
    /// the file's end and behind it. Of a store that does not tell them apart, everything is data.
    ///
    /// # Errors
    /// Those of `next_data`.
    fn next_space(&self, ino: Ino, offset: u64) -> Result<Option<SpaceRun>> {
        let data = self.next_data(ino, offset)?;
        Ok(data.map(|(start, len)| SpaceRun {
            start,
            len,
            written: true,
        }))
    }

    /// Reads bytes of a regular file; holes read as zeros.
    ///
    /// # Errors
    /// `EIO` or `EUCLEAN` when they cannot be read.
    fn read_data(&self, ino: Ino, offset: u64, buf: &mut [u8]) -> Result<()>;

    /// Keeps room for all that an operation may need, all or nothing, before anything is changed. May wait: a
    /// store that would have room after a commit makes one first. The caller puts it into a [`Reservation`],
    /// or hands it to [`Store::apply`] or [`Store::give_back`].
    ///
    /// # Errors
    /// `ENOSPC`, `EDQUOT`, `ENOMEM`: there is no room, and nothing was reserved. `EROFS`, `EIO`: nothing can be
    /// changed any more.
    fn reserve(&self, intent: &Intent) -> Result<Grant>;

    /// As [`Store::reserve`], but never waits: `None` where room would have to be made first.
    fn reserve_at_once(&self, intent: &Intent) -> Option<Grant> {
        self.reserve(intent).ok()
    }

    /// Takes back what was reserved and is not used.
    fn give_back(&self, held: Grant);

    /// Takes back space that was used: of pages, inodes and names that went.
    fn release(&self, space: Space);

    /// Accepts one operation's changes, in order, and uses what was reserved for them. Durable only after a
    /// [`Store::commit`].
    ///
    /// # Errors
    /// `EIO`, if the device failed: nothing of the batch happened, and the core stops writing.
    fn apply(&self, held: &mut Grant, batch: &[Change<'_>]) -> Result<Stamp>;

    /// Reserves what a batch needs, as if none of its pages had space, and applies it: for callers that have
    /// changed nothing yet.
    ///
    /// # Errors
    /// Those of [`Store::reserve`] and [`Store::apply`]; nothing of the batch happened then.
    fn change(&self, batch: &[Change<'_>]) -> Result<Stamp> {
        let intent = Intent::of(batch);
        let intent = Intent {
            pages: intent.written + intent.allocated,
            moved: intent.ranges,
            ..intent
        };
        self.apply(&mut self.reserve(&intent)?, batch)
    }

    /// Somebody is about to write to a large file, at this place: what is known of that may be fetched from
    /// memory meanwhile. A hint, which waits for nothing and nobody.
    fn expect_write(&self, ino: Ino, offset: u64) {
        let _ = (ino, offset);
    }

    /// As [`Store::apply`], for a batch that writes to one file: a store that would copy what is written
    /// can keep the pages instead. Called under that file's content lock.
    ///
    /// # Errors
    /// Those of `apply`.
    fn apply_written(
        &self,
        held: &mut Grant,
        batch: &[Change<'_>],
        page: &PageOf<'_>,
    ) -> Result<Stamp> {
        let _ = page;
        self.apply(held, batch)
    }

    /// Returns when all changes up to `upto` are durable; `None` means all accepted so far.
    ///
    /// # Errors
    /// When they could not be made durable: then no later call succeeds for what was accepted before.
    fn commit(&self, upto: Option<Stamp>) -> Result<()>;

    /// At most `max` inodes with numbers greater than `after`, by number. An empty run: the end.
    ///
    /// # Errors
    /// `EIO` or `EUCLEAN` when they cannot be read.
    fn walk(&self, after: Ino, max: usize, run: &mut Vec<InodeRecord>) -> Result<()>;

    /// At most `parts - 1` ascending numbers that cut the inodes into about equal parts, for those
    /// who walk over them in parallel; fewer where that makes no sense.
    ///
    /// # Errors
    /// `EIO` or `EUCLEAN` when that cannot be read.
    fn split(&self, parts: usize) -> Result<Vec<Ino>> {
        let _ = parts;
        Ok(Vec::new())
    }

    /// The highest inode number ever used; the core deals numbers above it.
    ///
    /// # Errors
    /// `EIO` or `EUCLEAN` when it cannot be read.
    fn last_ino(&self) -> Result<Ino>;

    /// Space in all and in use.
    ///
    /// # Errors
    /// `EIO` when it cannot be told.
    fn space(&self) -> Result<SpaceReport>;
}
