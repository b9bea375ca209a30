//! Creation of inodes and names.

use super::{Performed, ThroughStore};
use crate::by_number::find_node;
use crate::core::no_entry;
use crate::inode::{DirectoryBody, Inode, Numbered as _};
use crate::namespace::NewInode;
use crate::namespace::new_inode::inherited;
use crate::node::Node;
use crate::shared::by_name::ask_by_name;
use crate::store::{New, Operation};
use crate::types::{Caller, Errno, Result};

impl<'c> ThroughStore<'c> {
    /// Creates an inode, with its name if it gets one. `open`: it is a file, and is opened for
    /// writing as well.
    ///
    /// # Errors
    /// Those of the store.
    pub(crate) fn make(
        self,
        who: &Caller,
        dir: &Inode,
        name: Option<&[u8]>,
        new_inode: NewInode<'_>,
        open: bool,
    ) -> Result<Performed<'c>> {
        with_inherited(who, dir, new_inode, |new| {
            let dir = dir.ino();
            let operation = match name {
                Some(name) => Operation::Make {
                    dir,
                    name,
                    new,
                    open,
                },
                None => Operation::MakeUnnamed {
                    dir,
                    new,
                    linkable: new_inode.linkable,
                },
            };
            self.perform(who, &operation)
        })
    }
}

/// Does something with the attributes of a new inode in a directory.
pub(crate) fn with_inherited<R>(
    who: &Caller,
    dir: &Inode,
    new_inode: NewInode<'_>,
    act: impl FnOnce(New<'_>) -> R,
) -> R {
    let inherited = inherited(who, dir, new_inode);
    let acls = inherited.acls();
    act(New {
        kind: new_inode.kind,
        asked: new_inode.perm,
        perm: inherited.perm,
        gid: inherited.gid,
        acls: [acls[0].as_deref(), acls[1].as_deref()],
        flags: inherited.flags,
        project: inherited.project,
        rdev: new_inode.rdev,
        target: new_inode.target,
    })
}

impl Performed<'_> {
    /// The inode that the operation created with this name; `open`: it was opened as well.
    ///
    /// # Errors
    /// `ESTALE`: another inode has the name by now, and the new file was to be opened. Those of the
    /// store.
    pub(crate) fn take_in_made(
        &self,
        (dir, body): (&Inode, &DirectoryBody),
        name: &[u8],
        open: bool,
    ) -> Result<Node> {
        let core = self.through.core;
        let entry = self.done.entry.ok_or(Errno::EUCLEAN)?;
        let entered = self.enter_name((dir, body), name, entry);
        let taken = entered.and_then(|cookie| {
            let node = match self.take_in_entry()? {
                Some(node) => node,
                None => {
                    let found = ask_by_name(core, self.through.shared, dir, name)?;
                    found.ok_or_else(|| no_entry(core))?
                }
            };
            Ok((node, cookie))
        });
        match taken {
            Ok((node, cookie)) if node.ino() == entry.0 => {
                if let Some(cookie) = cookie {
                    node.inode().write().home = (dir.ino(), cookie);
                }
                Ok(node)
            }
            // Another inode has the name by now.
            Ok(_) if !open => find_node(core, entry.0),
            other => {
                if open {
                    self.through.core.store.close_inode(entry.0, true);
                }
                Err(other.err().unwrap_or(Errno::ESTALE))
            }
        }
    }

    /// The file that the operation created without a name, and opened.
    ///
    /// # Errors
    /// Those of the store.
    pub(crate) fn take_in_unnamed(&self, linkable: bool) -> Result<Node> {
        let core = self.through.core;
        let (ino, _) = self.done.entry.ok_or(Errno::EUCLEAN)?;
        let taken = self.take_in_entry();
        let taken = taken.and_then(|node| node.map_or_else(|| find_node(core, ino), Ok));
        let node = taken.inspect_err(|_| self.through.core.store.close_inode(ino, true))?;
        node.inode().write().linkable = linkable;
        Ok(node)
    }
}
