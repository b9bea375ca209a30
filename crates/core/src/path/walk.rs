use crate::FileSystem;
use crate::attributes::atime::note_access;
use crate::namespace::lookup::search;
use crate::node::Node;
use crate::types::{Caller, Errno, PATH_MAX, Result, SYMLOOP_MAX, is_special};

/// A resolved path: a directory and the last name, which need not exist.
#[derive(Clone, Debug)]
pub struct Resolved {
    /// The directory.
    pub dir: Node,
    /// The last name; may be `.`, `..`, or `/` for a path of slashes only.
    pub name: Vec<u8>,
    /// Do slashes follow the name? Then it has to be a directory's.
    pub trailing_slash: bool,
}

/// The state of a walk: its directory, the remaining path, and the number of links followed.
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

    /// Walks up to the last name.
    pub(super) fn parent(&mut self, fs: &FileSystem, who: &Caller) -> Result<Resolved> {
        let core = &fs.core;
        loop {
            let start = self.rest.iter().take_while(|&&byte| byte == b'/').count();
            let rest = &self.rest[start..];
            if rest.is_empty() {
                // Only slashes: `dir` is the root.
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
                // The last directory has to be searchable, whether or not the name exists.
                search(core, who, self.dir.inode())?;
                return Ok(Resolved {
                    dir: self.dir.clone(),
                    name: name.to_vec(),
                    trailing_slash: !behind.is_empty(),
                });
            }
            let node = fs.lookup(who, &self.dir, name)?;
            if let Some(target) = node.inode().target() {
                note_access(core, node.inode());
                let path = [target, behind].concat();
                self.follow(fs, path)?;
            } else {
                node.inode().directory()?;
                self.rest = behind.to_vec();
                self.dir = node;
            }
        }
    }

    /// Continues along the target of a symbolic link that is the last name.
    pub(super) fn through(&mut self, fs: &FileSystem, link: &Node, at: Resolved) -> Result<()> {
        let target = link.inode().target().ok_or(Errno::EINVAL)?;
        note_access(&fs.core, link.inode());
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
    /// [`FileSystem::resolve`] with locks and references.
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

    /// Resolves a path except its last name.
    ///
    /// # Errors
    /// As [`FileSystem::resolve`], the last name left out.
    pub fn resolve_parent(&self, who: &Caller, base: &Node, path: &[u8]) -> Result<Resolved> {
        Walk::new(self, base, path)?.parent(self, who)
    }

    /// As [`resolve_parent`](Self::resolve_parent), for the name of a new inode that is no
    /// directory: with trailing slashes it fails, with the errors of Linux.
    pub(super) fn resolve_new(&self, who: &Caller, base: &Node, path: &[u8]) -> Result<Resolved> {
        let at = self.resolve_parent(who, base, path)?;
        if !at.trailing_slash {
            return Ok(at);
        }
        if !is_special(&at.name) {
            self.lookup(who, &at.dir, &at.name)?;
        }
        Err(Errno::EEXIST)
    }
}
