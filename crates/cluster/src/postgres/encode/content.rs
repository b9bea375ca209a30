//! Changes of content as `flush_file` takes them.

use super::words::Encoder;
use crate::meta::{Content, Edit, Extent, Flush, Size};
use holdfast_types::{Errno, Result};

const PAGE: u64 = 4096;
const BODY_MAX: usize = 64 * 4096;
/// The largest size of a file.
const SIZE_MAX: u64 = i64::MAX as u64;

impl Encoder {
    pub(super) fn push_flush(&mut self, flush: &Flush) -> Result<()> {
        self.push_number(flush.ino.0);
        self.push_number(flush.generation);
        self.words.push(match &flush.edit {
            Edit::None => 0,
            Edit::Replace {
                content: Content::Body { .. },
                ..
            } => 1,
            Edit::Replace { .. } => 2,
            Edit::Map { .. } => 3,
        });
        let (how, size) = match flush.size {
            None => (0, 0),
            Some(Size::AtLeast(size)) => (1, size),
            Some(Size::Exactly(size)) => (2, size),
        };
        if size > SIZE_MAX {
            return Err(Errno::EINVAL);
        }
        self.words.push(how);
        self.push_number(size);
        self.words.push(flush.changed.is_some().into());
        self.words.push(flush.changed.map_or(0, |time| time.0));
        self.push_change(&flush.change);
        match &flush.edit {
            Edit::None => {}
            Edit::Replace {
                content: Content::Body { bytes, pages },
                ..
            } => {
                if bytes.len() > BODY_MAX {
                    return Err(Errno::EINVAL);
                }
                self.words.push(pages.0.cast_signed());
                self.push_blob(bytes);
            }
            Edit::Replace {
                content: Content::Extents(extents),
                objects,
            } => {
                let in_order = |pair: &[Extent]| end_of_pages(&pair[0]) <= pair[1].offset;
                if !extents.iter().all(is_valid) || !extents.windows(2).all(in_order) {
                    return Err(Errno::EINVAL);
                }
                self.push_extents(extents, objects);
            }
            Edit::Map {
                cut,
                clear,
                add,
                objects,
            } => {
                self.push_cleared(*cut, clear)?;
                if !add.iter().all(is_valid) {
                    return Err(Errno::EINVAL);
                }
                self.push_extents(add, objects);
            }
        }
        Ok(())
    }

    /// What a map makes holes.
    fn push_cleared(&mut self, cut: Option<u64>, clear: &[(u64, u64)]) -> Result<()> {
        let whole = |&(offset, len): &(u64, u64)| {
            offset.is_multiple_of(PAGE)
                && len.is_multiple_of(PAGE)
                && offset
                    .checked_add(len)
                    .is_some_and(|end| end <= SIZE_MAX + 1)
        };
        if !clear.iter().all(whole) {
            return Err(Errno::EINVAL);
        }
        self.words.push(cut.is_some().into());
        self.push_number(cut.unwrap_or(0));
        self.words.push(clear.len() as i64);
        for (offset, len) in clear {
            self.push_number(*offset);
            self.push_number(*offset + *len);
        }
        Ok(())
    }

    fn push_extents(&mut self, extents: &[Extent], objects: &[(u64, u64)]) {
        self.words.push(extents.len() as i64);
        for extent in extents {
            let Extent {
                offset,
                len,
                object,
                object_offset,
            } = *extent;
            [offset, len, object, object_offset]
                .into_iter()
                .for_each(|word| self.push_number(word));
        }
        self.words.push(objects.len() as i64);
        for (object, len) in objects {
            self.push_number(*object);
            self.push_number(*len);
        }
    }
}

fn is_valid(extent: &Extent) -> bool {
    // The last page of the largest file is left out, so that no sum passes 63 bits.
    let fits = |start: u64| start < SIZE_MAX - PAGE && extent.len < SIZE_MAX - PAGE - start;
    extent.len > 0
        && extent.offset.is_multiple_of(PAGE)
        && fits(extent.offset)
        && fits(extent.object_offset)
}

const fn end_of_pages(extent: &Extent) -> u64 {
    extent.offset + extent.len.next_multiple_of(PAGE)
}

#[cfg(test)]
mod tests {
    use super::super::encode;
    use super::*;
    use crate::meta::{Change, Request};
    use holdfast_types::Ino;

    #[test]
    fn what_makes_no_sense_is_not_sent() {
        let flush = |edit, size| {
            encode(&Request::Flush(Flush {
                ino: Ino(2),
                generation: 0,
                edit,
                size,
                changed: None,
                change: Change::default(),
            }))
        };
        let map = |clear: &[(u64, u64)], add: &[Extent]| Edit::Map {
            cut: None,
            clear: clear.into(),
            add: add.into(),
            objects: vec![],
        };
        let extent = |offset, len| Extent {
            offset,
            len,
            object: 9,
            object_offset: 0,
        };
        let overlapping = vec![extent(0, PAGE + 1), extent(PAGE, 1)];
        for edit in [
            map(&[(1, PAGE)], &[]),
            map(&[(PAGE, u64::MAX - PAGE + 1)], &[]),
            map(&[], &[extent(1, 1)]),
            map(&[], &[extent(0, 0)]),
            map(&[], &[extent(PAGE, u64::MAX)]),
            Edit::Replace {
                content: Content::Extents(overlapping),
                objects: vec![],
            },
        ] {
            assert_eq!(flush(edit, None), Err(Errno::EINVAL));
        }
        let size = Some(Size::Exactly(u64::MAX));
        assert_eq!(flush(Edit::None, size), Err(Errno::EINVAL));
    }
}
