//! Moving names.

use super::ThroughStore;
use super::names::{NamesChange, enter};
use super::take_in::Changed;
use crate::namespace::End;
use crate::node::Node;
use crate::store::{Done, Operation};
use crate::types::{Caller, Errno, FileType, Ino, RenameFlags, Result, check_component};

/// What a name leads to.
type Entry = (Ino, FileType);

impl ThroughStore<'_> {
    /// Moves a name; tells what changed with it. Both directories can be searched.
    ///
    /// # Errors
    /// Those of [`FileSystem::rename`](crate::FileSystem::rename); what the store answers.
    pub(crate) fn rename(
        self,
        who: &Caller,
        from: End<'_>,
        to: End<'_>,
        flags: RenameFlags,
    ) -> Result<Vec<Node>> {
        let core = self.core;
        check_component(to.name)?;
        let from_body = from.dir.inode().directory()?;
        let to_body = to.dir.inode().directory()?;
        if !who.checked || from.slash || to.slash {
            let source = core.child(from.dir.inode(), from_body, from.name)?;
            let target = match core.child(to.dir.inode(), to_body, to.name) {
                Err(Errno::ENOENT) => None,
                found => Some(found?),
            };
            if core.rename_changes_nothing(who, from, to, flags, &source, target.as_ref())? {
                return Ok(Vec::new());
            }
        }
        let change = self.begin(from.dir.inode(), from_body);
        let to_change = (from.dir != to.dir).then(|| self.begin(to.dir.inode(), to_body));
        let rename = Operation::Rename {
            from: (from.dir.ino(), from.name),
            to: (to.dir.ino(), to.name),
            flags,
        };
        let done = self.perform(who, &rename).inspect_err(|error| {
            change.refused(self, from.name, *error);
            to_change.unwrap_or(change).refused(self, to.name, *error);
        })?;
        let moved = done.entry.ok_or(Errno::EUCLEAN)?;
        let exchange = flags.contains(RenameFlags::EXCHANGE);
        if !exchange && done.other == Some(moved) {
            // Two names of one inode: both stay.
            return Ok(Vec::new());
        }
        self.move_names((change, from), (to_change, to), flags, &done, moved)?;
        let mut changed = Vec::new();
        if let Some(source) = self.take_in_known(&done, moved.0, Changed::Nothing)? {
            changed.push(source);
        }
        if let Some((ino, _)) = done.other
            && let Some(target) = self.take_in_lost(&done, ino)?
        {
            if !exchange {
                core.tell_lost(target.inode(), target.inode().nlink());
            }
            changed.push(target);
        }
        core.tell_moved(from, to, moved.0, moved.1.is_dir());
        if let (true, Some((ino, kind))) = (exchange, done.other) {
            core.tell_moved(to, from, ino, kind.is_dir());
        }
        Ok(changed)
    }

    /// Does to names in memory what the store did.
    fn move_names(
        self,
        (change, from): (NamesChange<'_>, End<'_>),
        (to_change, to): (Option<NamesChange<'_>>, End<'_>),
        flags: RenameFlags,
        done: &Done,
        moved: Entry,
    ) -> Result<()> {
        let exchange = flags.contains(RenameFlags::EXCHANGE);
        // What a whiteout is like has to be asked for.
        let whiteout = flags.contains(RenameFlags::WHITEOUT);
        let Some(to_change) = to_change else {
            return self.end(change, done, |names| {
                match (exchange, names.has(to.name)) {
                    _ if whiteout || !names.has(from.name) => return false,
                    (true, true) => names.exchange(from.name, to.name),
                    (true, false) => return false,
                    (false, true) => drop(names.rename_over(from.name, to.name)),
                    (false, false) => drop(names.rename(from.name, to.name)),
                }
                true
            });
        };
        self.end(to_change, done, |names| {
            enter(names, to.name, moved).is_some()
        })?;
        self.end(change, done, |names| match (exchange, done.other) {
            _ if whiteout => false,
            (true, Some(other)) => enter(names, from.name, other).is_some(),
            (true, None) => false,
            (false, _) => {
                names.remove(from.name);
                true
            }
        })
    }
}
