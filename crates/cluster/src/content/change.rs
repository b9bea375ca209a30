//! Changes of files that wait here: writes, truncations, allocations, attributes.

use super::file::{Lack, State};
use super::files::{Files, Written};
use super::layer::Kind;
use super::map::MOST;
use super::page::{PAGE, pieces};
use super::waiting::{merge_change, set};
use crate::meta::Change;
use holdfast_types::{Errno, Fallocate, Ino, Result, SetTime};
use std::io::IoSlice;

/// The most bytes of a write between two looks at the limit of dirty bytes.
const STEP: u64 = 4 << 20;
/// How often content is loaded again because others change it.
const TRIES: u32 = 64;

impl Files {
    /// Writes buffers, one after the other. `offset: None`: at the end.
    ///
    /// # Errors
    /// `EFBIG`, those of loading the file, and `EIO` if too much waits and cannot be stored.
    pub(crate) fn write(
        &self,
        ino: Ino,
        offset: Option<u64>,
        bufs: &[IoSlice<'_>],
    ) -> Result<Written> {
        let mut done: Option<Written> = None;
        let step = (self.limits.dirty() / 4).min(STEP);
        let step = usize::try_from(step).unwrap_or(usize::MAX);
        for step in bufs.iter().flat_map(|buf| buf.chunks(step)) {
            let at = done.as_ref().map(|done| done.start + done.count).or(offset);
            let written = self.change(ino, step.len() as u64, |files, state| {
                let at = at.unwrap_or(state.record()?.size);
                files.write_step(state, at, step)
            });
            match (&mut done, written) {
                (Some(done), Ok(more)) => {
                    done.count += more.count;
                    done.record = more.record;
                }
                (Some(_), Err(_)) => break,
                (None, first) => done = Some(first?),
            }
        }
        done.ok_or(Errno::EINVAL)
    }

    fn write_step(&self, state: &mut State, start: u64, data: &[u8]) -> Result<Written> {
        let room = usize::try_from(MOST.saturating_sub(start)).unwrap_or(usize::MAX);
        let data = &data[..data.len().min(room)];
        if data.is_empty() {
            return Err(Errno::EFBIG);
        }
        let before = state.begin()?;
        let end = start + data.len() as u64;
        state.keeps_count(start / PAGE, end.div_ceil(PAGE), |state| {
            if let Some(waiting) = &mut state.waiting {
                waiting.layer.write(start, data);
                waiting.reach = waiting.reach.max(end);
            }
        });
        if let Some(top) = &mut state.top {
            top.size = top.size.max(end);
        }
        Ok(Written {
            before,
            start,
            count: data.len() as u64,
            record: state.end(&self.clock, true)?,
        })
    }

    /// Sets the length.
    ///
    /// # Errors
    /// Those of loading the file.
    pub(crate) fn resize(&self, ino: Ino, size: u64) -> Result<Written> {
        if size > MOST {
            return Err(Errno::EFBIG);
        }
        self.change(ino, 0, |files, state| {
            let before = state.begin()?;
            match size > before.size {
                // Space behind the end stays, if the file grows.
                true => state.grow(size),
                false => {
                    state.cut(size);
                    state.resize(size);
                }
            }
            Ok(Written {
                before,
                record: state.end(&files.clock, true)?,
                start: 0,
                count: 0,
            })
        })
    }

    /// Does what fallocate(2) does.
    ///
    /// # Errors
    /// `EINVAL` for a range that is removed or inserted and is not whole pages. Those of loading
    /// the file, and of storing it where ranges of a file with extents move.
    pub(crate) fn allocate(
        &self,
        ino: Ino,
        mode: Fallocate,
        offset: u64,
        len: u64,
    ) -> Result<Written> {
        if mode.contains(Fallocate::COLLAPSE_RANGE) || mode.contains(Fallocate::INSERT_RANGE) {
            let inserts = mode.contains(Fallocate::INSERT_RANGE);
            return self.shift(ino, inserts, offset, len);
        }
        let end = offset.checked_add(len).filter(|end| *end <= MOST);
        let end = end.ok_or(Errno::EFBIG)?;
        self.change(ino, 0, |files, state| {
            let before = state.begin()?;
            let (first, behind) = (offset / PAGE, end.div_ceil(PAGE));
            state.keeps_count(first, behind, |state| {
                if mode.contains(Fallocate::PUNCH_HOLE) {
                    zero(state, offset, end, false);
                } else if mode.contains(Fallocate::ZERO_RANGE) {
                    zero(state, offset, end, true);
                } else if let Some(waiting) = &mut state.waiting {
                    waiting.layer.set(first, behind, Kind::Space);
                }
            });
            let keeps_size =
                mode.contains(Fallocate::KEEP_SIZE) || mode.contains(Fallocate::PUNCH_HOLE);
            if let (false, Some(top), Some(waiting)) =
                (keeps_size, &mut state.top, &mut state.waiting)
            {
                top.size = top.size.max(end);
                waiting.reach = waiting.reach.max(end);
            }
            Ok(Written {
                before,
                record: state.end(&files.clock, true)?,
                start: 0,
                count: 0,
            })
        })
    }

    /// Changes attributes of a file that is dirty. `None`: it is not, or the change has to be made
    /// by the database: the caller flushes the file first.
    pub(crate) fn set_attributes(&self, ino: Ino, change: &Change) -> Option<Written> {
        let file = self.table.get(ino)?;
        let mut state = file.state.lock();
        let top = state.top.as_ref()?;
        let drops = change.drops_capability || change.uid.is_some() || change.gid.is_some();
        if change.acl.is_some() || drops && top.xattrs || !state.is_dirty() || state.base.outdated {
            return None;
        }
        let before = state.begin().ok()?;
        let now = self.clock.after(before.ctime);
        let at = |time: Option<SetTime>| {
            time.map(|time| match time {
                SetTime::Now => SetTime::At(now),
                at @ SetTime::At(_) => at,
            })
        };
        let mut change = change.clone();
        (change.atime, change.mtime) = (at(change.atime), at(change.mtime));
        set(state.top.as_mut()?, &change);
        merge_change(&mut state.waiting.as_mut()?.change, change);
        let record = state.end_at(now, false).ok()?;
        self.changed(&file, &mut state);
        Some(Written {
            before,
            record,
            start: 0,
            count: 0,
        })
    }

    /// Does a change of a file's content, of which all is known that it needs.
    pub(super) fn change<R>(
        &self,
        ino: Ino,
        bytes: u64,
        act: impl FnOnce(&Self, &mut State) -> Result<R>,
    ) -> Result<R> {
        self.throttle(bytes)?;
        self.keep_limits();
        let file = self.table.get_or_new(ino);
        for _ in 0..TRIES {
            let mut state = file.state.lock();
            let lack = state.lack();
            let Some(lack) = lack else {
                let result = act(self, &mut state);
                self.changed(&file, &mut state);
                return result;
            };
            drop(state);
            match lack {
                Lack::Record => self.load_record(&file)?,
                Lack::Map => self.load_content(&file)?,
            }
        }
        Err(Errno::EIO)
    }
}

/// Zeros a range. `keep`: it takes space; otherwise whole pages become holes.
fn zero(state: &mut State, offset: u64, end: u64, keep: bool) {
    let (first, last) = (offset.div_ceil(PAGE), end / PAGE);
    let edges: Vec<_> = match first < last {
        // Between the edges are whole pages.
        true => {
            let head = pieces(offset, first * PAGE - offset);
            head.chain(pieces(last * PAGE, end - last * PAGE)).collect()
        }
        false => pieces(offset, end - offset).collect(),
    };
    let has_space = |page| keep || state.view().is_some_and(|view| view.space_at(page).0);
    let edges: Vec<_> = edges.into_iter().filter(|edge| has_space(edge.0)).collect();
    let Some(waiting) = &mut state.waiting else {
        return;
    };
    let kind = if keep { Kind::Zeros } else { Kind::Hole };
    waiting.layer.set(first, last, kind);
    for (page, start, count) in edges {
        waiting.layer.zero(page, start, start + count);
    }
}
