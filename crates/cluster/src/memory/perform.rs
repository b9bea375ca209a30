//! Requests: each is one change.

use super::state::State;
use super::transaction::Transaction;
use crate::meta::{Answer, Request};
use holdfast_types::Result;

impl State {
    /// Performs a request of a session that lives.
    ///
    /// # Errors
    /// Those of the request; nothing happened then.
    pub(super) fn perform(&mut self, session: u64, request: &Request) -> Result<Answer> {
        let transaction = Transaction::new(self, session);
        match request {
            Request::Make { dir, name, new } => transaction.make(*dir, name, new),
            Request::MakeUnnamed { dir, new } => transaction.make_unnamed(*dir, new),
            Request::Link {
                ino,
                dir,
                name,
                cookie,
            } => transaction.link(*ino, *dir, name, *cookie),
            Request::Remove {
                dir,
                name,
                directory,
            } => transaction.remove(*dir, name, *directory),
            Request::Rename {
                from,
                to,
                flags,
                cookie,
                whiteout,
            } => {
                let (from, to) = ((from.0, &*from.1), (to.0, &*to.1));
                transaction.rename(from, to, *flags, *cookie, whiteout.as_ref())
            }
            Request::SetAttributes { ino, change } => transaction.set_attributes(*ino, change),
            Request::SetXattr {
                ino,
                name,
                value,
                how,
                perm,
            } => transaction.set_xattr(*ino, name, value.as_deref(), *how, *perm),
            Request::RemoveXattr { ino, name } => transaction.remove_xattr(*ino, name),
            Request::Flush(flush) => transaction.flush(flush),
        }
    }
}
