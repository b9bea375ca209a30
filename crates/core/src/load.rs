//! Bringing what a store holds into memory.
//!
//! Inodes come by number. (Names: see `namespace/load.rs`; a
//! file's bytes: see `io/bring.rs`.) Nothing of this runs over a store that pins everything.

use holdfast_sync::{Prepared, epoch};
use std::slice;
use std::sync::atomic::AtomicU64;

use crate::acl::{ACL_ACCESS, ACL_DEFAULT, Acl};
use crate::directory::Directory;
use crate::evictions::{self, Evictions};
use crate::file_system::Core;
use crate::inode::{Content, DirectoryBody, Extension, ExtraAttrs, Known, Meta, Object};
use crate::node::Node;
use crate::store::{InodeRecord, Rest, StoredSpace};
use crate::types::{Errno, FileFlags, FileType, Ino, Result};

impl Core {
    /// Loads an inode that is not in the index. `once`: for a caller who looks once and goes on; the
    /// inode is let go with its last use, unless somebody else asks for it meanwhile.
    #[cold]
    pub(crate) fn load(&self, ino: Ino, once: bool) -> Result<Node> {
        loop {
            let asked = self.shared().map(|shared| (shared, shared.ask(ino)));
            let evictions = self.evictions.lock(ino).count();
            let mut found = Vec::new();
            self.store.load_inodes(&[ino], &mut found)?;
            let record = found
                .into_iter()
                .find(|record| record.ino == ino)
                .ok_or_else(|| self.or_gone(Errno::ESTALE))?;
            let object = self.build(&record);
            if let Some((node, made)) = self.take_in_built(&record, object, evictions, once)? {
                if let Some((shared, at)) = asked {
                    self.date(shared, node.inode(), &record, at, made)?;
                }
                if !once && node.inode().is_marked_freeing() {
                    self.keep(&node);
                }
                return Ok(node);
            }
        }
    }

    /// Loads inodes of these numbers, which ascend, for a caller that asks for one of them, `wanted`. `None`: that one has to be
    /// asked for alone, for whatever reason.
    pub(crate) fn load_ahead(&self, inos: &[Ino], wanted: Ino) -> Option<Node> {
        self.bring_ahead(inos, Some(wanted)).ok()?;
        self.just_loaded(wanted)
    }

    /// Brings inodes of these numbers, which ascend, into memory, as far as that goes, before anybody but a caller of `wanted` asks
    /// for them.
    ///
    /// # Errors
    /// What the store answers.
    pub(crate) fn bring_ahead(&self, inos: &[Ino], wanted: Option<Ino>) -> Result<()> {
        let evictions = self.evictions.snapshot();
        let mut found = Vec::with_capacity(inos.len());
        self.store.load_inodes(inos, &mut found)?;
        {
            let guard = epoch::pin();
            let missing = |record: &InodeRecord| {
                // Orphans are for those who have them.
                Some(record.ino) == wanted
                    || record.nlink > 0 && self.index.peek(record.ino.0, &guard).is_none()
            };
            found.retain(missing);
        }
        self.take_in_all(&found, &evictions, Asked::For(wanted));
        Ok(())
    }

    /// An inode that was just brought into memory, and is asked for.
    pub(crate) fn just_loaded(&self, ino: Ino) -> Option<Node> {
        let node = Node::new(self.index.get(ino.0)?);
        node.inode().touch(&self.reclaim.epochs);
        if node.inode().is_marked_freeing() {
            self.keep(&node);
        }
        Some(node)
    }

    /// Brings those of these inodes into memory that are not there, as far as that goes: who needs
    /// one of them that is still missing loads it, and learns why it could not be.
    pub(crate) fn load_together(&self, inos: impl Iterator<Item = Ino>) {
        let mut missing: Vec<Ino> = {
            let guard = epoch::pin();
            inos.filter(|ino| self.index.peek(ino.0, &guard).is_none())
                .collect()
        };
        if missing.len() < 2 {
            return;
        }
        missing.sort_unstable();
        missing.dedup();
        let evictions = self.evictions.snapshot();
        let mut found = Vec::with_capacity(missing.len());
        if self.store.load_inodes(&missing, &mut found).is_ok() {
            self.take_in_all(&found, &evictions, Asked::ForAll);
        }
    }

    /// Makes loaded inodes known, as far as that goes: not what came too late, or cannot be built.
    /// `evictions`: from before they were read.
    fn take_in_all(
        &self,
        found: &[InodeRecord],
        evictions: &[u64; evictions::SHARDS],
        asked: Asked,
    ) {
        let mut parts = self.parts_of(found);
        let mut at = 0;
        for some in found.chunk_by(|one, other| Evictions::share(one.ino, other.ino)) {
            let own = parts.get_mut(at..at + some.len()).unwrap_or_default();
            at += some.len();
            let Some(first) = some.first() else { continue };
            let evictions = Evictions::of(evictions, first.ino);
            let revoked = self.policy.revoked();
            let missing = own.iter().map(Option::is_none);
            let alone = missing.chain(std::iter::repeat(false));
            let alone = some
                .iter()
                .zip(alone)
                .filter(|(_, alone)| revoked || *alone);
            let alone: Vec<&InodeRecord> = alone.map(|(record, _)| record).collect();
            if !revoked {
                self.take_in_neighbours(some, own, evictions, asked);
            }
            for record in alone {
                if let Ok(Some(node)) = self.take_in(record, evictions, false) {
                    self.put(node);
                }
            }
        }
    }

    /// What these inodes are made of beside their records. `None`: it has to be asked for alone. Nothing
    /// at all: they are all [plain](is_plain).
    fn parts_of(&self, found: &[InodeRecord]) -> Vec<Option<Parts>> {
        if found.iter().all(is_plain) {
            return Vec::new();
        }
        let more = |record: &&InodeRecord| record.nlink > 0 && !is_plain(record);
        let more: Vec<InodeRecord> = found.iter().filter(more).cloned().collect();
        let mut rests = Vec::with_capacity(more.len());
        if self.store.load_rests(&more, &mut rests).is_err() || rests.len() != more.len() {
            // Who needs one of them learns why.
            rests.clear();
        }
        let mut rests = rests.into_iter();
        let parts = |record: &InodeRecord| match (is_plain(record), record.nlink) {
            (true, _) => Some((content_of(record), None)),
            (false, 0) => None,
            (false, _) => parts(record, rests.next()?).ok(),
        };
        found.iter().map(parts).collect()
    }

    /// The same for neighbours, but for those whose parts are missing. No parts at all: they are plain.
    fn take_in_neighbours(
        &self,
        some: &[InodeRecord],
        parts: &mut [Option<Parts>],
        evictions: u64,
        asked: Asked,
    ) {
        let mut ahead = 0;
        {
            let mut now = self.evictions.lock(some[0].ino);
            if now.count() != evictions {
                return;
            }
            let mut parts = parts.iter_mut();
            let objects = some.iter().filter_map(|record| {
                let (content, extra_attrs) = match parts.next() {
                    Some(parts) => parts.take()?,
                    None => (content_of(record), None),
                };
                let object = || {
                    let object = self.object(record, content, extra_attrs);
                    if !asked.is_for(record.ino) {
                        object.ahead();
                    }
                    object
                };
                let inode = now.give_back(record.ino, Prepared::with(object));
                Some((record.ino.0, inode))
            });
            self.index.publish_all(objects, |ino, published| {
                ahead += i64::from(published.is_some() && !asked.is_for(Ino(ino)));
            });
        }
        if ahead > 0 {
            self.readahead.issued.add(ahead);
        }
        // Either this is seen here, or the walk of `FileSystem::revoke` comes later.
        if self.policy.revoked() {
            for record in some {
                if let Some(node) = self.index.get(record.ino.0).map(Node::new) {
                    // Not its end: `node` is a use.
                    drop(node.inode().mark_freeing());
                }
            }
        }
    }

    /// Makes a loaded inode known; `None` if the record may be out of date. `evictions`: the count before
    /// the record was read.
    pub(crate) fn take_in(
        &self,
        record: &InodeRecord,
        evictions: u64,
        once: bool,
    ) -> Result<Option<Node>> {
        let taken = self.take_in_built(record, self.build(record), evictions, once)?;
        Ok(taken.map(|(node, _)| node))
    }

    /// As [`Core::take_in`] of an inode that is kept; was it made known by this?
    pub(crate) fn take_in_told(
        &self,
        record: &InodeRecord,
        evictions: u64,
    ) -> Result<Option<(Node, bool)>> {
        self.take_in_built(record, self.build(record), evictions, false)
    }

    /// Makes each of these known that is not, as far as that goes; returns those, in their order. `evictions`: from before they were read.
    pub(crate) fn take_in_each(
        &self,
        found: &[InodeRecord],
        evictions: &[u64; evictions::SHARDS],
        asked: Asked,
    ) -> Vec<Ino> {
        let mut made = Vec::with_capacity(found.len());
        let parts = self.parts_of(found);
        let all_plain = parts.is_empty();
        let mut parts = parts.into_iter();
        for record in found {
            let own = match all_plain {
                true => Some((content_of(record), None)),
                false => parts.next().flatten(),
            };
            // What has none is for callers that ask for it.
            let Some((content, extra_attrs)) = own else {
                continue;
            };
            let object = self.object(record, content, extra_attrs);
            let is_ahead = !asked.is_for(record.ino);
            if is_ahead {
                object.ahead();
            }
            let evictions = Evictions::of(evictions, record.ino);
            if let Ok(Some((node, new))) = self.take_in_built(record, Ok(object), evictions, false)
            {
                if new {
                    self.readahead.issued.add(i64::from(is_ahead));
                    made.push(record.ino);
                }
                self.put(node);
            }
        }
        made
    }

    #[inline]
    fn take_in_built(
        &self,
        record: &InodeRecord,
        object: Result<Object>,
        evictions: u64,
        once: bool,
    ) -> Result<Option<(Node, bool)>> {
        let ino = record.ino;
        let published = {
            let mut now = self.evictions.lock(ino);
            // Under the lock nobody else makes it known, so that publishing waits for nobody.
            if self.index.peek(ino.0, &epoch::pin()).is_some() {
                None
            } else if now.count() != evictions {
                return Ok(None);
            } else {
                // What could not be built counts only now: it may have been freed meanwhile.
                let inode = now.give_back(ino, Prepared::new(object?));
                self.index.publish_prepared(ino.0, inode).ok()
            }
        };
        let Some(inode) = published else {
            // Somebody else was faster, or it is on its way out.
            return Ok(self.index.get(ino.0).map(|inode| (Node::new(inode), false)));
        };
        let node = Node::new(inode);
        if once || record.nlink == 0 || self.policy.revoked() {
            // Not its end: `node` is a use.
            drop(node.inode().mark_freeing());
        }
        Ok(Some((node, true)))
    }

    /// Somebody wants an inode that a passer-by brought in: now it is kept.
    #[cold]
    pub(crate) fn keep(&self, node: &Node) {
        let meta = node.inode().write();
        if meta.nlink > 0 && !self.policy.revoked() {
            node.inode().unmark_freeing();
            // Either this is seen here, or the walk of `FileSystem::revoke` comes later.
            if self.policy.revoked() {
                drop(node.inode().mark_freeing());
            }
        }
    }

    fn build(&self, record: &InodeRecord) -> Result<Object> {
        let mut rests = Vec::new();
        if record.xattrs || record.kind == FileType::Symlink {
            self.store.load_rests(slice::from_ref(record), &mut rests)?;
        }
        let (content, extra_attrs) = parts(record, rests.pop().unwrap_or_default())?;
        Ok(self.object(record, content, extra_attrs))
    }

    /// Built in the place where it stays: see [`Prepared`].
    #[inline(always)]
    fn object(
        &self,
        record: &InodeRecord,
        content: Content,
        extra_attrs: Option<Box<ExtraAttrs>>,
    ) -> Object {
        let mut meta = Meta::new(record.perm, record.uid, record.gid, record.ctime);
        meta.nlink = record.nlink;
        meta.size = record.size;
        meta.atime = record.atime;
        meta.mtime = record.mtime;
        meta.btime = record.btime;
        meta.home = (record.parent, 0);
        // What this does not know it neither shows nor obeys; a check finds it.
        meta.flags = record.flags & FileFlags::all();
        let (fs, kind) = (self.registration.number(), record.kind);
        let extension = Extension::of(content, extra_attrs);
        let beside = extension.as_ref().map_or(0, |extension| extension.memory());
        self.reclaim.extension_sizes.came(1, beside);
        let known = match record.space == StoredSpace::AS_SIZE && kind == FileType::Regular {
            true => Known::Full,
            false => Known::Nothing,
        };
        let object = Object::new(fs, kind, &meta, extension, known);
        let again = self.reclaim.ghosts.take(record.ino.0, self.index.len());
        object.arrive(&self.reclaim.epochs, again);
        object
    }
}

/// Is a record all that there is to an inode, which is no orphan?
fn is_plain(record: &InodeRecord) -> bool {
    record.nlink > 0 && !record.xattrs && record.project == 0 && record.kind != FileType::Symlink
}

/// Which of the inodes that come together are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    ForAll,
    /// This one; the others come ahead of their use.
    For(Option<Ino>),
}

impl Asked {
    fn is_for(self, ino: Ino) -> bool {
        match self {
            Self::ForAll => true,
            Self::For(asked) => asked == Some(ino),
        }
    }
}

/// What an inode is made of beside its record.
pub(crate) type Parts = (Content, Option<Box<ExtraAttrs>>);

/// Builds them of what the store has.
pub(crate) fn parts(record: &InodeRecord, rest: Rest) -> Result<Parts> {
    let mut extra_attrs = None::<Box<ExtraAttrs>>;
    for (name, value) in rest.xattrs {
        let extra_attrs = extra_attrs.get_or_insert_default();
        match &*name {
            ACL_ACCESS => extra_attrs.acl = Acl::parse(&value)?,
            ACL_DEFAULT => extra_attrs.default_acl = Acl::parse(&value)?,
            _ => {
                extra_attrs.xattrs.insert(name, value.into());
            }
        }
    }
    if record.kind == FileType::Regular && record.xattrs {
        // It may have space behind its end, and says so as long as it lives.
        extra_attrs.get_or_insert_default();
    }
    if record.project != 0 {
        extra_attrs.get_or_insert_default().project = record.project;
    }
    let content = match (record.kind, rest.target) {
        (FileType::Symlink, Some(target)) => Content::Target(target),
        (FileType::Symlink, None) => return Err(Errno::EUCLEAN),
        _ => content_of(record),
    };
    Ok((content, extra_attrs))
}

/// The content of an inode of which nothing else has to be loaded now.
fn content_of(record: &InodeRecord) -> Content {
    match record.kind {
        FileType::Directory => Content::Directory(DirectoryBody {
            parent: AtomicU64::new(record.parent.0),
            names: Directory::empty(false),
        }),
        FileType::Regular => match record.space.beside_size() {
            Some(pages) => Content::Stored(AtomicU64::new(pages)),
            None => Content::None,
        },
        kind => Content::of(kind, record.parent, record.rdev, None),
    }
}
