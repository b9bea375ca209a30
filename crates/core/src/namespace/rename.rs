//! Moving names: rename(2) with its flags.
//!
//! *Locking.* A rename between two directories holds `rename_lock`, so that the tree's shape
//! stands still: then an ancestor's names are locked before a descendant's, others by number. A
//! directory that is replaced is locked last.

use holdfast_sync::epoch;
use std::sync::atomic::Ordering;

use super::lookup::dangling;
use crate::directory::Names;
use crate::file_system::Core;
use crate::inode::{Inode, Numbered as _};
use crate::node::Node;
use crate::types::{Access, Caller, Errno, Ino, RenameFlags, Result, check_component, is_special};
use crate::{FileSystem, clock};

/// One end of a rename: a directory and a name in it.
#[derive(Clone, Copy)]
pub(crate) struct End<'a> {
    pub(crate) dir: &'a Node,
    pub(crate) name: &'a [u8],
    /// Did slashes follow the name? Then it is to be a directory's.
    pub(crate) slash: bool,
}

/// The locked names of both ends; `to` is absent when it is the same directory.
pub(super) struct Locked<'a> {
    pub(super) from: Names<'a>,
    to: Option<Names<'a>>,
}

impl<'a> Locked<'a> {
    /// Unlocks both.
    pub(super) fn end(self, from: &Node, to: &Node) {
        let ends = [(Some(self.from), from), (self.to, to)];
        // Both are unlocked before either is locked as a whole.
        let wasteful =
            ends.map(|(names, dir)| (names.is_some_and(|names| names.is_wasteful()), dir));
        for (_, dir) in wasteful.into_iter().filter(|(wasteful, _)| *wasteful) {
            if let Ok(body) = dir.inode().directory() {
                body.names.tidy(dir.inode());
            }
        }
    }

    pub(super) fn to(&mut self) -> &mut Names<'a> {
        self.to.as_mut().unwrap_or(&mut self.from)
    }
}

impl FileSystem {
    /// Moves a name, replacing what the new name led to (renameat2(2)).
    ///
    /// # Errors
    /// `ENOENT`; `EEXIST` with NOREPLACE; `ENOTEMPTY`, `EISDIR`, `ENOTDIR` when the new name
    /// cannot be replaced; `EINVAL` for a directory moved into itself, or flags that contradict;
    /// `EBUSY` for `.` and `..`; `EACCES`, `EPERM`, `EROFS`, `EMLINK`, `ENOSPC`; `EDQUOT` for a
    /// whiteout.
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
        self.rename_ends(who, from, to, flags)
    }

    pub(crate) fn rename_ends(
        &self,
        who: &Caller,
        from: End<'_>,
        to: End<'_>,
        flags: RenameFlags,
    ) -> Result<()> {
        let changed = self.core.rename(who, from, to, flags)?;
        self.core.tell_entry(who, from.dir.ino(), from.name);
        self.core.tell_entry(who, to.dir.ino(), to.name);
        for node in changed {
            self.core.tell_inode(who, node.ino(), false);
        }
        Ok(())
    }
}

impl Core {
    fn rename(
        &self,
        who: &Caller,
        from: End<'_>,
        to: End<'_>,
        flags: RenameFlags,
    ) -> Result<Vec<Node>> {
        self.check_ends(who, from, to, flags)?;
        let between = from.dir != to.dir;
        let _shape = between.then(|| self.rename_lock.lock());
        let mut locked = self.lock_ends(from, to)?;
        let _guard = self.calm();

        let entry = locked.from.get(from.name).ok_or_else(|| self.absent())?;
        let source = self.node(entry.ino).map_err(dangling)?;
        check_component(to.name)?;
        let target = match locked.to().get(to.name).map(|entry| entry.ino) {
            Some(ino) => Some(self.node(ino).map_err(dangling)?),
            None => None,
        };
        let exchange = flags.contains(RenameFlags::EXCHANGE);
        match &target {
            Some(_) if flags.contains(RenameFlags::NOREPLACE) => return Err(Errno::EEXIST),
            None if exchange => return Err(Errno::ENOENT),
            _ => {}
        }
        let wants_dir = from.slash || to.slash && !exchange;
        if wants_dir && !source.kind().is_dir()
            || exchange
                && to.slash
                && target
                    .as_ref()
                    .is_some_and(|target| !target.kind().is_dir())
        {
            return Err(Errno::ENOTDIR);
        }
        if between {
            self.refuse_loops(from.dir, to.dir, &source, target.as_ref(), exchange)?;
        }
        if target.as_ref() == Some(&source) {
            return Ok(Vec::new());
        }
        self.may_rename(
            who,
            from.dir,
            to.dir,
            &mut locked,
            &source,
            target.as_ref(),
            exchange,
        )?;

        let now = clock::now();
        if let (true, Some(target)) = (exchange, &target) {
            self.exchange(from, to, &mut locked, &source, target, now)?;
        } else {
            let whiteout = flags.contains(RenameFlags::WHITEOUT);
            self.replace(
                who,
                from,
                to,
                &mut locked,
                &source,
                target.as_ref(),
                whiteout,
                now,
            )?;
        }
        locked.end(from.dir, to.dir);
        Ok(std::iter::once(source).chain(target).collect())
    }

    /// What can be said before anything is locked.
    fn check_ends(
        &self,
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
        self.search(who, from.dir.inode())?;
        self.search(who, to.dir.inode())?;
        self.writable()?;
        check_component(from.name)
    }

    fn lock_ends<'n>(&self, from: End<'n>, to: End<'n>) -> Result<Locked<'n>> {
        let bodies = (from.dir.inode().directory()?, to.dir.inode().directory()?);
        if from.dir == to.dir {
            return Ok(Locked {
                from: self.lock_names(from.dir.inode(), bodies.0, [from.name, to.name]),
                to: None,
            });
        }
        let to_first = if self.descends(from.dir, to.dir.ino())? {
            true
        } else {
            !self.descends(to.dir, from.dir.ino())? && to.dir.ino() < from.dir.ino()
        };
        let lock_from = || self.lock_name(from.dir.inode(), bodies.0, from.name);
        let lock_to = || self.lock_name(to.dir.inode(), bodies.1, to.name);
        let (from, to) = if to_first {
            let to = lock_to();
            (lock_from(), to)
        } else {
            (lock_from(), lock_to())
        };
        Ok(Locked { from, to: Some(to) })
    }

    /// Is `dir` below the directory `above` (or the same)? The rename lock is held.
    fn descends(&self, dir: &Node, above: Ino) -> Result<bool> {
        if self.pinned {
            return self.descends_in_memory(dir.inode(), above);
        }
        let mut at = dir.clone();
        loop {
            if at.ino() == above {
                return Ok(true);
            }
            let parent = Ino(at.inode().directory()?.parent.load(Ordering::Relaxed));
            if parent == at.ino() {
                return Ok(false);
            }
            // A removed directory's parent may be gone as well: then nothing is above it.
            at = match self.node(parent) {
                Ok(node) => node,
                Err(Errno::ESTALE) => return Ok(false),
                Err(error) => return Err(error),
            };
        }
    }

    /// As [`Core::descends`], where nothing has to be loaded: without a use of directories that many
    /// have in common.
    fn descends_in_memory(&self, dir: &Inode, above: Ino) -> Result<bool> {
        let guard = epoch::pin();
        let mut at = dir;
        loop {
            if at.ino() == above {
                return Ok(true);
            }
            let parent = Ino(at.directory()?.parent.load(Ordering::Relaxed));
            if parent == at.ino() {
                return Ok(false);
            }
            at = match self.index.peek(parent.0, &guard) {
                Some(inode) if inode.is_live() => inode,
                _ => return Ok(false),
            };
        }
    }

    fn refuse_loops(
        &self,
        from_dir: &Node,
        to_dir: &Node,
        source: &Node,
        target: Option<&Node>,
        exchange: bool,
    ) -> Result<()> {
        if source.kind().is_dir() && self.descends(to_dir, source.ino())? {
            return Err(Errno::EINVAL);
        }
        if let Some(target) = target
            && target.kind().is_dir()
            && self.descends(from_dir, target.ino())?
        {
            return Err(if exchange {
                Errno::EINVAL
            } else {
                Errno::ENOTEMPTY
            });
        }
        Ok(())
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "both ends, what is at each, and whose rename"
    )]
    fn may_rename(
        &self,
        who: &Caller,
        from_dir: &Node,
        to_dir: &Node,
        locked: &mut Locked<'_>,
        source: &Node,
        target: Option<&Node>,
        exchange: bool,
    ) -> Result<()> {
        let is_dir = source.kind().is_dir();
        let target_is_dir = target.is_some_and(|target| target.kind().is_dir());
        self.may_delete(who, from_dir.inode(), &locked.from, source, is_dir)?;
        match target {
            None => self.may_create(who, to_dir.inode(), locked.to())?,
            Some(target) => {
                let as_dir = if exchange { target_is_dir } else { is_dir };
                self.may_delete(who, to_dir.inode(), locked.to(), target, as_dir)?;
            }
        }
        if from_dir == to_dir {
            return Ok(());
        }
        // A directory that moves gets another `..`: that is a change of it.
        if is_dir {
            self.may(who, source.inode(), Access::WRITE)?;
        }
        if let (true, Some(target)) = (exchange && target_is_dir, target) {
            self.may(who, target.inode(), Access::WRITE)?;
        }
        let full = |dir: &Node| self.is_full_of_directories(dir.inode());
        if is_dir && !target_is_dir && full(to_dir)
            || exchange && target_is_dir && !is_dir && full(from_dir)
        {
            return Err(Errno::EMLINK);
        }
        Ok(())
    }
}

/// # Errors
/// `EINVAL` for flags that are unknown or contradict each other.
pub(crate) fn check_flags(flags: RenameFlags) -> Result<()> {
    let exclusive = RenameFlags::NOREPLACE | RenameFlags::WHITEOUT;
    if !RenameFlags::all().contains(flags)
        || flags.contains(RenameFlags::EXCHANGE) && flags.intersects(exclusive)
    {
        return Err(Errno::EINVAL);
    }
    Ok(())
}
