//! Opening, creating and closing files and directories.

use super::{CoreOperations, caller::caller, names::permissions};
use crate::{
    Answer, Context, KeptContent, Opened,
    wire::{CreateRequest, InitFlags, OpenReply, OpenRequest, ReleaseRequest},
};
use holdfast_core::{
    Node, OpenFile,
    types::{Errno, Ino, OpenFlags, Result},
};

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
        if self.revalidator.is_some() {
            self.fs.look_before_open(&node)?;
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
        hop!();
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
        hop!();
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
        hop!();
        let node = file.node().clone();
        let opened = self.opened(file, raw)?;
        Ok(Answer::Created(self.give(&node), opened))
    }

    /// Stores an open regular file; the reply to OPEN with these flags.
    fn opened(&self, file: OpenFile, raw: i32) -> Result<Opened> {
        hop!();
        let fh = self.handles.insert(file);
        if let Some(revalidator) = &self.revalidator {
            revalidator.opened();
        }
        let handle = self.handles.get(fh)?;
        let backing = self.backings.opened(&self.fs, &handle.file);
        let (file, passed) = (&handle.file, backing.is_some());
        let mut flags = OpenReply::PARALLEL_DIRECT_WRITES;
        // The kernel reads its page cache only up to the file's size.
        let has_no_size = !file.flags().writable() && self.fs.has_no_size(file.node());
        let kept = self.config.content != KeptContent::Mapped && !has_no_size;
        flags.set(OpenReply::PASSTHROUGH, passed);
        // If an access time update is due, the kernel drops its pages so that the first read is a
        // request.
        let is_unseen = !self.fs.is_access_time_due(file);
        // The notification that drops the pages of before a change may still be queued.
        let is_old = self.revalidator.is_some() && self.notifier.is_queued(file.node().ino());
        let keeps = kept && !passed && is_unseen && !is_old;
        flags.set(OpenReply::KEEP_CACHE, keeps);
        // The kernel sends an append through its page cache page by page: others could append in
        // between. Direct I/O sends it in one piece.
        let appends = raw & libc::O_APPEND != 0 && self.fs.sees_bypass();
        flags.set(OpenReply::DIRECT_IO, (!kept || appends) && !passed);
        // FLUSH releases record locks, and reports failed writeback.
        let tells = self.blocks && file.flags().writable();
        flags.set(
            OpenReply::NOFLUSH,
            !tells && !self.has(InitFlags::POSIX_LOCKS),
        );
        Ok(Opened { fh, flags, backing })
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
}
