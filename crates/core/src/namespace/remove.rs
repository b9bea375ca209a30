//! Removing names.

use super::lookup::dangling;
use crate::file_system::Core;
use crate::inode::{Inode, Numbered as _};
use crate::inodes::Ending;
use crate::node::Node;
use crate::store::Change;
use crate::types::{Caller, Errno, Result, Time, check_component, is_special};
use crate::watch::EventMask;
use crate::{FileSystem, clock};

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

    fn remove(&self, who: &Caller, dir: &Inode, name: &[u8], as_dir: bool) -> Result<()> {
        let body = self.search_for(who, dir, name)?;
        check_component(name)?;
        self.writable()?;
        let wasteful;
        let victim = {
            let mut names = body.names.unclaimed();
            self.lock_one(&mut names, dir, body, name);
            let _guard = self.calm();
            let ino = names.get(name).ok_or_else(|| self.absent())?.ino;
            let victim = self.node_in(body, ino).map_err(dangling)?;
            self.may_delete(who, dir, &names, &victim, as_dir)?;
            if as_dir {
                self.bury_directory(&victim)?;
            }
            let cookie = names.remove(name).map_or(0, |entry| entry.cookie);
            self.names.add(-1);
            let now = clock::now();
            names.changed(dir, 0, -i32::from(as_dir), now);
            let left = self.lose_name(&victim, now);
            let victim = self.at_its_end(victim, left);
            if !self.pinned {
                self.record_removal(dir, name, cookie, &victim)?;
            }
            self.tell_lost(victim.inode(), left);
            self.name_happened(dir.ino(), EventMask::DELETE, name, as_dir, 0);
            wasteful = names.is_wasteful();
            victim
        };
        if wasteful {
            body.names.tidy(dir);
        }
        let ino = victim.inode().ino();
        let used = match victim {
            Victim::Used(node) => Some(node),
            Victim::Ended(ending) => {
                // Now: observers can wait for somebody who waits for its end.
                self.conclude(ending);
                None
            }
        };
        self.tell_entry(who, dir.ino(), name);
        self.tell_inode(who, ino, false);
        if let Some(node) = used {
            self.put(node);
        }
        Ok(())
    }

    /// What becomes of an inode that has so many names left: without any, and if nobody else uses
    /// it, it ends here, and the store hears of that in the same batch.
    fn at_its_end(&self, victim: Node, left: u32) -> Victim {
        if left > 0 || self.pinned {
            return Victim::Used(victim);
        }
        match victim.into_last() {
            Ok(doomed) => Victim::Ended(self.ending(doomed)),
            Err(node) => Victim::Used(node),
        }
    }

    fn record_removal(&self, dir: &Inode, name: &[u8], cookie: u64, victim: &Victim) -> Result<()> {
        let inode = victim.inode();
        let ino = inode.ino();
        let ends = matches!(victim, Victim::Ended(_));
        self.in_turn([dir, inode], || {
            let batch = [
                // First: the store need not keep them if the batch ends the inode.
                Change::Attributes {
                    inode: inode.record(&inode.meta()),
                },
                Change::Leave {
                    dir: dir.ino(),
                    name,
                    cookie,
                },
                Change::Attributes {
                    inode: dir.record(&dir.meta()),
                },
                Change::Free { ino },
            ];
            self.store.apply(if ends { &batch } else { &batch[..3] })
        })
    }

    /// Marks a directory as removed, if it is empty. Its parent's names are locked.
    pub(super) fn bury_directory(&self, victim: &Node) -> Result<()> {
        let body = victim.inode().directory()?;
        self.complete_names(victim.inode(), body)?;
        let mut names = body.names.write(victim.inode());
        if !names.is_empty() {
            return Err(Errno::ENOTEMPTY);
        }
        names.bury();
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
            drop(victim.inode().doom());
        }
        meta.nlink
    }

    /// Tells watchers of an inode that it lost a name. (inotify reports the end of an inode when
    /// its last use goes; so do we: see `evict`.)
    pub(super) fn tell_lost(&self, victim: &Inode, left: u32) {
        if !victim.kind().is_dir() || left > 0 {
            self.watches
                .notify(victim.ino(), EventMask::ATTRIB, None, 0);
        }
    }
}
