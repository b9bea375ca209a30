//! What administrators request of a mount: to revoke it, to trim it, and control requests.

use super::{
    Asking, CoreOperations,
    caller::{has_caps, uid, unchecked_caller},
};
use crate::{
    Context,
    wire::control::{CONTROL, FITRIM, TrimRange, framed, unframed},
};
use holdfast_core::types::{Caps, Errno, Ino, Result};
use zerocopy::{FromBytes, IntoBytes};

/// The user id where the kernel does not send one.
const UNTOLD: u32 = u32::MAX;

impl CoreOperations {
    /// Revokes the file system, if the caller may unmount it.
    pub(super) fn take_away(&self, cx: Option<&Context<'_>>) -> Result<()> {
        if cx.is_some_and(|cx| !may_unmount(cx)) {
            return Err(Errno::EPERM);
        }
        if self.fs.is_revoked() {
            return Ok(());
        }
        self.write_dirty_pages();
        self.fs.revoke()
    }

    /// Answers an ioctl with bytes.
    pub(super) fn control(
        &self,
        cx: &Context<'_>,
        ino: Ino,
        command: u32,
        input: &[u8],
    ) -> Result<Vec<u8>> {
        // FITRIM is for the file system that an open file is on; other requests are for its root.
        if command != FITRIM && (command != CONTROL || ino != Ino::ROOT) {
            return Err(Errno::ENOTTY);
        }
        let control = self.control.read().clone().ok_or(Errno::ENOTTY)?;
        let may_administer = may_unmount(cx);
        if command == CONTROL {
            let asking = Asking {
                caller: unchecked_caller(cx),
                may_administer,
            };
            let answer = control.call(unframed(input)?, &asking)?;
            return Ok(framed(&answer)?.to_vec());
        }
        if !may_administer {
            return Err(Errno::EPERM);
        }
        let mut range = TrimRange::read_from_bytes(input).map_err(|_| Errno::EINVAL)?;
        range.len = control.trim(range.start, range.len, range.least)?;
        Ok(range.as_bytes().to_vec())
    }

    /// Has the kernel write its dirty pages, of shared mappings or of its writeback cache. An
    /// invalidation waits for the writes of the pages that it drops.
    fn write_dirty_pages(&self) {
        let mut writable = Vec::new();
        if self.config.no_open {
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

    /// Calls `visit` with every inode that the kernel may know, some perhaps twice: the root, which
    /// it knows without a reference, and those that it has a reference of.
    pub(super) fn each_known(&self, visit: &mut dyn FnMut(Ino)) {
        visit(Ino::ROOT);
        self.fs.each_known_by_number(|ino, _| visit(ino));
    }
}

/// Is the caller an administrator, or the user that mounted?
///
/// The process is read where the request does not name the user. Its id cannot belong to another
/// process by then: a caller waits for its request and cannot end, not even killed.
fn may_unmount(cx: &Context<'_>) -> bool {
    let caller = if cx.uid == UNTOLD {
        uid(cx.pid)
    } else {
        Some(cx.uid)
    };
    match caller {
        Some(0) => has_caps(cx.pid, Caps::SYS_ADMIN),
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
