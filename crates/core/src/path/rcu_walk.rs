//! The path walk without locks and shared writes, as Linux's rcu-walk.
//!
//! It resolves a path if every directory on it is in memory and no symbolic link has to be
//! followed; it also proves a name absent. In every other case, errors included, it gives up, and
//! the walk of `walk.rs` starts over with locks and references.
//!
//! Each step is a lookup of its own, as in the slow walk: a concurrent rename is seen before or
//! after it. Within one directory a rename is atomic for readers (see `directory.rs`).

use crate::inodes::find::live_inode;
use holdfast_sync::epoch::{self, Guard};
use std::sync::atomic::Ordering;

use crate::FileSystem;
use crate::core::{Core, no_entry};
use crate::directory::Known;
use crate::inode::{Inode, Numbered as _};
use crate::inodes::find::keep_inode;
use crate::node::Node;
use crate::shared::retry_if_stale;
use crate::types::{Access, Attr, Caller, FileType, Ino, NAME_MAX, PATH_MAX, Result};

/// The result of a walk without locks.
pub(super) enum RcuWalk<'g> {
    /// An inode that was live.
    Found(&'g Inode),
    /// The name does not exist.
    Missing,
    /// Only the walk with references can tell.
    NeedsRefWalk,
}

/// The first component of a path and the rest, slashes included.
fn split(path: &[u8]) -> (&[u8], &[u8]) {
    let slash = path.iter().position(|byte| *byte == b'/');
    path.split_at(slash.unwrap_or(path.len()))
}

fn skip_slashes(mut path: &[u8]) -> &[u8] {
    while let [b'/', rest @ ..] = path {
        path = rest;
    }
    path
}

/// Walks from `base`. `follow`: a symbolic link as the last component has to be followed.
pub(super) fn rcu_walk<'g>(
    core: &'g Core,
    who: &Caller,
    base: &'g Inode,
    path: &[u8],
    follow: bool,
    guard: &'g Guard,
) -> RcuWalk<'g> {
    if path.is_empty() || path.len() >= PATH_MAX || !core.policy.believes_memory() {
        return RcuWalk::NeedsRefWalk;
    }
    let mut at = base;
    if path[0] == b'/' {
        match live_inode(core, Ino::ROOT, guard) {
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
                Known::Negative if path.contains(&0) => return RcuWalk::NeedsRefWalk,
                Known::Negative => return RcuWalk::Missing,
            },
        };
        match live_inode(core, ino, guard) {
            Some(inode) => {
                inode.touch(&core.reclaim.epochs);
                at = inode;
            }
            None => return RcuWalk::NeedsRefWalk,
        }
    }
    RcuWalk::Found(at)
}

impl FileSystem {
    /// The attributes of the inode of a path, as stat(2), or lstat(2) if `follow` is not set.
    ///
    /// If all of the path is cached, this takes no lock and no reference. It writes nothing shared,
    /// except once after each change of the inode to note that its times were read.
    ///
    /// # Errors
    /// As [`FileSystem::resolve`].
    pub fn stat_at(&self, who: &Caller, base: &Node, path: &[u8], follow: bool) -> Result<Attr> {
        {
            let guard = epoch::pin();
            match rcu_walk(&self.core, who, base.inode(), path, follow, &guard) {
                RcuWalk::Found(inode) if inode.has_known_space() => {
                    inode.note_look();
                    return Ok(inode.stat());
                }
                RcuWalk::Missing => return Err(no_entry(&self.core)),
                RcuWalk::Found(_) | RcuWalk::NeedsRefWalk => {}
            }
        }
        retry_if_stale(&self.core, || {
            let node = self.resolve_slowly(who, base, path, follow)?;
            self.attributes(&node)
        })
    }

    /// The inode of a path. `follow`: a symbolic link as the last component is followed; with
    /// trailing slashes it is in any case.
    ///
    /// # Errors
    /// `ENOENT`, `ENOTDIR`, `EACCES`, `ELOOP`; `ENAMETOOLONG` for a path of 4096 bytes or more, or
    /// a name of over 255; `EINVAL` for a NUL.
    pub fn resolve(&self, who: &Caller, base: &Node, path: &[u8], follow: bool) -> Result<Node> {
        {
            let guard = epoch::pin();
            match rcu_walk(&self.core, who, base.inode(), path, follow, &guard) {
                RcuWalk::Found(inode) => {
                    if let Some(node) = Node::acquire(inode) {
                        if inode.is_marked_freeing() {
                            keep_inode(&self.core, &node);
                        }
                        return Ok(node);
                    }
                }
                RcuWalk::Missing => return Err(no_entry(&self.core)),
                RcuWalk::NeedsRefWalk => {}
            }
        }
        retry_if_stale(&self.core, || self.resolve_slowly(who, base, path, follow))
    }
}
