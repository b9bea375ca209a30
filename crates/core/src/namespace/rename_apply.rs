//! The changes of a rename, once it is allowed and both directories are locked.

use holdfast_sync::epoch;
use std::sync::atomic::Ordering;

use super::NewInode;
use super::pair::Locked;
use super::rename_args::End;
use crate::acl::{ACL_ACCESS, to_xattr};
use crate::clock;
use crate::core::Core;
use crate::events::notify_name;
use crate::inode::{Inode, Numbered as _, kept_values, time_of_changes};
use crate::namespace::load::count_name;
use crate::namespace::new_inode::{allocate_inode, assign_number};
use crate::namespace::publish::{publish_inode, unpublish_inode};
use crate::namespace::remove::{lose_name, mark_dead, notify_unlinked};
use crate::namespace::rename_args::Rename;
use crate::node::Node;
use crate::quota::Check;
use crate::store::{Change, Reservation};
use crate::transaction::{LockedTransaction, Transaction};
use crate::types::{FileType, Ino, RenameFlags, Result, Time};
use crate::watch::EventMask;

pub(super) fn replace_entry(
    core: &Core,
    mut transaction: Transaction<'_>,
    rename: &Rename<'_>,
    locked: &mut Locked<'_>,
) -> Result<()> {
    let Rename {
        from,
        to,
        source,
        target,
        ..
    } = *rename;
    let changed = [from.dir, to.dir, source].map(Node::inode);
    let now = time_of_changes(changed.into_iter().chain(target.map(Node::inode)));
    let (ino, kind) = (source.ino(), source.kind());
    let is_dir = kind.is_dir();
    let whiteout = prepare_target(core, transaction.reservation(), rename, locked)?;
    let mut from_cookie = 0;
    let to_cookie = if target.is_some() && from.dir == to.dir && whiteout.is_none() {
        let cookies = locked.from.rename_over(from.name, to.name);
        core.names.add(locked.from.counts(-1));
        let (moved, replaced) = cookies.unwrap_or_default();
        from_cookie = moved;
        replaced
    } else if target.is_some() {
        locked.to().replace(to.name, ino, kind);
        locked.to().get(to.name).map_or(0, |entry| entry.cookie)
    } else if from.dir == to.dir && whiteout.is_none() {
        locked.from.rename(from.name, to.name)
    } else {
        let cookie = locked.to().next_cookie();
        if let Err(error) = locked.to().insert(to.name, cookie, ino, kind) {
            if let Some(whiteout) = whiteout {
                let reservation = transaction.reservation();
                reservation.keep_only(kept_values(whiteout.inode()));
                unpublish_inode(core, whiteout);
            }
            return Err(error);
        }
        count_name(core, locked.to(), to.name);
        cookie
    };
    let whiteout = match whiteout {
        Some(node) => {
            locked.from.replace(from.name, node.ino(), node.kind());
            from_cookie = node.inode().meta().home.1;
            Some(node)
        }
        None => {
            if let Some(gone) = locked.from.remove(from.name) {
                from_cookie = gone.cookie;
                core.names.add(locked.from.counts(-1));
            }
            None
        }
    };
    let gained = i32::from(is_dir);
    let lost = target.map_or(0, |target| i32::from(target.kind().is_dir()));
    let whose = [from.dir, to.dir, source, target.unwrap_or(source)].map(Node::inode);
    let transaction = transaction.lock(whose);
    set_home(source, to.dir, to_cookie, now);
    update_counts(from.dir, to.dir, locked, -gained, gained - lost, now);
    let left = target.map(|target| lose_name(target, now));
    let cookies = (from_cookie, to_cookie);
    commit_move(transaction, rename, cookies, whiteout.as_ref())?;
    notify_moved(core, from, to, ino, is_dir);
    if let (Some(target), Some(left)) = (target, left) {
        notify_unlinked(core, target.inode(), left);
    }
    Ok(())
}

/// The steps of a rename that can fail: creates the whiteout, if requested, and marks a
/// replaced directory as removed.
fn prepare_target(
    core: &Core,
    reservation: &mut Reservation<'_>,
    rename: &Rename<'_>,
    locked: &mut Locked<'_>,
) -> Result<Option<Node>> {
    let Rename { who, from, .. } = *rename;
    let mut made = None;
    if rename.flags.contains(RenameFlags::WHITEOUT) {
        let new_inode = NewInode::of(FileType::CharDevice, 0);
        let place = locked.from.get(from.name).map_or(0, |entry| entry.cookie);
        let inode = allocate_inode(
            core,
            who,
            from.dir.inode(),
            clock::change(),
            place,
            new_inode,
        )?;
        let ino = assign_number(core, &mut locked.from, new_inode.kind);
        // The inode precedes its name: a lookup that finds the name finds the inode.
        made = Some(publish_inode(
            core,
            ino,
            inode,
            Check::of(who),
            reservation,
        )?);
    }
    // The last step that can fail: it cannot be undone.
    if let Some(target) = rename.target.filter(|target| target.kind().is_dir())
        && let Err(refused) = mark_dead(core, target.inode())
    {
        if let Some(whiteout) = made {
            reservation.keep_only(kept_values(whiteout.inode()));
            unpublish_inode(core, whiteout);
        }
        return Err(refused);
    }
    Ok(made)
}

pub(super) fn exchange_entries(
    core: &Core,
    transaction: Transaction<'_>,
    rename: &Rename<'_>,
    locked: &mut Locked<'_>,
    target: &Node,
) -> Result<()> {
    let Rename {
        from, to, source, ..
    } = *rename;
    let whose = [from.dir, to.dir, source, target].map(Node::inode);
    let now = time_of_changes(whose);
    if from.dir == to.dir {
        locked.from.exchange(from.name, to.name);
    } else {
        locked.to().replace(to.name, source.ino(), source.kind());
        locked.from.replace(from.name, target.ino(), target.kind());
    }
    let to_cookie = locked.to().get(to.name).map_or(0, |entry| entry.cookie);
    let from_cookie = locked.from.get(from.name).map_or(0, |entry| entry.cookie);
    let transaction = transaction.lock(whose);
    set_home(source, to.dir, to_cookie, now);
    set_home(target, from.dir, from_cookie, now);
    let shift = i32::from(source.kind().is_dir()) - i32::from(target.kind().is_dir());
    update_counts(from.dir, to.dir, locked, -shift, shift, now);
    let mut batch = vec![
        leave(from, from_cookie),
        leave(to, to_cookie),
        enter(from, target, from_cookie),
        enter(to, source, to_cookie),
    ];
    push_attributes(&mut batch, &whose);
    transaction.commit(&batch)?;
    notify_moved(core, from, to, source.ino(), source.kind().is_dir());
    notify_moved(core, to, from, target.ino(), target.kind().is_dir());
    Ok(())
}

/// Sets the new parent and name of a renamed inode.
fn set_home(node: &Node, dir: &Node, cookie: u64, now: Time) {
    if let Ok(body) = node.inode().directory() {
        body.parent.store(dir.ino().0, Ordering::Relaxed);
    }
    let mut meta = node.inode().write();
    meta.ctime = now;
    meta.home = (dir.ino(), cookie);
}

/// Updates link counts, sizes and times of both directories.
fn update_counts(
    from: &Node,
    to: &Node,
    locked: &mut Locked<'_>,
    from_subdirs: i32,
    to_subdirs: i32,
    now: Time,
) {
    if from == to {
        let subdirs = from_subdirs + to_subdirs;
        locked.from.changed(from.inode(), 0, subdirs, now);
    } else {
        locked.from.changed(from.inode(), 0, from_subdirs, now);
        locked.to().changed(to.inode(), 0, to_subdirs, now);
    }
}

fn commit_move(
    transaction: LockedTransaction<'_, '_, 4>,
    rename: &Rename<'_>,
    (from_cookie, to_cookie): (u64, u64),
    whiteout: Option<&Node>,
) -> Result<()> {
    let Rename {
        from,
        to,
        source,
        target,
        ..
    } = *rename;
    // Without a target, the new entry may have taken the old one's cookie (see
    // `Names::rename`).
    let old = if from_cookie == 0 {
        to_cookie
    } else {
        from_cookie
    };
    let mut batch = vec![leave(from, old)];
    if target.is_some() {
        batch.push(leave(to, to_cookie));
    }
    batch.push(enter(to, source, to_cookie));
    let acl = whiteout.and_then(|node| node.inode().view(&epoch::pin()).acl().map(to_xattr));
    if let Some(node) = whiteout {
        let inode = node.inode().record(&node.inode().meta());
        batch.push(Change::Create {
            inode,
            target: None,
        });
        if let Some(value) = &acl {
            let (ino, value) = (node.ino(), Some(&**value));
            let name = ACL_ACCESS;
            batch.push(Change::Xattr { ino, name, value });
        }
        batch.push(enter(from, node, old));
    }
    let moved = [from.dir, to.dir, source].map(Node::inode);
    let between = from.dir.ino() != to.dir.ino();
    push_attributes(&mut batch, &moved[usize::from(!between)..]);
    let target = target.map(Node::inode);
    push_attributes(&mut batch, target.as_slice());
    transaction.commit(&batch)?;
    if let Some(node) = whiteout {
        node.inode().clear_new();
    }
    Ok(())
}

/// Notifies watchers of a rename.
pub(crate) fn notify_moved(core: &Core, from: End<'_>, to: End<'_>, ino: Ino, is_dir: bool) {
    if !core.watches.is_used() {
        return;
    }
    let cookie = core.watches.next_cookie();
    notify_name(
        core,
        from.dir.ino(),
        EventMask::MOVED_FROM,
        from.name,
        is_dir,
        cookie,
    );
    notify_name(
        core,
        to.dir.ino(),
        EventMask::MOVED_TO,
        to.name,
        is_dir,
        cookie,
    );
    core.watches.notify(ino, EventMask::MOVE_SELF, None, 0);
}

fn enter<'a>(end: End<'a>, node: &Node, cookie: u64) -> Change<'a> {
    let (dir, name) = (end.dir.ino(), end.name);
    Change::Enter {
        dir,
        name,
        cookie,
        ino: node.ino(),
        kind: node.kind(),
    }
}

fn leave(end: End<'_>, cookie: u64) -> Change<'_> {
    Change::Leave {
        dir: end.dir.ino(),
        name: end.name,
        cookie,
    }
}

fn push_attributes(batch: &mut Vec<Change<'_>>, inodes: &[&Inode]) {
    batch.extend(inodes.iter().map(|inode| Change::Attributes {
        inode: inode.record(&inode.meta()),
    }));
}
