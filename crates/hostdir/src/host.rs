//! The directory of the host: opened once, and never left.
//!
//! The root is open as long as this is. A directory below is reached from the nearest one that is open, name by name;
//! a file, by its name in its directory. The way never leads through a symbolic link, upwards, or onto another mount,
//! and what is found at its end must be what was there before.

use holdfast_core::store::InodeRecord;
use holdfast_core::types::{Errno, FileType, Ino, Result};
use rustix::fs::{
    AtFlags, CWD, Mode, OFlags, ResolveFlags, Statx, StatxFlags, fcntl_getfl, fstatfs, openat,
    openat2, statx,
};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use crate::acting::Own;
use crate::attributes::{self, File};
use crate::descriptors::Descriptors;
use crate::held::Held;
use crate::identity::{HostNumber, Identity, is_settled, time};
use crate::numbers::Numbers;
use crate::places::Places;
use crate::record::record;
use crate::told::Told;

/// For so many directories a file is open at most.
const DIRECTORIES_A_FILE: usize = 4;

/// Below which the limit of open files is not enough for those.
const DESCRIPTORS: u64 = 4096;

/// So long the host keeps the space of a file without names that nobody uses any more, if nothing else is done.
const SOON: Duration = Duration::from_millis(50);
/// What a thread needs that closes descriptors.
const CLOSER_STACK: usize = 64 << 10;

/// What is asked of a file. A kernel keeps the time of birth of a FUSE host's file for no time at all: each stat would be one request more.
const ASKED_SERVED: StatxFlags = StatxFlags::BASIC_STATS.union(StatxFlags::MNT_ID);
const ASKED: StatxFlags = ASKED_SERVED.union(StatxFlags::BTIME);

pub(crate) const BENEATH: ResolveFlags = ResolveFlags::BENEATH
    .union(ResolveFlags::NO_SYMLINKS)
    .union(ResolveFlags::NO_XDEV);

/// File systems in which the number that a listing tells need not be that of the file: they are of several devices (overlayfs, btrfs,
/// bcachefs).
const OF_SEVERAL_DEVICES: [u64; 3] = [0x794c_7630, 0x9123_683e, 0xca45_1a4e];
/// One with a server that tells what it likes: FUSE.
const SERVED: u64 = 0x6573_5546;

pub(crate) struct Host {
    root: OwnedFd,
    root_is: Identity,
    /// What is asked of each file: the same of all, so that identities compare.
    asked: StatxFlags,
    /// The mount that the root lies on, where the kernel tells.
    mount: Option<u64>,
    /// Are the numbers that a listing tells those of the files? `None`: some are compared.
    pub(crate) trusts_listings: Option<bool>,
    /// Does it have extended attributes? Until it says that it has not.
    has_xattrs: AtomicBool,
    pub(crate) numbers: Numbers,
    pub(crate) places: Places,
    directories: Descriptors,
    files: Descriptors,
    pub(crate) held: Held,
    /// What this process is, which acts as others.
    pub(crate) own: Own,
    /// Is a thread about to close what was let go?
    closes: AtomicBool,
    /// What hears of changes by others.
    pub(crate) told: Option<Told>,
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
    /// `hears`: changes by others are wanted to be told, if that is possible.
    ///
    /// # Errors
    /// Those of open(2); `ENOTDIR`.
    pub(crate) fn open(path: &Path, directories: usize, hears: bool) -> Result<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = openat(CWD, path, flags, Mode::empty()).map_err(errno)?;
        // One that does not say what it is may be anything.
        let kind = fstatfs(&root).map_or(SERVED, |of| of.f_type.cast_unsigned());
        let asked = match kind {
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
            trusts_listings: match kind {
                SERVED => None,
                several => Some(!OF_SEVERAL_DEVICES.contains(&several)),
            },
            has_xattrs: AtomicBool::new(true),
            numbers: Numbers::new(root_is.host),
            places: Places::default(),
            directories: Descriptors::at_most(directories),
            files: Descriptors::at_most(files),
            held: Held::new(all, directories + files),
            own: Own::here()?,
            closes: AtomicBool::new(false),
            // Without it answers hold for a shorter time.
            told: hears.then(|| Told::of(kind).ok().flatten()).flatten(),
            root,
        })
    }

    /// The root's descriptor.
    pub(crate) fn root(&self) -> BorrowedFd<'_> {
        self.root.as_fd()
    }

    /// What the host tells of an inode that is open.
    ///
    /// # Errors
    /// Those of statx(2).
    pub(crate) fn stat(&self, file: BorrowedFd<'_>) -> Result<Statx> {
        stat_of(file, self.asked)
    }

    /// What is known of the root.
    pub(crate) fn stat_root(&self) -> Result<Found> {
        Ok(Found {
            stat: self.stat(self.root())?,
            is: self.root_is,
            ino: Ino::ROOT,
        })
    }

    /// Does `act` with an open directory.
    ///
    /// # Errors
    /// `ESTALE`: it is not known, or no longer where it was. `EXDEV`: it is another mount's. Those of openat2(2).
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

    /// A directory that stays open as long as this is there.
    ///
    /// # Errors
    /// As [`in_directory`](Self::in_directory).
    pub(crate) fn opened(&self, dir: Ino) -> Result<Opened> {
        match dir {
            Ino::ROOT => Ok(Opened(None)),
            dir => self.directory(dir).map(Some).map(Opened),
        }
    }

    /// An inode that the core knows, wherever it is, as a descriptor that may only name it, with what the host tells of it.
    ///
    /// # Errors
    /// `ESTALE`: it is not known, or no longer where it was. Those of openat2(2).
    pub(crate) fn pin(&self, ino: Ino) -> Result<(Opened, Statx)> {
        let pinned = match ino {
            Ino::ROOT => Opened(None),
            _ => match self.held.writer(ino).or_else(|| self.held.nameless(ino)) {
                Some(open) => Opened(Some(open)),
                None => return self.pin_named(ino),
            },
        };
        let stat = self.stat(pinned.get(self))?;
        Ok((pinned, stat))
    }

    fn pin_named(&self, ino: Ino) -> Result<(Opened, Statx)> {
        let place = self.places.get(ino).ok_or(Errno::ESTALE)?;
        let found = self.in_directory(place.parent, |dir| {
            self.find_below(dir, &place.name, OFlags::PATH, &place.is)
        });
        match found {
            Ok((open, stat)) => Ok((Opened(Some(Arc::new(open))), stat)),
            Err(error @ (Errno::ESTALE | Errno::ENOENT)) => {
                let open = self.held.displaced(ino).ok_or(error)?;
                let stat = self.stat(open.as_fd())?;
                Ok((Opened(Some(open)), stat))
            }
            Err(error) => Err(error),
        }
    }

    /// What is known of a file that is open, whatever became of its name.
    pub(crate) fn stat_open(&self, ino: Ino) -> Result<Option<Statx>> {
        let open = self.files.get(ino).or_else(|| self.held.writer(ino));
        let open = open.or_else(|| self.held.displaced(ino));
        open.map(|open| self.stat(open.as_fd())).transpose()
    }

    /// What is known of an inode that has lost its last name by an operation from above, or has none yet.
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
            if let Some(open) = self.directories.get(at) {
                break Some(open);
            }
            let place = self.places.get(at).ok_or(Errno::ESTALE)?;
            let parent = place.parent;
            way.push((at, place));
            at = parent;
            if way.len() > u16::MAX.into() {
                // Places that were noted at different times can make a circle.
                return Err(Errno::ESTALE);
            }
        };
        for (ino, place) in way.into_iter().rev() {
            let flags = OFlags::PATH | OFlags::DIRECTORY;
            let parent = open.as_ref().map_or(self.root(), |open| open.as_fd());
            let found = self.open_below(parent, &place.name, flags, &place.is)?;
            open = Some(self.directories.keep(ino, found));
        }
        open.ok_or(Errno::ESTALE)
    }

    /// Opens a name of a directory, if it is still this file's.
    fn open_below(
        &self,
        dir: BorrowedFd<'_>,
        name: &[u8],
        flags: OFlags,
        is: &Identity,
    ) -> Result<OwnedFd> {
        let (opened, _) = self.find_below(dir, name, flags, is)?;
        Ok(opened)
    }

    /// The same, with what the host tells of it.
    fn find_below(
        &self,
        dir: BorrowedFd<'_>,
        name: &[u8],
        flags: OFlags,
        is: &Identity,
    ) -> Result<(OwnedFd, Statx)> {
        let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let opened = openat2(dir, name, flags, Mode::empty(), BENEATH);
        let opened = opened.map_err(|error| match errno(error) {
            // Something else has its name, or nothing.
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
            // As with files: what this side reads is not what moves access times.
            match open(flags | OFlags::NOATIME) {
                Err(rustix::io::Errno::PERM) => open(flags).map_err(errno),
                opened => opened.map_err(errno),
            }
        })
    }

    /// A regular file, open for reading; some stay open. It can be read as long as it is, whatever becomes of its name.
    ///
    /// # Errors
    /// `ESTALE`: it is not known, or no longer where it was. Those of openat2(2).
    pub(crate) fn file(&self, ino: Ino) -> Result<Arc<OwnedFd>> {
        if let Some(open) = self.files.get(ino) {
            return Ok(open);
        }
        let place = self.places.get(ino).ok_or(Errno::ESTALE)?;
        if place.is.kind != FileType::Regular {
            return Err(Errno::EINVAL);
        }
        if let Some(open) = self.held.writer(ino)
            && fcntl_getfl(&open).is_ok_and(|flags| flags.contains(OFlags::RDWR))
        {
            return Ok(open);
        }
        if let Some(open) = self.held.nameless(ino) {
            let opened = reopen(open.as_fd(), OFlags::RDONLY)?;
            return Ok(self.files.keep(ino, opened));
        }
        let opened = self.in_directory(place.parent, |dir| {
            let flags = OFlags::RDONLY | OFlags::NONBLOCK;
            let quiet = self.open_below(dir, &place.name, flags | OFlags::NOATIME, &place.is);
            match quiet {
                // Of others' files that is not for everybody.
                Err(Errno::EPERM) => self.open_below(dir, &place.name, flags, &place.is),
                opened => opened,
            }
        });
        let opened = match (opened, self.held.displaced(ino)) {
            (Err(Errno::ESTALE | Errno::ENOENT), Some(open)) => {
                reopen(open.as_fd(), OFlags::RDONLY)?
            }
            (opened, _) => opened?,
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
            // Its own number can be that of any file here: it has the one of what it hides.
            Some(Some(number)) => HostNumber {
                device: self.root_is.host.device,
                number,
            },
            _ => is.host,
        };
        let ino = self.number(number, &is);
        Ok(Some(Found { stat, is, ino }))
    }

    /// The record of what a name of a directory leads to, of which the place is noted. `None`: there is no such name.
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
        let has = xattrs && self.has_attributes_of(file.ino, &file.stat, at, name)?;
        Ok(Some(record(file.ino, dir, &file.stat, has)))
    }

    /// Has a file of which the place is known, and of which this was just told, extended attributes that are shown?
    ///
    /// # Errors
    /// Those of listxattr(2).
    pub(crate) fn has_attributes_of(
        &self,
        ino: Ino,
        stat: &Statx,
        dir: BorrowedFd<'_>,
        name: &[u8],
    ) -> Result<bool> {
        let (mtime, ctime) = (time(stat.stx_mtime), time(stat.stx_ctime));
        if let Some(has) = self.places.has_xattrs(ino, ctime) {
            return Ok(has);
        }
        // From before it is asked.
        let is_settled = is_settled(mtime, ctime);
        let has = self.has_attributes(dir, name)?;
        if is_settled {
            self.places.note_xattrs(ino, ctime, has);
        }
        Ok(has)
    }

    /// Has a file extended attributes that are shown?
    ///
    /// # Errors
    /// Those of listxattr(2).
    pub(crate) fn has_attributes(&self, dir: BorrowedFd<'_>, name: &[u8]) -> Result<bool> {
        if !self.may_have_attributes() {
            return Ok(false);
        }
        match attributes::has_any(&File::named(dir, name)) {
            Err(Errno::EOPNOTSUPP) => {
                self.has_xattrs.store(false, Relaxed);
                Ok(false)
            }
            told => told,
        }
    }

    /// May a file have any?
    pub(crate) fn may_have_attributes(&self) -> bool {
        // Relaxed: a thread that sees it late asks once more.
        self.has_xattrs.load(Relaxed)
    }

    /// The number of a file, which is not that of another one that is known.
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

    /// The number that a listing of a directory tells for a file of the root's device.
    pub(crate) fn listed(&self, number: u64) -> Ino {
        self.numbers.of(HostNumber {
            device: self.root_is.host.device,
            number,
        })
    }

    /// Closes what was open of inodes that are not known any more.
    pub(crate) fn tidy(&self) {
        self.files.tidy();
        self.directories.tidy();
        self.held.tidy();
        self.sweep();
    }

    /// The core has let an inode go. Waits for nothing.
    pub(crate) fn forget(self: &Arc<Self>, ino: Ino) {
        self.places.forget(ino);
        self.count_let_go();
        self.files.set_aside(ino);
        self.directories.set_aside(ino);
        // Relaxed: a flag, beside which nothing is told. What is set aside after it was lowered raises it again.
        if self.held.forget(ino) && !self.closes.swap(true, Relaxed) {
            let host = Arc::clone(self);
            let closer = std::thread::Builder::new().name("holdfast-close".into());
            let started = closer.stack_size(CLOSER_STACK).spawn(move || {
                std::thread::sleep(SOON);
                host.closes.store(false, Relaxed);
                host.tidy();
            });
            if started.is_err() {
                // The next operation closes it.
                self.closes.store(false, Relaxed);
            }
        }
    }
}

/// Opens what a descriptor names.
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
    let told = stat.stx_mask & StatxFlags::MNT_ID.bits() != 0;
    told.then_some(stat.stx_mnt_id)
}

/// The number that a directory has for a name, whatever is mounted there.
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

/// How many descriptors this process may have open, after the limit was raised as far as it goes.
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
