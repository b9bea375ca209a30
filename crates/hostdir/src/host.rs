//! The directory of the host, and how inodes below it are reached.
//!
//! The root stays open. A directory below is reached from the nearest open one, name by name, and a
//! file by its name in its directory. An inode that is open above is reached by its
//! [held](crate::held) descriptor. One that others have moved is reached by a cached descriptor, or
//! by its handle. A walk never leads through a symbolic link, upwards, or onto another mount, and
//! compares the identity of what it finds.

use holdfast_core::store::InodeRecord;
use holdfast_core::types::{Errno, FileType, Ino, Result};
use parking_lot::Mutex;
use rustix::fs::{
    AtFlags, CWD, Mode, OFlags, Statx, StatxFlags, fcntl_getfl, fstatfs, openat, statx,
};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use crate::acting::Own;
use crate::attributes::{self, File};
use crate::descriptors::Descriptors;
use crate::held::Held;
use crate::identity::{HostNumber, Identity, is_settled_since, kind, time};
use crate::numbers::Numbers;
use crate::one_name::open_name;
use crate::places::{Place, Places};
use crate::record::record;
use crate::sys::Handle;
use crate::watcher::Watcher;

/// Cached directories for each cached file.
const DIRECTORIES_A_FILE: usize = 4;

/// With a smaller limit of open files fewer are cached.
const DESCRIPTORS: u64 = 4096;

/// Delay until an unused file without names is closed and its space freed, if no operation does so
/// first.
const SOON: Duration = Duration::from_millis(50);
/// After an inode was found to be gone, lookups are held for this long; and each looked up inode
/// for at least as long.
const HOLDING: Duration = Duration::from_secs(1);
/// Stack of the closing thread.
const CLOSER_STACK: usize = 64 << 10;

/// Fields requested by statx(2). The kernel does not cache the time of birth of a FUSE host's file,
/// so it would cost another request.
const ASKED_SERVED: StatxFlags = StatxFlags::BASIC_STATS.union(StatxFlags::MNT_ID);
const ASKED: StatxFlags = ASKED_SERVED.union(StatxFlags::BTIME);

/// File systems of several devices (overlayfs, btrfs, bcachefs): the number in a listing need not
/// be that of the file.
const OF_SEVERAL_DEVICES: [u64; 3] = [0x794c_7630, 0x9123_683e, 0xca45_1a4e];
/// File systems with files of size 0 that have content: procfs, sysfs, debugfs, tracefs,
/// securityfs, cgroup, cgroup2, configfs, the file system of bpf(2), selinuxfs, smackfs,
/// binfmt_misc, nfsd, rpc_pipefs, fusectl, resctrl.
const WITHOUT_SIZES: [u64; 16] = [
    0x9fa0,
    0x6265_6572,
    0x6462_6720,
    0x7472_6163,
    0x7363_6673,
    0x0027_e0eb,
    0x6367_7270,
    0x6265_6570,
    0xcafe_4a11,
    0xf97c_ff8c,
    0x4341_5d53,
    0x4249_4e4d,
    0x6e66_7364,
    0x6759_6969,
    0x6573_5543,
    0x0765_5821,
];
/// FUSE: its server may report anything.
const SERVED: u64 = 0x6573_5546;

pub(crate) struct Host {
    root: OwnedFd,
    root_is: Identity,
    /// Fields requested of each file: always the same, so that identities compare.
    asked: StatxFlags,
    /// The mount of the root, if the kernel reports it.
    mount: Option<u64>,
    /// Are the numbers in listings those of the files? `None`: a sample is compared.
    pub(crate) trusts_listings: Option<bool>,
    /// Are sizes the length of the content? `None`: except size 0.
    tells_sizes: Option<bool>,
    /// Does it have extended attributes? `true` until it reports otherwise.
    has_xattrs: AtomicBool,
    pub(crate) numbers: Numbers,
    pub(crate) places: Places,
    directories: Descriptors,
    files: Descriptors,
    pub(crate) held: Held,
    /// Credentials of this process.
    pub(crate) own: Own,
    /// Is a thread about to close dropped inodes?
    closes: AtomicBool,
    /// Is one about to close looked up inodes?
    closes_looked_up: AtomicBool,
    /// When an inode was last found to be gone.
    gone: Mutex<Option<Instant>>,
    /// The root, if inodes of its mount can be opened by handle.
    handles: Option<OwnedFd>,
    /// Notifications of changes by others.
    pub(crate) watcher: Option<Watcher>,
}

/// An inode that is open; `None`: the root.
pub(crate) struct Opened(Option<Arc<OwnedFd>>);

impl Opened {
    pub(crate) fn get<'h>(&'h self, host: &'h Host) -> BorrowedFd<'h> {
        self.0.as_ref().map_or(host.root(), |open| open.as_fd())
    }
}

/// A file as it was found.
pub(crate) struct Found {
    pub(crate) stat: Statx,
    pub(crate) is: Identity,
    pub(crate) ino: Ino,
}

pub(crate) fn errno(error: rustix::io::Errno) -> Errno {
    Errno::from_raw(error.raw_os_error())
}

impl Host {
    /// `hears`: watch for changes by others, if possible.
    ///
    /// # Errors
    /// Those of open(2); `ENOTDIR`.
    pub(crate) fn open(path: &Path, directories: usize, hears: bool) -> Result<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = openat(CWD, path, flags, Mode::empty()).map_err(errno)?;
        // An unknown type is treated as FUSE.
        let of = fstatfs(&root).map_or(SERVED, |of| of.f_type.cast_unsigned());
        let asked = match of {
            SERVED => ASKED_SERVED,
            _ => ASKED,
        };
        let stat = stat_of(root.as_fd(), asked)?;
        let root_is = Identity::of(&stat);
        let all = descriptors();
        let share = if all < DESCRIPTORS { 8 } else { 1 };
        let directories = directories / share;
        let files = directories / DIRECTORIES_A_FILE;
        Ok(Self {
            root_is,
            asked,
            mount: mount(&stat),
            trusts_listings: match of {
                SERVED => None,
                several => Some(!OF_SEVERAL_DEVICES.contains(&several)),
            },
            tells_sizes: match of {
                SERVED => None,
                of => Some(!WITHOUT_SIZES.contains(&of)),
            },
            has_xattrs: AtomicBool::new(true),
            numbers: Numbers::new(root_is.host),
            places: Places::default(),
            directories: Descriptors::at_most(directories),
            files: Descriptors::at_most(files),
            held: Held::new(all, directories + files),
            own: Own::here()?,
            closes: AtomicBool::new(false),
            closes_looked_up: AtomicBool::new(false),
            gone: Mutex::default(),
            handles: opens_handles(root.as_fd()),
            // Without it answers are valid for a shorter time.
            watcher: hears.then(|| Watcher::of(of).ok().flatten()).flatten(),
            root,
        })
    }

    /// The root's descriptor.
    pub(crate) fn root(&self) -> BorrowedFd<'_> {
        self.root.as_fd()
    }

    /// statx(2) of an open inode.
    ///
    /// # Errors
    /// Those of statx(2).
    pub(crate) fn stat(&self, file: BorrowedFd<'_>) -> Result<Statx> {
        stat_of(file, self.asked)
    }

    /// May the content of a file of this size have another length?
    pub(crate) fn has_no_size(&self, size: u64) -> bool {
        !self.tells_sizes.unwrap_or(size > 0)
    }

    /// The root.
    pub(crate) fn stat_root(&self) -> Result<Found> {
        Ok(Found {
            stat: self.stat(self.root())?,
            is: self.root_is,
            ino: Ino::ROOT,
        })
    }

    /// Calls `act` with an open directory.
    ///
    /// # Errors
    /// `ESTALE`: it is not known, or no longer where it was. `EXDEV`: it is another mount's. Those
    /// of openat2(2).
    pub(crate) fn in_directory<R>(
        &self,
        dir: Ino,
        act: impl FnOnce(BorrowedFd<'_>) -> Result<R>,
    ) -> Result<R> {
        if dir == Ino::ROOT {
            return act(self.root());
        }
        act(self.directory(dir)?.as_fd())
    }

    /// A directory that stays open while the result exists.
    ///
    /// # Errors
    /// As [`in_directory`](Self::in_directory).
    pub(crate) fn opened(&self, dir: Ino) -> Result<Opened> {
        match dir {
            Ino::ROOT => Ok(Opened(None)),
            dir => self.directory(dir).map(Some).map(Opened),
        }
    }

    /// An `O_PATH` descriptor of an inode that the core knows, and its statx(2).
    ///
    /// # Errors
    /// `ESTALE`: it is not known, or has gone. Those of openat2(2).
    pub(crate) fn pin(&self, ino: Ino) -> Result<(Opened, Statx)> {
        let pinned = match ino {
            Ino::ROOT => Opened(None),
            _ => match self.held.get(ino) {
                Some(open) => Opened(Some(open)),
                None => return self.pin_named(ino),
            },
        };
        let stat = self.stat(pinned.get(self))?;
        Ok((pinned, stat))
    }

    fn pin_named(&self, ino: Ino) -> Result<(Opened, Statx)> {
        let place = self.places.get(ino).ok_or_else(|| self.has_gone())?;
        match self.by_name(&place) {
            Ok((open, stat)) => Ok((Opened(Some(Arc::new(open))), stat)),
            Err(Errno::ESTALE | Errno::ENOENT) => {
                let open = self.reach(ino, &place.is).ok_or_else(|| self.has_gone())?;
                let stat = self.stat(open.as_fd())?;
                Ok((Opened(Some(open)), stat))
            }
            Err(error) => Err(error),
        }
    }

    /// Does the name of an inode lead to it? Link counts are not reliable: some hosts report 1 for
    /// a file without names, and some 0 for all files.
    pub(crate) fn is_named(&self, ino: Ino) -> bool {
        let Some(place) = self.places.get(ino) else {
            return ino == Ino::ROOT;
        };
        self.by_name(&place).is_ok()
    }

    fn by_name(&self, place: &Place) -> Result<(OwnedFd, Statx)> {
        self.in_directory(place.parent, |dir| {
            self.find_below(dir, &place.name, OFlags::PATH, &place.is)
        })
    }

    /// An inode that its name does not lead to any more: by a cached descriptor, or by its handle.
    pub(crate) fn reach(&self, ino: Ino, is: &Identity) -> Option<Arc<OwnedFd>> {
        let open = self.held.get(ino).or_else(|| self.files.get(ino));
        let open = open.or_else(|| self.directories.get(ino));
        open.or_else(|| self.by_handle(ino, is).map(Arc::new))
    }

    fn by_handle(&self, ino: Ino, is: &Identity) -> Option<OwnedFd> {
        let handle = self.places.handle(ino)?;
        let open = handle.open(self.handles.as_ref()?.as_fd()).ok()?;
        let stat = self.stat(open.as_fd()).ok()?;
        (Identity::of(&stat) == *is).then_some(open)
    }

    /// Stores the handle of an inode before its last descriptor is closed, in case its name
    /// changes.
    pub(crate) fn note_handle(&self, ino: Ino, open: BorrowedFd<'_>) {
        if self.handles.is_some() {
            self.places.note_handle(ino, Handle::of(open));
        }
    }

    /// An inode was found to be gone: others remove or replace names. So lookups are held for a
    /// while, until they are used.
    pub(crate) fn has_gone(&self) -> Errno {
        *self.gone.lock() = Some(Instant::now());
        Errno::ESTALE
    }

    /// Are looked up inodes held?
    pub(crate) fn holds_looked_up(&self) -> bool {
        let gone = *self.gone.lock();
        gone.is_some_and(|gone| gone.elapsed() < HOLDING)
    }

    /// An `O_PATH` descriptor of an inode, not the one it is written by. `None`: of the root.
    ///
    /// # Errors
    /// As [`pin`](Self::pin).
    pub(crate) fn name(&self, ino: Ino) -> Result<Option<Arc<OwnedFd>>> {
        let (Opened(pinned), _) = self.pin(ino)?;
        let Some(open) = pinned else { return Ok(None) };
        match self.held.writer(ino) {
            Some(writer) if Arc::ptr_eq(&writer, &open) => {
                reopen(open.as_fd(), OFlags::PATH).map(|named| Some(Arc::new(named)))
            }
            _ => Ok(Some(open)),
        }
    }

    /// statx(2) of an inode that lost its last name by an operation of the core, or has none yet.
    pub(crate) fn stat_nameless(&self, ino: Ino) -> Result<Option<Statx>> {
        let open = self.held.nameless(ino);
        open.map(|open| self.stat(open.as_fd())).transpose()
    }

    fn directory(&self, dir: Ino) -> Result<Arc<OwnedFd>> {
        let mut way = Vec::new();
        let mut at = dir;
        let mut open = loop {
            if at == Ino::ROOT {
                break None;
            }
            if let Some(open) = self.directories.get(at).or_else(|| self.held.get(at)) {
                break Some(open);
            }
            let place = self.places.get(at).ok_or_else(|| self.has_gone())?;
            let parent = place.parent;
            way.push((at, place));
            at = parent;
            if way.len() > u16::MAX.into() {
                // Places stored at different times can form a circle.
                return Err(Errno::ESTALE);
            }
        };
        for (ino, place) in way.into_iter().rev() {
            let flags = OFlags::PATH | OFlags::DIRECTORY;
            let parent = open.as_ref().map_or(self.root(), |open| open.as_fd());
            let (found, _) = match self.find_below(parent, &place.name, flags, &place.is) {
                Err(Errno::ESTALE) => return self.moved_directory(dir),
                found => found?,
            };
            open = Some(self.keep_directory(ino, found));
        }
        open.ok_or(Errno::ESTALE)
    }

    /// A directory that was moved, itself or one above it.
    fn moved_directory(&self, dir: Ino) -> Result<Arc<OwnedFd>> {
        let place = self.places.get(dir);
        let found = place.and_then(|place| self.by_handle(dir, &place.is));
        let found = found.ok_or_else(|| self.has_gone())?;
        Ok(self.keep_directory(dir, found))
    }

    /// Caches an open directory. A handle is stored for those that are closed instead.
    fn keep_directory(&self, dir: Ino, open: OwnedFd) -> Arc<OwnedFd> {
        let closed = |dir, open: &OwnedFd| self.note_handle(dir, open.as_fd());
        self.directories.keep_and(dir, open, closed)
    }

    /// Opens a name of a directory if it still is this file, with its statx(2).
    fn find_below(
        &self,
        dir: BorrowedFd<'_>,
        name: &[u8],
        flags: OFlags,
        is: &Identity,
    ) -> Result<(OwnedFd, Statx)> {
        let opened = open_name(dir, name, flags, Mode::empty());
        let opened = opened.map_err(|error| match error {
            // The name belongs to another file, or to none.
            Errno::ENOENT | Errno::ELOOP | Errno::ENOTDIR => Errno::ESTALE,
            error => error,
        })?;
        let stat = self.stat(opened.as_fd())?;
        match Identity::of(&stat) == *is {
            true => Ok((opened, stat)),
            false => Err(Errno::ESTALE),
        }
    }

    /// Opens a directory for listing it.
    ///
    /// # Errors
    /// As [`in_directory`](Self::in_directory), and `EACCES`.
    pub(crate) fn open_listing(&self, dir: Ino) -> Result<OwnedFd> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        self.in_directory(dir, |dir| {
            let open = |flags| openat(dir, ".", flags, Mode::empty());
            // As with files: reads by this process must not update access times.
            match open(flags | OFlags::NOATIME) {
                Err(rustix::io::Errno::PERM) => open(flags).map_err(errno),
                opened => opened.map_err(errno),
            }
        })
    }

    /// A regular file, open for reading and cached. It can be read regardless of its name.
    ///
    /// # Errors
    /// As [`pin`](Self::pin); those of open(2).
    pub(crate) fn file(&self, ino: Ino) -> Result<Arc<OwnedFd>> {
        if let Some(open) = self.files.get(ino) {
            return Ok(open);
        }
        if let Some(open) = self.held.writer(ino)
            && fcntl_getfl(&open).is_ok_and(|flags| flags.contains(OFlags::RDWR))
        {
            return Ok(open);
        }
        let (pinned, stat) = self.pin(ino)?;
        if kind(&stat) != FileType::Regular {
            return Err(Errno::EINVAL);
        }
        let named = pinned.get(self);
        let opened = match reopen(named, OFlags::RDONLY | OFlags::NOATIME) {
            // `O_NOATIME` takes ownership.
            Err(Errno::EPERM) => reopen(named, OFlags::RDONLY)?,
            opened => opened?,
        };
        Ok(self.files.keep(ino, opened))
    }

    /// What a name of a directory leads to; `None`: there is no such name.
    ///
    /// # Errors
    /// Those of statx(2).
    pub(crate) fn find(&self, dir: BorrowedFd<'_>, name: &[u8]) -> Result<Option<Found>> {
        let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT;
        let stat = match statx(dir, name, flags, self.asked).map_err(errno) {
            Err(Errno::ENOENT | Errno::ENOTDIR | Errno::ENAMETOOLONG) => return Ok(None),
            stat => stat?,
        };
        let is = Identity::of(&stat);
        let mounted_over = mount(&stat) != self.mount;
        let number = match mounted_over.then(|| listed_number(dir, name)).transpose()? {
            // Its number may be that of a file here, so it is given the number of the covered
            // inode.
            Some(Some(number)) => HostNumber {
                device: self.root_is.host.device,
                number,
            },
            _ => is.host,
        };
        let ino = self.number(number, &is);
        Ok(Some(Found { stat, is, ino }))
    }

    /// The record of a name of a directory; stores the place. `None`: there is no such name.
    ///
    /// # Errors
    /// Those of statx(2) and listxattr(2).
    pub(crate) fn tell(
        &self,
        at: BorrowedFd<'_>,
        dir: Ino,
        name: &[u8],
        xattrs: bool,
    ) -> Result<Option<InodeRecord>> {
        let Some(file) = self.find(at, name)? else {
            return Ok(None);
        };
        self.places.note(file.ino, dir, name, file.is);
        let named = || File::named(at, name);
        self.record(file.ino, dir, &file.stat, xattrs, named)
            .map(Some)
    }

    /// The same, and keeps the inode open for a moment, regardless of its name.
    ///
    /// # Errors
    /// The same.
    pub(crate) fn tell_and_hold(
        self: &Arc<Self>,
        at: BorrowedFd<'_>,
        dir: Ino,
        name: &[u8],
        xattrs: bool,
    ) -> Result<Option<InodeRecord>> {
        let open = match open_name(at, name, OFlags::PATH, Mode::empty()) {
            Ok(open) => open,
            // A result must be held, so a name that appears meanwhile is not returned.
            Err(Errno::ENOENT) => return Ok(None),
            // It may be another mount.
            Err(_) => return self.tell(at, dir, name, xattrs),
        };
        let stat = self.stat(open.as_fd())?;
        let is = Identity::of(&stat);
        let ino = self.number(is.host, &is);
        self.places.note(ino, dir, name, is);
        let opened = || File::open(open.as_fd());
        let record = self.record(ino, dir, &stat, xattrs, opened)?;
        self.held.looked_up(ino, open);
        self.close_looked_up();
        Ok(Some(record))
    }

    /// The record of an inode, with extended attributes if `xattrs`. Its place is known, and `stat`
    /// is new.
    ///
    /// # Errors
    /// Those of listxattr(2).
    pub(crate) fn record(
        &self,
        ino: Ino,
        parent: Ino,
        stat: &Statx,
        xattrs: bool,
        file: impl FnOnce() -> File,
    ) -> Result<InodeRecord> {
        let has = xattrs && self.has_attributes_of(ino, stat, file)?;
        Ok(record(ino, parent, stat, has))
    }

    /// Has a file extended attributes that are shown? Its place is known, and `stat` is new.
    ///
    /// # Errors
    /// Those of listxattr(2).
    fn has_attributes_of(
        &self,
        ino: Ino,
        stat: &Statx,
        file: impl FnOnce() -> File,
    ) -> Result<bool> {
        let (mtime, ctime) = (time(stat.stx_mtime), time(stat.stx_ctime));
        if let Some(has) = self.places.has_xattrs(ino, ctime) {
            return Ok(has);
        }
        // Computed before the call.
        let is_settled = is_settled_since(mtime, ctime, Instant::now());
        let has = self.has_attributes(file)?;
        if is_settled {
            self.places.note_xattrs(ino, ctime, has);
        }
        Ok(has)
    }

    /// Has a file extended attributes that are shown?
    ///
    /// # Errors
    /// Those of listxattr(2).
    pub(crate) fn has_attributes(&self, file: impl FnOnce() -> File) -> Result<bool> {
        if !self.may_have_attributes() {
            return Ok(false);
        }
        match attributes::has_any(&file()) {
            Err(Errno::EOPNOTSUPP) => {
                self.has_xattrs.store(false, Relaxed);
                Ok(false)
            }
            watcher => watcher,
        }
    }

    /// May a file have extended attributes?
    pub(crate) fn may_have_attributes(&self) -> bool {
        // Relaxed: a late thread only makes one more call.
        self.has_xattrs.load(Relaxed)
    }

    /// The number of a file, different from that of any other known file.
    pub(crate) fn number(&self, host: HostNumber, is: &Identity) -> Ino {
        let mut ino = self.numbers.of(host);
        while let Some(known) = self.places.get(ino)
            && known.is.host == is.host
            && known.is != *is
        {
            ino = self.numbers.change(host, ino);
        }
        ino
    }

    /// The number for a listed file of the root's device.
    pub(crate) fn listed(&self, number: u64) -> Ino {
        self.numbers.of(HostNumber {
            device: self.root_is.host.device,
            number,
        })
    }

    /// Closes descriptors of dropped inodes.
    pub(crate) fn tidy(&self) {
        self.files.tidy();
        self.directories.tidy();
        self.held.tidy();
        self.sweep();
    }

    /// The core has dropped an inode. Does not wait.
    pub(crate) fn forget(self: &Arc<Self>, ino: Ino) {
        self.places.forget(ino);
        self.count_let_go();
        self.files.retire(ino);
        self.directories.retire(ino);
        if self.held.forget(ino) {
            self.close_soon(&self.closes, SOON, |host| {
                host.closes.store(false, Relaxed);
                host.tidy();
            });
        }
    }

    /// Schedules the close of looked up inodes that were not used for a while.
    fn close_looked_up(self: &Arc<Self>) {
        self.close_soon(&self.closes_looked_up, HOLDING, |host| {
            host.closes_looked_up.store(false, Relaxed);
            if host.held.drop_looked_up() {
                host.close_looked_up();
            }
        });
    }

    /// Starts a thread that calls `close` after a while, unless `flag` says that there is one.
    fn close_soon(
        self: &Arc<Self>,
        flag: &AtomicBool,
        after: Duration,
        close: impl FnOnce(&Arc<Self>) + Send + 'static,
    ) {
        // Relaxed: the flag guards no data. What is to be closed after it was cleared sets it
        // again.
        if flag.swap(true, Relaxed) {
            return;
        }
        let host = Arc::clone(self);
        let closer = std::thread::Builder::new().name("holdfast-close".into());
        let started = closer.stack_size(CLOSER_STACK).spawn(move || {
            std::thread::sleep(after);
            close(&host);
        });
        if started.is_err() {
            // A later operation closes the descriptors.
            flag.store(false, Relaxed);
        }
    }
}

/// The root, for opening by handle. `None`: not permitted, or the file system has no handles.
fn opens_handles(root: BorrowedFd<'_>) -> Option<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let on = openat(root, ".", flags, Mode::empty()).ok()?;
    let handle = Handle::of(root)?;
    handle.open(on.as_fd()).is_ok().then_some(on)
}

/// Opens the inode of a descriptor again.
///
/// # Errors
/// Those of open(2).
pub(crate) fn reopen(open: BorrowedFd<'_>, flags: OFlags) -> Result<OwnedFd> {
    let flags = flags | OFlags::NONBLOCK | OFlags::CLOEXEC;
    openat(CWD, attributes::path_of(open), flags, Mode::empty()).map_err(errno)
}

fn stat_of(file: BorrowedFd<'_>, asked: StatxFlags) -> Result<Statx> {
    statx(file, "", AtFlags::EMPTY_PATH, asked).map_err(errno)
}

fn mount(stat: &Statx) -> Option<u64> {
    let watcher = stat.stx_mask & StatxFlags::MNT_ID.bits() != 0;
    watcher.then_some(stat.stx_mnt_id)
}

/// The number in a directory for a name, regardless of mounts.
fn listed_number(dir: BorrowedFd<'_>, name: &[u8]) -> Result<Option<u64>> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let listing = openat(dir, ".", flags, Mode::empty()).map_err(errno)?;
    let mut found = None;
    crate::listing::each(listing.as_fd(), &mut |entry| {
        if entry.name == name {
            found = Some(entry.number);
        }
        found.is_none()
    })?;
    Ok(found)
}

/// The limit of open descriptors, after it was raised as far as possible.
fn descriptors() -> u64 {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    match setrlimit(Resource::Nofile, raised) {
        Ok(()) => limit.maximum.unwrap_or(u64::MAX),
        Err(_) => limit.current.unwrap_or(u64::MAX),
    }
}
