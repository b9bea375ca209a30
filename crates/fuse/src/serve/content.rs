//! Open files: opening, reading, writing, listing, closing.

use super::{CoreOperations, caller::caller};
use crate::{
    Context, Opened,
    wire::{
        CopyRequest, CreateRequest, DirPlusSink, DirSink, OpenReply, OpenRequest, ReadRequest,
        ReleaseRequest, WriteRequest,
    },
};
use holdfast_core::{
    DirEntry, Listing, Node, OpenFile,
    types::{Attr, Errno, Fallocate, FileFlags, Ino, OpenFlags, Result, Whence, is_special},
};
use std::time::Instant;

/// `__FMODE_EXEC` of the kernel's `fs.h`, in the flags of an open that is for running the file.
const FOR_RUNNING: OpenFlags = OpenFlags::from_bits_retain(0o40);

/// The flag of an open that a file which is only appended to asks for.
fn asked_to_append(raw: i32) -> OpenFlags {
    OpenFlags::from_bits_retain(raw) & OpenFlags::APPEND
}

impl CoreOperations {
    /// Flags of an open file, as this mount's kernel needs them.
    fn open_flags(&self, raw: i32) -> OpenFlags {
        // Whether a write appends is asked of each write: the flag can change, and what comes
        // from a mapping is placed even in a file open for appending.
        let flags = OpenFlags::from_bits_retain(raw).difference(OpenFlags::APPEND);
        if self.is_writeback() && flags.writable() {
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
        if self.no_open {
            return Err(Errno::ENOSYS);
        }
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
        // The kernel believes attributes and pages that are older than an open file may be. After
        // ESTALE it looks the name up again, which brings new attributes, and then opens. The second
        // time nothing is asked.
        if let Some(again) = &self.again
            && let Err(error) = self.fs.look_before_open(&node)
        {
            again.missed(ino);
            return Err(error);
        }
        let file = self.fs.open(&caller(cx), &node, asked)?;
        file.set_flags(flags);
        self.opened(file, request.flags)
    }

    /// Is a file of which this is the number open to be run? Looks at all that are open.
    fn is_running(&self, ino: Ino) -> bool {
        let mut running = false;
        self.handles.each(|handle| {
            let file = &handle.file;
            running |= file.flags().contains(FOR_RUNNING) && file.node().ino() == ino;
        });
        running
    }

    /// For a kernel that does not open: a file for one operation.
    pub(super) fn open_for_once(&self, ino: Ino) -> Result<OpenFile> {
        let node = self.fs.node(ino)?;
        let writable = !node.kind().is_dir() && !self.fs.options().read_only;
        let mut flags = OpenFlags::empty();
        flags.set(OpenFlags::READ_WRITE, writable);
        self.fs.open_unseen(node, flags)
    }

    pub(super) fn open_directory(
        &self,
        cx: &Context<'_>,
        ino: Ino,
        request: &OpenRequest,
    ) -> Result<Opened> {
        if self.no_opendir {
            return Err(Errno::ENOSYS);
        }
        let flags = OpenFlags::from_bits_retain(request.flags) | OpenFlags::DIRECTORY;
        let file = self.fs.open(&caller(cx), &self.fs.node(ino)?, flags)?;
        let mut reply = OpenReply::KEEP_CACHE;
        reply.set(OpenReply::CACHE_DIR, self.cache_listings);
        Ok(Opened {
            fh: self.handles.insert(file)?,
            flags: reply,
            backing: None,
        })
    }

    pub(super) fn create_file(
        &self,
        cx: &Context<'_>,
        parent: Ino,
        request: &CreateRequest<'_>,
    ) -> Result<(Attr, Opened)> {
        let dir = self.fs.node(parent)?;
        let perm = (request.mode & 0o7777) as u16;
        let opened = self.open_flags(request.flags);
        let flags = opened | asked_to_append(request.flags);
        let made = self.create_or_open(cx, &dir, request, perm, flags)?;
        self.names_changed(parent);
        made.set_flags(opened);
        self.created(made, request.flags)
    }

    fn create_or_open(
        &self,
        cx: &Context<'_>,
        dir: &Node,
        request: &CreateRequest<'_>,
        perm: u16,
        flags: OpenFlags,
    ) -> Result<OpenFile> {
        let who = caller(cx);
        if !request.kill_suidgid {
            return self.fs.create(&who, dir, request.name, perm, flags);
        }
        // Set-id bits go with the truncation of a file that exists, not from one made just now.
        match self
            .fs
            .create(&who, dir, request.name, perm, flags | OpenFlags::EXCLUSIVE)
        {
            Err(Errno::EEXIST) if !flags.contains(OpenFlags::EXCLUSIVE) => {
                let file = self.fs.create(&who, dir, request.name, perm, flags)?;
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
    ) -> Result<(Attr, Opened)> {
        let dir = self.fs.node(parent)?;
        let perm = (request.mode & 0o7777) as u16;
        let flags = self.open_flags(request.flags);
        let file = self.fs.tmpfile(&caller(cx), &dir, perm, flags)?;
        self.created(file, request.flags)
    }

    fn created(&self, file: OpenFile, raw: i32) -> Result<(Attr, Opened)> {
        let node = file.node().clone();
        let opened = self.opened(file, raw)?;
        Ok((self.give(&node), opened))
    }

    pub(super) fn close(&self, request: &ReleaseRequest) -> Result<()> {
        if request.fh == 0 {
            return Ok(());
        }
        let handle = self.handles.remove(request.fh)?;
        self.backings.released(&self.fs, &handle.file);
        self.release_handle_locks(handle.file.node(), &handle);
        if request.flock_unlock {
            self.release_flock(handle.file.node(), request.lock_owner);
        }
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
            if !appends || request.from_cache || self.is_writeback() {
                return self
                    .fs
                    .write(&caller(cx), file, request.offset, request.data);
            }
            let (offset, written) = self.fs.append(&caller(cx), file, request.data)?;
            if offset != request.offset {
                // Somebody appended past the mount: the kernel's pages hold this elsewhere.
                self.notifier.invalidate_inode(ino, 0, 0);
            }
            Ok(written)
        })
    }

    /// Writes what the kernel's pages have of a file that is only appended to: they hold its old end as well, where what was
    /// appended does not begin with a page. What was stored there through a mapping stays out.
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

    pub(super) fn list(
        &self,
        ino: Ino,
        request: &ReadRequest,
        sink: &mut DirSink<'_>,
    ) -> Result<()> {
        self.with_listing(ino, request, |listing| {
            self.fs.read_dir(listing, request.offset, &mut |entry| {
                sink.push(entry.name, entry.ino, entry.kind, entry.cookie)
            })
        })?;
        self.listed(ino, request, sink.len() == 0);
        Ok(())
    }

    /// What the kernel may keep of a listing is remembered. `is_end`: the reply is empty.
    fn listed(&self, ino: Ino, request: &ReadRequest, is_end: bool) {
        if self.cache_listings {
            let listings = &self.kept_listings;
            listings.gives(&self.notifier, ino, request.offset, is_end);
        }
    }

    /// Lists with the attributes of each directory, and of each file of which the kernel does not have them, if this caller
    /// needs them ([`Callers`](super::callers::Callers)).
    pub(super) fn list_plus(
        &self,
        cx: &Context<'_>,
        ino: Ino,
        request: &ReadRequest,
        sink: &mut DirPlusSink<'_>,
    ) -> Result<()> {
        let plan = self.callers.plan(cx.pid, request.offset == 0);
        let (mut given, mut tried) = (0, false);
        let since = self.is_told.then(Instant::now);
        let wants = |entry: &DirEntry<'_>| plan.attributes || entry.kind.is_dir();
        let listed = self.with_listing(ino, request, |listing| {
            self.fs
                .read_dir_plus_of(listing, request.offset, &wants, &mut |entry, attr| {
                    let bare = |sink: &mut DirPlusSink<'_>| {
                        sink.push_name(entry.name, entry.ino, entry.kind, entry.cookie)
                    };
                    if is_special(entry.name) {
                        return bare(sink);
                    }
                    // The kernel gets a use of it together with its attributes; else neither.
                    let node = match attr.map(|attr| attr.and_then(|_| self.fs.node(entry.ino))) {
                        None => return bare(sink),
                        Some(Ok(node)) => node,
                        // Gone since it was listed.
                        Some(Err(Errno::ESTALE)) => return true,
                        Some(Err(_)) => return bare(sink),
                    };
                    if !entry.kind.is_dir() {
                        // It is asked for each time.
                        if self.backings.is_written(entry.ino) {
                            return bare(sink);
                        }
                        // It has them already, and would forget its ACL with each telling. But it stops believing the
                        // name of a directory whose permissions change.
                        if self.keeps_attributes && node.is_known_by_number() {
                            return bare(sink);
                        }
                        // A hidden file may stay unasked by a program that asks for all others.
                        if plan.trial && !tried && !entry.name.starts_with(b".") {
                            tried = bare(sink);
                            return tried;
                        }
                    }
                    // Read anew, with the use that the kernel is told by.
                    let attr = self.give(&node);
                    let is_heard = since.is_some_and(|since| self.fs.is_heard(entry.ino, since));
                    let taken = sink.push_heard(entry.name, &attr, entry.cookie, is_heard);
                    if taken {
                        given += usize::from(!entry.kind.is_dir());
                    } else {
                        self.fs.forget(entry.ino, 1);
                    }
                    taken
                })
        });
        self.callers.gave(cx.pid, plan, given, tried);
        listed?;
        self.listed(ino, request, sink.len() == 0);
        Ok(())
    }

    /// Goes on with the listing of an open directory, or, where the kernel opens none, of the directory itself.
    fn with_listing(
        &self,
        ino: Ino,
        request: &ReadRequest,
        list: impl FnOnce(Listing<'_>) -> Result<()>,
    ) -> Result<()> {
        if request.fh != 0 {
            return list((&self.handle(request.fh)?.file).into());
        }
        if !self.no_opendir {
            return Err(Errno::EBADF);
        }
        let node = self.fs.node(ino)?;
        let flags = OpenFlags::from_bits_retain(request.flags);
        self.listing_ends
            .with(ino, |end| list(Listing::new(&node, flags, end)))
    }

    pub(super) fn sync_file(&self, ino: Ino, fh: u64, data_only: bool) -> Result<()> {
        self.with_file(ino, fh, |file| self.fs.fsync(file, data_only))
    }

    /// A descriptor is closed: its program is told of what was lost, if it was not before.
    pub(super) fn flush_file(&self, fh: u64) -> Result<()> {
        match self.handle(fh) {
            Ok(handle) => self.fs.flush(&handle.file),
            // Of no open file there is nothing to tell.
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
