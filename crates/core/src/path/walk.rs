use super::rcu_walk::BorrowedAt;
use crate::FileSystem;
use crate::file_system::Core;
use crate::node::Node;
use crate::types::{Caller, Errno, PATH_MAX, Result, SYMLOOP_MAX, is_special};

/// Where a path leads: a directory and the last name, which need not exist.
#[derive(Clone, Debug)]
pub struct Resolved {
    /// The directory.
    pub dir: Node,
    /// The last name; may be `.`, `..`, or `/` for a path of nothing but slashes.
    pub name: Vec<u8>,
    /// Did slashes follow? Then only a directory will do.
    pub trailing_slash: bool,
}

/// A walk under way: where it stands, what is left, how many links it followed.
pub(super) struct Walk {
    dir: Node,
    rest: Vec<u8>,
    links: u32,
}

impl Walk {
    pub(super) fn new(fs: &FileSystem, base: &Node, path: &[u8]) -> Result<Self> {
        if path.is_empty() {
            return Err(Errno::ENOENT);
        }
        if path.len() >= PATH_MAX {
            return Err(Errno::ENAMETOOLONG);
        }
        if path.contains(&0) {
            return Err(Errno::EINVAL);
        }
        let mut walk = Self {
            dir: base.clone(),
            rest: path.to_vec(),
            links: 0,
        };
        if path.starts_with(b"/") {
            walk.dir = fs.root();
        }
        Ok(walk)
    }

    /// Walks all but the last name.
    pub(super) fn parent(&mut self, fs: &FileSystem, who: &Caller) -> Result<Resolved> {
        let core = &fs.core;
        loop {
            let start = self.rest.iter().take_while(|&&byte| byte == b'/').count();
            let rest = &self.rest[start..];
            if rest.is_empty() {
                // Only slashes: the root, if the walk starts here, which it does.
                let (dir, name) = (self.dir.clone(), b"/".to_vec());
                return Ok(Resolved {
                    dir,
                    name,
                    trailing_slash: false,
                });
            }
            let len = rest
                .iter()
                .position(|&byte| byte == b'/')
                .unwrap_or(rest.len());
            let (name, behind) = rest.split_at(len);
            if behind.iter().all(|&byte| byte == b'/') {
                // The last name's directory must be searchable, whatever becomes of the name.
                core.search(who, self.dir.inode())?;
                return Ok(Resolved {
                    dir: self.dir.clone(),
                    name: name.to_vec(),
                    trailing_slash: !behind.is_empty(),
                });
            }
            let node = fs.lookup(who, &self.dir, name)?;
            if let Some(target) = node.inode().target() {
                core.accessed(node.inode());
                let path = [target, behind].concat();
                self.follow(fs, path)?;
            } else {
                node.inode().directory()?;
                self.rest = behind.to_vec();
                self.dir = node;
            }
        }
    }

    /// Goes on along the target of the symbolic link that a parent walk ended in.
    pub(super) fn through(&mut self, fs: &FileSystem, link: &Node, at: Resolved) -> Result<()> {
        let target = link.inode().target().ok_or(Errno::EINVAL)?;
        fs.core.accessed(link.inode());
        let mut path = target.to_vec();
        if at.trailing_slash {
            path.push(b'/');
        }
        self.dir = at.dir;
        self.follow(fs, path)
    }

    fn follow(&mut self, fs: &FileSystem, path: Vec<u8>) -> Result<()> {
        self.links += 1;
        if self.links > SYMLOOP_MAX {
            return Err(Errno::ELOOP);
        }
        if path.starts_with(b"/") {
            self.dir = fs.root();
        }
        self.rest = path;
        Ok(())
    }
}

impl FileSystem {
    /// [`FileSystem::resolve`] by all rules, with references.
    pub(super) fn resolve_slowly(
        &self,
        who: &Caller,
        base: &Node,
        path: &[u8],
        follow: bool,
    ) -> Result<Node> {
        let mut walk = Walk::new(self, base, path)?;
        loop {
            let at = walk.parent(self, who)?;
            let node = self.lookup(who, &at.dir, &at.name)?;
            if node.inode().target().is_some() && (follow || at.trailing_slash) {
                walk.through(self, &node, at)?;
                continue;
            }
            if at.trailing_slash {
                node.inode().directory()?;
            }
            return Ok(node);
        }
    }

    /// Walks all of a path but its last name.
    ///
    /// # Errors
    /// As [`FileSystem::resolve`], the last name left out.
    pub fn resolve_parent(&self, who: &Caller, base: &Node, path: &[u8]) -> Result<Resolved> {
        Walk::new(self, base, path)?.parent(self, who)
    }
}

impl BorrowedAt<'_, '_> {
    /// What Linux answers when something other than a directory is to be made at a name that
    /// slashes follow.
    pub(super) fn refuse_slash(self, core: &Core, who: &Caller) -> Result<()> {
        if !self.trailing_slash {
            return Ok(());
        }
        if is_special(self.name) {
            return Err(Errno::EEXIST);
        }
        let body = core.search(who, self.dir)?;
        match core.named(self.dir, body, self.name) {
            Ok(_) => Err(Errno::EEXIST),
            Err(error) => Err(error),
        }
    }
}
