//! Changes of a file that wait for the database.

use super::layer::Layer;
use crate::meta::Change;
use holdfast_core::store::InodeRecord;
use holdfast_types::SetTime;
use std::time::Instant;

/// Changes since a moment.
#[derive(Clone, Debug)]
pub(super) struct Waiting {
    pub(super) layer: Layer,
    /// The byte behind the last one that was written; 0 if none was.
    pub(super) reach: u64,
    /// Was the length set? Then it is the record's.
    pub(super) exact: bool,
    /// Attributes; its times are absolute.
    pub(super) change: Change,
    /// The first change and the last.
    pub(super) first: Instant,
    pub(super) last: Instant,
}

impl Waiting {
    pub(super) fn new() -> Self {
        let now = Instant::now();
        Self {
            layer: Layer::default(),
            reach: 0,
            exact: false,
            change: Change::default(),
            first: now,
            last: now,
        }
    }

    /// Adds the later changes of another.
    pub(super) fn merge(&mut self, later: Self) {
        self.layer.merge(later.layer);
        self.reach = match later.exact {
            true => later.reach,
            false => self.reach.max(later.reach),
        };
        self.exact |= later.exact;
        merge_change(&mut self.change, later.change);
        self.last = later.last;
    }

    /// Bytes of memory.
    pub(super) fn memory(&self) -> u64 {
        self.layer.memory() + 256
    }

    /// Lays the length and the attributes over a record; `top` has the length that was set.
    pub(super) fn lay_over(&self, record: &mut InodeRecord, top: &InodeRecord) {
        record.size = match self.exact {
            true => top.size,
            false => record.size.max(self.reach),
        };
        set(record, &self.change);
    }
}

/// Adds later changes of attributes.
pub(super) fn merge_change(into: &mut Change, later: Change) {
    let Change {
        perm,
        uid,
        gid,
        atime,
        mtime,
        flags,
        project,
        acl,
        drops_capability,
    } = later;
    into.perm = perm.or(into.perm);
    into.uid = uid.or(into.uid);
    into.gid = gid.or(into.gid);
    into.atime = atime.or(into.atime);
    into.mtime = mtime.or(into.mtime);
    into.flags = flags.or(into.flags);
    into.project = project.or(into.project);
    into.acl = acl.or(into.acl.take());
    into.drops_capability |= drops_capability;
}

/// Sets the attributes of a record. Times that are not absolute stay.
pub(super) fn set(record: &mut InodeRecord, change: &Change) {
    record.perm = change.perm.unwrap_or(record.perm);
    record.uid = change.uid.unwrap_or(record.uid);
    record.gid = change.gid.unwrap_or(record.gid);
    record.flags = change.flags.unwrap_or(record.flags);
    record.project = change.project.unwrap_or(record.project);
    if let Some(SetTime::At(time)) = change.atime {
        record.atime = time;
    }
    if let Some(SetTime::At(time)) = change.mtime {
        record.mtime = time;
    }
}
