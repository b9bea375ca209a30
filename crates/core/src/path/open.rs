//! openat(2): opening and creating by path.

use super::walk::{Resolved, Walk};
use crate::FileSystem;
use crate::node::Node;
use crate::open_file::OpenFile;
use crate::shared::retry_if_stale;
use crate::types::{Caller, Errno, FileType, OpenFlags, Result, is_special};

impl FileSystem {
    /// Opens a path, as openat(2). `perm` is the mode of a file that CREATE or TMPFILE creates.
    ///
    /// # Errors
    /// Those of [`FileSystem::resolve`], [`FileSystem::open`], [`FileSystem::create`] and
    /// [`FileSystem::tmpfile`]. `EINVAL` for CREATE with DIRECTORY; `EISDIR` for CREATE with
    /// trailing slashes; `ELOOP` for a symbolic link with NOFOLLOW.
    pub fn open_at(
        &self,
        who: &Caller,
        base: &Node,
        path: &[u8],
        flags: OpenFlags,
        perm: u16,
    ) -> Result<OpenFile> {
        retry_if_stale(&self.core, || self.open_path(who, base, path, flags, perm))
    }

    fn open_path(
        &self,
        who: &Caller,
        base: &Node,
        path: &[u8],
        flags: OpenFlags,
        perm: u16,
    ) -> Result<OpenFile> {
        let follow = !flags.contains(OpenFlags::NOFOLLOW);
        if flags.contains(OpenFlags::PATH) {
            let kept = OpenFlags::PATH | OpenFlags::DIRECTORY | OpenFlags::NOFOLLOW;
            let node = self.resolve(who, base, path, follow)?;
            return self.open_node(who, node, flags.intersection(kept));
        }
        if flags.contains(OpenFlags::TMPFILE) {
            if flags.contains(OpenFlags::CREATE) || !flags.writable() {
                return Err(Errno::EINVAL);
            }
            let dir = self.resolve(who, base, path, follow)?;
            return self.tmpfile(who, &dir, perm, flags);
        }
        if !flags.contains(OpenFlags::CREATE) {
            let node = self.resolve(who, base, path, follow)?;
            return self.open_node(who, node, flags);
        }
        if flags.contains(OpenFlags::DIRECTORY) {
            return Err(Errno::EINVAL);
        }
        let follow = follow && !flags.contains(OpenFlags::EXCLUSIVE);
        let mut walk = Walk::new(self, base, path)?;
        loop {
            let at = walk.parent(self, who)?;
            let made = self.create_at(who, &at, flags, perm);
            if !follow || !matches!(made, Err(Errno::ELOOP)) {
                return made;
            }
            match self.lookup(who, &at.dir, &at.name) {
                Ok(link) if link.kind() == FileType::Symlink => walk.through(self, &link, at)?,
                // Another thread replaced or removed the link.
                Ok(_) | Err(Errno::ENOENT) => return self.create_at(who, &at, flags, perm),
                Err(error) => return Err(error),
            }
        }
    }

    /// Opens the file of the last name of a path, creating it if it does not exist.
    ///
    /// # Errors
    /// `ELOOP` if it is a symbolic link.
    fn create_at(
        &self,
        who: &Caller,
        at: &Resolved,
        flags: OpenFlags,
        perm: u16,
    ) -> Result<OpenFile> {
        if is_special(&at.name) {
            return Err(match flags.contains(OpenFlags::EXCLUSIVE) {
                true => Errno::EEXIST,
                false => Errno::EISDIR,
            });
        }
        if at.trailing_slash {
            return Err(Errno::EISDIR);
        }
        self.create(who, &at.dir, &at.name, perm, flags)
    }
}
