//! The directory as a [`Store`] of the core.

use holdfast_core::Memory;
use holdfast_core::budget::Member;
use holdfast_core::store::{
    Changes, Coherence, Done, EntryRecord, Guarantees, InodeRecord, Lsn, NameRun, Operation, Rest,
    Shared, SpaceReport, SpaceRun, Store, Through, WholeDirectory, Writes,
};
use holdfast_core::types::{Caller, Errno, FileType, Ino, Result};
use rustix::fs::{OFlags, SeekFrom, fstatvfs, seek, syncfs};
use rustix::io::pread;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use crate::attributes::{self, File};
use crate::host::Host;
use crate::host::lookup::Found;
use crate::identity::is_settled_since;
use crate::listing::Listings;
use crate::one_name::open_to_list;
use crate::perform::{Performer, content};
use crate::places::Place;
use crate::pool::Pool;
use crate::record::record;
use crate::sys::errno;
use crate::together;
use crate::watcher::operation::OwnChange;
use crate::watcher::{Watcher, thread};

/// How a directory is opened.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// How long the host's answers are valid. [`Coherence::Notified`] becomes [`Coherence::For`] on
    /// a host that others change without a notification.
    pub coherence: Coherence,
    /// Are extended attributes and access control lists shown?
    pub xattrs: bool,
    /// Most cached open directories, with a quarter as many files; fewer if this process may have
    /// few descriptors.
    pub open: usize,
}

impl Default for Options {
    /// Others may change the directory: answers are valid for a second. Extended attributes are
    /// shown, and at most 1,024 directories are open.
    fn default() -> Self {
        Self {
            coherence: Coherence::For(Duration::from_secs(1)),
            xattrs: true,
            open: 1024,
        }
    }
}

/// A directory of the host.
pub struct HostDirectory {
    host: Arc<Host>,
    options: Options,
    listings: Listings,
    pool: Pool,
}

impl HostDirectory {
    /// Opens a directory; later changes of its name do not matter.
    ///
    /// # Errors
    /// Those of open(2): `ENOENT`, `ENOTDIR`, `EACCES`.
    pub fn open(path: &Path, options: Options) -> Result<Self> {
        let hears = matches!(options.coherence, Coherence::Notified { .. });
        let host = Arc::new(Host::open(path, options.open, hears)?);
        Ok(Self {
            host,
            options,
            listings: Listings::default(),
            pool: Pool::default(),
        })
    }

    /// Does the host notify of changes by others?
    #[must_use]
    pub fn hears(&self) -> bool {
        self.host.watcher.is_some()
    }

    /// Number of watched directories.
    #[must_use]
    pub fn watched(&self) -> usize {
        self.host.watcher.as_ref().map_or(0, Watcher::watched)
    }

    /// Looks names of a directory up; stores their places.
    fn find_all(&self, dir: Ino, names: &[&[u8]]) -> Result<Vec<Result<Option<InodeRecord>>>> {
        self.host.tidy();
        let host = Arc::clone(&self.host);
        let xattrs = self.options.xattrs;
        let names: Vec<Box<[u8]>> = names.iter().map(|name| (*name).into()).collect();
        let found = self.host.opened(dir)?;
        // A single name is looked up for a use, and may be replaced before that.
        let holds = names.len() == 1 && host.holds_looked_up();
        let answers = self.pool.map(names, move |name| match holds {
            true => host.tell_and_hold(found.get(&host), dir, name, xattrs),
            false => host.tell(found.get(&host), dir, name, xattrs),
        });
        if let [Ok(Some(record))] = &answers[..]
            && record.kind == FileType::Directory
        {
            // Most likely its content is requested next, or it becomes a working directory, and
            // others may then move or remove it. An error is reported at the use.
            drop(self.host.opened(record.ino));
        }
        Ok(answers)
    }

    fn load(host: &Host, ino: Ino, xattrs: bool) -> Result<Option<InodeRecord>> {
        if ino == Ino::ROOT {
            let stat = host.stat(host.root())?;
            let has = xattrs && host.has_attributes(|| File::named(host.root(), b"."))?;
            return Ok(Some(record(ino, ino, &stat, has)));
        }
        let Some(place) = host.places.get(ino) else {
            return Ok(None);
        };
        if let Some(open) = host.held.nameless.get(ino) {
            let stat = host.stat(open.as_fd())?;
            // Some hosts rename an open file instead of removing it.
            let has = xattrs && host.may_have_attributes();
            return Ok(Some(InodeRecord {
                nlink: 0,
                ..record(ino, place.parent, &stat, has)
            }));
        }
        let found = host.in_directory(place.parent, |dir| {
            let found = host.find(dir, &place.name)?;
            let same = found.filter(|found| found.ino == ino && found.is == place.is);
            let Some(Found { stat, .. }) = same else {
                return Ok(None);
            };
            let named = || File::named(dir, &place.name);
            host.record(ino, place.parent, &stat, xattrs, named)
                .map(Some)
        });
        match found {
            Ok(None) | Err(Errno::ESTALE | Errno::ENOENT) => {
                Self::load_without_name(host, ino, &place, xattrs)
            }
            found => found,
        }
    }

    /// An inode that its name does not lead to any more stays usable while it can be reached.
    fn load_without_name(
        host: &Host,
        ino: Ino,
        place: &Place,
        xattrs: bool,
    ) -> Result<Option<InodeRecord>> {
        let Some(open) = host.reach(ino, &place.is) else {
            host.has_gone();
            return Ok(None);
        };
        let stat = host.stat(open.as_fd())?;
        let opened = || File::open(open.as_fd());
        Ok(Some(InodeRecord {
            // 0 if it was removed.
            nlink: stat.stx_nlink,
            ..host.record(ino, place.parent, &stat, xattrs, opened)?
        }))
    }

    fn rest(host: &Host, file: &InodeRecord) -> Result<Rest> {
        // Not by its name, which may be another file's.
        let (pinned, _) = host.pin(file.ino)?;
        let open = pinned.get(host);
        let target = match file.kind {
            FileType::Symlink => Some(attributes::target(open)?),
            _ => None,
        };
        let xattrs = match file.xattrs {
            true => attributes::all(&File::open(open))?,
            false => Vec::new(),
        };
        Ok(Rest { target, xattrs })
    }
}

impl Drop for HostDirectory {
    fn drop(&mut self) {
        if let Some(watcher) = &self.host.watcher {
            watcher.end();
        }
    }
}

impl Store for HostDirectory {
    fn guarantees(&self) -> Guarantees {
        Guarantees {
            pinned: false,
            blocks: true,
            small: 0,
            frees: true,
        }
    }

    fn writes(self: Arc<Self>) -> Writes {
        Writes::Through(self)
    }

    fn join(&self, memory: &Arc<Memory>) {
        let host = Arc::downgrade(&self.host);
        memory.join(host as Weak<dyn Member>);
    }

    fn load_inodes(&self, inos: &[Ino], found: &mut Vec<InodeRecord>) -> Result<()> {
        self.host.tidy();
        let (host, xattrs) = (Arc::clone(&self.host), self.options.xattrs);
        let answers = self
            .pool
            .map(inos.to_vec(), move |ino| Self::load(&host, *ino, xattrs));
        for answer in answers {
            found.extend(answer?);
        }
        Ok(())
    }

    fn load_rests(&self, records: &[InodeRecord], found: &mut Vec<Rest>) -> Result<()> {
        let host = Arc::clone(&self.host);
        let answers = self
            .pool
            .map(records.to_vec(), move |file| Self::rest(&host, file));
        for answer in answers {
            found.push(answer?);
        }
        Ok(())
    }

    fn look_up(
        &self,
        dir: Ino,
        names: &[&[u8]],
        found: &mut Vec<Option<(EntryRecord, Option<InodeRecord>)>>,
    ) -> Result<()> {
        let answers = self.find_all(dir, names)?;
        let alone = names.len() == 1;
        for (name, answer) in names.iter().zip(answers) {
            let entry = |ino: Ino, kind: FileType| EntryRecord {
                name: (*name).into(),
                // Only a listing has cookies.
                cookie: 0,
                ino,
                kind,
            };
            found.push(match answer {
                Ok(file) => file.map(|file| (entry(file.ino, file.kind), Some(file))),
                Err(error) if alone => return Err(error),
                // A lookup of it alone reports the error.
                Err(_) => Some((entry(Ino(0), FileType::Regular), None)),
            });
        }
        Ok(())
    }

    fn read_names(&self, dir: Ino, after: u64, max: usize, run: &mut NameRun) -> Result<()> {
        self.listings
            .read((&self.host, &self.pool), dir, after, max, run)
    }

    fn end_cookie(&self, _dir: Ino) -> Result<u64> {
        Ok(0)
    }

    fn next_space(&self, ino: Ino, offset: u64) -> Result<Option<SpaceRun>> {
        let file = self.host.file(ino)?;
        let start = match seek(&file, SeekFrom::Data(offset)) {
            // Only a hole follows, or the end.
            Err(rustix::io::Errno::NXIO) => return Ok(None),
            start => start.map_err(errno)?,
        };
        let end = seek(&file, SeekFrom::Hole(start)).map_err(errno)?;
        Ok((end > start).then_some(SpaceRun {
            start,
            len: end - start,
            written: true,
        }))
    }

    fn read_data(&self, ino: Ino, offset: u64, buf: &mut [u8]) -> Result<()> {
        let file = self.host.file(ino)?;
        let mut done = 0;
        while done < buf.len() {
            match pread(&file, &mut buf[done..], offset + done as u64) {
                Err(rustix::io::Errno::INTR) => {}
                // It was truncated meanwhile.
                Ok(0) => break,
                read => done += read.map_err(errno)?,
            }
        }
        buf[done..].fill(0);
        Ok(())
    }

    /// Calls syncfs(2) on the host's file system.
    fn commit(&self, _upto: Option<Lsn>) -> Result<()> {
        let root = open_to_list(self.host.root(), OFlags::empty())?;
        syncfs(&root).map_err(errno)
    }

    fn space(&self) -> Result<SpaceReport> {
        let of = fstatvfs(self.host.root()).map_err(errno)?;
        let pages = |blocks: u64| blocks.saturating_mul(of.f_frsize.max(1)) / 4096;
        Ok(SpaceReport {
            pages: Some(pages(of.f_blocks)),
            pages_used: pages(of.f_blocks.saturating_sub(of.f_bfree)),
            pages_reserved: pages(of.f_bfree.saturating_sub(of.f_bavail)),
            inodes: Some(of.f_files),
            inodes_used: of.f_files.saturating_sub(of.f_ffree),
        })
    }

    fn open_inode(&self, caller: &Caller, ino: Ino, writes: bool) -> Result<bool> {
        Performer {
            host: &self.host,
            caller,
            xattrs: self.options.xattrs,
            own: &OwnChange::default(),
        }
        .open(ino, writes)
    }

    fn close_inode(&self, ino: Ino, writes: bool) {
        if !writes {
            // The host sends no event for it.
            return self.host.held.close(ino, false);
        }
        let own = self.host.begin_close(ino);
        self.host.held.close(ino, true);
        own.finish();
    }

    fn flush_inode(&self, ino: Ino) -> Result<()> {
        content::flush(&self.host, ino)
    }

    fn sync_inode(&self, ino: Ino, data_only: bool) -> Result<()> {
        content::sync(&self.host, ino, data_only)
    }

    fn shared(&self) -> Option<&dyn Shared> {
        Some(self)
    }
}

impl Through for HostDirectory {
    fn perform(&self, caller: &Caller, operation: &Operation<'_>) -> Result<Done> {
        self.host.tidy();
        Performer {
            host: &self.host,
            caller,
            xattrs: self.options.xattrs,
            own: &self.host.begin(operation),
        }
        .perform(operation)
    }
}

impl Shared for HostDirectory {
    fn coherence(&self) -> Coherence {
        match self.options.coherence {
            Coherence::Notified { valid, .. } if !self.hears() => Coherence::For(valid),
            coherence => coherence,
        }
    }

    fn attach(&self, changes: Weak<dyn Changes>) {
        thread::start(&self.host, changes);
    }

    fn listen(&self, ino: Ino) {
        self.host.listen(ino);
    }

    fn is_known_by(&self, ino: Ino, dir: Ino, name: &[u8]) -> bool {
        !self.host.places.is_elsewhere(ino, dir, name, None)
    }

    fn hears_of(&self, record: &InodeRecord, since: Instant) -> bool {
        (self.host.watcher.as_ref()).is_some_and(|watcher| watcher.hears(record, since))
    }

    fn is_settled(&self, record: &InodeRecord, at: Instant) -> bool {
        is_settled_since(record.mtime, record.ctime, at)
    }

    fn is_another(&self, ino: Ino) {
        self.host.places.replaced(ino);
    }

    fn read_directories(
        &self,
        dirs: &[Ino],
        most: usize,
        inodes: bool,
    ) -> Vec<Option<WholeDirectory>> {
        self.host.tidy();
        let with = (inodes, self.options.xattrs);
        let most = match (dirs, inodes) {
            ([_], true) => most.min(together::INODES),
            _ => most,
        };
        together::read((&self.host, &self.pool), dirs, most, with)
    }

    fn with_backing(&self, ino: Ino, act: &mut dyn FnMut(BorrowedFd<'_>)) -> Result<()> {
        let (pinned, _) = self.host.pin(ino)?;
        let _acting = self.host.own.act_within_limits()?;
        act(pinned.get(&self.host));
        Ok(())
    }

    fn has_no_size(&self, size: u64) -> bool {
        self.host.has_no_size(size)
    }

    fn read_without_size(&self, ino: Ino, offset: u64, buf: &mut [u8]) -> Result<usize> {
        let file = match self.host.held.reader(ino) {
            Some(open) => open,
            None => self.host.file(ino)?,
        };
        loop {
            match pread(&file, &mut *buf, offset) {
                Err(rustix::io::Errno::INTR) => {}
                read => return read.map_err(errno),
            }
        }
    }

    fn forgotten(&self, ino: Ino) {
        self.host.forget(ino);
    }
}
