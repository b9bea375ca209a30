//! Hard links.

use crate::FileSystem;
use crate::core::Core;
use crate::events::notify_name;
use crate::inode::{DirectoryBody, Inode, Meta, Numbered as _, time_of_changes};
use crate::namespace::load::count_name;
use crate::namespace::lock::lock_name;
use crate::namespace::lookup::search;
use crate::namespace::publish::mark_freeing_if_revoked;
use crate::namespace::refused::refused_new;
use crate::node::Node;
use crate::notify::{notify_entry, notify_inode};
use crate::permission::may_create;
use crate::store::{Change, Intent, Operation};
use crate::through::Changed;
use crate::transaction::{Begun, Transaction, begin};
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
        let body = search(core, who, dir)?;
        check_new_name(name)?;
        let operation = Operation::Link {
            ino: node.ino(),
            dir: dir.ino(),
            name,
        };
        // The directory, the inode, and its place in the list of orphans if it has no other name.
        let intent = || Intent::default().name(name).records(3);
        let begun = may_link(core, who, node, dir);
        let begun =
            begun.and_then(|()| begin(core, intent, |through| through.perform(who, &operation)));
        match begun.map_err(|error| refused_new(core, (dir, body), name, error))? {
            Begun::Done(performed) => {
                performed.update(node, Changed::Nothing)?;
                let cookie = performed.enter_name((dir, body), name, (node.ino(), node.kind()))?;
                if let Some(cookie) = cookie {
                    node.inode().write().home = (dir.ino(), cookie);
                }
                mark_freeing_if_revoked(core, node);
                notify_link(core, node, dir, name);
            }
            Begun::Decide(transaction) => {
                add_name(core, who, transaction, node, (dir, body), name)?
            }
        }
        notify_inode(core, who, node.ino(), false);
        notify_entry(core, who, dir.ino(), name);
        Ok(())
    }
}

/// Checks that the caller may give the inode a name in this directory.
fn may_link(core: &Core, who: &Caller, node: &Node, dir: &Inode) -> Result<()> {
    may_create(core, who, dir)?;
    node.inode().allow_change()?;
    if node.kind().is_dir() {
        return Err(Errno::EPERM);
    }
    may_gain_name(core, &node.inode().meta())
}

fn may_gain_name(core: &Core, meta: &Meta) -> Result<()> {
    match meta.nlink {
        0 if !meta.linkable => Err(Errno::ENOENT),
        nlink if nlink >= core.policy.link_max() => Err(Errno::EMLINK),
        _ => Ok(()),
    }
}

/// Adds a name in memory, and commits that.
fn add_name(
    core: &Core,
    who: &Caller,
    transaction: Transaction<'_>,
    node: &Node,
    (dir, body): (&Inode, &DirectoryBody),
    name: &[u8],
) -> Result<()> {
    let mut names = lock_name(core, dir, body, name)?;
    if names.has(name) {
        return Err(Errno::EEXIST);
    }
    // The directory may have been removed meanwhile.
    may_link(core, who, node, dir)?;
    dir.take_in_project(node.inode())?;
    let (ino, kind) = (node.ino(), node.kind());
    let now = time_of_changes([dir, node.inode()]);
    let cookie = names.next_cookie();
    let transaction = transaction.lock([node.inode(), dir]);
    {
        let mut meta = node.inode().write();
        may_gain_name(core, &meta)?;
        names.insert(name, cookie, ino, kind)?;
        meta.nlink += 1;
        meta.linkable = false;
        meta.ctime = now;
        meta.home = (dir.ino(), cookie);
        node.inode().unmark_freeing();
    }
    mark_freeing_if_revoked(core, node);
    names.changed(dir, 0, 0, now);
    count_name(core, &names, name);
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
    transaction.commit(&[Change::Attributes { inode }, enter, of_dir])?;
    notify_link(core, node, dir, name);
    Ok(())
}

fn notify_link(core: &Core, node: &Node, dir: &Inode, name: &[u8]) {
    core.watches.notify(node.ino(), EventMask::ATTRIB, None, 0);
    notify_name(core, dir.ino(), EventMask::CREATE, name, false, 0);
}
