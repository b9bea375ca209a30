//! The invariants of a database.

use super::state::{Inode, Nameless, State};
use holdfast_types::Ino;
use std::collections::BTreeMap;

impl State {
    /// Checks all invariants. With `repair`, counts of names and of mapped bytes become what is
    /// found.
    pub(super) fn check(&mut self, repair: bool) -> Vec<String> {
        let mut found = Vec::new();
        self.check_names(&mut found);
        self.check_nameless(&mut found);
        self.check_links(&mut found, repair);
        self.check_objects(&mut found, repair);
        found
    }

    fn check_names(&self, found: &mut Vec<String>) {
        for (dir, inode) in &self.inodes {
            if inode.names.len() != inode.cookies.len() {
                found.push(format!(
                    "directory {dir}: names and cookies differ in number"
                ));
            }
            for (name, named) in &inode.names {
                let name_of = || format!("directory {dir}, name {}", name.escape_ascii());
                if inode.cookies.get(&named.cookie) != Some(name) {
                    found.push(format!("{}: its cookie is another name's", name_of()));
                }
                match self.inodes.get(&named.ino) {
                    None => found.push(format!("{}: inode {} is missing", name_of(), named.ino)),
                    Some(child) if child.stored.kind != named.kind => {
                        found.push(format!(
                            "{}: inode {} has another type",
                            name_of(),
                            named.ino
                        ));
                    }
                    Some(child) if child.is_dir() && child.stored.parent != *dir => {
                        found.push(format!(
                            "{}: the parent is {}",
                            name_of(),
                            child.stored.parent
                        ));
                    }
                    Some(_) => {}
                }
            }
            if inode.is_dir() && inode.stored.nlink > 0 && !self.is_above(Ino::ROOT, *dir) {
                found.push(format!("directory {dir}: no path leads to it"));
            }
            if self.is_in_loop(inode) {
                found.push(format!("directory {dir}: it is below itself"));
            }
        }
    }

    fn is_in_loop(&self, inode: &Inode) -> bool {
        let ino = inode.stored.ino;
        inode.is_dir() && ino != Ino::ROOT && self.is_above(ino, inode.stored.parent)
    }

    fn check_nameless(&self, found: &mut Vec<String>) {
        for (ino, inode) in &self.inodes {
            let listed = match inode.nameless {
                Some(Nameless::Since(since)) => self.nameless.get(&since) == Some(ino),
                Some(Nameless::Yet) => !inode.is_dir(),
                None => true,
            };
            if !listed || inode.nameless.is_some() != (inode.stored.nlink == 0) {
                found.push(format!("inode {ino}: {} names", inode.stored.nlink));
            }
            if inode.stored.nlink == 0 && !inode.names.is_empty() {
                found.push(format!("directory {ino}: it was removed and has names"));
            }
        }
        for ino in self.nameless.values() {
            if !self.inodes.contains_key(ino) {
                found.push(format!("inode {ino}: it has no names and is missing"));
            }
        }
    }

    fn check_links(&mut self, found: &mut Vec<String>, repair: bool) {
        let mut names: BTreeMap<Ino, u32> = BTreeMap::new();
        let mut directories: BTreeMap<Ino, u32> = BTreeMap::new();
        for (dir, inode) in &self.inodes {
            for named in inode.names.values() {
                *names.entry(named.ino).or_default() += 1;
                *directories.entry(*dir).or_default() += u32::from(named.kind.is_dir());
            }
        }
        for (ino, inode) in &mut self.inodes {
            let named = names.get(ino).copied().unwrap_or(0);
            let nlink = match inode.is_dir() {
                true if named > 0 || *ino == Ino::ROOT => {
                    2 + directories.get(ino).copied().unwrap_or(0)
                }
                true => 0,
                false => named,
            };
            if inode.stored.nlink != nlink {
                let has = inode.stored.nlink;
                found.push(format!(
                    "inode {ino}: {has} names are counted, it has {nlink}"
                ));
                if repair {
                    inode.stored.nlink = nlink;
                }
            }
            if inode.is_dir() && named > 1 {
                found.push(format!("directory {ino}: {named} names lead to it"));
            }
        }
    }

    fn check_objects(&mut self, found: &mut Vec<String>, repair: bool) {
        let mut live: BTreeMap<u64, u64> = BTreeMap::new();
        for (ino, inode) in &self.inodes {
            if !inode.is_file() && inode.content.space() > 0 {
                found.push(format!("inode {ino}: it has content and is no file"));
            }
            for extent in inode.content.extents().iter().filter(|it| it.object != 0) {
                *live.entry(extent.object).or_default() += extent.len;
                let object = self.objects.get(&extent.object);
                let holds = object.is_some_and(|object| {
                    !object.deleting && extent.object_offset + extent.len <= object.len
                });
                if !holds {
                    found.push(format!("inode {ino}: object {} is missing", extent.object));
                }
            }
        }
        let now = self.clock.now();
        for (number, object) in &mut self.objects {
            let live = live.get(number).copied().unwrap_or(0);
            if object.live != live || object.unmapped.is_some() != (live == 0) {
                let has = object.live;
                found.push(format!(
                    "object {number}: {has} mapped bytes are counted, it has {live}"
                ));
                if repair {
                    object.live = live;
                    object.unmapped = (live == 0).then_some(now);
                }
            }
        }
    }
}
