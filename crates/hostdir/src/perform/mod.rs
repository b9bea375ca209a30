//! Operations of the core as system calls, by the calling thread.
//!
//! The inode is found first, with this process's credentials. It is changed with the caller's
//! credentials, and its new state is read with this process's. Names are relative to open
//! directories and links are never followed; files are reached by an `O_PATH` descriptor.

mod attributes;
pub(crate) mod content;
mod dispatch;
mod make;
mod names;
mod open;

use holdfast_core::store::{Done, Touched, Version};
use holdfast_core::types::{Caller, Ino, Result};
use rustix::fs::Statx;
use std::os::fd::BorrowedFd;
use std::time::Instant;

use crate::acting::Acting;
use crate::host::Host;
use crate::identity::time;
use crate::record::record;
use crate::watcher::operation::OwnChange;

/// An operation's host and caller.
#[derive(Clone, Copy)]
pub(crate) struct Performer<'h> {
    pub(crate) host: &'h Host,
    pub(crate) caller: &'h Caller,
    /// Are extended attributes shown?
    pub(crate) xattrs: bool,
    /// Recognizes the events that this operation causes.
    pub(crate) own: &'h OwnChange<'h>,
}

impl<'h> Performer<'h> {
    /// Takes the caller's credentials.
    fn act(self) -> Result<Acting<'h>> {
        self.host.own.act_as(self.caller)
    }

    /// Changes an inode with the caller's credentials.
    fn change(self, ino: Ino, act: impl FnOnce(BorrowedFd<'_>) -> Result<()>) -> Result<Done> {
        let (pinned, before) = self.host.pin(ino)?;
        let file = pinned.get(self.host);
        let acting = self.act()?;
        act(file)?;
        drop(acting);
        Ok(self.done(ino, &before, file))
    }

    /// May an inode have extended attributes? They are loaded on demand.
    fn may_have_xattrs(self) -> bool {
        self.xattrs && self.host.may_have_attributes()
    }

    /// The state of an open inode after the operation, and `before` it. `None`: it cannot be read.
    fn touched(self, ino: Ino, before: Option<&Statx>, open: BorrowedFd<'_>) -> Option<Touched> {
        let stat = self.host.stat(open).ok()?;
        let parent = self.host.places.get(ino).map_or(Ino::ROOT, |it| it.parent);
        let mut record = record(ino, parent, &stat, self.may_have_xattrs());
        if self.host.held.nameless.get(ino).is_some()
            || stat.stx_nlink == 0 && !self.host.is_named(ino)
        {
            record.nlink = 0;
        }
        Some(Touched {
            before: before.map(version),
            record,
        })
    }

    /// The result of an operation on one inode, with its [state](Self::touched).
    fn done(self, ino: Ino, before: &Statx, open: BorrowedFd<'_>) -> Done {
        let mut done = self.changed();
        done.touched.extend(self.touched(ino, Some(before), open));
        done
    }

    /// The host was changed: what is read from now on includes the change.
    fn changed(self) -> Done {
        self.own.finish();
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
