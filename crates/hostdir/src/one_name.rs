//! Opening one name of a directory, or the directory again.

use holdfast_core::types::{Errno, Result};
use rustix::fs::{Mode, OFlags, ResolveFlags, openat, openat2};
use std::os::fd::{BorrowedFd, OwnedFd};

use crate::sys::errno;

/// Not `RESOLVE_BENEATH`: with it the kernel checks again that the file it found is below the
/// directory. It answers `EXDEV` if another process has moved the file out in between. A single
/// name leads nowhere else.
const RESOLVE: ResolveFlags = ResolveFlags::NO_SYMLINKS.union(ResolveFlags::NO_XDEV);

/// Opens a name of a directory. Neither a symbolic link nor a mount is followed.
///
/// # Errors
/// `EXDEV`: a mount covers the name, or it leads out of the directory. Those of openat2(2).
pub(crate) fn open_name(
    dir: BorrowedFd<'_>,
    name: &[u8],
    flags: OFlags,
    mode: Mode,
) -> Result<OwnedFd> {
    if name == b".." || name.contains(&b'/') {
        return Err(Errno::EXDEV);
    }
    let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat2(dir, name, flags, mode, RESOLVE).map_err(errno)
}

/// Opens a directory again, to list it.
///
/// # Errors
/// Those of open(2).
pub(crate) fn open_to_list(dir: BorrowedFd<'_>, flags: OFlags) -> Result<OwnedFd> {
    let flags = flags | OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    openat(dir, ".", flags, Mode::empty()).map_err(errno)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    use std::fs::{self, File};
    use std::os::fd::AsFd;
    use std::sync::atomic::{AtomicBool, Ordering};

    #[test]
    fn a_name_does_not_lead_out_of_its_directory() {
        let root = tempfile::tempdir().unwrap();
        fs::write(root.path().join("file"), b"").unwrap();
        std::os::unix::fs::symlink("file", root.path().join("link")).unwrap();
        let dir = File::open(root.path()).unwrap();
        let open = |name: &[u8]| {
            let opened = open_name(dir.as_fd(), name, OFlags::RDONLY, Mode::empty());
            opened.map(drop)
        };
        assert_eq!(open(b"file"), Ok(()));
        assert_eq!(open(b"link"), Err(Errno::ELOOP));
        for name in [&b".."[..], b"/", b"./file", b"../file"] {
            assert_eq!(open(name), Err(Errno::EXDEV));
        }
    }

    #[test]
    fn a_file_can_be_opened_while_others_move_it_out_of_its_directory() {
        const ROUNDS: usize = 300_000;
        let root = tempfile::tempdir().unwrap();
        let [inside, outside] = ["inside", "outside"].map(|dir| root.path().join(dir));
        for dir in [&inside, &outside] {
            fs::create_dir(dir).unwrap();
            fs::write(dir.join("file"), b"").unwrap();
        }
        let dir = File::open(&inside).unwrap();
        let is_over = AtomicBool::new(false);
        let refused = std::thread::scope(|scope| {
            scope.spawn(|| {
                let (one, other) = (inside.join("file"), outside.join("file"));
                while !is_over.load(Ordering::Relaxed) {
                    renameat_with(CWD, &one, CWD, &other, RenameFlags::EXCHANGE).unwrap();
                }
            });
            let open = |_| open_name(dir.as_fd(), b"file", OFlags::PATH, Mode::empty()).err();
            let refused = (0..ROUNDS).find_map(open);
            is_over.store(true, Ordering::Relaxed);
            refused
        });
        assert_eq!(refused, None);
    }
}
