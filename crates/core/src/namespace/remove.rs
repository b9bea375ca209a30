//! Removing names.

use holdfast_sync::epoch;

use super::lookup::dangling;
use crate::FileSystem;
use crate::file_system::{Core, Scope};
use crate::inode::time_of_changes;
use crate::inode::{Inode, Numbered as _};
use crate::inodes::Ending;
use crate::log_order::Taken;
use crate::node::Node;
use crate::store::{Change, Intent, Reservation};
use crate::types::{Caller, Errno, Ino, Result, Time, check_component, is_special};
use crate::watch::EventMask;

/// What lost a name.
enum Victim {
    /// Others have names of it, or use it.
    Used(Node),
    Ended(Ending),
}

impl Victim {
    fn inode(&self) -> &Inode {
        match self {
            Self::Used(node) => node.inode(),
            Self::Ended(ending) => ending.inode(),
        }
    }

    fn used(&self) -> Option<&Node> {
        match self {
            Self::Used(node) => Some(node),
            Self::Ended(_) => None,
        }
    }
}

impl FileSystem {
    /// Removes a name that is not a directory's.
    ///
    /// # Errors
    /// `ENOENT`, `EISDIR`, `EACCES`, `EPERM` in a sticky directory, `EROFS`, `ENAMETOOLONG`.
    pub fn unlink(&self, who: &Caller, dir: &Node, name: &[u8]) -> Result<()> {
        self.core.unlink(who, dir.inode(), name)
    }

    /// Removes an empty directory.
    ///
    /// # Errors
    /// `ENOENT`, `ENOTDIR`, `ENOTEMPTY`, `EACCES`, `EPERM` in a sticky directory, `EROFS`;
    /// `EINVAL` for `.`.
    pub fn rmdir(&self, who: &Caller, dir: &Node, name: &[u8]) -> Result<()> {
        self.core.rmdir(who, dir.inode(), name)
    }
}

impl Core {
    /// See [`FileSystem::unlink`].
    pub(crate) fn unlink(&self, who: &Caller, dir: &Inode, name: &[u8]) -> Result<()> {
        if is_special(name) {
            return Err(Errno::EISDIR);
        }
        self.remove(who, dir, name, false)
    }

    /// See [`FileSystem::rmdir`].
    pub(crate) fn rmdir(&self, who: &Caller, dir: &Inode, name: &[u8]) -> Result<()> {
        match name {
            b"." => Err(Errno::EINVAL),
            b".." => Err(Errno::ENOTEMPTY),
            b"/" => Err(Errno::EBUSY),
            _ => self.remove(who, dir, name, true),
        }
    }

    /// Removes a name that is a directory's if `as_dir`, else not.
    fn remove(&self, who: &Caller, dir: &Inode, name: &[u8], as_dir: bool) -> Result<()> {
        let body = self.search(who, dir)?;
        check_component(name)?;
        self.writable()?;
        if let Some(through) = self.through() {
            return through.remove(who, (dir, body), name, as_dir);
        }
        let intent = || {
            let ended = 1;
            let gone = Intent {
                ended,
                ..Intent::giving_back()
            };
            // The directory; of what loses the name no more changes than if it ends.
            gone.leaving(name).records(1)
        };
        let mut reservation = self.reserve_change(intent)?;
        self.bring_named(dir, body, name)?;
        let victim = {
            let mut names = self.lock_name(dir, body, name)?;
            let ino = names.seek_to_remove(name).ok_or_else(|| self.absent())?.ino;
            let victim = match self.end_unused(who, dir, ino, as_dir)? {
                Some(ending) => Victim::Ended(ending),
                None => {
                    let node = self.node(ino).map_err(dangling)?;
                    self.may_delete(who, dir, node.inode(), as_dir)?;
                    if as_dir {
                        self.bury_directory(node.inode())?;
                    }
                    match self.end_at_last_name(node) {
                        Some(victim) => victim,
                        None => Victim::Used(self.node(ino).map_err(dangling)?),
                    }
                }
            };
            let cookie = names.remove(name).map_or(0, |entry| entry.cookie);
            self.names.add(names.counts(-1));
            let now = time_of_changes([dir, victim.inode()]);
            let left = {
                let log_order = self.log_order([dir, victim.used().map_or(dir, Node::inode)]);
                names.changed(dir, 0, -i32::from(as_dir), now);
                let left = victim.used().map_or(0, |node| self.lose_name(node, now));
                if self.pinned {
                    self.release_kept(name.len());
                } else {
                    let gone = (dir, name, cookie);
                    self.record_removal(log_order, &mut reservation, gone, &victim, now)?;
                }
                left
            };
            self.tell_lost(victim.inode(), left);
            self.notify_name(dir.ino(), EventMask::DELETE, name, as_dir, 0);
            victim
        };
        let ino = victim.inode().ino();
        let used = match victim {
            Victim::Used(node) => Some(node),
            Victim::Ended(ending) => {
                // Now: observers can wait for somebody who waits for its end.
                self.conclude(ending);
                None
            }
        };
        self.notify_entry(who, dir.ino(), name);
        self.notify_inode(who, ino, false);
        if let Some(node) = used {
            self.put(node);
        }
        Ok(())
    }

    /// The end of an inode in memory that is about to lose its only name, which is locked, if nobody uses it: by
    /// one exchange, where a use, the lock of its attributes, its doom and the end of the use take one each.
    /// Nobody gets a use of it any more, hence nobody can give it another name, ask what it is like, or hand its
    /// attributes to the store: it needs no turn there.
    /// `None`: it has to be done that way. Not for directories, which are ended when they are known to be empty;
    /// nor for what is not in memory.
    ///
    /// # Errors
    /// Those of [`Core::may_delete`].
    #[inline]
    fn end_unused(
        &self,
        who: &Caller,
        dir: &Inode,
        ino: Ino,
        as_dir: bool,
    ) -> Result<Option<Ending>> {
        if as_dir {
            return Ok(None);
        }
        let freeing = {
            // Only for this: more may be asked of a store.
            let guard = epoch::pin();
            let Some(inode) = self.index.peek(ino.0, &guard) else {
                return Ok(None);
            };
            self.may_delete(who, dir, inode, as_dir)?;
            if inode.nlink() != 1 {
                return Ok(None);
            }
            self.index.begin_evict(inode)
        };
        // It may have got another name before. Then what was begun is dropped, and it lives on.
        let ended = freeing.filter(|freeing| freeing.nlink() == 1);
        Ok(ended.map(|freeing| self.ending(freeing)))
    }

    /// What becomes of an inode that is about to lose a name: if that is the only one, and nobody else uses it, it ends
    /// here, and the store hears of that in the same batch. `None`: it got another name just now, and lives on.
    fn end_at_last_name(&self, victim: Node) -> Option<Victim> {
        let is_last = |inode: &Inode| inode.kind().is_dir() || inode.nlink() == 1;
        if self.pinned || !is_last(victim.inode()) {
            return Some(Victim::Used(victim));
        }
        match victim.into_last() {
            Ok(freeing) if is_last(&freeing) => Some(Victim::Ended(self.ending(freeing))),
            Ok(_) => None,
            Err(node) => Some(Victim::Used(node)),
        }
    }

    fn record_removal(
        &self,
        log_order: Option<Taken<'_, 2>>,
        reservation: &mut Reservation<'_>,
        (dir, name, cookie): (&Inode, &[u8], u64),
        victim: &Victim,
        now: Time,
    ) -> Result<()> {
        let held = reservation.held();
        let inode = victim.inode();
        let leave = Change::Leave {
            dir: dir.ino(),
            name,
            cookie,
        };
        let of_dir = || Change::Attributes {
            inode: dir.record(&dir.meta()),
        };
        match victim {
            Victim::Used(_) => self.in_log_order(log_order, Scope::Names, || {
                let of_inode = Change::Attributes {
                    inode: inode.record(&inode.meta()),
                };
                self.behind.apply(held, &[of_inode, leave, of_dir()])
            }),
            Victim::Ended(_) => {
                let mut last = inode.meta();
                last.nlink = 0;
                last.ctime = now;
                // First: the store need not keep them, since the batch ends the inode.
                let last = Change::Attributes {
                    inode: inode.record(&last),
                };
                let free = Change::Free { ino: inode.ino() };
                let batch = [last, leave, of_dir(), free];
                self.in_log_order(log_order, Scope::Names, || self.behind.apply(held, &batch))
            }
        }
    }

    /// Marks a directory as removed, if it is empty. Its parent's names are locked.
    pub(super) fn bury_directory(&self, victim: &Inode) -> Result<()> {
        let body = victim.directory()?;
        self.load_names(victim, body)?;
        let mut names = body.names.write();
        if !self.is_empty(victim, &mut names)? {
            return Err(Errno::ENOTEMPTY);
        }
        names.free();
        Ok(())
    }

    /// Takes one name from an inode's count (a directory: both of an empty one's); tells how
    /// many are left. An inode without any becomes an orphan.
    pub(super) fn lose_name(&self, victim: &Node, now: Time) -> u32 {
        let mut meta = victim.inode().write();
        meta.nlink = if victim.kind().is_dir() {
            0
        } else {
            meta.nlink.saturating_sub(1)
        };
        meta.ctime = now;
        if meta.nlink == 0 {
            // The caller has a use of it, so it does not end here.
            drop(victim.inode().mark_freeing());
        }
        meta.nlink
    }

    /// Tells watchers of an inode that it lost a name. (inotify reports the end of an inode when
    /// its last use goes; so do we: see `evict`.)
    pub(crate) fn tell_lost(&self, victim: &Inode, left: u32) {
        if !victim.kind().is_dir() || left > 0 {
            self.watches
                .notify(victim.ino(), EventMask::ATTRIB, None, 0);
        }
    }
}
