//! Copies that share objects: what is mapped of one file is mapped into another as well.

use super::file::File;
use super::map;
use super::page::PAGE;
use super::plan::Flight;
use super::waiting::Waiting;
use super::{Files, Written};
use crate::meta::{Content, Edit, Extent};
use holdfast_core::store::{InodeRecord, StoredSpace, Version};
use holdfast_types::{Errno, Ino, Result};
use std::ops::Range;
use std::sync::Arc;

/// How often it is begun anew because others change the file.
const TRIES: u32 = 8;

impl Files {
    /// Copies bytes from a file to another; at most `len`, and as many as are whole pages or end
    /// both files.
    ///
    /// # Errors
    /// `EOPNOTSUPP`: they are not in objects, or not whole pages, so they have to be read and
    /// written. Those of a flush.
    pub(crate) fn copy(&self, from: (Ino, u64), to: (Ino, u64), len: u64) -> Result<Written> {
        let pages = from.1.is_multiple_of(PAGE) && to.1.is_multiple_of(PAGE);
        let is_body = |record: InodeRecord| record.size <= self.body_limit;
        if from.0 == to.0 || !pages || self.record(from.0).is_none_or(is_body) {
            return Err(Errno::EOPNOTSUPP);
        }
        for _ in 0..TRIES {
            let (_, source, old) = self.clean(from.0)?;
            let (file, target, new) = self.clean(to.0)?;
            let (Content::Extents(old), Content::Extents(new)) = (&*old, &*new) else {
                return Err(Errno::EOPNOTSUPP);
            };
            let most = len.min(source.size.saturating_sub(from.1));
            let reaches_both = from.1 + most == source.size && to.1 + most >= target.size;
            let len = match reaches_both {
                true => most,
                false => most - most % PAGE,
            };
            if len == 0 {
                return Err(Errno::EOPNOTSUPP);
            }
            let range = from.1..from.1 + len;
            let extents = map::mapped(
                new,
                None,
                &[(to.1, len.next_multiple_of(PAGE))],
                &moved(old, &range, to.1),
            );
            if let Some(record) = self.replace(&file, &target, extents, to.1 + len)? {
                return Ok(Written {
                    before: Version::of(&target),
                    record,
                    start: to.1,
                    count: len,
                });
            }
        }
        Err(Errno::EOPNOTSUPP)
    }

    /// A file of which nothing waits, with its record and its content.
    fn clean(&self, ino: Ino) -> Result<(Arc<File>, InodeRecord, Arc<Content>)> {
        for _ in 0..TRIES {
            self.flush(ino)?;
            let file = self.table.get_or_new(ino);
            if file.state.lock().base.record.is_none() {
                self.load_record(&file)?;
            }
            if file.state.lock().base.content.is_none() {
                self.load_content(&file)?;
            }
            let state = file.state.lock();
            if let (Some(record), Some(content), false) =
                (&state.base.record, &state.base.content, state.is_dirty())
            {
                let (record, content) = (record.clone(), Arc::clone(content));
                drop(state);
                return Ok((file, record, content));
            }
        }
        Err(Errno::EOPNOTSUPP)
    }

    /// Maps extents in place of the content of a file that is as in this record. `None`: it is not
    /// any more.
    fn replace(
        &self,
        file: &Arc<File>,
        old: &InodeRecord,
        extents: Vec<Extent>,
        end: u64,
    ) -> Result<Option<InodeRecord>> {
        let content = Content::Extents(extents);
        let mut record = old.clone();
        let now = self.clock.after(old.ctime);
        (record.size, record.mtime, record.ctime) = (old.size.max(end), now, now);
        record.space = StoredSpace::of(map::page_count(&content), record.size);
        let waiting = Arc::new(Waiting {
            reach: end,
            ..Waiting::new()
        });
        let flight = {
            let mut state = file.state.lock();
            if state.base.record.as_ref() != Some(old) || state.is_dirty() || state.flushing {
                return Ok(None);
            }
            state.flight = Some(Arc::clone(&waiting));
            state.flushing = true;
            Flight {
                file: Arc::clone(file),
                waiting,
                record,
                base: state.base.clone(),
            }
        };
        let edit = Edit::Replace {
            content,
            objects: Vec::new(),
        };
        self.send_now(&flight, edit)
    }
}

/// What is mapped of a range, at another offset.
fn moved(extents: &[Extent], range: &Range<u64>, to: u64) -> Vec<Extent> {
    let parts = extents
        .iter()
        .filter_map(|extent| map::within(extent, range));
    let moved = parts.map(|part| Extent {
        offset: part.offset - range.start + to,
        ..part
    });
    moved.collect()
}
