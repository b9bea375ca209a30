//! Hard links.

use crate::FileSystem;
use crate::core::Core;
use crate::inode::time_of_changes;
use crate::inode::{DirectoryBody, Inode, Meta, Numbered as _};
use crate::log_order;
use crate::node::Node;
use crate::store::{Change, Intent, Operation};
use crate::through::Changed;
use crate::transaction::{Begun, Transaction};
use crate::types::{Caller, Errno, Result, check_new_name};
use crate::watch::EventMask;

impl FileSystem {
    /// Adds a name for `node`; a file created by [`FileSystem::tmpfile`] gets its first.
    ///
    /// # Errors
    /// `EEXIST`, `EACCES`, `EROFS`, `ENAMETOOLONG`. `EPERM` for a directory, and for an immutable
    /// or append-only inode. `EXDEV` if `dir` passes on another project. `EMLINK` for too many
    /// names. `ENOENT` in a removed directory, or when the inode lost its last name.
    pub fn link(&self, who: &Caller, node: &Node, dir: &Node, name: &[u8]) -> Result<()> {
        let (core, dir) = (&self.core, dir.inode());
        let body = core.search(who, dir)?;
        check_new_name(name)?;
        let operation = Operation::Link {
            ino: node.ino(),
            dir: dir.ino(),
            name,
        };
        // The directory, the inode, and its place in the list of orphans if it has no other name.
        let intent = || Intent::default().name(name).records(3);
        let begun = core.may_link(who, node, dir);
        let begun =
            begun.and_then(|()| core.begin(intent, |through| through.perform(who, &operation)));
        match begun.map_err(|error| core.refused_new((dir, body), name, error))? {
            Begun::Done(performed) => {
                performed.update(node, Changed::Nothing)?;
                let cookie = performed.enter_name((dir, body), name, (node.ino(), node.kind()))?;
                if let Some(cookie) = cookie {
                    node.inode().write().home = (dir.ino(), cookie);
                }
                core.mark_freeing_if_revoked(node);
                core.notify_link(node, dir, name);
            }
            Begun::Decide(transaction) => {
                core.add_name(who, transaction, node, (dir, body), name)?
            }
        }
        core.notify_inode(who, node.ino(), false);
        core.notify_entry(who, dir.ino(), name);
        Ok(())
    }
}

impl Core {
    /// Checks that the caller may give the inode a name in this directory.
    fn may_link(&self, who: &Caller, node: &Node, dir: &Inode) -> Result<()> {
        self.may_create(who, dir)?;
        node.inode().allow_change()?;
        if node.kind().is_dir() {
            return Err(Errno::EPERM);
        }
        self.may_gain_name(&node.inode().meta())
    }

    fn may_gain_name(&self, meta: &Meta) -> Result<()> {
        match meta.nlink {
            0 if !meta.linkable => Err(Errno::ENOENT),
            nlink if nlink >= self.policy.link_max() => Err(Errno::EMLINK),
            _ => Ok(()),
        }
    }

    /// Adds a name in memory, and commits that.
    fn add_name(
        &self,
        who: &Caller,
        transaction: Transaction<'_>,
        node: &Node,
        (dir, body): (&Inode, &DirectoryBody),
        name: &[u8],
    ) -> Result<()> {
        let mut names = self.lock_name(dir, body, name)?;
        if names.has(name) {
            return Err(Errno::EEXIST);
        }
        // The directory may have been removed meanwhile.
        self.may_link(who, node, dir)?;
        dir.take_in_project(node.inode())?;
        let (ino, kind) = (node.ino(), node.kind());
        let now = time_of_changes([dir, node.inode()]);
        let cookie = names.next_cookie();
        let log_order = log_order::take([node.inode(), dir]);
        {
            let mut meta = node.inode().write();
            self.may_gain_name(&meta)?;
            names.insert(name, cookie, ino, kind)?;
            meta.nlink += 1;
            meta.linkable = false;
            meta.ctime = now;
            meta.home = (dir.ino(), cookie);
            node.inode().unmark_freeing();
        }
        self.mark_freeing_if_revoked(node);
        names.changed(dir, 0, 0, now);
        self.count_name(&names, name);
        let inode = node.inode().record(&node.inode().meta());
        // `cookie`, and not that of `meta.home`: the file may have got yet another name meanwhile.
        let enter = Change::Enter {
            dir: dir.ino(),
            name,
            cookie,
            ino,
            kind,
        };
        let of_dir = Change::Attributes {
            inode: dir.record(&dir.meta()),
        };
        transaction.commit(log_order, &[Change::Attributes { inode }, enter, of_dir])?;
        self.notify_link(node, dir, name);
        Ok(())
    }

    fn notify_link(&self, node: &Node, dir: &Inode, name: &[u8]) {
        self.watches.notify(node.ino(), EventMask::ATTRIB, None, 0);
        self.notify_name(dir.ino(), EventMask::CREATE, name, false, 0);
    }
}
