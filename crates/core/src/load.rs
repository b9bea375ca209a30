//! Loading of inodes by number.
//!
//! (Names: see `namespace/load.rs`; content: see `io/populate.rs`.) None of this runs over a store
//! that pins everything.

use crate::inode::loaded::{Parts, content_of, is_plain, meta_of, parts};
use crate::inodes::find::keep_inode;
use holdfast_sync::{Prepared, epoch};
use std::slice;

use crate::core::Core;
use crate::evictions::{self, Evictions};
use crate::inode::{Content, ContentState, Extension, ExtraAttrs, Object};
use crate::inodes::free::put_node;
use crate::node::Node;
use crate::shared::{date_inode, or_gone};
use crate::store::{InodeRecord, StoredSpace};
use crate::types::{Errno, FileType, Ino, Result};

/// Loads an inode that is not in the index. `once`: the caller uses it once; the inode is
/// evicted with its last reference, unless another caller asks for it meanwhile.
#[cold]
pub(crate) fn load_inode(core: &Core, ino: Ino, once: bool) -> Result<Node> {
    hop!();
    loop {
        let asked = core.shared().map(|shared| (shared, shared.ask(ino)));
        let evictions = core.evictions.lock(ino).count();
        let mut found = Vec::new();
        core.store.load_inodes(&[ino], &mut found)?;
        let record = found
            .into_iter()
            .find(|record| record.ino == ino)
            .ok_or_else(|| or_gone(core, Errno::ESTALE))?;
        let object = build_object(core, &record);
        if let Some((node, made)) = take_in_built(core, &record, object, evictions, once)? {
            if let Some((shared, at)) = asked {
                date_inode(core, shared, node.inode(), &record, at, made)?;
            }
            if !once && node.inode().is_marked_freeing() {
                keep_inode(core, &node);
            }
            return Ok(node);
        }
    }
}

/// Loads inodes with these numbers, which ascend, for a caller that asks for one of them,
/// `wanted`. `None`: it has to be loaded alone, for whatever reason.
pub(crate) fn load_with_prefetch(core: &Core, inos: &[Ino], wanted: Ino) -> Option<Node> {
    prefetch_inodes(core, inos, Some(wanted)).ok()?;
    just_loaded(core, wanted)
}

/// Loads inodes with these numbers, which ascend, as far as that succeeds, before callers other
/// than that of `wanted` ask for them.
///
/// # Errors
/// Those of the store.
pub(crate) fn prefetch_inodes(core: &Core, inos: &[Ino], wanted: Option<Ino>) -> Result<()> {
    let evictions = core.evictions.snapshot();
    let mut found = Vec::with_capacity(inos.len());
    core.store.load_inodes(inos, &mut found)?;
    {
        let guard = epoch::pin();
        let missing = |record: &InodeRecord| {
            // Orphans are loaded only on request.
            Some(record.ino) == wanted
                || record.nlink > 0 && core.index.peek(record.ino.0, &guard).is_none()
        };
        found.retain(missing);
    }
    take_in_each(core, &found, &evictions, Asked::For(wanted));
    Ok(())
}

/// An inode that was just loaded, and is asked for.
pub(crate) fn just_loaded(core: &Core, ino: Ino) -> Option<Node> {
    let node = Node::new(core.index.get(ino.0)?);
    node.inode().touch(&core.reclaim.epochs);
    if node.inode().is_marked_freeing() {
        keep_inode(core, &node);
    }
    Some(node)
}

/// Loads the missing ones of these inodes, as far as that succeeds. A caller that needs one
/// that is still missing loads it alone, and gets the error.
pub(crate) fn load_together(core: &Core, inos: impl Iterator<Item = Ino>) {
    let mut missing: Vec<Ino> = {
        let guard = epoch::pin();
        inos.filter(|ino| core.index.peek(ino.0, &guard).is_none())
            .collect()
    };
    if missing.len() < 2 {
        return;
    }
    missing.sort_unstable();
    missing.dedup();
    let evictions = core.evictions.snapshot();
    let mut found = Vec::with_capacity(missing.len());
    if core.store.load_inodes(&missing, &mut found).is_ok() {
        take_in_each(core, &found, &evictions, Asked::ForAll);
    }
}

/// The parts of these inodes beside their records. `None`: it has to be loaded alone.
fn parts_of(core: &Core, found: &[InodeRecord]) -> impl Iterator<Item = Option<Parts>> {
    let more = |record: &&InodeRecord| record.nlink > 0 && !is_plain(record);
    let more: Vec<InodeRecord> = found.iter().filter(more).cloned().collect();
    let mut rests = Vec::with_capacity(more.len());
    if !more.is_empty()
        && (core.store.load_rests(&more, &mut rests).is_err() || rests.len() != more.len())
    {
        // A caller that needs one of them gets the error.
        rests.clear();
    }
    let mut rests = rests.into_iter();
    found
        .iter()
        .map(move |record| match (is_plain(record), record.nlink) {
            (true, _) => Some((content_of(record), None)),
            (false, 0) => None,
            (false, _) => parts(record, rests.next()?).ok(),
        })
}

/// Publishes a loaded inode; `None` if the record may be out of date. `evictions`: the count
/// before the record was read. Returns also whether this call published it.
pub(crate) fn take_in(
    core: &Core,
    record: &InodeRecord,
    evictions: u64,
    once: bool,
) -> Result<Option<(Node, bool)>> {
    take_in_built(core, record, build_object(core, record), evictions, once)
}

/// Publishes each of these inodes that is not in memory, as far as that succeeds; returns their
/// numbers, in order. `evictions`: the snapshot from before they were read.
pub(crate) fn take_in_each(
    core: &Core,
    found: &[InodeRecord],
    evictions: &[u64; evictions::SHARDS],
    asked: Asked,
) -> Vec<Ino> {
    let mut made = Vec::with_capacity(found.len());
    for (record, parts) in found.iter().zip(parts_of(core, found)) {
        // An inode without parts is loaded only on request.
        let Some((content, extra_attrs)) = parts else {
            continue;
        };
        let object = new_object(core, record, content, extra_attrs);
        let is_prefetch = !asked.is_for(record.ino);
        if is_prefetch {
            object.mark_readahead();
        }
        let evictions = Evictions::of(evictions, record.ino);
        if let Ok(Some((node, new))) = take_in_built(core, record, Ok(object), evictions, false) {
            if new {
                core.readahead.issued.add(i64::from(is_prefetch));
                made.push(record.ino);
            }
            put_node(core, node);
        }
    }
    made
}

#[inline]
fn take_in_built(
    core: &Core,
    record: &InodeRecord,
    object: Result<Object>,
    evictions: u64,
    once: bool,
) -> Result<Option<(Node, bool)>> {
    hop!();
    let ino = record.ino;
    let published = {
        let mut now = core.evictions.lock(ino);
        // No other thread can publish it under the lock, so `publish_prepared` does not block.
        if core.index.peek(ino.0, &epoch::pin()).is_some() {
            None
        } else if now.count() != evictions {
            return Ok(None);
        } else {
            // An error of `build_object` counts only now: the inode may have been freed meanwhile.
            let inode = now.give_back(ino, Prepared::new(object?));
            core.index.publish_prepared(ino.0, inode).ok()
        }
    };
    let Some(inode) = published else {
        // Another thread has published it, or it is being evicted.
        return Ok(core.index.get(ino.0).map(|inode| (Node::new(inode), false)));
    };
    let node = Node::new(inode);
    if once || record.nlink == 0 || core.policy.revoked() {
        // The reference of `node` prevents the eviction.
        drop(node.inode().mark_freeing());
    }
    Ok(Some((node, true)))
}

fn build_object(core: &Core, record: &InodeRecord) -> Result<Object> {
    let mut rests = Vec::new();
    if record.xattrs || record.kind == FileType::Symlink {
        core.store.load_rests(slice::from_ref(record), &mut rests)?;
    }
    let (content, extra_attrs) = parts(record, rests.pop().unwrap_or_default())?;
    Ok(new_object(core, record, content, extra_attrs))
}

/// Built in the place where it stays: see [`Prepared`].
#[inline(always)]
fn new_object(
    core: &Core,
    record: &InodeRecord,
    content: Content,
    extra_attrs: Option<Box<ExtraAttrs>>,
) -> Object {
    let meta = meta_of(record);
    let (fs, kind) = (core.registration.number(), record.kind);
    let extension = Extension::of(content, extra_attrs);
    let beside = extension.as_ref().map_or(0, |extension| extension.memory());
    core.reclaim.extension_sizes.came(1, beside);
    let known = match record.space == StoredSpace::AS_SIZE && kind == FileType::Regular {
        true => ContentState::Full,
        false => ContentState::Nothing,
    };
    let object = Object::new(fs, kind, &meta, extension, known);
    let refaulted = core.reclaim.ghosts.take(record.ino.0, core.index.len());
    object.mark_loaded(&core.reclaim.epochs, refaulted);
    object
}

/// The requested ones of inodes that are loaded together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    ForAll,
    /// This one; the others are read ahead.
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
