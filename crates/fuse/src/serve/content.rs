//! Open files: opening, reading, writing, listing, closing.

use super::{CoreOperations, caller::caller, names::permissions};
use crate::{
    Answer, Context, Opened,
    wire::{
        CopyRequest, CreateRequest, DirSink, InitFlags, OpenReply, OpenRequest, ReadRequest,
        ReleaseRequest, WriteRequest,
    },
};
use holdfast_core::{
    DirEntry, Listing, Node, OpenFile,
    types::{Errno, Fallocate, FileFlags, Ino, OpenFlags, Result, Whence, is_special},
};
use std::time::{Duration, Instant};

/// `__FMODE_EXEC` of the kernel's `fs.h`, in the flags of an open that is for running the file.
const FOR_RUNNING: OpenFlags = OpenFlags::from_bits_retain(0o40);

/// The flag of an open that a file which is only appended to asks for.
fn asked_to_append(raw: i32) -> OpenFlags {
    OpenFlags::from_bits_retain(raw) & OpenFlags::APPEND
}

impl CoreOperations {
    /// Flags of an open file, as this mount's kernel needs them.
    fn open_flags(&self, raw: i32) -> OpenFlags {
        // Each write says whether it appends: the flag can change, and writes from a mapping have
        // an offset even if the file is open for appending.
        let flags = OpenFlags::from_bits_retain(raw).difference(OpenFlags::APPEND);
        if self.has(InitFlags::WRITEBACK_CACHE) && flags.writable() {
            // The kernel fills pages before it changes parts of them.
            return flags.difference(OpenFlags::WRITE_ONLY) | OpenFlags::READ_WRITE;
        }
        flags
    }

    pub(super) fn open_file(
        &self,
        cx: &Context<'_>,
        ino: Ino,
        request: &OpenRequest,
    ) -> Result<Opened> {
        let node = self.fs.node(ino)?;
        if request.kill_suidgid {
            self.drop_privileges(cx, &node)?;
        }
        let flags = self.open_flags(request.flags);
        // The kernel refuses to open a running program for writing, but sends `O_RDONLY | O_TRUNC`
        // before it looks.
        if flags.contains(OpenFlags::TRUNCATE) && !flags.writable() && self.is_running(ino) {
            return Err(Errno::ETXTBSY);
        }
        let asked = flags | asked_to_append(request.flags);
        // The kernel may hold attributes and pages that are older than an open allows. After ESTALE
        // it looks the name up again, which brings new attributes, and opens once more.
        if let Some(revalidator) = &self.revalidator
            && let Err(error) = self.fs.look_before_open(&node)
        {
            revalidator.missed(ino);
            return Err(error);
        }
        let file = self.fs.open(&caller(cx), &node, asked)?;
        file.set_flags(flags);
        self.opened(file, request.flags)
    }

    /// Is this inode open for execution? Scans all open files.
    fn is_running(&self, ino: Ino) -> bool {
        let mut running = false;
        self.handles.each(|handle| {
            let file = &handle.file;
            running |= file.flags().contains(FOR_RUNNING) && file.node().ino() == ino;
        });
        running
    }

    pub(super) fn open_directory(
        &self,
        cx: &Context<'_>,
        ino: Ino,
        request: &OpenRequest,
    ) -> Result<Opened> {
        if self.config.opens_no_directories() {
            return Err(Errno::ENOSYS);
        }
        let flags = OpenFlags::from_bits_retain(request.flags) | OpenFlags::DIRECTORY;
        let file = self.fs.open(&caller(cx), &self.fs.node(ino)?, flags)?;
        let mut reply = OpenReply::KEEP_CACHE;
        reply.set(OpenReply::CACHE_DIR, self.config.cache_listings);
        Ok(Opened {
            fh: self.handles.insert(file),
            flags: reply,
            backing: None,
        })
    }

    pub(super) fn create_file(
        &self,
        cx: &Context<'_>,
        parent: Ino,
        request: &CreateRequest<'_>,
    ) -> Result<Answer> {
        let dir = self.fs.node(parent)?;
        let opened = self.open_flags(request.flags);
        let flags = opened | asked_to_append(request.flags);
        let made = self.create_or_open(cx, &dir, request, flags)?;
        self.names_changed(parent);
        made.set_flags(opened);
        self.created(made, request.flags)
    }

    fn create_or_open(
        &self,
        cx: &Context<'_>,
        dir: &Node,
        request: &CreateRequest<'_>,
        flags: OpenFlags,
    ) -> Result<OpenFile> {
        let (caller, perm) = (caller(cx), permissions(request.mode));
        let create = |flags| self.fs.create(&caller, dir, request.name, perm, flags);
        if !request.kill_suidgid {
            return create(flags);
        }
        // Truncating an existing file clears its set-id bits; a new file keeps them.
        match create(flags | OpenFlags::EXCLUSIVE) {
            Err(Errno::EEXIST) if !flags.contains(OpenFlags::EXCLUSIVE) => {
                let file = create(flags)?;
                self.drop_privileges(cx, file.node())?;
                Ok(file)
            }
            made => made,
        }
    }

    pub(super) fn create_unnamed(
        &self,
        cx: &Context<'_>,
        parent: Ino,
        request: &CreateRequest<'_>,
    ) -> Result<Answer> {
        let dir = self.fs.node(parent)?;
        let perm = permissions(request.mode);
        let flags = self.open_flags(request.flags);
        let file = self.fs.tmpfile(&caller(cx), &dir, perm, flags)?;
        self.created(file, request.flags)
    }

    fn created(&self, file: OpenFile, raw: i32) -> Result<Answer> {
        let node = file.node().clone();
        let opened = self.opened(file, raw)?;
        Ok(Answer::Created(self.give(&node), opened))
    }

    pub(super) fn close(&self, request: &ReleaseRequest) -> Result<()> {
        if request.fh == 0 {
            return Ok(());
        }
        let handle = self.handles.remove(request.fh)?;
        self.backings.released(&self.fs, &handle.file);
        self.release_handle_locks(request, &handle);
        if handle.holds_locks() {
            self.closing.released(request.fh);
        }
        Ok(())
    }

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
                    let is_notified =
                        since.is_some_and(|since| self.fs.is_notified(entry.ino, since));
                    let taken = sink.push_plus(entry.name, &attr, entry.cookie, is_notified);
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
