//! A whole tree as a file system shows it, and what of it may be otherwise after a crash.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt::Write as _;

use holdfast_core::{FileSystem, Node, OpenFile};
use holdfast_device::SECTOR;
use holdfast_types::{Caller, FileType, OpenFlags, Result, Time};

/// Files of this length at most may be kept with their attributes, and then change with them.
const SMALL: usize = holdfast_volume::store::INLINE_MAX;
const BLOCK: usize = 4096;

/// Everything that can be seen.
#[derive(Clone, Debug, Default)]
pub(super) struct Tree {
    objects: BTreeMap<u64, Object>,
    /// `st_blocks` of files.
    blocks: BTreeMap<u64, u64>,
    /// Bytes of files that are open and may have no name. They are not found after a crash. While
    /// they had a name, a crash could lose what was written since.
    open: BTreeMap<u64, Vec<u8>>,
}

#[derive(Clone, Debug, PartialEq)]
struct Object {
    kind: FileType,
    perm: u16,
    nlink: u32,
    owner: (u32, u32),
    size: u64,
    times: [Time; 3],
    xattrs: BTreeMap<Vec<u8>, Vec<u8>>,
    inside: Inside,
}

#[derive(Clone, Debug, PartialEq)]
enum Inside {
    Bytes(Vec<u8>),
    /// Number and position by name.
    Names(BTreeMap<Vec<u8>, (u64, u64)>),
    Target(Vec<u8>),
    Nothing,
}

impl Tree {
    /// Looks at all of a file system.
    pub(super) fn of(fs: &FileSystem) -> Result<Self> {
        let who = Caller::root().with_umask(0);
        let mut tree = Self::default();
        let mut pending = vec![fs.root()];
        while let Some(node) = pending.pop() {
            let object = Object::of(fs, &who, &node)?;
            if let Inside::Names(names) = &object.inside {
                for (ino, _) in names.values() {
                    if !tree.objects.contains_key(ino) {
                        pending.push(fs.node(holdfast_types::Ino(*ino))?);
                    }
                }
            }
            if object.kind == FileType::Regular {
                let blocks = fs.getattr(&node).blocks;
                tree.blocks.insert(node.ino().0, blocks);
            }
            tree.objects.insert(node.ino().0, object);
        }
        Ok(tree)
    }

    /// Looks at open files, too.
    pub(super) fn look_at_open(&mut self, fs: &FileSystem, files: &[OpenFile]) -> Result<()> {
        for file in files {
            let bytes = bytes_of(fs, file)?;
            self.open.insert(file.node().ino().0, bytes);
        }
        Ok(())
    }

    /// Is everything with a name the same? The blocks of these files may be others.
    pub(super) fn is_like(&self, other: &Self, uncounted: &HashSet<u64>) -> bool {
        self.objects == other.objects && self.other_blocks(other, uncounted).next().is_none()
    }

    /// Files of both that have other numbers of blocks, with these.
    fn other_blocks<'t>(
        &'t self,
        other: &'t Self,
        uncounted: &'t HashSet<u64>,
    ) -> impl Iterator<Item = (u64, u64, u64)> + 't {
        let counted = self.blocks.iter();
        let counted = counted.filter(|(ino, _)| !uncounted.contains(ino));
        counted.filter_map(|(ino, blocks)| {
            let found = other.blocks.get(ino).filter(|found| *found != blocks)?;
            Some((*ino, *blocks, *found))
        })
    }

    /// The number behind a name of the root or one directory below it.
    pub(super) fn number(&self, path: &str) -> Option<u64> {
        let mut at = 1;
        for name in path.split('/') {
            match &self.objects.get(&at)?.inside {
                Inside::Names(names) => at = names.get(name.as_bytes())?.0,
                _ => return None,
            }
        }
        Some(at)
    }

    /// Files that are too large to be kept with their attributes.
    pub(super) fn large(&self) -> impl Iterator<Item = u64> {
        let bytes = |object: &Object| match &object.inside {
            Inside::Bytes(bytes) => bytes.len(),
            _ => 0,
        };
        let large = move |(_, object): &(&u64, &Object)| bytes(object) > SMALL;
        self.objects.iter().filter(large).map(|(ino, _)| *ino)
    }

    /// Files that may be kept with their attributes: which pages of such a file were holes once is
    /// not kept.
    pub(super) fn small(&self) -> impl Iterator<Item = u64> {
        let is_small = |object: &Object| match &object.inside {
            Inside::Bytes(bytes) => (1..=SMALL).contains(&bytes.len()),
            _ => false,
        };
        let small = move |(_, object): &(&u64, &Object)| is_small(object);
        self.objects.iter().filter(small).map(|(ino, _)| *ino)
    }

    fn bytes(&self, ino: u64) -> Option<&[u8]> {
        match self.objects.get(&ino).map(|object| &object.inside) {
            Some(Inside::Bytes(bytes)) => Some(bytes),
            _ => self.open.get(&ino).map(Vec::as_slice),
        }
    }

    /// What differs, in a few words; empty if nothing does.
    ///
    /// Sectors of large files may be as in one of `later` (trees that a crash lost): they are
    /// written in place before the commit that makes them so. Of the files in `shifted` they may
    /// have been elsewhere then.
    pub(super) fn differences(&self, found: &Self, may: &Leeway<'_>) -> Vec<String> {
        let mut differences = Vec::new();
        for (ino, object) in &self.objects {
            match found.objects.get(ino) {
                None => differences.push(format!("{} is missing", self.name(*ino))),
                Some(other) => {
                    let text = object.difference(other, *ino, may);
                    if !text.is_empty() {
                        differences.push(format!("{}:{text}", self.name(*ino)));
                    }
                }
            }
        }
        for (ino, blocks, other) in self.other_blocks(found, &may.uncounted) {
            let name = self.name(ino);
            differences.push(format!("{name}: {blocks} blocks, found {other}"));
        }
        for ino in found.objects.keys() {
            if !self.objects.contains_key(ino) {
                differences.push(format!("{} should not be there", found.name(*ino)));
            }
        }
        differences
    }

    /// What of these objects differs elsewhere; the root and new ones are left out.
    pub(super) fn differences_below_root(&self, other: &Self, may: &Leeway<'_>) -> Vec<String> {
        let within = |tree: &Self, keep: &dyn Fn(&u64) -> bool| Self {
            objects: tree
                .objects
                .iter()
                .filter(|(ino, _)| keep(ino))
                .map(|(ino, object)| (*ino, object.clone()))
                .collect(),
            blocks: tree.blocks.clone(),
            open: BTreeMap::new(),
        };
        let below = |ino: &u64| *ino != 1;
        let known = |ino: &u64| below(ino) && self.objects.contains_key(ino);
        within(self, &below).differences(&within(other, &known), may)
    }

    fn name(&self, ino: u64) -> String {
        let named = self
            .objects
            .values()
            .find_map(|object| match &object.inside {
                Inside::Names(names) => names
                    .iter()
                    .find(|(_, place)| place.0 == ino)
                    .map(|(name, _)| String::from_utf8_lossy(name).into_owned()),
                _ => None,
            });
        format!("{} (inode {ino})", named.unwrap_or_default())
    }
}

/// What may be otherwise than in a snapshot.
#[derive(Clone, Debug, Default)]
pub(super) struct Leeway<'t> {
    /// Trees that came later and were lost.
    pub(super) later: Vec<&'t Tree>,
    /// Files that were ever large.
    pub(super) large: HashSet<u64>,
    /// Files in which bytes have moved meanwhile.
    pub(super) shifted: HashSet<u64>,
    /// Files that were ever [small](Tree::small): their blocks may be others.
    pub(super) uncounted: HashSet<u64>,
}

impl Leeway<'_> {
    /// May a sector of a file be like this?
    fn allows(&self, ino: u64, at: usize, sector: &[u8]) -> bool {
        if !self.large.contains(&ino) {
            return false;
        }
        let offsets = |bytes: &[u8]| -> Vec<usize> {
            if self.shifted.contains(&ino) {
                (at % BLOCK..bytes.len().max(at + 1))
                    .step_by(BLOCK)
                    .collect()
            } else {
                vec![at]
            }
        };
        self.later.iter().any(|tree| {
            tree.bytes(ino).is_some_and(|bytes| {
                let mut offsets = offsets(bytes).into_iter();
                offsets.any(|from| sector.iter().eq(padded(bytes, from, sector.len())))
            })
        })
    }
}

/// More than any file here has.
const CONTENT_MAX: u64 = 64 << 20;

fn bytes_of(fs: &FileSystem, file: &OpenFile) -> Result<Vec<u8>> {
    // A damaged length may be any.
    let size = fs.getattr(file.node()).size.min(CONTENT_MAX);
    let mut bytes = vec![0; size as usize];
    let got = fs.read(file, 0, &mut bytes)?;
    bytes.truncate(got);
    Ok(bytes)
}

/// Bytes at an offset, and zeros behind the end.
fn padded(bytes: &[u8], from: usize, len: usize) -> impl Iterator<Item = &u8> {
    let there = bytes.get(from..).unwrap_or_default();
    there.iter().chain(std::iter::repeat(&0)).take(len)
}

impl Object {
    fn of(fs: &FileSystem, who: &Caller, node: &Node) -> Result<Self> {
        let attr = fs.getattr(node);
        let open = || fs.open(who, node, OpenFlags::NOATIME);
        let inside = match attr.kind {
            FileType::Regular => Inside::Bytes(bytes_of(fs, &open()?)?),
            FileType::Directory => {
                let mut names = BTreeMap::new();
                fs.read_dir(&open()?, 0, &mut |entry| {
                    if entry.name != b"." && entry.name != b".." {
                        names.insert(entry.name.to_vec(), (entry.ino.0, entry.cookie));
                    }
                    true
                })?;
                Inside::Names(names)
            }
            FileType::Symlink => Inside::Target(fs.readlink(node)?.into_vec()),
            _ => Inside::Nothing,
        };
        let mut xattrs = BTreeMap::new();
        for name in fs.listxattr(who, node)?.split(|byte| *byte == 0) {
            if !name.is_empty() {
                xattrs.insert(name.to_vec(), fs.getxattr(who, node, name)?.into_vec());
            }
        }
        Ok(Self {
            kind: attr.kind,
            perm: attr.perm,
            nlink: attr.nlink,
            owner: (attr.uid, attr.gid),
            size: attr.size,
            times: [attr.mtime, attr.ctime, attr.btime],
            xattrs,
            inside,
        })
    }

    fn difference(&self, found: &Self, ino: u64, may: &Leeway<'_>) -> String {
        let mut text = String::new();
        let fixed = |object: &Self| (object.kind, object.perm, object.nlink, object.owner);
        let mut note = |what: &str, left: String, right: String| {
            if left != right {
                let _ = write!(text, " {what}: {left}, found {right};");
            }
        };
        if fixed(self) != fixed(found) {
            let shown = |object| format!("{:?}", fixed(object));
            note("type, permissions, links, owner", shown(self), shown(found));
        }
        if self.size != found.size {
            note("size", self.size.to_string(), found.size.to_string());
        }
        if self.times != found.times {
            note(
                "times",
                format!("{:?}", self.times),
                format!("{:?}", found.times),
            );
        }
        if self.xattrs != found.xattrs {
            let lengths = |object: &Self| -> HashMap<String, usize> {
                let each = object.xattrs.iter();
                each.map(|(name, value)| (String::from_utf8_lossy(name).into(), value.len()))
                    .collect()
            };
            text.push_str(&format!(
                " attributes {:?}, found {:?};",
                lengths(self),
                lengths(found)
            ));
        }
        match (&self.inside, &found.inside) {
            (Inside::Bytes(bytes), Inside::Bytes(other)) => {
                if let Some(at) = strange(bytes, other, ino, may) {
                    let show =
                        |bytes: &[u8]| -> Vec<u8> { padded(bytes, at, 8).copied().collect() };
                    let (left, right) = (show(bytes), show(other));
                    let _ = write!(text, " byte {at}: {left:02x?}, found {right:02x?};");
                }
            }
            (inside, other) if inside != other => {
                let _ = write!(text, " inside {inside:?}, found {other:?};");
            }
            _ => {}
        }
        text
    }
}

/// Where a file has bytes that it may not have.
fn strange(bytes: &[u8], found: &[u8], ino: u64, may: &Leeway<'_>) -> Option<usize> {
    if bytes == found {
        return None;
    }
    if bytes.len() != found.len() {
        return Some(bytes.len().min(found.len()));
    }
    let len = SECTOR as usize;
    let mut sectors = bytes.chunks(len).zip(found.chunks(len)).enumerate();
    sectors.find_map(|(nth, (sector, other))| {
        let at = nth * len;
        (sector != other && !may.allows(ino, at, other)).then(|| {
            let same = sector.iter().zip(other).take_while(|(a, b)| a == b);
            at + same.count()
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_core::{MemoryLimits, Options};

    fn tree(bytes: &[u8]) -> Tree {
        let fs = FileSystem::memory(MemoryLimits::default(), Options::default());
        let who = Caller::root();
        let flags = OpenFlags::CREATE | OpenFlags::READ_WRITE;
        let file = fs.open_at(&who, &fs.root(), b"file", flags, 0o600).unwrap();
        fs.write(&who, &file, 0, bytes).unwrap();
        Tree::of(&fs).unwrap()
    }

    #[test]
    fn only_whole_sectors_of_later_trees_may_show() {
        let (now, later) = (vec![1; 8192], vec![2; 8192]);
        let mut may = Leeway::default();
        let (before, after) = (tree(&now), tree(&later));
        may.large.extend(before.large());
        let ino = before.number("file").unwrap();
        let shows = |found: &[u8], may: &Leeway<'_>| strange(&now, found, ino, may);
        assert_eq!(shows(&now, &may), None);
        assert_eq!(shows(&later, &may), Some(0));
        may.later.push(&after);
        let mut mixed = now.clone();
        mixed[512..1024].fill(2);
        assert_eq!(shows(&mixed, &may), None);
        mixed[1024..1030].fill(2);
        assert_eq!(shows(&mixed, &may), Some(1024));
        mixed[1024..1536].fill(0);
        assert_eq!(shows(&mixed, &may), Some(1024));
        assert_eq!(shows(&now[..8191], &may), Some(8191));
    }

    #[test]
    fn what_is_missing_or_too_much_is_said() {
        let (some, other) = (tree(b"abc"), tree(b"abd"));
        let none = Leeway::default();
        assert!(some.differences(&some, &none).is_empty());
        let text = some.differences(&other, &none).join(" ");
        assert!(text.contains("byte 2") && text.contains("file"), "{text}");
        let text = some.differences(&Tree::default(), &none).join(" ");
        assert!(text.contains("missing"), "{text}");
        let text = Tree::default().differences(&some, &none).join(" ");
        assert!(text.contains("should not be"), "{text}");
    }
}
