//! Ranges of a file that are removed or inserted, so that what follows moves.
//!
//! A body moves in memory. Extents move in the database at once: their objects stay.

use super::file::{File, State};
use super::files::{Files, Written};
use super::layer::Kind;
use super::map;
use super::page::{LEN, PAGE};
use super::plan::Flight;
use super::waiting::Waiting;
use crate::meta::{Content, Edit};
use holdfast_core::store::{StoredSpace, Version};
use holdfast_types::{Errno, Ino, Result};
use std::sync::Arc;

/// How often it is begun anew because others change the file.
const TRIES: u32 = 64;

/// A range that is removed or inserted; whole pages.
#[derive(Clone, Copy)]
struct Shift {
    inserts: bool,
    offset: u64,
    len: u64,
}

impl Shift {
    fn size(&self, size: u64) -> Result<u64> {
        let size = match self.inserts {
            true => size.checked_add(self.len),
            false => size.checked_sub(self.len),
        };
        size.filter(|size| *size <= i64::MAX as u64)
            .ok_or(Errno::EINVAL)
    }
}

impl Files {
    /// Removes or inserts a range.
    ///
    /// # Errors
    /// `EINVAL`: it is not whole pages, or not within the file. Those of a flush.
    pub(super) fn shift(&self, ino: Ino, inserts: bool, offset: u64, len: u64) -> Result<Written> {
        if !offset.is_multiple_of(PAGE) || !len.is_multiple_of(PAGE) || len == 0 {
            return Err(Errno::EINVAL);
        }
        let shift = Shift {
            inserts,
            offset,
            len,
        };
        for _ in 0..TRIES {
            self.flush(ino)?;
            let file = self.table.get_or_new(ino);
            if file.state.lock().base.record.is_none() {
                self.load_record(&file)?;
            }
            if file.state.lock().base.content.is_none() {
                self.load_content(&file)?;
            }
            if let Some(written) = self.shift_clean(&file, shift)? {
                return Ok(written);
            }
        }
        Err(Errno::EIO)
    }

    /// Does it, unless there were changes since the last flush.
    fn shift_clean(&self, file: &Arc<File>, shift: Shift) -> Result<Option<Written>> {
        let mut state = file.state.lock();
        let (Some(record), Some(content)) = (&state.base.record, state.base.content.clone()) else {
            return Ok(None);
        };
        if state.is_dirty() || state.flushing {
            return Ok(None);
        }
        let (before, size) = (Version::of(record), shift.size(record.size)?);
        let extents = match &*content {
            Content::Body { bytes, .. } => {
                state.begin()?;
                shift_body(&mut state, &content, bytes, shift);
                state.resize(size);
                let record = state.end(&self.clock, true)?;
                self.changed(file, &mut state);
                return Ok(Some(written(before, record)));
            }
            Content::Extents(extents) if shift.inserts => {
                map::inserted(extents, shift.offset, shift.len)
            }
            Content::Extents(extents) => map::collapsed(extents, shift.offset, shift.len),
        };
        let content = Content::Extents(extents);
        let mut record = record.clone();
        let now = self.clock.after(record.ctime);
        (record.size, record.mtime, record.ctime) = (size, now, now);
        record.space = StoredSpace::of(map::page_count(&content), size);
        let waiting = Arc::new(Waiting {
            exact: true,
            reach: size,
            ..Waiting::new()
        });
        state.flight = Some(Arc::clone(&waiting));
        state.flushing = true;
        let flight = Flight {
            file: Arc::clone(file),
            waiting,
            record,
            base: state.base.clone(),
        };
        drop(state);
        let edit = Edit::Replace {
            content,
            objects: Vec::new(),
        };
        let done = self.send_now(&flight, edit)?;
        Ok(done.map(|record| written(before, record)))
    }
}

fn written(before: Version, record: holdfast_core::store::InodeRecord) -> Written {
    Written {
        before,
        record,
        start: 0,
        count: 0,
    }
}

/// Writes what follows to its new place.
fn shift_body(state: &mut State, content: &Content, bytes: &[u8], shift: Shift) {
    let from = match shift.inserts {
        true => shift.offset,
        false => shift.offset.saturating_add(shift.len),
    };
    state.cut(shift.offset);
    let mut page = from / PAGE;
    while page < 64 {
        let (space, end) = map::space_at(content, page);
        if !space {
            page = end;
            continue;
        }
        let to = match shift.inserts {
            true => page + shift.len / PAGE,
            false => page - shift.len / PAGE,
        };
        let start = bytes.len().min(page as usize * LEN);
        let data = &bytes[start..bytes.len().min(start + LEN)];
        state.keeps_count(to, to + 1, |state| {
            if let Some(waiting) = &mut state.waiting {
                waiting.layer.set(to, to + 1, Kind::Zeros);
                if !data.is_empty() {
                    waiting.layer.write(to * PAGE, data);
                }
            }
        });
        page += 1;
    }
}
