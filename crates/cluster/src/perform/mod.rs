//! Operations of the core: each is one request to the database, and its answer contains all that
//! the core needs, so that it asks for nothing behind it. Changes of the content of files wait
//! here, and are no request.

mod attributes;
mod content;
mod make;
mod request;

use crate::meta::Request;
use crate::store::ClusterStore;
use holdfast_core::store::{Done, Operation, Through};
use holdfast_types::{Caller, Errno, RenameFlags, Result};

impl Through for ClusterStore {
    fn perform(&self, caller: &Caller, operation: &Operation<'_>) -> Result<Done> {
        match *operation {
            Operation::Make {
                dir,
                name,
                new,
                open,
            } => self.make(caller, dir, Some(name), &new, open),
            Operation::MakeUnnamed { dir, new, .. } => self.make(caller, dir, None, &new, true),
            Operation::Link { ino, dir, name } => self.ask(Request::Link {
                ino,
                dir,
                name: name.into(),
                cookie: self.numbers.row(1)?,
            }),
            Operation::Remove {
                dir,
                name,
                directory,
            } => self.ask(Request::Remove {
                dir,
                name: name.into(),
                directory,
            }),
            Operation::Rename {
                from,
                to,
                flags,
                whiteout,
            } => {
                let new = |new| self.new_inode(caller, from.0, new);
                let exchange = flags.contains(RenameFlags::EXCHANGE);
                self.ask(Request::Rename {
                    from: (from.0, from.1.into()),
                    to: (to.0, to.1.into()),
                    flags,
                    cookie: self.numbers.row(1 + u64::from(exchange))?,
                    whiteout: whiteout.as_ref().map(new).transpose()?,
                })
            }
            _ => self.perform_on_one(operation),
        }
    }
}

impl ClusterStore {
    /// Performs an operation that changes one inode, and no name.
    fn perform_on_one(&self, operation: &Operation<'_>) -> Result<Done> {
        match *operation {
            Operation::SetAttributes { ino, set } => self.set_attributes(ino, &set),
            Operation::SetFlags {
                ino,
                flags,
                project,
            } => self.set_flags(ino, flags, project),
            Operation::SetXattr {
                ino,
                name,
                value,
                how,
                perm,
                kept,
            } => self.ask_about(
                ino,
                Request::SetXattr {
                    ino,
                    name: name.into(),
                    value: kept.then(|| value.into()),
                    how,
                    perm,
                },
            ),
            Operation::RemoveXattr { ino, name, perm } => self.remove_xattr(ino, name, perm),
            Operation::Write { ino, offset, bufs } => {
                let written = self.answers.files.write(ino, offset, bufs)?;
                Ok(self.written(written))
            }
            Operation::Resize {
                ino,
                size,
                modified,
            } => self.resize(ino, size, modified),
            Operation::Allocate {
                ino,
                mode,
                offset,
                len,
            } => {
                let written = self.answers.files.allocate(ino, mode, offset, len)?;
                Ok(self.written(written))
            }
            Operation::Copy { from, to, len } => {
                let written = self.answers.files.copy(from, to, len)?;
                Ok(self.written(written))
            }
            _ => Err(Errno::EINVAL),
        }
    }
}
