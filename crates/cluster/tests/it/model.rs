//! What requests do to names, attributes and bytes, as POSIX has it: inodes in one table, names in
//! another, and everything that can be counted is counted when it is asked for.

use holdfast_cluster::meta::{Change, NewInode};
use holdfast_types::{Errno, FileType, Ino, RenameFlags, XattrSet};
use std::collections::{BTreeMap, BTreeSet};

const PAGE: u64 = 4096;

/// An inode of the model.
#[derive(Clone, Debug)]
pub(crate) struct Inode {
    pub(crate) kind: FileType,
    pub(crate) perm: u16,
    pub(crate) uid: u32,
    pub(crate) size: u64,
    /// Pages of a file that take space, with their bytes.
    pub(crate) pages: BTreeMap<u64, Vec<u8>>,
    pub(crate) xattrs: BTreeMap<Box<[u8]>, Box<[u8]>>,
    /// Did a name ever lead to it?
    pub(crate) named: bool,
    /// Sessions that use it, although it has no name.
    pub(crate) keepers: BTreeSet<usize>,
}

impl Inode {
    fn new(new: &NewInode) -> Self {
        Self {
            kind: new.kind,
            perm: new.perm,
            uid: new.uid,
            size: 0,
            pages: BTreeMap::new(),
            xattrs: BTreeMap::new(),
            named: false,
            keepers: BTreeSet::new(),
        }
    }

    /// Bytes of a file, as far as its end.
    pub(crate) fn content(&self) -> Vec<u8> {
        let mut content = vec![0; self.size as usize];
        for (page, bytes) in &self.pages {
            let start = ((page * PAGE) as usize).min(content.len());
            let end = (start + bytes.len()).min(content.len());
            content[start..end].copy_from_slice(&bytes[..end - start]);
        }
        content
    }

    /// Everything from this byte on becomes a hole.
    pub(crate) fn cut(&mut self, end: u64) {
        self.pages.retain(|page, _| page * PAGE < end);
        if let Some(bytes) = self.pages.get_mut(&(end / PAGE)) {
            bytes[(end % PAGE) as usize..].fill(0);
        }
    }

    /// The pages that these bytes touch become these bytes, and zeros.
    pub(crate) fn put(&mut self, offset: u64, bytes: &[u8]) {
        for (page, bytes) in (offset / PAGE..).zip(bytes.chunks(PAGE as usize)) {
            let mut whole = bytes.to_vec();
            whole.resize(PAGE as usize, 0);
            self.pages.insert(page, whole);
        }
    }

    /// Whole pages become a hole.
    pub(crate) fn clear(&mut self, offset: u64, len: u64) {
        let range = offset / PAGE..(offset + len) / PAGE;
        self.pages.retain(|page, _| !range.contains(page));
    }
}

/// A tree.
#[derive(Clone, Debug, Default)]
pub(crate) struct Model {
    pub(crate) inodes: BTreeMap<Ino, Inode>,
    pub(crate) names: BTreeMap<(Ino, Box<[u8]>), Ino>,
}

/// A name in a directory.
pub(crate) type Place<'a> = (Ino, &'a [u8]);
/// All errors that a request may fail with; none: it must succeed.
pub(crate) type Errors = Vec<Errno>;

impl Model {
    pub(crate) fn child(&self, (dir, name): Place<'_>) -> Option<Ino> {
        self.names.get(&(dir, name.into())).copied()
    }

    fn is_dir(&self, ino: Ino) -> bool {
        self.inodes.get(&ino).is_some_and(|it| it.kind.is_dir())
    }

    pub(crate) fn children(&self, dir: Ino) -> impl Iterator<Item = (&[u8], Ino)> {
        let names = self.names.range((dir, Box::default())..);
        let names = names.take_while(move |((of, _), _)| *of == dir);
        names.map(|((_, name), ino)| (&**name, *ino))
    }

    fn names_of(&self, ino: Ino) -> usize {
        self.names.values().filter(|it| **it == ino).count()
    }

    pub(crate) fn nlink(&self, ino: Ino) -> u32 {
        let names = self.names_of(ino) as u32;
        if !self.is_dir(ino) {
            return names;
        }
        let below = self.children(ino).filter(|(_, it)| self.is_dir(*it));
        match names > 0 || ino == Ino::ROOT {
            true => 2 + below.count() as u32,
            false => 0,
        }
    }

    /// The inode and everything below it.
    fn below(&self, ino: Ino) -> BTreeSet<Ino> {
        let mut all = BTreeSet::from([ino]);
        let mut left = vec![ino];
        while let Some(dir) = left.pop() {
            let children = self.children(dir).map(|(_, it)| it);
            left.extend(children.filter(|it| all.insert(*it)));
        }
        all
    }

    /// Why this directory cannot get a name.
    fn closed(&self, dir: Ino, errors: &mut Errors) {
        if !self.inodes.contains_key(&dir) {
            errors.push(Errno::ESTALE);
        } else if !self.is_dir(dir) {
            errors.push(Errno::ENOTDIR);
        } else if self.nlink(dir) == 0 {
            errors.push(Errno::ENOENT);
        }
    }

    fn taken(&self, place: Place<'_>, errors: &mut Errors) {
        self.closed(place.0, errors);
        if self.child(place).is_some() {
            errors.push(Errno::EEXIST);
        }
    }

    /// Why an inode cannot lose a name.
    fn stays(&self, ino: Ino, directory: bool, errors: &mut Errors) {
        match (directory, self.is_dir(ino)) {
            (true, false) => errors.push(Errno::ENOTDIR),
            (false, true) => errors.push(Errno::EISDIR),
            (true, true) if self.children(ino).next().is_some() => errors.push(Errno::ENOTEMPTY),
            _ => {}
        }
    }

    fn enter(&mut self, (dir, name): Place<'_>, ino: Ino) {
        self.names.insert((dir, name.into()), ino);
        if let Some(inode) = self.inodes.get_mut(&ino)
            && !std::mem::replace(&mut inode.named, true)
        {
            inode.keepers.clear();
        }
    }

    pub(crate) fn make(&mut self, place: Place<'_>, new: &NewInode) -> Errors {
        let mut errors = Errors::new();
        self.taken(place, &mut errors);
        if errors.is_empty() {
            self.inodes.insert(new.ino, Inode::new(new));
            self.enter(place, new.ino);
        }
        errors
    }

    pub(crate) fn make_unnamed(&mut self, session: usize, dir: Ino, new: &NewInode) -> Errors {
        let mut errors = Errors::new();
        self.closed(dir, &mut errors);
        if errors.is_empty() {
            let mut inode = Inode::new(new);
            inode.keepers.insert(session);
            self.inodes.insert(new.ino, inode);
        }
        errors
    }

    pub(crate) fn link(&mut self, ino: Ino, place: Place<'_>) -> Errors {
        let mut errors = Errors::new();
        self.taken(place, &mut errors);
        match self.inodes.get(&ino) {
            None => errors.push(Errno::ESTALE),
            Some(inode) if inode.kind.is_dir() => errors.push(Errno::EPERM),
            Some(inode) if inode.named && self.nlink(ino) == 0 => errors.push(Errno::ENOENT),
            Some(_) => {}
        }
        if errors.is_empty() {
            self.enter(place, ino);
        }
        errors
    }

    pub(crate) fn remove(&mut self, place: Place<'_>, directory: bool) -> Errors {
        let mut errors = Errors::new();
        if !self.inodes.contains_key(&place.0) {
            errors.push(Errno::ESTALE);
        } else if !self.is_dir(place.0) {
            errors.push(Errno::ENOTDIR);
        }
        match self.child(place) {
            None => errors.push(Errno::ENOENT),
            Some(ino) => self.stays(ino, directory, &mut errors),
        }
        if errors.is_empty() {
            self.names.remove(&(place.0, place.1.into()));
        }
        errors
    }

    pub(crate) fn rename(
        &mut self,
        from: Place<'_>,
        to: Place<'_>,
        flags: RenameFlags,
        whiteout: Option<&NewInode>,
    ) -> Errors {
        let mut errors = Errors::new();
        let exchange = flags.contains(RenameFlags::EXCHANGE);
        if exchange && flags != RenameFlags::EXCHANGE {
            errors.push(Errno::EINVAL);
        }
        for dir in [from.0, to.0] {
            self.closed(dir, &mut errors);
        }
        let (source, target) = (self.child(from), self.child(to));
        if target.is_some() && flags.contains(RenameFlags::NOREPLACE) {
            errors.push(Errno::EEXIST);
        }
        let Some(source) = source else {
            errors.push(Errno::ENOENT);
            return errors;
        };
        if self.below(source).contains(&to.0) {
            errors.push(Errno::EINVAL);
        }
        match target {
            None if exchange => errors.push(Errno::ENOENT),
            Some(target) if exchange && self.below(target).contains(&from.0) => {
                errors.push(Errno::EINVAL);
            }
            Some(target) if !exchange && target != source => {
                self.stays(target, self.is_dir(source), &mut errors);
            }
            _ => {}
        }
        if !errors.is_empty() || target == Some(source) {
            return errors;
        }
        self.names.remove(&(from.0, from.1.into()));
        if let (true, Some(target)) = (exchange, target) {
            self.enter(from, target);
        }
        self.enter(to, source);
        if let Some(new) = whiteout {
            self.inodes.insert(new.ino, Inode::new(new));
            self.enter(from, new.ino);
        }
        errors
    }

    pub(crate) fn change(&mut self, ino: Ino, change: &Change) -> Errors {
        let Some(inode) = self.inodes.get_mut(&ino) else {
            return vec![Errno::ESTALE];
        };
        inode.perm = change.perm.unwrap_or(inode.perm);
        inode.uid = change.uid.unwrap_or(inode.uid);
        Errors::new()
    }

    pub(crate) fn set_xattr(
        &mut self,
        ino: Ino,
        name: &[u8],
        value: Option<&[u8]>,
        how: XattrSet,
    ) -> Errors {
        let Some(inode) = self.inodes.get_mut(&ino) else {
            return vec![Errno::ESTALE];
        };
        match (how, inode.xattrs.contains_key(name), value) {
            (XattrSet::Create, true, _) => return vec![Errno::EEXIST],
            (XattrSet::Replace, false, _) => return vec![Errno::ENODATA],
            (_, _, Some(value)) => inode.xattrs.insert(name.into(), value.into()),
            (_, _, None) => inode.xattrs.remove(name),
        };
        Errors::new()
    }

    /// Inodes without names that no session keeps are freed.
    pub(crate) fn sweep(&mut self) {
        let named: BTreeSet<Ino> = self.names.values().copied().collect();
        self.inodes.retain(|ino, inode| {
            *ino == Ino::ROOT || named.contains(ino) || !inode.keepers.is_empty()
        });
    }
}
