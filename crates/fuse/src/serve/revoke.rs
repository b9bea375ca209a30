//! The core's part in taking a mount away from its users, and in the end of every mount.

use super::{
    CoreOperations,
    caller::{is_admin, uid},
};
use crate::Context;
use holdfast_core::types::{Errno, Ino, Result};

/// What the kernel writes where it does not tell whom a request is for.
const UNTOLD: u32 = u32::MAX;

impl CoreOperations {
    /// Revokes the file system, if whoever asks by `cx` may unmount it.
    pub(super) fn take_away(&self, cx: Option<&Context<'_>>) -> Result<()> {
        if cx.is_some_and(|cx| !may_unmount(cx)) {
            return Err(Errno::EPERM);
        }
        if self.fs.is_revoked() {
            return Ok(());
        }
        self.bring_in_dirty_pages();
        self.fs.revoke()
    }

    /// Has the kernel write what it has collected: by shared mappings, or as its writeback cache.
    /// It waits for its writes before it lets go of pages.
    fn bring_in_dirty_pages(&self) {
        let mut writable = Vec::new();
        if self.no_open {
            self.each_known(&mut |ino| writable.push(ino));
        } else {
            self.handles.each(|handle| {
                if handle.file.flags().writable() {
                    writable.push(handle.file.node().ino());
                }
            });
        }
        for ino in writable {
            self.notifier.invalidate_inode(ino, 0, 0);
        }
        self.notifier.flush();
    }

    /// Shows every inode of which the kernel may know something, some perhaps twice: the root, which it knows without a
    /// reference, and those of which it has one.
    pub(super) fn each_known(&self, visit: &mut dyn FnMut(Ino)) {
        visit(Ino::ROOT);
        self.fs.each_known_by_number(|ino, _| visit(ino));
    }
}

/// Is the caller an administrator, or the one who mounted it?
///
/// The process is looked at where the request does not name the user. It is the caller's and no
/// later one by the same number: a caller whose request is being served cannot end, not even killed.
pub(super) fn may_unmount(cx: &Context<'_>) -> bool {
    let caller = if cx.uid == UNTOLD {
        uid(cx.pid)
    } else {
        Some(cx.uid)
    };
    match caller {
        Some(0) => is_admin(cx.pid),
        Some(caller) => caller == rustix::process::geteuid().as_raw(),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Extensions;
    use rustix::{
        process::Uid,
        thread::{gettid, set_thread_res_uid},
    };

    #[test]
    fn the_one_who_mounted_it_may_unmount_it_and_another_may_not() {
        if !rustix::process::geteuid().is_root() {
            return holdfast_testkit::skip::skipped("becoming another user takes root");
        }
        let answers = std::thread::spawn(|| {
            let user = Uid::from_raw(1000);
            set_thread_res_uid(user, user, user).unwrap();
            [1000, 1001, UNTOLD].map(|uid| {
                may_unmount(&Context {
                    unique: 0,
                    uid,
                    gid: 0,
                    pid: gettid().as_raw_nonzero().get().cast_unsigned(),
                    umask: 0,
                    extensions: Extensions::default(),
                })
            })
        });
        assert_eq!(answers.join().unwrap(), [true, false, true]);
    }
}
