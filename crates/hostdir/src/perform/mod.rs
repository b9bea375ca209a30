//! Operations, as system calls of the thread that wants them.
//!
//! What is changed is found first, as this process; the change is made as the caller; and what became of it is looked at as this process
//! again. Names go relative to directories that are open, and never through a link; files by a descriptor that names them.

mod attributes;
mod content;
mod make;
mod names;
mod open;

use holdfast_core::store::{Done, Operation, Touched, Version};
use holdfast_core::types::{Caller, Ino, Result};
use rustix::fs::Statx;
use std::os::fd::BorrowedFd;
use std::time::Instant;

use crate::acting::Acting;
use crate::host::Host;
use crate::identity::time;
use crate::record::record;
use crate::told::OwnChange;

/// An operation's host and caller.
#[derive(Clone, Copy)]
pub(crate) struct Performer<'h> {
    pub(crate) host: &'h Host,
    pub(crate) caller: &'h Caller,
    /// Are extended attributes shown?
    pub(crate) xattrs: bool,
    /// What tells its own events from those of others.
    pub(crate) own: &'h OwnChange<'h>,
}

impl<'h> Performer<'h> {
    /// Does what is asked for.
    ///
    /// # Errors
    /// Those of the system calls.
    pub(crate) fn perform(self, operation: &Operation<'_>) -> Result<Done> {
        match *operation {
            Operation::Make {
                dir,
                name,
                new,
                open,
            } => self.make(dir, name, &new, open),
            Operation::MakeUnnamed { dir, new, linkable } => self.make_unnamed(dir, &new, linkable),
            Operation::Link { ino, dir, name } => self.link(ino, dir, name),
            Operation::Remove {
                dir,
                name,
                directory,
            } => self.remove(dir, name, directory),
            Operation::Rename { from, to, flags } => self.rename(from, to, flags),
            Operation::SetAttributes { ino, set } => self.set(ino, &set),
            Operation::SetFlags {
                ino,
                flags,
                project,
            } => self.set_flags(ino, flags, project),
            Operation::Resize { ino, size } => self.resize(ino, size),
            Operation::Write { ino, offset, bufs } => self.write(ino, offset, bufs),
            Operation::Allocate {
                ino,
                mode,
                offset,
                len,
            } => self.allocate(ino, mode, offset, len),
            Operation::Copy { from, to, len } => self.copy(from, to, len),
            Operation::SetXattr {
                ino,
                name,
                value,
                how,
                ..
            } => self.set_xattr(ino, name, value, how),
            Operation::RemoveXattr { ino, name } => self.remove_xattr(ino, name),
            Operation::Sync { ino, data_only } => self.sync(ino, data_only),
            Operation::Flush { ino } => self.flush(ino),
        }
    }

    /// From now on this thread acts as the caller.
    fn act(self) -> Result<Acting<'h>> {
        self.host.own.act_as(self.caller)
    }

    /// What became of an inode that is open, and was so before. `None`: that cannot be told here.
    fn touched(self, ino: Ino, before: Option<&Statx>, open: BorrowedFd<'_>) -> Option<Touched> {
        let stat = self.host.stat(open).ok()?;
        let parent = self.host.places.get(ino).map_or(Ino::ROOT, |it| it.parent);
        // It may have some: they are asked for when they are needed.
        let xattrs = self.xattrs && self.host.may_have_attributes();
        let mut record = record(ino, parent, &stat, xattrs);
        let lost = || stat.stx_nlink == 0 && !self.host.is_named(ino);
        if self.host.held.nameless(ino).is_some() || lost() {
            record.nlink = 0;
        }
        Some(Touched {
            before: before.map(version),
            record,
        })
    }

    /// As [`touched`](Self::touched), of the one inode of an operation that was done now.
    fn done(self, ino: Ino, before: &Statx, open: BorrowedFd<'_>) -> Done {
        let mut done = self.changed();
        done.touched.extend(self.touched(ino, Some(before), open));
        done
    }

    /// It is done on the host. What is looked at from now on has it.
    fn changed(self) -> Done {
        self.own.settle();
        Done::at(Instant::now())
    }
}

fn version(stat: &Statx) -> Version {
    Version {
        size: stat.stx_size,
        mtime: time(stat.stx_mtime),
        ctime: time(stat.stx_ctime),
    }
}
