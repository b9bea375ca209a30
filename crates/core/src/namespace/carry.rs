//! What a rename changes, once it is allowed and both directories are locked.

use holdfast_sync::epoch;
use std::sync::atomic::Ordering;

use super::NewInode;
use super::pair::Locked;
use super::rename::End;
use crate::acl::{ACL_ACCESS, to_xattr};
use crate::clock;
use crate::file_system::Core;
use crate::inode::{Inode, Numbered as _, kept_values};
use crate::log_order::Taken;
use crate::node::Node;
use crate::quota::Check;
use crate::store::{Change, Reservation, kept_bytes};
use crate::types::{Caller, FileType, Ino, Result, Time};
use crate::watch::EventMask;

impl Core {
    #[expect(
        clippy::too_many_arguments,
        reason = "both ends, what is at each, and whose rename"
    )]
    pub(super) fn replace(
        &self,
        reservation: &mut Reservation<'_>,
        who: &Caller,
        from: End<'_>,
        to: End<'_>,
        locked: &mut Locked<'_>,
        source: &Node,
        target: Option<&Node>,
        whiteout: bool,
        now: Time,
    ) -> Result<()> {
        let (ino, kind) = (source.ino(), source.kind());
        let is_dir = kind.is_dir();
        let whiteout = self.make_way(reservation, who, from, locked, target, whiteout)?;
        let mut from_cookie = 0;
        let to_cookie = if target.is_some() && from.dir == to.dir && whiteout.is_none() {
            let cookies = locked.from.rename_over(from.name, to.name);
            self.names.add(locked.from.counts(-1));
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
                    reservation.keep_only(kept_values(whiteout.inode()));
                    self.unpublish(whiteout);
                }
                return Err(error);
            }
            self.count_name(locked.to(), to.name);
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
                    self.names.add(locked.from.counts(-1));
                }
                None
            }
        };
        let gained = i32::from(is_dir);
        let lost = target.map_or(0, |target| i32::from(target.kind().is_dir()));
        let whose = [from.dir, to.dir, source, target.unwrap_or(source)].map(Node::inode);
        let log_order = self.log_order(whose);
        self.moved(source, to.dir, to_cookie, now);
        self.tally(from.dir, to.dir, locked, -gained, gained - lost, now);
        let left = target.map(|target| self.lose_name(target, now));
        self.record_move(
            log_order,
            reservation,
            from,
            to,
            (from_cookie, to_cookie),
            source,
            target,
            whiteout.as_ref(),
        )?;
        self.tell_moved(from, to, ino, is_dir);
        if let (Some(target), Some(left)) = (target, left) {
            self.tell_lost(target.inode(), left);
        }
        Ok(())
    }

    /// Does what may be refused: makes the whiteout, if one is asked for, and marks a directory that
    /// is replaced as removed.
    fn make_way(
        &self,
        reservation: &mut Reservation<'_>,
        who: &Caller,
        from: End<'_>,
        locked: &mut Locked<'_>,
        target: Option<&Node>,
        whiteout: bool,
    ) -> Result<Option<Node>> {
        let mut made = None;
        if whiteout {
            let new_inode = NewInode::of(FileType::CharDevice, 0);
            let place = locked.from.get(from.name).map_or(0, |entry| entry.cookie);
            let inode =
                self.allocate_inode(who, from.dir.inode(), clock::change(), place, new_inode)?;
            let ino = self.number(&mut locked.from, new_inode.kind);
            // The inode first: who finds the name finds it.
            made = Some(self.publish(ino, inode, Check::of(who), reservation)?);
        }
        // Last: there is no way back.
        if let Some(target) = target.filter(|target| target.kind().is_dir())
            && let Err(refused) = self.bury_directory(target.inode())
        {
            if let Some(whiteout) = made {
                reservation.keep_only(kept_values(whiteout.inode()));
                self.unpublish(whiteout);
            }
            return Err(refused);
        }
        Ok(made)
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "both ends, what is at each, and what was reserved"
    )]
    pub(super) fn exchange(
        &self,
        reservation: &mut Reservation<'_>,
        from: End<'_>,
        to: End<'_>,
        locked: &mut Locked<'_>,
        source: &Node,
        target: &Node,
        now: Time,
    ) -> Result<()> {
        if from.dir == to.dir {
            locked.from.exchange(from.name, to.name);
        } else {
            locked.to().replace(to.name, source.ino(), source.kind());
            locked.from.replace(from.name, target.ino(), target.kind());
        }
        let to_cookie = locked.to().get(to.name).map_or(0, |entry| entry.cookie);
        let from_cookie = locked.from.get(from.name).map_or(0, |entry| entry.cookie);
        let whose = [from.dir, to.dir, source, target].map(Node::inode);
        let log_order = self.log_order(whose);
        self.moved(source, to.dir, to_cookie, now);
        self.moved(target, from.dir, from_cookie, now);
        let shift = i32::from(source.kind().is_dir()) - i32::from(target.kind().is_dir());
        self.tally(from.dir, to.dir, locked, -shift, shift, now);
        if !self.pinned {
            let mut batch = vec![
                leave(from, from_cookie),
                leave(to, to_cookie),
                enter(from, target, from_cookie),
                enter(to, source, to_cookie),
            ];
            push_attributes(&mut batch, &whose);
            self.apply_in(log_order, reservation, whose, &batch)?;
        }
        self.tell_moved(from, to, source.ino(), source.kind().is_dir());
        self.tell_moved(to, from, target.ino(), target.kind().is_dir());
        Ok(())
    }

    /// An inode got another name, perhaps in another directory.
    fn moved(&self, node: &Node, dir: &Node, cookie: u64, now: Time) {
        if let Ok(body) = node.inode().directory() {
            body.parent.store(dir.ino().0, Ordering::Relaxed);
        }
        let mut meta = node.inode().write();
        meta.ctime = now;
        meta.home = (dir.ino(), cookie);
    }

    /// Brings counts and times of both directories up to date.
    fn tally(
        &self,
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

    #[expect(
        clippy::too_many_arguments,
        reason = "both ends, what is at each, and what was reserved"
    )]
    fn record_move(
        &self,
        log_order: Option<Taken<'_, 4>>,
        reservation: &mut Reservation<'_>,
        from: End<'_>,
        to: End<'_>,
        (from_cookie, to_cookie): (u64, u64),
        source: &Node,
        target: Option<&Node>,
        whiteout: Option<&Node>,
    ) -> Result<()> {
        if self.pinned {
            let made = whiteout.map_or(0, |it| {
                kept_bytes(from.name.len()) + kept_values(it.inode())
            });
            let name = target.map_or(kept_bytes(to.name.len()), |_| 0);
            reservation.keep_only(name + made);
            self.release_kept(from.name.len());
            return Ok(());
        }
        // Without a target the new entry may take the old one's cookie (see `Directory::rename`).
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
        let apart = from.dir.ino() != to.dir.ino();
        push_attributes(&mut batch, &moved[usize::from(!apart)..]);
        let target = target.map(Node::inode);
        push_attributes(&mut batch, target.as_slice());
        let [from, to, source] = moved;
        let whose = [from, to, source, target.unwrap_or(source)];
        self.apply_in(log_order, reservation, whose, &batch)?;
        if let Some(node) = whiteout {
            node.inode().born();
        }
        Ok(())
    }

    /// Tells watchers that an inode got another name.
    pub(crate) fn tell_moved(&self, from: End<'_>, to: End<'_>, ino: Ino, is_dir: bool) {
        if !self.watches.is_used() {
            return;
        }
        let cookie = self.watches.next_cookie();
        self.notify_name(
            from.dir.ino(),
            EventMask::MOVED_FROM,
            from.name,
            is_dir,
            cookie,
        );
        self.notify_name(to.dir.ino(), EventMask::MOVED_TO, to.name, is_dir, cookie);
        self.watches.notify(ino, EventMask::MOVE_SELF, None, 0);
    }
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
