//! Making inodes and names.

use std::cell::Cell;

use super::ThroughStore;
use super::names::enter;
use super::take_in::Changed;
use crate::inode::{DirectoryBody, Inode, Numbered as _};
use crate::namespace::NewInode;
use crate::node::Node;
use crate::store::{New, Operation};
use crate::types::{Caller, Errno, Result};
use crate::watch::EventMask;

impl ThroughStore<'_> {
    /// Makes an inode and its name; `open`: a file that is opened for writing as well.
    ///
    /// # Errors
    /// Those of [`FileSystem::mknod`](crate::FileSystem::mknod); what the store answers.
    pub(crate) fn make(
        self,
        who: &Caller,
        (dir, body): (&Inode, &DirectoryBody),
        name: &[u8],
        new_inode: NewInode<'_>,
        open: bool,
    ) -> Result<Node> {
        let core = self.core;
        if let Err(refused) = core.may_make(who, dir, new_inode) {
            return Err(match core.child(dir, body, name) {
                Ok(_) => Errno::EEXIST,
                Err(_) => refused,
            });
        }
        let change = self.begin(dir, body);
        let evictions = core.evictions.snapshot();
        let done = self.with_new(who, dir, new_inode, |new| {
            let make = Operation::Make {
                dir: dir.ino(),
                name,
                new,
                open,
            };
            self.perform(who, &make)
        });
        let done = done.inspect_err(|error| change.refused(self, name, *error))?;
        let entry = done.entry.ok_or(Errno::EUCLEAN)?;
        let cookie = Cell::new(None);
        let taken = self
            .end(change, &done, |names| {
                cookie.set(enter(names, name, entry));
                cookie.get().is_some()
            })
            .and_then(|()| match self.take_in_entry(&done, &evictions)? {
                Some(node) => Ok(node),
                None => {
                    let found = core.ask_by_name(self.shared, dir, name)?;
                    found.ok_or_else(|| core.absent())
                }
            });
        let node = match taken {
            Ok(node) if node.ino() == entry.0 => node,
            // Another has its name by now.
            Ok(_) if !open => core.node(entry.0)?,
            other => {
                if open {
                    self.store.close(entry.0, true);
                }
                return Err(other.err().unwrap_or(Errno::ESTALE));
            }
        };
        if let Some(cookie) = cookie.get() {
            node.inode().write().home = (dir.ino(), cookie);
        }
        core.notify_name(
            dir.ino(),
            EventMask::CREATE,
            name,
            new_inode.kind.is_dir(),
            0,
        );
        Ok(node)
    }

    /// Has something done with what a new inode is to be.
    fn with_new<R>(
        self,
        who: &Caller,
        dir: &Inode,
        new_inode: NewInode<'_>,
        act: impl FnOnce(New<'_>) -> R,
    ) -> R {
        let inherited = self.core.inherited(who, dir, new_inode);
        let acls = inherited.acls();
        act(New {
            kind: new_inode.kind,
            asked: new_inode.perm,
            perm: inherited.perm,
            gid: inherited.gid,
            acls: [acls[0].as_deref(), acls[1].as_deref()],
            rdev: new_inode.rdev,
            target: new_inode.target,
        })
    }

    /// Makes a file without a name, which is opened for writing.
    ///
    /// # Errors
    /// What the store answers.
    pub(crate) fn make_unnamed(
        self,
        who: &Caller,
        dir: &Inode,
        new_inode: NewInode<'_>,
        linkable: bool,
    ) -> Result<Node> {
        let core = self.core;
        let evictions = core.evictions.snapshot();
        let done = self.with_new(who, dir, new_inode, |new| {
            let make = Operation::MakeUnnamed {
                dir: dir.ino(),
                new,
                linkable,
            };
            self.perform(who, &make)
        })?;
        let (ino, _) = done.entry.ok_or(Errno::EUCLEAN)?;
        let taken = self.take_in_entry(&done, &evictions);
        let taken = taken.and_then(|node| node.map_or_else(|| core.node(ino), Ok));
        let node = taken.inspect_err(|_| self.store.close(ino, true))?;
        node.inode().write().linkable = linkable;
        Ok(node)
    }

    /// Gives an inode one more name.
    ///
    /// # Errors
    /// Those of [`FileSystem::link`](crate::FileSystem::link); what the store answers.
    pub(crate) fn link(
        self,
        who: &Caller,
        node: &Node,
        (dir, body): (&Inode, &DirectoryBody),
        name: &[u8],
    ) -> Result<()> {
        let core = self.core;
        let allowed = || {
            core.may_create(who, dir)?;
            node.inode().allow_change()?;
            if node.kind().is_dir() {
                return Err(Errno::EPERM);
            }
            Ok(())
        };
        if let Err(refused) = allowed() {
            return Err(match core.child(dir, body, name) {
                Ok(_) => Errno::EEXIST,
                Err(_) => refused,
            });
        }
        let meta = node.inode().meta();
        if meta.nlink == 0 && !meta.linkable {
            return Err(Errno::ENOENT);
        }
        let change = self.begin(dir, body);
        let ino = node.ino();
        let link = Operation::Link {
            ino,
            dir: dir.ino(),
            name,
        };
        let done = self.perform(who, &link);
        let done = done.inspect_err(|error| change.refused(self, name, *error))?;
        let (touched, at) = self.touched(&done, ino)?;
        self.take_in(node.inode(), &touched, at, Changed::Nothing)?;
        let cookie = Cell::new(None);
        self.end(change, &done, |names| {
            cookie.set(enter(names, name, (ino, node.kind())));
            cookie.get().is_some()
        })?;
        if let Some(cookie) = cookie.get() {
            node.inode().write().home = (dir.ino(), cookie);
        }
        core.doom_if_revoked(node);
        core.watches.notify(ino, EventMask::ATTRIB, None, 0);
        core.notify_name(dir.ino(), EventMask::CREATE, name, false, 0);
        Ok(())
    }
}
