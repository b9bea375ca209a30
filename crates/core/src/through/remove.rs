//! Removing names.

use super::ThroughStore;
use super::take_in::Changed;
use crate::directory::Place;
use crate::inode::{DirectoryBody, Inode, Numbered as _};
use crate::node::Node;
use crate::store::{Done, Operation};
use crate::types::{Caller, Errno, Ino, Result};
use crate::watch::EventMask;

impl ThroughStore<'_> {
    /// Removes a name, of an empty directory if `as_dir`.
    ///
    /// # Errors
    /// Those of [`FileSystem::unlink`](crate::FileSystem::unlink) and [`rmdir`](crate::FileSystem::rmdir); what the store answers.
    pub(crate) fn remove(
        self,
        who: &Caller,
        (dir, body): (&Inode, &DirectoryBody),
        name: &[u8],
        as_dir: bool,
    ) -> Result<()> {
        let core = self.core;
        if !who.checked {
            let victim = core.child(dir, body, name)?;
            core.may_delete(who, dir, victim.inode(), as_dir)?;
        }
        let change = self.begin(dir, body);
        let remove = Operation::Remove {
            dir: dir.ino(),
            name,
            directory: as_dir,
        };
        let done = self.perform(who, &remove);
        let done = done.inspect_err(|error| change.refused(self, name, *error))?;
        self.end(change, &done, |names| {
            names.remove(name);
            true
        })?;
        let victim = done.entry.map(|(ino, _)| self.take_in_lost(&done, ino));
        let victim = match victim {
            // Nothing can be told of it any more.
            None | Some(Err(Errno::ESTALE)) => None,
            Some(taken) => taken?,
        };
        core.notify_name(dir.ino(), EventMask::DELETE, name, as_dir, 0);
        core.notify_entry(who, dir.ino(), name);
        if let Some(victim) = victim {
            core.tell_lost(victim.inode(), victim.inode().nlink());
            core.notify_inode(who, victim.ino(), false);
            core.put(victim);
        }
        Ok(())
    }

    /// What lost a name, if it is in memory. A directory has none any more, and gets none.
    ///
    /// # Errors
    /// As [`take_in`](Self::take_in).
    pub(super) fn take_in_lost(self, done: &Done, ino: Ino) -> Result<Option<Node>> {
        let Some(node) = self.take_in_known(done, ino, Changed::Nothing)? else {
            return Ok(None);
        };
        if let Ok(body) = node.inode().directory()
            && node.inode().nlink() == 0
        {
            let mut names = body.names.write();
            let count = names.len();
            names.forget(true);
            debug_assert!(names.place() == Place::Unloaded, "nobody lists it");
            names.free();
            self.core.names.add(-i64::from(count));
        }
        Ok(Some(node))
    }
}
