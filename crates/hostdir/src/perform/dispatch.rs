//! From an operation to what performs it.

use holdfast_core::store::{Done, Operation};
use holdfast_core::types::Result;

use super::Performer;

impl Performer<'_> {
    /// Performs the operation.
    ///
    /// # Errors
    /// Those of the system calls.
    pub(crate) fn perform(self, operation: &Operation<'_>) -> Result<Done> {
        match *operation {
            Operation::Make {
                dir,
                name,
                new,
                open,
            } => self.make(dir, name, &new, open),
            Operation::MakeUnnamed { dir, new, linkable } => self.make_unnamed(dir, &new, linkable),
            Operation::Link { ino, dir, name } => self.link(ino, dir, name),
            Operation::Remove {
                dir,
                name,
                directory,
            } => self.remove(dir, name, directory),
            Operation::Rename {
                from, to, flags, ..
            } => self.rename(from, to, flags),
            Operation::SetAttributes { ino, set } => self.set_attributes(ino, &set),
            Operation::SetFlags {
                ino,
                flags,
                project,
            } => self.set_flags(ino, flags, project),
            Operation::Resize { ino, size, .. } => self.resize(ino, size),
            Operation::Write { ino, offset, bufs } => self.write(ino, offset, bufs),
            Operation::Allocate {
                ino,
                mode,
                offset,
                len,
            } => self.allocate(ino, mode, offset, len),
            Operation::Copy { from, to, len } => self.copy(from, to, len),
            Operation::SetXattr {
                ino,
                name,
                value,
                how,
                ..
            } => self.set_xattr(ino, name, value, how),
            Operation::RemoveXattr { ino, name, .. } => self.remove_xattr(ino, name),
        }
    }
}
