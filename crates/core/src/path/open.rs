//! openat(2): opening by path, made if it is not there.

use holdfast_sync::epoch::Guard;

use super::walk::Walk;
use crate::FileSystem;
use crate::node::Node;
use crate::open::OpenFile;
use crate::types::{Caller, Errno, FileType, OpenFlags, Result, is_special};

impl FileSystem {
    /// Opens what a path leads to, as openat(2): `perm` is for a file that CREATE or TMPFILE
    /// makes.
    ///
    /// # Errors
    /// Those of [`FileSystem::resolve`], [`FileSystem::open`], [`FileSystem::create`] and
    /// [`FileSystem::tmpfile`]; `EINVAL` for CREATE with DIRECTORY; `EISDIR` for CREATE where
    /// slashes follow; `ELOOP` for a symbolic link with NOFOLLOW.
    pub fn open_at(
        &self,
        who: &Caller,
        base: &Node,
        path: &[u8],
        flags: OpenFlags,
        perm: u16,
    ) -> Result<OpenFile> {
        self.core
            .again_if_gone(|| self.open_path(who, base, path, flags, perm))
    }

    #[inline(always)]
    fn open_path(
        &self,
        who: &Caller,
        base: &Node,
        path: &[u8],
        flags: OpenFlags,
        perm: u16,
    ) -> Result<OpenFile> {
        let guard = self.core.calm();
        let follow = !flags.contains(OpenFlags::NOFOLLOW);
        if flags.contains(OpenFlags::PATH) {
            let kept = OpenFlags::PATH | OpenFlags::DIRECTORY | OpenFlags::NOFOLLOW;
            let node = self.resolve(who, base, path, follow)?;
            return self.open_node(who, node, flags.intersection(kept));
        }
        if flags.is_tmpfile() {
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
        self.create_at(who, base, path, flags, perm, guard.as_ref())
    }

    fn create_at(
        &self,
        who: &Caller,
        base: &Node,
        path: &[u8],
        flags: OpenFlags,
        perm: u16,
        calm: Option<&Guard>,
    ) -> Result<OpenFile> {
        let Some(guard) = calm else {
            return self.create_over_store(who, base, path, flags, perm);
        };
        if let Some(at) = self.core.glide_to_parent(who, base.inode(), path, guard)
            && !at.trailing_slash
        {
            // Returned as it comes: to move an open file that was just made takes long.
            if flags.contains(OpenFlags::EXCLUSIVE) {
                return self.create_at_once(who, at.dir, at.name, perm, flags);
            }
            match self.create_sought(who, at.dir, at.name, perm, flags) {
                // A symbolic link: to be followed, perhaps.
                Err(Errno::ELOOP) => {}
                made => return made,
            }
        }
        self.create_walking(who, base, path, flags, perm)
    }

    /// As [`create_at`](Self::create_at), without a guard: somebody is waited for.
    #[inline(never)]
    fn create_over_store(
        &self,
        who: &Caller,
        base: &Node,
        path: &[u8],
        flags: OpenFlags,
        perm: u16,
    ) -> Result<OpenFile> {
        if let Some(at) = self.parent_quickly(who, base, path)
            && !at.trailing_slash
        {
            if flags.contains(OpenFlags::EXCLUSIVE) {
                return self.create_sought(who, at.dir.inode(), &at.name, perm, flags);
            }
            match self.create_sought(who, at.dir.inode(), &at.name, perm, flags) {
                Err(Errno::ELOOP) => {}
                made => return made,
            }
        }
        self.create_walking(who, base, path, flags, perm)
    }

    /// As [`create_at`](Self::create_at), whatever is on the way.
    fn create_walking(
        &self,
        who: &Caller,
        base: &Node,
        path: &[u8],
        flags: OpenFlags,
        perm: u16,
    ) -> Result<OpenFile> {
        let exclusive = flags.contains(OpenFlags::EXCLUSIVE);
        let mut walk = Walk::new(self, base, path)?;
        loop {
            let at = walk.parent(self, who)?;
            if is_special(&at.name) {
                return Err(if exclusive {
                    Errno::EEXIST
                } else {
                    Errno::EISDIR
                });
            }
            if at.trailing_slash {
                return Err(Errno::EISDIR);
            }
            let node = match self.lookup(who, &at.dir, &at.name) {
                Err(Errno::ENOENT) => {
                    match self.create(who, &at.dir, &at.name, perm, flags) {
                        // Somebody put a link there just now: look at it again.
                        Err(Errno::ELOOP) if !exclusive => self.lookup(who, &at.dir, &at.name)?,
                        made => return made,
                    }
                }
                found => found?,
            };
            if exclusive {
                return Err(Errno::EEXIST);
            }
            if node.kind() == FileType::Symlink && !flags.contains(OpenFlags::NOFOLLOW) {
                walk.through(self, &node, at)?;
                continue;
            }
            if node.kind().is_dir() {
                return Err(Errno::EISDIR);
            }
            return self.open_node(who, node, flags);
        }
    }
}
