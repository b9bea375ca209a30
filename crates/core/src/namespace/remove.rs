//! Removing names: unlink(2) and rmdir(2).

use super::lookup::dangling;
use crate::FileSystem;
use crate::by_number::find_node;
use crate::core::{Core, no_entry};
use crate::events::notify_name;
use crate::inode::{DirectoryBody, Inode, Numbered as _, time_of_changes};
use crate::inodes::FreeingOrphan;
use crate::inodes::free::{begin_free, finish_free, put_node};
use crate::namespace::load::{is_empty_directory, load_names};
use crate::namespace::lock::lock_name;
use crate::namespace::lookup::{find_child, search};
use crate::namespace::refused::refused;
use crate::node::Node;
use crate::notify::{notify_entry, notify_inode};
use crate::permission::may_delete;
use crate::store::{Change, Intent, Operation};
use crate::through::Performed;
use crate::transaction::{Begun, LockedTransaction, Transaction, begin};
use crate::types::{Caller, Errno, Result, Time, check_component, is_special};
use crate::watch::EventMask;

/// An inode that loses a name.
enum Victim {
    /// It has other names, or is referenced.
    Used(Node),
    Freed(FreeingOrphan),
}

impl Victim {
    fn inode(&self) -> &Inode {
        match self {
            Self::Used(node) => node.inode(),
            Self::Freed(orphan) => orphan.inode(),
        }
    }

    fn used(&self) -> Option<&Node> {
        match self {
            Self::Used(node) => Some(node),
            Self::Freed(_) => None,
        }
    }
}

impl FileSystem {
    /// Removes a name that does not lead to a directory.
    ///
    /// # Errors
    /// `ENOENT`, `EISDIR`, `EACCES`, `EPERM` in a sticky directory, `EROFS`, `ENAMETOOLONG`.
    pub fn unlink(&self, who: &Caller, dir: &Node, name: &[u8]) -> Result<()> {
        if is_special(name) {
            return Err(Errno::EISDIR);
        }
        remove(&self.core, who, dir.inode(), name, false)
    }

    /// Removes an empty directory.
    ///
    /// # Errors
    /// `ENOENT`, `ENOTDIR`, `ENOTEMPTY`, `EACCES`, `EPERM` in a sticky directory, `EROFS`;
    /// `EINVAL` for `.`.
    pub fn rmdir(&self, who: &Caller, dir: &Node, name: &[u8]) -> Result<()> {
        match name {
            b"." => Err(Errno::EINVAL),
            b".." => Err(Errno::ENOTEMPTY),
            b"/" => Err(Errno::EBUSY),
            _ => remove(&self.core, who, dir.inode(), name, true),
        }
    }
}

/// The arguments of a removal.
struct Removal<'n> {
    who: &'n Caller,
    dir: &'n Inode,
    body: &'n DirectoryBody,
    name: &'n [u8],
    /// Is it the name of a directory?
    as_dir: bool,
}

impl Removal<'_> {
    /// The record of the directory, and the name. Freeing the inode costs no less than changing its
    /// link count.
    fn intent(&self) -> Intent {
        let gone = Intent {
            ended: 1,
            ..Intent::giving_back()
        };
        gone.leaving(self.name).records(1)
    }
}

/// Removes a name, of a directory if `as_dir`, else of anything else.
fn remove(core: &Core, who: &Caller, dir: &Inode, name: &[u8], as_dir: bool) -> Result<()> {
    let body = search(core, who, dir)?;
    check_component(name)?;
    core.writable()?;
    let removal = Removal {
        who,
        dir,
        body,
        name,
        as_dir,
    };
    let operation = Operation::Remove {
        dir: dir.ino(),
        name,
        directory: as_dir,
    };
    let victim = loop {
        let found = find_victim(core, &removal)?;
        let begun = begin(
            core,
            || removal.intent(),
            |through| through.perform(who, &operation),
        );
        match begun.inspect_err(|error| refused(core, dir, body, name, *error))? {
            Begun::Done(performed) => break follow_removal(core, &removal, &performed)?,
            Begun::Decide(transaction) => {
                let found = found.map_or_else(|| find_child(core, dir, body, name), Ok)?;
                if let Some(victim) = remove_name(core, &removal, transaction, found)? {
                    break Some(victim);
                }
            }
        }
    };
    let ino = victim.as_ref().map(|victim| victim.inode().ino());
    // After the names were unlocked and before observers are called, which may wait for a
    // thread that waits for this inode.
    match victim {
        Some(Victim::Used(node)) => put_node(core, node),
        Some(Victim::Freed(orphan)) => finish_free(core, orphan),
        None => {}
    }
    notify_entry(core, who, dir.ino(), name);
    if let Some(ino) = ino {
        notify_inode(core, who, ino, false);
    }
    Ok(())
}

/// The inode of the name, which the caller may remove. `None`: a store that others change
/// checks that itself.
fn find_victim(core: &Core, removal: &Removal<'_>) -> Result<Option<Node>> {
    let Removal { who, dir, body, .. } = *removal;
    if who.checked && core.coherence.is_some() {
        return Ok(None);
    }
    let victim = find_child(core, dir, body, removal.name)?;
    may_delete(core, who, dir, victim.inode(), removal.as_dir)?;
    Ok(Some(victim))
}

/// Removes the name from memory, and commits that. `None`: the name leads to another inode than
/// `victim` by now.
fn remove_name(
    core: &Core,
    removal: &Removal<'_>,
    transaction: Transaction<'_>,
    victim: Node,
) -> Result<Option<Victim>> {
    let Removal {
        dir, name, as_dir, ..
    } = *removal;
    let mut names = lock_name(core, dir, removal.body, name)?;
    let ino = names.get(name).ok_or_else(|| no_entry(core))?.ino;
    if ino != victim.ino() {
        return Ok(None);
    }
    if as_dir {
        mark_dead(core, victim.inode())?;
    }
    let victim = match free_at_last_name(core, victim) {
        Some(victim) => victim,
        None => Victim::Used(find_node(core, ino).map_err(dangling)?),
    };
    let cookie = names.remove(name).map_or(0, |entry| entry.cookie);
    core.names.add(names.counts(-1));
    let now = time_of_changes([dir, victim.inode()]);
    let transaction = transaction.lock([dir, victim.used().map_or(dir, Node::inode)]);
    names.changed(dir, 0, -i32::from(as_dir), now);
    if let Some(node) = victim.used() {
        lose_name(node, now);
    }
    commit_removal(removal, transaction, cookie, &victim, now)?;
    notify_removal(core, removal, Some(&victim));
    Ok(Some(victim))
}

/// Updates memory after the store has removed the name. `None`: the inode is not in memory.
fn follow_removal(
    core: &Core,
    removal: &Removal<'_>,
    performed: &Performed<'_>,
) -> Result<Option<Victim>> {
    performed.update_names(removal.dir, removal.body, |names| {
        names.remove(removal.name);
        true
    })?;
    let victim = performed.take_in_lost_entry()?.map(Victim::Used);
    notify_removal(core, removal, victim.as_ref());
    Ok(victim)
}

fn notify_removal(core: &Core, removal: &Removal<'_>, victim: Option<&Victim>) {
    if let Some(victim) = victim {
        let left = victim.used().map_or(0, |node| node.inode().nlink());
        notify_unlinked(core, victim.inode(), left);
    }
    let (dir, name) = (removal.dir.ino(), removal.name);
    notify_name(core, dir, EventMask::DELETE, name, removal.as_dir, 0);
}

/// Frees an inode that is about to lose its last name if it is otherwise unreferenced: the
/// batch then includes the free. `None`: it was linked meanwhile, and has to be looked up
/// again.
fn free_at_last_name(core: &Core, victim: Node) -> Option<Victim> {
    let is_last = |inode: &Inode| inode.kind().is_dir() || inode.nlink() == 1;
    if !is_last(victim.inode()) {
        return Some(Victim::Used(victim));
    }
    match victim.into_last() {
        Ok(freeing) if is_last(&freeing) => Some(Victim::Freed(begin_free(core, freeing))),
        Ok(_) => None,
        Err(node) => Some(Victim::Used(node)),
    }
}

fn commit_removal(
    Removal { dir, name, .. }: &Removal<'_>,
    transaction: LockedTransaction<'_, '_, 2>,
    cookie: u64,
    victim: &Victim,
    now: Time,
) -> Result<()> {
    let inode = victim.inode();
    let mut meta = inode.meta();
    if let Victim::Freed(_) = victim {
        meta.nlink = 0;
        meta.ctime = now;
    }
    // First in the batch: the store can skip it if the batch also frees the inode.
    let last = Change::Attributes {
        inode: inode.record(&meta),
    };
    let leave = Change::Leave {
        dir: dir.ino(),
        name,
        cookie,
    };
    let of_dir = Change::Attributes {
        inode: dir.record(&dir.meta()),
    };
    let free = Change::Free { ino: inode.ino() };
    let batch = [last, leave, of_dir, free];
    let len = match victim {
        Victim::Used(_) => 3,
        Victim::Freed(_) => 4,
    };
    transaction.commit(&batch[..len])
}

/// Marks a directory as removed, if it is empty. The caller holds the lock of its parent's
/// names.
pub(super) fn mark_dead(core: &Core, victim: &Inode) -> Result<()> {
    let body = victim.directory()?;
    load_names(core, victim, body)?;
    let mut names = body.names.write();
    if !is_empty_directory(core, victim, &mut names)? {
        return Err(Errno::ENOTEMPTY);
    }
    names.free();
    Ok(())
}

/// Decrements an inode's link count, to zero for a directory; returns the new count. At zero
/// the inode becomes an orphan.
pub(super) fn lose_name(victim: &Node, now: Time) -> u32 {
    let mut meta = victim.inode().write();
    meta.nlink = if victim.kind().is_dir() {
        0
    } else {
        meta.nlink.saturating_sub(1)
    };
    meta.ctime = now;
    if meta.nlink == 0 {
        // The caller holds a reference, so the inode is not freed here.
        drop(victim.inode().mark_freeing());
    }
    meta.nlink
}

/// Notifies watchers of an inode's changed link count. As in inotify, the deletion of the inode
/// is reported with its last reference: see `inodes/evict.rs`.
pub(crate) fn notify_unlinked(core: &Core, victim: &Inode, left: u32) {
    if !victim.kind().is_dir() || left > 0 {
        core.watches
            .notify(victim.ino(), EventMask::ATTRIB, None, 0);
    }
}
