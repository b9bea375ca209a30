//! The content of open files and directories: reading, writing, listing.

use super::{CoreOperations, caller::caller};
use crate::{
    Context,
    wire::{CopyRequest, DirSink, InitFlags, ReadRequest, WriteRequest},
};
use holdfast_core::{
    DirEntry, Listing, OpenFile,
    types::{Errno, Fallocate, FileFlags, Ino, OpenFlags, Result, Whence, is_special},
};
use std::time::{Duration, Instant};

impl CoreOperations {
    pub(super) fn read_file(
        &self,
        ino: Ino,
        request: &ReadRequest,
        out: &mut [u8],
    ) -> Result<usize> {
        self.with_file(ino, request.fh, |file| {
            // Told with each read: fcntl(2) can change it, and there may have been no OPEN.
            let flags = OpenFlags::from_bits_retain(request.flags) & OpenFlags::NOATIME;
            if !file.flags().contains(flags) {
                file.set_flags(file.flags() | flags);
            }
            // The kernel keeps what it reads, unless the program asked it not to.
            match request.flags & libc::O_DIRECT {
                0 => self.fs.read_once(file, request.offset, out),
                _ => self.fs.read(file, request.offset, out),
            }
        })
    }

    pub(super) fn write_file(
        &self,
        cx: &Context<'_>,
        ino: Ino,
        request: &WriteRequest<'_>,
    ) -> Result<usize> {
        hop!();
        self.with_file(ino, request.fh, |file| {
            if request.kill_suidgid {
                self.drop_privileges(cx, file.node())?;
            }
            let appends = request.flags & libc::O_APPEND != 0;
            if request.from_cache && self.fs.flags(file.node()).contains(FileFlags::APPEND) {
                return self.write_back_appended(cx, file, request);
            }
            if !appends || request.from_cache || self.has(InitFlags::WRITEBACK_CACHE) {
                return self
                    .fs
                    .write(&caller(cx), file, request.offset, request.data);
            }
            let (offset, written) = self.fs.append(&caller(cx), file, request.data)?;
            if offset != request.offset {
                // Another process appended past the mount, so the kernel's pages have this data at
                // a wrong offset.
                self.notifier.invalidate_inode(ino, 0, 0);
            }
            Ok(written)
        })
    }

    /// Writes dirty pages of an append-only file. A page also holds the old end of the file, if the
    /// appended data does not begin with a page. Stores to the old part through a mapping are
    /// dropped.
    fn write_back_appended(
        &self,
        cx: &Context<'_>,
        file: &OpenFile,
        request: &WriteRequest<'_>,
    ) -> Result<usize> {
        let size = self.fs.getattr(file.node()).size;
        let old = usize::try_from(size.saturating_sub(request.offset)).unwrap_or(usize::MAX);
        match request.data.get(old..) {
            None | Some([]) => Err(Errno::EPERM),
            Some(new) => {
                let offset = request.offset + old as u64;
                Ok(old + self.fs.write(&caller(cx), file, offset, new)?)
            }
        }
    }

    /// Records what the kernel may cache of a listing. `is_end`: the reply is empty.
    pub(super) fn listed(&self, ino: Ino, request: &ReadRequest, is_end: bool) {
        if self.config.cache_listings {
            let listings = &self.kept_listings;
            listings.gives(&self.notifier, ino, request.offset, is_end);
        }
    }

    /// Lists with the attributes of each directory. Files have them too if the kernel does not know
    /// them and this caller needs them ([`Callers`](super::callers::Callers)).
    pub(super) fn list_plus(
        &self,
        cx: &Context<'_>,
        ino: Ino,
        request: &ReadRequest,
        sink: &mut DirSink<'_>,
    ) -> Result<()> {
        let (names, attributes) = (self.config.entry_timeout, self.config.attr_timeout);
        let keeps_attributes = names.min(attributes) == Duration::MAX;
        let plan = self.callers.plan(cx.pid, request.offset == 0);
        let (mut given, mut tried) = (0, false);
        let since = self.config.notified_timeout.map(|_| Instant::now());
        let wants = |entry: &DirEntry<'_>| plan.attributes || entry.kind.is_dir();
        let listed = self.with_listing(ino, request, |listing| {
            self.fs
                .read_dir_plus_of(listing, request.offset, &wants, &mut |entry, attr| {
                    let bare = |sink: &mut DirSink<'_>| {
                        sink.push(entry.name, entry.ino, entry.kind, entry.cookie)
                    };
                    if is_special(entry.name) {
                        return bare(sink);
                    }
                    // With attributes the kernel is given a reference, without attributes none.
                    let node = match attr.map(|attr| attr.and_then(|_| self.fs.node(entry.ino))) {
                        None => return bare(sink),
                        Some(Ok(node)) => node,
                        // Gone since it was listed.
                        Some(Err(Errno::ESTALE)) => return true,
                        Some(Err(_)) => return bare(sink),
                    };
                    if !entry.kind.is_dir() {
                        // The kernel asks for its attributes each time.
                        if self.backings.is_written(entry.ino) {
                            return bare(sink);
                        }
                        // The kernel has these attributes, and would drop the file's ACL with each
                        // new copy. A directory is listed with attributes all the same: the kernel
                        // stops trusting its name when its permissions change.
                        if keeps_attributes && node.is_known_by_number() {
                            return bare(sink);
                        }
                        // Not a hidden file: a program may skip those and ask for all others.
                        if plan.trial && !tried && !entry.name.starts_with(b".") {
                            tried = bare(sink);
                            return tried;
                        }
                    }
                    // Read again, together with the reference that the kernel is given.
                    let attr = self.give(&node);
                    let notified_for =
                        since.and_then(|since| self.fs.notified_for(entry.ino, since));
                    let taken = sink.push_plus(entry.name, &attr, entry.cookie, notified_for);
                    if taken {
                        given += usize::from(!entry.kind.is_dir());
                    } else {
                        self.fs.forget(entry.ino, 1);
                    }
                    taken
                })
        });
        self.callers.gave(cx.pid, plan, given, tried);
        listed
    }

    /// Continues the listing of an open directory, or of the inode itself where the kernel sends no
    /// OPENDIR.
    pub(super) fn with_listing(
        &self,
        ino: Ino,
        request: &ReadRequest,
        list: impl FnOnce(Listing<'_>) -> Result<()>,
    ) -> Result<()> {
        if request.fh != 0 {
            return list((&self.handles.get(request.fh)?.file).into());
        }
        if !self.config.opens_no_directories() {
            return Err(Errno::EBADF);
        }
        let node = self.fs.node(ino)?;
        let flags = OpenFlags::from_bits_retain(request.flags);
        self.listing_bounds
            .with(ino, |end| list(Listing::new(&node, flags, end)))
    }

    /// Reports a failed writeback that was not reported before, as close(2) of a descriptor should.
    pub(super) fn flush_file(&self, fh: u64) -> Result<()> {
        match self.handles.get(fh) {
            Ok(handle) => self.fs.flush(&handle.file),
            // No open file, so no error to report.
            Err(_) => Ok(()),
        }
    }

    pub(super) fn allocate(
        &self,
        cx: &Context<'_>,
        ino: Ino,
        fh: u64,
        mode: u32,
        (offset, length): (u64, u64),
    ) -> Result<()> {
        let mode = Fallocate::from_bits(mode.cast_signed()).ok_or(Errno::EOPNOTSUPP)?;
        self.with_file(ino, fh, |file| {
            self.content_changes(cx, file)?;
            self.fs.fallocate(&caller(cx), file, mode, offset, length)
        })
    }

    pub(super) fn seek(&self, ino: Ino, fh: u64, offset: u64, whence: u32) -> Result<u64> {
        let whence = match whence.cast_signed() {
            libc::SEEK_DATA => Whence::Data,
            libc::SEEK_HOLE => Whence::Hole,
            _ => return Err(Errno::EINVAL),
        };
        self.with_file(ino, fh, |file| self.fs.seek(file, offset, whence))
    }

    pub(super) fn copy_range(&self, cx: &Context<'_>, ino: Ino, copy: &CopyRequest) -> Result<u64> {
        if copy.flags != 0 {
            return Err(Errno::EINVAL);
        }
        let who = caller(cx);
        self.with_file(ino, copy.fh_in, |from| {
            self.with_file(copy.ino_out, copy.fh_out, |to| {
                self.content_changes(cx, to)?;
                let (start, target) = (copy.offset_in, copy.offset_out);
                self.fs
                    .copy_file_range(&who, from, start, to, target, copy.len)
            })
        })
    }
}
