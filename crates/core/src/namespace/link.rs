//! Giving an inode one more name.

use holdfast_sync::epoch;

use crate::FileSystem;
use crate::file_system::Core;
use crate::inode::time_of_changes;
use crate::inode::{DirectoryBody, Inode, Numbered as _};
use crate::node::Node;
use crate::store::{Change, Intent};
use crate::types::{Caller, Errno, Result, check_new_name};
use crate::watch::EventMask;

impl FileSystem {
    /// Gives `node` one more name; a file made by [`FileSystem::tmpfile`] gets its first.
    ///
    /// # Errors
    /// `EEXIST`, `EACCES`, `EROFS`, `ENAMETOOLONG`; `EPERM` for a directory, and for what is immutable or
    /// only appended to; `EXDEV` for what is of another project than all in `dir`; `EMLINK` when it has
    /// too many names; `ENOENT` in a removed directory, or when the inode lost its last name.
    pub fn link(&self, who: &Caller, node: &Node, dir: &Node, name: &[u8]) -> Result<()> {
        self.core.link(who, node, dir.inode(), name)
    }
}

/// Was it made without a name, or has it lost its last?
fn has_no_name(node: &Node) -> bool {
    let guard = epoch::pin();
    node.inode().view(&guard).meta.nlink == 0
}

impl Core {
    /// See [`FileSystem::link`].
    pub(crate) fn link(&self, who: &Caller, node: &Node, dir: &Inode, name: &[u8]) -> Result<()> {
        let body = self.search(who, dir)?;
        check_new_name(name)?;
        match self.through() {
            Some(through) => through.link(who, node, (dir, body), name)?,
            None => self.link_behind(who, node, (dir, body), name)?,
        }
        self.notify_inode(who, node.ino(), false);
        self.notify_entry(who, dir.ino(), name);
        Ok(())
    }

    fn link_behind(
        &self,
        who: &Caller,
        node: &Node,
        (dir, body): (&Inode, &DirectoryBody),
        name: &[u8],
    ) -> Result<()> {
        let nameless = has_no_name(node);
        // The directory and the inode, which leaves those without names if it has none.
        let intent = Intent::default().name(name);
        let reserved = self.reserve(&intent.records(2 + u64::from(nameless)));
        {
            let mut names = self.lock_name(dir, body, name)?;
            if names.seek(name).is_some() {
                return Err(Errno::EEXIST);
            }
            self.may_create(who, dir)?;
            node.inode().allow_change()?;
            if node.kind().is_dir() {
                return Err(Errno::EPERM);
            }
            dir.take_in_project(node.inode())?;
            let mut reservation = reserved?;
            let now = time_of_changes([dir, node.inode()]);
            let cookie = names.next_cookie();
            let log_order = self.log_order([node.inode(), dir]);
            {
                let mut meta = node.inode().write();
                if meta.nlink == 0 && !meta.linkable {
                    return Err(Errno::ENOENT);
                }
                if meta.nlink >= self.policy.link_max() {
                    return Err(Errno::EMLINK);
                }
                names.insert(name, cookie, node.ino(), node.kind())?;
                meta.nlink += 1;
                meta.linkable = false;
                meta.ctime = now;
                meta.home = (dir.ino(), cookie);
                node.inode().unmark_freeing();
            }
            self.doom_if_revoked(node);
            names.changed(dir, 0, 0, now);
            self.count_name(&names, name);
            if self.pinned {
                reservation.keep();
            } else {
                let (ino, kind) = (node.ino(), node.kind());
                let inode = node.inode().record(&node.inode().meta());
                // Not the home's cookie: the file may have got yet another name meanwhile.
                self.apply_in(
                    log_order,
                    &mut reservation,
                    [node.inode(), dir],
                    &[
                        Change::Attributes { inode },
                        Change::Enter {
                            dir: dir.ino(),
                            name,
                            cookie,
                            ino,
                            kind,
                        },
                        Change::Attributes {
                            inode: dir.record(&dir.meta()),
                        },
                    ],
                )?;
            }
            self.watches.notify(node.ino(), EventMask::ATTRIB, None, 0);
            self.notify_name(dir.ino(), EventMask::CREATE, name, false, 0);
        }
        Ok(())
    }
}
