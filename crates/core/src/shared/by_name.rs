//! Inodes that are loaded by name, alone or in batches.

use holdfast_sync::epoch;
use std::sync::atomic::Ordering;
use std::time::Instant;

use super::SharedStore;
use crate::core::Core;
use crate::directory::Entry;
use crate::evictions::{self, Evictions};
use crate::inode::{DirectoryBody, Inode, Numbered as _};
use crate::load::Asked;
use crate::node::Node;
use crate::store::InodeRecord;
use crate::types::{Errno, FileType, Ino, Result};

/// How often a lookup is repeated if the name leads to another inode each time.
const RETRIES_MAX: u32 = 16;

impl Core {
    /// Looks a name up in a directory that is fresh.
    ///
    /// # Errors
    /// `ENOENT`, errors of the store.
    pub(crate) fn child_of_shared(
        &self,
        shared: SharedStore<'_>,
        dir: &Inode,
        body: &DirectoryBody,
        name: &[u8],
    ) -> Result<Node> {
        self.alive()?;
        if shared.coherence.asks_each(shared.now()) && !body.names.is_dead() {
            let found = self.ask_by_name(shared, dir, name)?;
            return found.ok_or_else(|| self.no_entry());
        }
        if !self.has_names(shared, dir, body) && self.is_to_list(shared, dir) {
            // A directory that cannot be listed can still be searched.
            let _ = self.names_as_they_are(dir, body);
        }
        if !self.has_names(shared, dir, body) {
            let found = self.ask_by_name(shared, dir, name)?;
            return found.ok_or_else(|| self.no_entry());
        }
        let entry = body.names.find_cached(name);
        let entry = entry.ok_or_else(|| self.no_entry())?;
        let node = self.named_in_shared(shared, dir, body, name, entry)?;
        if node.ino() == entry.ino && !node.inode().has_home() {
            // The inode was loaded by number: only now its name is known.
            node.inode().write().home = (dir.ino(), entry.cookie);
        }
        Ok(node)
    }

    /// The inode of a listed name, loaded or revalidated if necessary; others may be loaded with
    /// it.
    fn named_in_shared(
        &self,
        shared: SharedStore<'_>,
        dir: &Inode,
        body: &DirectoryBody,
        name: &[u8],
        entry: Entry,
    ) -> Result<Node> {
        if !shared.is_known_by(entry.ino, dir.ino(), name) {
            // The number may have been reused: another name had it since this one was listed.
            let found = self.ask_by_name(shared, dir, name)?;
            return found.ok_or_else(|| self.no_entry());
        }
        if self.is_there(entry.ino)
            && let Some(node) = self.node_in_memory(entry.ino)?
            && node.kind() == entry.kind
        {
            return Ok(node);
        }
        if let Some(node) = self.load_window(dir, body, name, entry) {
            return Ok(node);
        }
        // The name may lead elsewhere by now. The directory's times show that at its next
        // revalidation.
        let found = self.ask_by_name(shared, dir, name)?;
        found.ok_or_else(|| self.no_entry())
    }

    /// Asks the store for one name, and loads its inode. `None`: the name does not exist.
    ///
    /// # Errors
    /// Those of the store.
    pub(crate) fn ask_by_name(
        &self,
        shared: SharedStore<'_>,
        dir: &Inode,
        name: &[u8],
    ) -> Result<Option<Node>> {
        let mut retries = 0;
        loop {
            let evictions = self.evictions.snapshot();
            let at = shared.ask(dir.ino());
            let mut found = Vec::with_capacity(1);
            let asked = self.store.look_up(dir.ino(), &[name], &mut found);
            asked.map_err(|error| self.or_gone(error))?;
            let Some((entry, record)) = found.pop().ok_or(Errno::EUCLEAN)? else {
                return Ok(None);
            };
            let record = record.ok_or(Errno::EIO)?;
            if record.ino != entry.ino {
                return Err(Errno::EUCLEAN);
            }
            if let Some(node) = self.node_in_memory(record.ino)? {
                match self.date(shared, node.inode(), &record, at, false) {
                    Err(Errno::ESTALE) if retries < RETRIES_MAX => {
                        retries += 1;
                        if !self.is_same(node.inode(), &record) {
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
            let taken = self.take_in(&record, Evictions::of(&evictions, record.ino), false);
            match taken {
                Ok(Some((node, made))) => {
                    self.date(shared, node.inode(), &record, at, made)?;
                    if node.inode().is_marked_freeing() {
                        self.keep(&node);
                    }
                    return Ok(Some(node));
                }
                // It was evicted meanwhile.
                Ok(None) => {}
                Err(error) => {
                    self.let_go_unless_known(record.ino);
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
    fn is_same(&self, inode: &Inode, record: &InodeRecord) -> bool {
        if record.kind != inode.kind() {
            return false;
        }
        let mut rests = Vec::new();
        record.kind != FileType::Symlink
            || (self.store)
                .load_rests(std::slice::from_ref(record), &mut rests)
                .is_ok_and(|()| {
                    rests.pop().and_then(|rest| rest.target).as_deref() == inode.target()
                })
    }

    /// Loads the inodes of some names of a listing, and revalidates those with an expired answer,
    /// as far as that succeeds.
    pub(crate) fn look_up_together(&self, dir: &Inode, wanted: &[(Box<[u8]>, Ino)]) {
        if wanted.len() > 1 {
            // A caller that needs one of these inodes gets the error from its own request.
            let _ = self.look_up_some(dir, wanted, Asked::ForAll);
        }
    }

    /// Loads the inodes with these numbers, which ascend, before callers other than that of
    /// `wanted` ask for them. Returns whether the answer contained `wanted`.
    ///
    /// # Errors
    /// Those of the store.
    pub(crate) fn prefetch_names(
        &self,
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
        let found_inos = self.look_up_some(dir, &names, Asked::For(wanted))?;
        Ok(wanted.is_some_and(|ino| found_inos.contains(&ino)))
    }

    /// Looks names up and loads their inodes. Returns the inodes that are now in memory as the
    /// store returned them.
    fn look_up_some(
        &self,
        dir: &Inode,
        wanted: &[(Box<[u8]>, Ino)],
        asked: Asked,
    ) -> Result<Vec<Ino>> {
        let Some(shared) = self.shared().filter(|_| !wanted.is_empty()) else {
            return Ok(Vec::new());
        };
        if let Ok(body) = dir.directory() {
            let parent = Ino(body.parent.load(Ordering::Relaxed));
            shared.coherence.walks.asks_for_inodes(parent);
        }
        let evictions = self.evictions.snapshot();
        let at = shared.ask(dir.ino());
        let names: Vec<&[u8]> = wanted.iter().map(|(name, _)| &**name).collect();
        let mut found = Vec::with_capacity(names.len());
        self.store.look_up(dir.ino(), &names, &mut found)?;
        let records = found.into_iter().flatten().filter_map(|(_, record)| record);
        let mut records: Vec<InodeRecord> = records.collect();
        records.sort_unstable_by_key(|record| record.ino);
        records.dedup_by_key(|record| record.ino);
        Ok(self.take_in_dated(shared, &records, &evictions, at, asked))
    }

    pub(super) fn take_in_dated(
        &self,
        shared: SharedStore<'_>,
        records: &[InodeRecord],
        evictions: &[u64; evictions::SHARDS],
        at: Instant,
        asked: Asked,
    ) -> Vec<Ino> {
        let mut found_inos = Vec::with_capacity(records.len());
        let missing = |record: &&InodeRecord| !self.has_inode(record.ino);
        let missing: Vec<InodeRecord> = records.iter().filter(missing).cloned().collect();
        let made = self.take_in_each(&missing, evictions, asked);
        for record in records {
            let Some(inode) = self.index.get(record.ino.0) else {
                self.let_go_unless_known(record.ino);
                continue;
            };
            let node = Node::new(inode);
            let made = made.binary_search(&record.ino).is_ok();
            if self.date(shared, node.inode(), record, at, made).is_ok() {
                found_inos.push(record.ino);
            }
            self.put(node);
        }
        found_inos
    }
}
