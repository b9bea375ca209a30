//! Renaming: renameat2(2).
//!
//! *Locking.* See [`pair`](super::pair).

use crate::namespace::rename_args::Rename;
use std::sync::atomic::Ordering;

use super::NewInode;
use super::lookup::dangling;
use super::pair::Locked;
use super::rename_args::{End, check_flags};
use super::rename_through::follow_rename;
use crate::FileSystem;
use crate::by_number::find_node;
use crate::core::{Core, no_entry};
use crate::directory::Entry;
use crate::inodes::free::put_node;
use crate::namespace::find::find_name;
use crate::namespace::load::load_names;
use crate::namespace::lock::is_full_of_directories;
use crate::namespace::lookup::{find_child, node_named, search};
use crate::namespace::new_inode::intent_of_new_inode;
use crate::namespace::pair::{descends, lock_both};
use crate::namespace::refused::refused;
use crate::namespace::rename_apply::{exchange_entries, replace_entry};
use crate::node::Node;
use crate::notify::{notify_entry, notify_inode};
use crate::permission::{may_access, may_create, may_delete};
use crate::store::{Class, Intent, New, Operation};
use crate::through::make::with_inherited;
use crate::transaction::{Begun, Transaction, begin};
use crate::types::{
    Access, Caller, Errno, FileType, Ino, RenameFlags, Result, check_component, is_special,
};

impl FileSystem {
    /// Renames `from_name` to `to_name`, replacing that if it exists (renameat2(2)).
    ///
    /// # Errors
    /// `ENOENT`; `EEXIST` with NOREPLACE. `ENOTEMPTY`, `EISDIR`, `ENOTDIR` when the new name cannot
    /// be replaced. `EINVAL` for a directory moved into itself, or conflicting flags. `EBUSY` for
    /// `.` and `..`. `EACCES`, `EPERM`, `EROFS`, `EMLINK`, `ENOSPC`; `EDQUOT` for a whiteout.
    /// `EXDEV` if the new directory passes on another project.
    pub fn rename(
        &self,
        who: &Caller,
        from_dir: &Node,
        from_name: &[u8],
        to_dir: &Node,
        to_name: &[u8],
        flags: RenameFlags,
    ) -> Result<()> {
        let from = End {
            dir: from_dir,
            name: from_name,
            slash: false,
        };
        let to = End {
            dir: to_dir,
            name: to_name,
            slash: false,
        };
        self.rename_names(who, from, to, flags)
    }

    pub(crate) fn rename_names(
        &self,
        who: &Caller,
        from: End<'_>,
        to: End<'_>,
        flags: RenameFlags,
    ) -> Result<()> {
        let changed = rename_entry(&self.core, who, from, to, flags)?;
        notify_entry(&self.core, who, from.dir.ino(), from.name);
        notify_entry(&self.core, who, to.dir.ino(), to.name);
        // A listing of a directory includes its parent's number.
        let has_moved = from.dir.ino() != to.dir.ino();
        for node in changed {
            let is_listing = has_moved && node.kind() == FileType::Directory;
            notify_inode(&self.core, who, node.ino(), is_listing);
            put_node(&self.core, node);
        }
        Ok(())
    }
}

fn rename_entry(
    core: &Core,
    who: &Caller,
    from: End<'_>,
    to: End<'_>,
    flags: RenameFlags,
) -> Result<Vec<Node>> {
    check_names(core, who, from, to, flags)?;
    let _loaded = preload(core, from, to)?;
    loop {
        let over = seems(to).is_some();
        let begun = begin(
            core,
            || intent_to_rename(from, to, flags, over),
            |through| {
                check_component(to.name)?;
                if !who.checked || from.slash || to.slash {
                    // The store does nothing if both are the same inode.
                    check_rename(core, who, from, to, flags)?;
                }
                let perform = |whiteout: Option<New<'_>>| {
                    let operation = Operation::Rename {
                        from: (from.dir.ino(), from.name),
                        to: (to.dir.ino(), to.name),
                        flags,
                        whiteout,
                    };
                    through.perform(who, &operation)
                };
                let new_inode = NewInode::of(FileType::CharDevice, 0);
                let performed = match flags.contains(RenameFlags::WHITEOUT) {
                    true => {
                        with_inherited(who, from.dir.inode(), new_inode, |new| perform(Some(new)))
                    }
                    false => perform(None),
                };
                performed.inspect_err(|error| {
                    for End { dir, name, .. } in [from, to] {
                        if let Ok(body) = dir.inode().directory() {
                            refused(core, dir.inode(), body, name, *error);
                        }
                    }
                })
            },
        );
        let transaction = match begun {
            Ok(Begun::Done(performed)) => {
                return follow_rename(core, &performed, from, to, flags);
            }
            Ok(Begun::Decide(transaction)) => transaction,
            // All other errors precede the store's lack of space.
            Err(Errno::ENOSPC) if check_rename(core, who, from, to, flags)? => {
                return Ok(Vec::new());
            }
            Err(error) => return Err(error),
        };
        let between = from.dir != to.dir;
        let mut rename_lock = between.then(|| core.rename_lock.still());
        let mut locked = lock_both(core, from, to)?;
        if between && locked.have_directory(from, to) {
            // Its parent changes.
            drop(locked);
            drop(rename_lock);
            rename_lock = Some(core.rename_lock.change());
            locked = lock_both(core, from, to)?;
        }
        if over && locked.to().get(to.name).is_none() {
            // The target was removed since, so the rename needs more space.
            continue;
        }
        let renamed = rename_locked(core, who, (from, to), flags, locked, transaction);
        drop(rename_lock);
        return renamed;
    }
}

/// Checks a rename without locks, on the inodes that both names have now. Returns whether both
/// are the same, so that nothing changes.
///
/// # Errors
/// Those of [`FileSystem::rename`].
fn check_rename(
    core: &Core,
    who: &Caller,
    from: End<'_>,
    to: End<'_>,
    flags: RenameFlags,
) -> Result<bool> {
    check_component(to.name)?;
    let child = |end: End<'_>| {
        let dir = end.dir.inode();
        find_child(core, dir, dir.directory()?, end.name)
    };
    let source = child(from)?;
    let target = match child(to) {
        Err(Errno::ENOENT) => None,
        found => Some(found?),
    };
    rename_changes_nothing(
        core,
        &Rename {
            who,
            from,
            to,
            flags,
            source: &source,
            target: target.as_ref(),
        },
    )
}

/// Loads what a rename reads under its locks. The returned nodes keep it in memory.
fn preload(core: &Core, from: End<'_>, to: End<'_>) -> Result<Vec<Node>> {
    let mut loaded = Vec::new();
    if core.pinned || core.through.is_some() {
        return Ok(loaded);
    }
    for (end, is_replaced) in [(from, false), (to, true)] {
        let (dir, body) = (end.dir.inode(), end.dir.inode().directory()?);
        // The names are looked up again under their locks.
        if let Some(entry) = find_name(core, dir, body, end.name)?
            && let Ok(node) = node_named(core, dir, body, end.name, entry)
        {
            // The rename will check that a replaced directory is empty.
            if is_replaced && let Ok(body) = node.inode().directory() {
                load_names(core, node.inode(), body)?;
            }
            loaded.push(node);
        }
        if from.dir != to.dir {
            load_above(core, end.dir, &mut loaded);
        }
    }
    Ok(loaded)
}

/// Loads the ancestors of this directory, as far as possible: they are walked again under the
/// rename lock.
fn load_above(core: &Core, dir: &Node, loaded: &mut Vec<Node>) {
    let mut at = dir.clone();
    while let Ok(body) = at.inode().directory()
        && let parent = Ino(body.parent.load(Ordering::Relaxed))
        && parent != at.ino()
        && let Ok(above) = find_node(core, parent)
    {
        loaded.push(std::mem::replace(&mut at, above));
    }
}

/// The intent of a rename. One over an existing name frees space, and one to a name that is not
/// longer adds next to nothing.
fn intent_to_rename(from: End<'_>, to: End<'_>, flags: RenameFlags, over: bool) -> Intent {
    let exchange = flags.contains(RenameFlags::EXCHANGE);
    let whiteout = flags.contains(RenameFlags::WHITEOUT);
    let between = from.dir.ino() != to.dir.ino();
    let intent = Intent {
        class: match to.name.len() > from.name.len() {
            _ if whiteout => Class::Growing,
            _ if !exchange && over => Class::GivingBack,
            true if !exchange => Class::Growing,
            _ => Class::Changing,
        },
        // The replaced inode.
        ended: u64::from(over && !exchange),
        // Entries that are written to a place they had: within a directory one, in an exchange
        // both, each with its name.
        replaced: match exchange {
            true => 4,
            false => u64::from(!between && !over),
        },
        ..Intent::default()
    };
    let intent = intent.name(to.name).leaving(from.name);
    let intent = match over {
        true => intent.leaving(to.name),
        false => intent,
    };
    // The records of the directories, and of the renamed inodes.
    let intent = intent.records(2 + u64::from(between) + u64::from(exchange));
    if whiteout {
        let new_inode = NewInode::of(FileType::CharDevice, 0);
        let intent = Intent {
            inodes: 1,
            ..intent
        };
        return intent_of_new_inode(from.dir.inode(), Some(from.name), &new_inode, intent);
    }
    match exchange {
        true => intent.name(from.name),
        false => intent,
    }
}

/// The current entry of a name, as far as it is known without asking the store.
fn seems(end: End<'_>) -> Option<Entry> {
    end.dir.inode().directory().ok()?.names.find(end.name)
}

/// The part of a rename under the locks of the names; returns the inodes that changed.
fn rename_locked(
    core: &Core,
    who: &Caller,
    (from, to): (End<'_>, End<'_>),
    flags: RenameFlags,
    mut locked: Locked<'_>,
    transaction: Transaction<'_>,
) -> Result<Vec<Node>> {
    let entry = locked.from.get(from.name).ok_or_else(|| no_entry(core))?;
    let source = find_node(core, entry.ino).map_err(dangling)?;
    check_component(to.name)?;
    let target = match locked.to().get(to.name) {
        Some(entry) => Some(find_node(core, entry.ino).map_err(dangling)?),
        None => None,
    };
    let rename = Rename {
        who,
        from,
        to,
        flags,
        source: &source,
        target: target.as_ref(),
    };
    if rename_changes_nothing(core, &rename)? {
        return Ok(Vec::new());
    }
    match rename.target.filter(|_| rename.exchanges()) {
        Some(target) => exchange_entries(core, transaction, &rename, &mut locked, target)?,
        None => replace_entry(core, transaction, &rename, &mut locked)?,
    }
    Ok(std::iter::once(source).chain(target).collect())
}

/// The checks that precede all locks.
fn check_names(
    core: &Core,
    who: &Caller,
    from: End<'_>,
    to: End<'_>,
    flags: RenameFlags,
) -> Result<()> {
    check_flags(flags)?;
    if is_special(from.name) {
        return Err(Errno::EBUSY);
    }
    if is_special(to.name) {
        let noreplace = flags.contains(RenameFlags::NOREPLACE);
        return Err(if noreplace {
            Errno::EEXIST
        } else {
            Errno::EBUSY
        });
    }
    search(core, who, from.dir.inode())?;
    search(core, who, to.dir.inode())?;
    core.writable()?;
    check_component(from.name)
}

/// The checks of a rename on the current inodes of both names, without locks. Returns whether
/// both are the same inode, so that nothing changes.
///
/// # Errors
/// Those of [`FileSystem::rename`].
fn rename_changes_nothing(core: &Core, rename: &Rename<'_>) -> Result<bool> {
    rename.check()?;
    if rename.from.dir != rename.to.dir {
        refuse_loops(core, rename)?;
    }
    if rename.target == Some(rename.source) {
        return Ok(true);
    }
    may_rename(core, rename)?;
    Ok(false)
}

fn refuse_loops(core: &Core, rename: &Rename<'_>) -> Result<()> {
    let Rename {
        from, to, source, ..
    } = *rename;
    if source.kind().is_dir() && descends(core, to.dir, source.ino())? {
        return Err(Errno::EINVAL);
    }
    if let Some(target) = rename.target.filter(|_| rename.is_over_directory())
        && descends(core, from.dir, target.ino())?
    {
        return Err(if rename.exchanges() {
            Errno::EINVAL
        } else {
            Errno::ENOTEMPTY
        });
    }
    Ok(())
}

fn may_rename(core: &Core, rename: &Rename<'_>) -> Result<()> {
    let Rename { who, source, .. } = *rename;
    let (from, to) = (rename.from.dir.inode(), rename.to.dir.inode());
    let is_dir = source.kind().is_dir();
    let over_dir = rename.is_over_directory();
    may_delete(core, who, from, source.inode(), is_dir)?;
    match rename.target {
        None => may_create(core, who, to)?,
        Some(target) => {
            let as_dir = if rename.exchanges() { over_dir } else { is_dir };
            may_delete(core, who, to, target.inode(), as_dir)?;
        }
    }
    to.take_in_project(source.inode())?;
    let exchanged = rename.target.filter(|_| rename.exchanges());
    if let Some(target) = exchanged {
        from.take_in_project(target.inode())?;
    }
    if rename.from.dir == rename.to.dir {
        return Ok(());
    }
    // A moved directory gets another `..`, which is a write to it.
    let moved = [Some(source), exchanged];
    for dir in moved
        .into_iter()
        .flatten()
        .filter(|node| node.kind().is_dir())
    {
        may_access(core, who, dir.inode(), Access::WRITE)?;
    }
    if is_dir && !over_dir && is_full_of_directories(core, to)
        || exchanged.is_some() && over_dir && !is_dir && is_full_of_directories(core, from)
    {
        return Err(Errno::EMLINK);
    }
    Ok(())
}
