//! Inodes that are loaded by name, alone or in batches.

use holdfast_sync::epoch;
use std::sync::atomic::Ordering;
use std::time::Instant;

use super::shared_store::SharedStore;
use crate::core::Core;
use crate::evictions::{self, Evictions};
use crate::inode::{DirectoryBody, Inode, Numbered as _};
use crate::inodes::find::{has_inode, keep_inode, node_in_memory};
use crate::inodes::free::put_node;
use crate::load::{Asked, take_in, take_in_each};
use crate::node::Node;
use crate::shared::{date_inode, let_go_unless_known, or_gone};
use crate::store::InodeRecord;
use crate::types::{Errno, FileType, Ino, Result};

/// How often a lookup is repeated if the name leads to another inode each time.
const RETRIES_MAX: u32 = 16;

/// Asks the store for one name, and loads its inode. `None`: the name does not exist.
///
/// # Errors
/// Those of the store.
pub(crate) fn ask_by_name(
    core: &Core,
    shared: SharedStore<'_>,
    dir: &Inode,
    name: &[u8],
) -> Result<Option<Node>> {
    let mut retries = 0;
    loop {
        let evictions = core.evictions.snapshot();
        let at = shared.ask(dir.ino());
        let mut found = Vec::with_capacity(1);
        let asked = core.store.look_up(dir.ino(), &[name], &mut found);
        asked.map_err(|error| or_gone(core, error))?;
        let Some((entry, record)) = found.pop().ok_or(Errno::EUCLEAN)? else {
            return Ok(None);
        };
        let record = record.ok_or(Errno::EIO)?;
        if record.ino != entry.ino {
            return Err(Errno::EUCLEAN);
        }
        if let Some(node) = node_in_memory(core, record.ino)? {
            match date_inode(core, shared, node.inode(), &record, at, false) {
                Err(Errno::ESTALE) if retries < RETRIES_MAX => {
                    retries += 1;
                    if !is_same(core, node.inode(), &record) {
                        // The name leads to another inode, which reuses the number of a freed
                        // one.
                        shared.is_another(record.ino);
                    }
                    continue;
                }
                dated => dated?,
            }
            return Ok(Some(node));
        }
        let taken = take_in(core, &record, Evictions::of(&evictions, record.ino), false);
        match taken {
            Ok(Some((node, made))) => {
                date_inode(core, shared, node.inode(), &record, at, made)?;
                if node.inode().is_marked_freeing() {
                    keep_inode(core, &node);
                }
                return Ok(Some(node));
            }
            // It was evicted meanwhile.
            Ok(None) => {}
            Err(error) => {
                let_go_unless_known(core, record.ino);
                if error != Errno::ESTALE || retries == RETRIES_MAX {
                    return Err(error);
                }
                // The name was replaced between the two requests.
                retries += 1;
            }
        }
    }
}

/// Can a record belong to this inode? A symbolic link with another target is another inode.
fn is_same(core: &Core, inode: &Inode, record: &InodeRecord) -> bool {
    if record.kind != inode.kind() {
        return false;
    }
    let mut rests = Vec::new();
    record.kind != FileType::Symlink
        || (core.store)
            .load_rests(std::slice::from_ref(record), &mut rests)
            .is_ok_and(|()| rests.pop().and_then(|rest| rest.target).as_deref() == inode.target())
}

/// Loads the inodes of some names of a listing, and revalidates those with an expired answer,
/// as far as that succeeds.
pub(crate) fn look_up_together(core: &Core, dir: &Inode, wanted: &[(Box<[u8]>, Ino)]) {
    if wanted.len() > 1 {
        // A caller that needs one of these inodes gets the error from its own request.
        let _ = look_up_some(core, dir, wanted, Asked::ForAll);
    }
}

/// Loads the inodes with these numbers, which ascend, before callers other than that of
/// `wanted` ask for them. Returns whether the answer contained `wanted`.
///
/// # Errors
/// Those of the store.
pub(crate) fn prefetch_names(
    core: &Core,
    dir: &Inode,
    body: &DirectoryBody,
    inos: &[Ino],
    wanted: Option<Ino>,
) -> Result<bool> {
    let names: Vec<(Box<[u8]>, Ino)> = {
        let guard = epoch::pin();
        let all = body.names.after(0, &guard);
        all.filter(|(_, entry)| inos.binary_search(&entry.ino).is_ok())
            .map(|(name, entry)| (name.into(), entry.ino))
            .take(inos.len())
            .collect()
    };
    let found_inos = look_up_some(core, dir, &names, Asked::For(wanted))?;
    Ok(wanted.is_some_and(|ino| found_inos.contains(&ino)))
}

/// Looks names up and loads their inodes. Returns the inodes that are now in memory as the
/// store returned them.
fn look_up_some(
    core: &Core,
    dir: &Inode,
    wanted: &[(Box<[u8]>, Ino)],
    asked: Asked,
) -> Result<Vec<Ino>> {
    let Some(shared) = core.shared().filter(|_| !wanted.is_empty()) else {
        return Ok(Vec::new());
    };
    if let Ok(body) = dir.directory() {
        let parent = Ino(body.parent.load(Ordering::Relaxed));
        shared.coherence.walks.asks_for_inodes(parent);
    }
    let evictions = core.evictions.snapshot();
    let at = shared.ask(dir.ino());
    let names: Vec<&[u8]> = wanted.iter().map(|(name, _)| &**name).collect();
    let mut found = Vec::with_capacity(names.len());
    core.store.look_up(dir.ino(), &names, &mut found)?;
    let records = found.into_iter().flatten().filter_map(|(_, record)| record);
    let mut records: Vec<InodeRecord> = records.collect();
    records.sort_unstable_by_key(|record| record.ino);
    records.dedup_by_key(|record| record.ino);
    Ok(take_in_dated(core, shared, &records, &evictions, at, asked))
}

pub(super) fn take_in_dated(
    core: &Core,
    shared: SharedStore<'_>,
    records: &[InodeRecord],
    evictions: &[u64; evictions::SHARDS],
    at: Instant,
    asked: Asked,
) -> Vec<Ino> {
    let mut found_inos = Vec::with_capacity(records.len());
    let missing = |record: &&InodeRecord| !has_inode(core, record.ino);
    let missing: Vec<InodeRecord> = records.iter().filter(missing).cloned().collect();
    let made = take_in_each(core, &missing, evictions, asked);
    for record in records {
        let Some(inode) = core.index.get(record.ino.0) else {
            let_go_unless_known(core, record.ino);
            continue;
        };
        let node = Node::new(inode);
        let made = made.binary_search(&record.ino).is_ok();
        if date_inode(core, shared, node.inode(), record, at, made).is_ok() {
            found_inos.push(record.ino);
        }
        put_node(core, node);
    }
    found_inos
}
