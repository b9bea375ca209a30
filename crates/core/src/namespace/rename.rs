//! Moving names: rename(2) with its flags.
//!
//! *Locking.* See [`pair`](super::pair).

use std::sync::atomic::Ordering;

use super::NewInode;
use super::lookup::dangling;
use super::pair::Locked;
use crate::FileSystem;
use crate::directory::Entry;
use crate::file_system::Core;
use crate::inode::time_of_changes;
use crate::node::Node;
use crate::rename_lock;
use crate::store::{Class, Intent, Reservation};
use crate::types::{
    Access, Caller, Errno, FileType, Ino, RenameFlags, Result, check_component, is_special,
};

/// One end of a rename: a directory and a name in it.
#[derive(Clone, Copy)]
pub(crate) struct End<'a> {
    pub(crate) dir: &'a Node,
    pub(crate) name: &'a [u8],
    /// Did slashes follow the name? Then it is to be a directory's.
    pub(crate) slash: bool,
}

impl FileSystem {
    /// Moves a name, replacing what the new name led to (renameat2(2)).
    ///
    /// # Errors
    /// `ENOENT`; `EEXIST` with NOREPLACE; `ENOTEMPTY`, `EISDIR`, `ENOTDIR` when the new name
    /// cannot be replaced; `EINVAL` for a directory moved into itself, or flags that contradict;
    /// `EBUSY` for `.` and `..`; `EACCES`, `EPERM`, `EROFS`, `EMLINK`, `ENOSPC`; `EDQUOT` for a
    /// whiteout; `EXDEV` for what is of another project than all in the new directory.
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
        self.core.notify_entry(who, from.dir.ino(), from.name);
        self.core.notify_entry(who, to.dir.ino(), to.name);
        // A listing of a directory names its parent.
        let has_moved = from.dir.ino() != to.dir.ino();
        for node in changed {
            let is_listing = has_moved && node.kind() == FileType::Directory;
            self.core.notify_inode(who, node.ino(), is_listing);
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
        if let Some(through) = self.through() {
            return through.rename(who, from, to, flags);
        }
        self.bring_ends(from, to)?;
        // Refused later, if there is nothing else to say.
        let mut reserved = Some(self.reserve_rename(from, to, flags));
        let between = from.dir != to.dir;
        if !between {
            let locked = self.lock_ends(from, to)?;
            let renamed = self.rename_locked(who, from, to, flags, locked, None, &mut reserved);
            return renamed.map(|changed| changed.unwrap_or_default());
        }
        let _loaded = self.load_ends(from, to)?;
        let moves_files = [from, to].iter().all(|end| !self.seems_directory(*end));
        let mut rename_lock = if moves_files {
            self.rename_lock.still()
        } else {
            self.rename_lock.change()
        };
        loop {
            let locked = self.lock_ends(from, to)?;
            let shape_held = Some(&rename_lock);
            let renamed =
                self.rename_locked(who, from, to, flags, locked, shape_held, &mut reserved)?;
            if let Some(changed) = renamed {
                return Ok(changed);
            }
            // A directory came in the way of a file: once more, alone.
            drop(rename_lock);
            rename_lock = self.rename_lock.change();
        }
    }

    /// Loads what a rename between two directories looks at, so that it need not while others wait for the shape. What
    /// is given keeps it in memory.
    fn load_ends(&self, from: End<'_>, to: End<'_>) -> Result<Vec<Node>> {
        let mut loaded = Vec::new();
        if self.pinned {
            return Ok(loaded);
        }
        for (end, is_replaced) in [(from, false), (to, true)] {
            let body = end.dir.inode().directory()?;
            // What the name leads to then is looked up once more.
            if let Some(entry) = self.find_name(end.dir.inode(), body, end.name)?
                && let Ok(node) = self.node(entry.ino)
            {
                // A directory is replaced only if it is empty.
                if is_replaced && let Ok(body) = node.inode().directory() {
                    self.load_names(node.inode(), body)?;
                }
                loaded.push(node);
            }
            self.load_above(end.dir, &mut loaded);
        }
        Ok(loaded)
    }

    /// Loads the directories above this one, as far as they can be: who is above whom is asked once more when the
    /// shape stands still.
    fn load_above(&self, dir: &Node, loaded: &mut Vec<Node>) {
        let top = self.climb_in_memory(dir.inode(), |_| true);
        if top == Ok(Ino::ROOT) {
            return;
        }
        let mut at = dir.clone();
        while let Ok(body) = at.inode().directory()
            && let parent = Ino(body.parent.load(Ordering::Relaxed))
            && parent != at.ino()
            && let Ok(above) = self.node(parent)
        {
            loaded.push(std::mem::replace(&mut at, above));
        }
    }

    /// Reserves what a rename may take. One over a name that is there gives back, as far as that is known without
    /// asking a store; one to a name that is no longer adds next to nothing.
    fn reserve_rename(
        &self,
        from: End<'_>,
        to: End<'_>,
        flags: RenameFlags,
    ) -> Result<Reservation<'_>> {
        let exchange = flags.contains(RenameFlags::EXCHANGE);
        let whiteout = flags.contains(RenameFlags::WHITEOUT);
        let over = self.seems(to).is_some();
        if self.pinned && (exchange || over && !whiteout) {
            return Ok(Reservation::none());
        }
        let apart = from.dir.ino() != to.dir.ino();
        let intent = Intent {
            class: match to.name.len() > from.name.len() {
                _ if whiteout => Class::Growing,
                _ if !exchange && over => Class::GivingBack,
                true if !exchange => Class::Growing,
                _ => Class::Changing,
            },
            // What is renamed over.
            ended: u64::from(over && !exchange),
            // Within a directory the place stays; of an exchange both places do, each with its name.
            again: match exchange {
                true => 4,
                false => u64::from(!apart && !over),
            },
            ..Intent::default()
        };
        let intent = intent.name(to.name).leaving(from.name);
        let intent = match over {
            true => intent.leaving(to.name),
            false => intent,
        };
        // The directories, and what moves.
        let intent = intent.records(2 + u64::from(apart) + u64::from(exchange));
        if whiteout {
            let new_inode = NewInode::of(FileType::CharDevice, 0);
            let mut intent =
                self.intent_of_new_inode(from.dir.inode(), Some(from.name), &new_inode, intent);
            intent.inodes = 1;
            return self.reserve(&intent);
        }
        self.reserve(&match exchange {
            true => intent.name(from.name),
            false => intent,
        })
    }

    /// Brings what the names lead to into memory: what is reserved depends on it.
    fn bring_ends(&self, from: End<'_>, to: End<'_>) -> Result<()> {
        for End { dir, name, .. } in [from, to] {
            self.bring_named(dir.inode(), dir.inode().directory()?, name)?;
        }
        Ok(())
    }

    /// What the name leads to just now, as far as that is known without asking a store.
    fn seems(&self, end: End<'_>) -> Option<Entry> {
        end.dir.inode().directory().ok()?.names.find(end.name)
    }

    /// Does the name lead to a directory just now, as far as that is known?
    fn seems_directory(&self, end: End<'_>) -> bool {
        self.seems(end).is_some_and(|entry| entry.kind.is_dir())
    }

    /// What remains with the names of both ends locked. `rename_lock` is held if the ends are two directories;
    /// `None` if that has to be for change.
    #[expect(
        clippy::too_many_arguments,
        reason = "both ends, what holds them still, and what was reserved"
    )]
    fn rename_locked<'s>(
        &'s self,
        who: &Caller,
        from: End<'_>,
        to: End<'_>,
        flags: RenameFlags,
        mut locked: Locked<'_>,
        rename_lock: Option<&rename_lock::Held<'_>>,
        reserved: &mut Option<Result<Reservation<'s>>>,
    ) -> Result<Option<Vec<Node>>> {
        let entry = locked.from.get(from.name).ok_or_else(|| self.absent())?;
        let source = self.node(entry.ino).map_err(dangling)?;
        check_component(to.name)?;
        let target = match locked.to().get(to.name).map(|entry| entry.ino) {
            Some(ino) => Some(self.node(ino).map_err(dangling)?),
            None => None,
        };
        let of_directory = [Some(&source), target.as_ref()]
            .iter()
            .flatten()
            .any(|node| node.kind().is_dir());
        if of_directory && rename_lock.is_some_and(|rename_lock| !rename_lock.is_for_change()) {
            return Ok(None);
        }
        let exchange = flags.contains(RenameFlags::EXCHANGE);
        check_met((from, to), flags, &source, target.as_ref())?;
        if rename_lock.is_some() {
            self.refuse_loops(from.dir, to.dir, &source, target.as_ref(), exchange)?;
        }
        if target.as_ref() == Some(&source) {
            return Ok(Some(Vec::new()));
        }
        self.may_rename(who, from.dir, to.dir, &source, target.as_ref(), exchange)?;

        let reserved = reserved.take();
        let mut reservation = reserved.unwrap_or_else(|| self.reserve_rename(from, to, flags))?;
        if self.pinned && !exchange && target.is_none() && reservation.held().kept == 0 {
            // The name was there when it was asked for, and went since.
            reservation = self.reserve(&Intent::default().name(to.name))?;
        }
        let target_inode = target.as_ref().map(Node::inode);
        let changed = [from.dir.inode(), to.dir.inode(), source.inode()];
        let now = time_of_changes(changed.into_iter().chain(target_inode));
        if let (true, Some(target)) = (exchange, &target) {
            self.exchange(
                &mut reservation,
                from,
                to,
                &mut locked,
                &source,
                target,
                now,
            )?;
        } else {
            let whiteout = flags.contains(RenameFlags::WHITEOUT);
            self.replace(
                &mut reservation,
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
        Ok(Some(std::iter::once(source).chain(target).collect()))
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

    /// May it be, as far as that is known of what the names lead to, which nothing keeps still? Does it change nothing,
    /// because both are the same inode's?
    ///
    /// # Errors
    /// Those of [`FileSystem::rename`].
    pub(crate) fn rename_changes_nothing(
        &self,
        who: &Caller,
        from: End<'_>,
        to: End<'_>,
        flags: RenameFlags,
        source: &Node,
        target: Option<&Node>,
    ) -> Result<bool> {
        let exchange = flags.contains(RenameFlags::EXCHANGE);
        check_met((from, to), flags, source, target)?;
        if from.dir != to.dir {
            self.refuse_loops(from.dir, to.dir, source, target, exchange)?;
        }
        if target == Some(source) {
            return Ok(true);
        }
        self.may_rename(who, from.dir, to.dir, source, target, exchange)?;
        Ok(false)
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

    fn may_rename(
        &self,
        who: &Caller,
        from_dir: &Node,
        to_dir: &Node,
        source: &Node,
        target: Option<&Node>,
        exchange: bool,
    ) -> Result<()> {
        let is_dir = source.kind().is_dir();
        let target_is_dir = target.is_some_and(|target| target.kind().is_dir());
        self.may_delete(who, from_dir.inode(), source.inode(), is_dir)?;
        match target {
            None => self.may_create(who, to_dir.inode())?,
            Some(target) => {
                let as_dir = if exchange { target_is_dir } else { is_dir };
                self.may_delete(who, to_dir.inode(), target.inode(), as_dir)?;
            }
        }
        to_dir.inode().take_in_project(source.inode())?;
        if let (true, Some(target)) = (exchange, target) {
            from_dir.inode().take_in_project(target.inode())?;
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

/// What the flags and slashes say of what the names lead to.
fn check_met(
    (from, to): (End<'_>, End<'_>),
    flags: RenameFlags,
    source: &Node,
    target: Option<&Node>,
) -> Result<()> {
    let exchange = flags.contains(RenameFlags::EXCHANGE);
    match target {
        Some(_) if flags.contains(RenameFlags::NOREPLACE) => return Err(Errno::EEXIST),
        None if exchange => return Err(Errno::ENOENT),
        _ => {}
    }
    let wants_dir = from.slash || to.slash && !exchange;
    if wants_dir && !source.kind().is_dir()
        || exchange && to.slash && target.is_some_and(|target| !target.kind().is_dir())
    {
        return Err(Errno::ENOTDIR);
    }
    Ok(())
}
