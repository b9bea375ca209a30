//! The walk that takes no lock and writes nothing shared.
//!
//! It goes along a path as long as every directory is in memory and no symbolic link is in the
//! way; names that are not there are found missing in the same way. Whatever else it meets, it
//! gives up, and the walk of `walk.rs` begins anew with locks and references: that one knows all
//! rules and all errors (every fast path has a total slow path).
//!
//! Each step is a lookup of its own, as in the slow walk: a rename beside it is seen before or
//! after. Within one directory a rename happens at once for readers (see `directory.rs`).

use holdfast_sync::epoch::{self, Guard};
use std::sync::atomic::Ordering;

use super::walk::Resolved;
use crate::FileSystem;
use crate::directory::Known;
use crate::file_system::Core;
use crate::inode::{Inode, Numbered as _};
use crate::node::Node;
use crate::types::{
    Access, Attr, Caller, FileType, Ino, NAME_MAX, PATH_MAX, Result, find_byte, is_special,
    rfind_byte_and_zeros,
};

/// Where a walk without locks came to.
pub(super) enum RcuWalk<'g> {
    /// To an inode that was live.
    Found(&'g Inode),
    /// To a name that is not there.
    Missing,
    /// To something that only the slow walk can judge.
    NeedsRefWalk,
}

/// As [`Resolved`], borrowed: `dir` stays allocated while it is, and may be removed meanwhile.
#[derive(Clone, Copy)]
pub(super) struct BorrowedAt<'p, 'g> {
    /// The directory.
    pub(super) dir: &'g Inode,
    /// The last name.
    pub(super) name: &'p [u8],
    /// Did slashes follow?
    pub(super) trailing_slash: bool,
}

/// The first component of a path and what is behind it, slashes included.
fn split(path: &[u8]) -> (&[u8], &[u8]) {
    path.split_at(find_byte(path, b'/').unwrap_or(path.len()))
}

fn skip_slashes(mut path: &[u8]) -> &[u8] {
    while let [b'/', rest @ ..] = path {
        path = rest;
    }
    path
}

/// The directory part of a path, its last name, and whether slashes follow; nothing if there is a zero in it.
fn split_last(path: &[u8]) -> Option<(&[u8], &[u8], bool)> {
    let bare = match path {
        [.., b'/'] => {
            let slashes = path.iter().rev().take_while(|&&byte| byte == b'/').count();
            &path[..path.len() - slashes]
        }
        _ => path,
    };
    let (slash, zeros) = rfind_byte_and_zeros(bare, b'/');
    let (dir, name) = bare.split_at(slash.map_or(0, |at| at + 1));
    (!zeros).then_some((dir, name, bare.len() < path.len()))
}

impl Core {
    /// The inode of this number, if it is in memory and to be found.
    pub(crate) fn live<'g>(&'g self, ino: Ino, guard: &'g Guard) -> Option<&'g Inode> {
        self.index
            .peek(ino.0, guard)
            .filter(|inode| inode.is_live() && (self.pinned || !inode.is_unborn()))
    }

    /// Walks from `base`. `follow`: a symbolic link at the end is none to stop at.
    pub(super) fn rcu_walk<'g>(
        &'g self,
        who: &Caller,
        base: &'g Inode,
        path: &[u8],
        follow: bool,
        guard: &'g Guard,
    ) -> RcuWalk<'g> {
        if path.is_empty() || path.len() >= PATH_MAX || !self.policy.believes_memory() {
            return RcuWalk::NeedsRefWalk;
        }
        let mut at = base;
        if path[0] == b'/' {
            match self.live(Ino::ROOT, guard) {
                Some(root) => at = root,
                None => return RcuWalk::NeedsRefWalk,
            }
        }
        let mut rest = skip_slashes(path);
        while !rest.is_empty() {
            let (name, behind) = split(rest);
            let Ok(body) = at.directory() else {
                return RcuWalk::NeedsRefWalk;
            };
            if name.len() > NAME_MAX || !at.permits(who, Access::EXEC, guard) {
                return RcuWalk::NeedsRefWalk;
            }
            rest = skip_slashes(behind);
            let ino = match name {
                b"." => continue,
                b".." => Ino(body.parent.load(Ordering::Relaxed)),
                _ => match body.names.look_in(name, guard) {
                    Known::Found(entry)
                        if entry.kind == FileType::Symlink && (follow || !behind.is_empty()) =>
                    {
                        return RcuWalk::NeedsRefWalk;
                    }
                    Known::Found(entry) if !entry.kind.is_dir() && !behind.is_empty() => {
                        return RcuWalk::NeedsRefWalk;
                    }
                    Known::Found(entry) => entry.ino,
                    Known::Unknown => return RcuWalk::NeedsRefWalk,
                    Known::Absent if path.contains(&0) => return RcuWalk::NeedsRefWalk,
                    Known::Absent => return RcuWalk::Missing,
                },
            };
            match self.live(ino, guard) {
                Some(inode) => {
                    inode.touch(&self.reclaim.epochs);
                    at = inode;
                }
                None => return RcuWalk::NeedsRefWalk,
            }
        }
        RcuWalk::Found(at)
    }
}

impl FileSystem {
    /// The attributes of what a path leads to, as stat(2) and lstat(2) (`follow` not set).
    ///
    /// Where everything on the way is cached this takes no lock and no reference, and writes nothing that another
    /// thread reads, but once after each change that the times were told.
    ///
    /// # Errors
    /// As [`FileSystem::resolve`].
    pub fn stat_at(&self, who: &Caller, base: &Node, path: &[u8], follow: bool) -> Result<Attr> {
        {
            let guard = epoch::pin();
            match self.core.rcu_walk(who, base.inode(), path, follow, &guard) {
                RcuWalk::Found(inode) if self.core.pinned || inode.has_known_space() => {
                    inode.note_look();
                    return Ok(inode.told());
                }
                RcuWalk::Missing => return Err(self.core.absent()),
                RcuWalk::Found(_) | RcuWalk::NeedsRefWalk => {}
            }
        }
        self.core.again_if_gone(|| {
            let node = self.resolve_slowly(who, base, path, follow)?;
            self.attributes(&node)
        })
    }

    /// The inode that a path leads to. `follow`: also through a symbolic link at its end (one
    /// that slashes follow is followed in any case).
    ///
    /// # Errors
    /// `ENOENT`, `ENOTDIR`, `EACCES`, `ELOOP`; `ENAMETOOLONG` for a path of 4096 bytes or more, or
    /// a name of over 255; `EINVAL` for a NUL in it.
    pub fn resolve(&self, who: &Caller, base: &Node, path: &[u8], follow: bool) -> Result<Node> {
        {
            let guard = epoch::pin();
            match self.core.rcu_walk(who, base.inode(), path, follow, &guard) {
                RcuWalk::Found(inode) => {
                    if let Some(node) = Node::acquire(inode) {
                        if inode.is_marked_freeing() {
                            self.core.keep(&node);
                        }
                        return Ok(node);
                    }
                }
                RcuWalk::Missing => return Err(self.core.absent()),
                RcuWalk::NeedsRefWalk => {}
            }
        }
        self.core
            .again_if_gone(|| self.resolve_slowly(who, base, path, follow))
    }

    /// Walks all of a path but its last name, and does something there. Where everything on the way
    /// is cached, and what is done waits for nothing, the directory is not counted as used.
    #[inline]
    pub(super) fn at_parent<R>(
        &self,
        who: &Caller,
        base: &Node,
        path: &[u8],
        act: impl FnOnce(BorrowedAt<'_, '_>) -> Result<R>,
    ) -> Result<R> {
        let calm = self.core.calm();
        if let Some(guard) = &calm
            && let Some(spot) = self.core.glide_to_parent(who, base.inode(), path, guard)
        {
            return act(spot);
        }
        let at = self.parent_of(who, base, path)?;
        act(at.spot())
    }

    /// All of a path but its last name, walked.
    pub(super) fn parent_of(&self, who: &Caller, base: &Node, path: &[u8]) -> Result<Resolved> {
        match self.parent_quickly(who, base, path) {
            Some(at) => Ok(at),
            None => self.resolve_parent(who, base, path),
        }
    }

    /// As [`FileSystem::parent_of`], if no symbolic link and no uncached directory is in the way.
    fn parent_quickly(&self, who: &Caller, base: &Node, path: &[u8]) -> Option<Resolved> {
        let guard = epoch::pin();
        let spot = self.core.glide_to_parent(who, base.inode(), path, &guard)?;
        Some(Resolved {
            dir: Node::acquire(spot.dir)?,
            name: spot.name.to_vec(),
            trailing_slash: spot.trailing_slash,
        })
    }
}

impl Core {
    /// All of a path but its last name, if no symbolic link and no uncached directory is in the way. `who`
    /// may search the directory, and the name is one that can be made.
    #[inline]
    pub(super) fn glide_to_parent<'p, 'g>(
        &'g self,
        who: &Caller,
        base: &'g Inode,
        path: &'p [u8],
        guard: &'g Guard,
    ) -> Option<BorrowedAt<'p, 'g>> {
        let (dir, name, trailing_slash) = split_last(path)?;
        let is_plain = !name.is_empty() && !is_special(name) && name.len() <= NAME_MAX;
        if !is_plain || path.len() >= PATH_MAX || !self.policy.believes_memory() {
            return None;
        }
        let dir = if dir.is_empty() {
            base
        } else {
            match self.rcu_walk(who, base, dir, true, guard) {
                RcuWalk::Found(inode) => inode,
                RcuWalk::Missing | RcuWalk::NeedsRefWalk => return None,
            }
        };
        // The last name's directory must be searchable, whatever becomes of the name.
        dir.permits(who, Access::EXEC, guard).then_some(BorrowedAt {
            dir,
            name,
            trailing_slash,
        })
    }
}

impl Resolved {
    /// The same, borrowed.
    pub(super) fn spot(&self) -> BorrowedAt<'_, '_> {
        BorrowedAt {
            dir: self.dir.inode(),
            name: &self.name,
            trailing_slash: self.trailing_slash,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_name_is_split_off_with_its_slashes() {
        let parts = |path| split_last(path).unwrap();
        assert_eq!(parts(b"a/b/c"), (&b"a/b/"[..], &b"c"[..], false));
        assert_eq!(parts(b"/c//"), (&b"/"[..], &b"c"[..], true));
        assert_eq!(parts(b"c"), (&b""[..], &b"c"[..], false));
        assert_eq!(parts(b"//"), (&b""[..], &b""[..], true));
        assert_eq!(split_last(b"a/b\0c/d"), None);
        assert_eq!(split_last(b"a/b\0"), None);
    }
}
