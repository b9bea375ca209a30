//! The files of a mount: what all operations on them share.

use super::blocks::Blocks;
use super::clock::Clock;
use super::dirty::Dirty;
use super::disk::Disk;
use super::file::{File, State};
use super::joined::Joined;
use super::limits::Limits;
use super::map;
use super::notices::Notices;
use super::options::FileOptions;
use super::readahead::Readahead;
use super::table::Table;
use crate::meta::{Meta, Node};
use crate::numbers::Numbers;
use crate::objects::Objects;
use holdfast_core::store::{Changes, InodeRecord, Version};
use holdfast_types::{Ino, Time};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, OnceLock, Weak};

/// The part of the limit of memory after which limits are computed anew.
const PART: u64 = 32;
/// Files that are looked at for each that comes, once too many are in memory.
const LOOKS: usize = 4;

/// What a change of a file did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Written {
    /// The version directly before.
    pub(crate) before: Version,
    /// The record after it.
    pub(crate) record: InodeRecord,
    /// For a write, its first byte.
    pub(crate) start: u64,
    /// For a write, the number of bytes.
    pub(crate) count: u64,
}

/// The regular files of a mount that have dirty bytes or a map in memory.
pub(crate) struct Files {
    pub(super) meta: Arc<dyn Meta>,
    pub(super) objects: Arc<dyn Objects>,
    pub(super) numbers: Arc<Numbers>,
    pub(super) options: FileOptions,
    /// Files up to this length are bodies.
    pub(super) body_limit: u64,
    pub(super) clock: Clock,
    pub(super) table: Table,
    pub(super) limits: Limits,
    pub(super) blocks: Arc<Blocks>,
    pub(super) disk: Option<Arc<Disk>>,
    pub(super) readahead: Readahead,
    pub(super) dirty: Dirty,
    pub(super) notices: Notices,
    pub(super) joined: OnceLock<Joined>,
}

impl Files {
    /// Sets the receiver of what the core has to be told.
    pub(crate) fn attach(&self, changes: Weak<dyn Changes>) {
        self.notices.attach(changes);
    }

    /// Notes the time of the database, as a beat brought it.
    pub(crate) fn set_time(&self, now: Time) {
        self.clock.set(now);
    }

    /// Lays what waits here over a record from the database. A record that is older than one that
    /// is known becomes that one.
    pub(crate) fn lay_over(&self, record: &mut InodeRecord) {
        let Some(file) = self.table.get(record.ino) else {
            return;
        };
        let mut state = file.state.lock();
        if state.base.record.is_none() && !state.is_dirty() {
            return;
        }
        state.take_in_record(record);
        if let Ok(known) = state.record() {
            *record = known.clone();
        }
    }

    /// Another client has changed an inode: what waits here is laid over its new record.
    pub(crate) fn notified(&self, ino: Ino) {
        if let Some(file) = self.table.get(ino) {
            file.state.lock().base.outdated = true;
        }
    }

    /// The record of a file that is known here, with what waits.
    pub(crate) fn record(&self, ino: Ino) -> Option<InodeRecord> {
        let file = self.table.get(ino)?;
        let state = file.state.lock();
        state.record().ok().cloned()
    }

    /// The version that callers saw of a file when the database had this one.
    pub(crate) fn version_over(&self, ino: Ino, version: Version) -> Version {
        let Some(file) = self.table.get(ino) else {
            return version;
        };
        let state = file.state.lock();
        match (&state.base.record, &state.top) {
            (Some(base), Some(top)) if base.ctime == version.ctime => Version::of(top),
            _ => version,
        }
    }

    /// Takes in a node that the database answered: content that came along is kept, and a map of
    /// another generation is dropped.
    pub(crate) fn seen(&self, node: &Node) {
        let comes_along = node.content.as_ref().is_some_and(|it| map::memory(it) > 0);
        let file = match comes_along {
            true => self.table.get_or_new(node.record.ino),
            false => match self.table.get(node.record.ino) {
                Some(file) => file,
                None => return,
            },
        };
        self.take_in(&file, node, 0);
    }

    /// Keeps the node of a file that is opened for writing.
    pub(crate) fn open(&self, node: &Node) {
        self.take_in(&self.table.get_or_new(node.record.ino), node, 1);
    }

    fn take_in(&self, file: &Arc<File>, node: &Node, opens: u32) {
        let mut state = file.state.lock();
        state.take_in(node);
        state.opens += opens;
        self.changed(file, &mut state);
        drop(state);
        self.forget_some();
    }

    /// Ends one [opening](Self::open). Is the file open for writing still?
    pub(crate) fn close(&self, ino: Ino) -> bool {
        let Some(file) = self.table.get(ino) else {
            return false;
        };
        let mut state = file.state.lock();
        state.opens = state.opens.saturating_sub(1);
        state.opens > 0
    }

    /// The core does not know the inode any more. Nobody can see what waits of a file without
    /// names.
    pub(crate) fn forget(&self, ino: Ino) {
        if let Some(file) = self.table.get(ino) {
            let mut state = file.state.lock();
            let has_name = state.record().is_ok_and(|record| record.nlink > 0);
            if !has_name && state.opens == 0 && !state.flushing {
                (state.waiting, state.top) = (None, None);
                self.changed(&file, &mut state);
            }
        }
        self.table.forget(ino);
    }

    /// A file has changed: what it takes is counted, and it is among the dirty ones or not.
    pub(super) fn changed(&self, file: &Arc<File>, state: &mut State) {
        let (dirty, clean) = state.memory();
        let counted = std::mem::replace(&mut state.counted, (dirty, clean));
        let bytes = &self.dirty.bytes;
        bytes.fetch_add(dirty.wrapping_sub(counted.0), Relaxed);
        self.table
            .clean
            .fetch_add(clean.wrapping_sub(counted.1), Relaxed);
        let is_dirty = state.is_dirty();
        if is_dirty != (counted.0 > 0) {
            self.dirty.list(file, is_dirty);
        }
        let full = self.limits.pack();
        if counted.0 < full && dirty >= full && !state.flushing {
            self.dirty.look();
        }
        if dirty > counted.0 || clean > counted.1 {
            self.added(dirty.saturating_sub(counted.0) + clean.saturating_sub(counted.1));
        }
    }

    /// Bytes were added; the caller may hold locks.
    pub(super) fn added(&self, bytes: u64) {
        if let Some(joined) = self.joined.get() {
            joined.added.fetch_add(bytes, Relaxed);
            joined.memory.moved();
        }
    }

    /// Keeps to the limits. The caller holds no lock.
    pub(super) fn keep_limits(&self) {
        if let Some(joined) = self.joined.get()
            && joined.added.load(Relaxed) > joined.memory.limit() / PART
        {
            joined.added.store(0, Relaxed);
            joined.memory.look();
        }
        self.forget_some();
    }

    /// Forgets files if there are too many.
    pub(super) fn forget_some(&self) {
        self.table.shrink(self.limits.files(), LOOKS);
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        self.dirty.stop();
        if let Some(disk) = &self.disk {
            disk.stop();
        }
    }
}
