//! Pages, bodies and extents, as the database changes them.

use crate::meta::{Content, Edit, Extent, Pages};
use holdfast_types::{Errno, Result};

const PAGE: u64 = 4096;
/// The most bytes of a body: as many as there are [`Pages`].
const BODY_MAX: u64 = 64 * PAGE;
/// The largest size of a file.
const SIZE_MAX: u64 = i64::MAX as u64;

impl Extent {
    /// The first byte behind the pages that it touches.
    const fn end_of_pages(&self) -> u64 {
        self.offset + self.len.next_multiple_of(PAGE)
    }

    fn is_valid(&self) -> bool {
        let fits = |start: u64| start <= SIZE_MAX && self.len <= SIZE_MAX - start;
        self.len > 0
            && self.offset.is_multiple_of(PAGE)
            && fits(self.offset)
            && fits(self.object_offset)
    }
}

impl Content {
    /// The pages that it takes.
    pub(super) fn space(&self) -> u64 {
        match self {
            Self::Body { pages, .. } => u64::from(pages.0.count_ones()),
            Self::Extents(extents) => extents.iter().map(|it| it.len.div_ceil(PAGE)).sum(),
        }
    }

    /// Does it take pages that are wholly behind the end of a file of this size?
    pub(super) fn is_behind(&self, size: u64) -> bool {
        let end = match self {
            Self::Body { pages, .. } => PAGE * u64::from(u64::BITS - pages.0.leading_zeros()),
            Self::Extents(extents) => extents.last().map_or(0, Extent::end_of_pages),
        };
        end > size.next_multiple_of(PAGE)
    }

    /// Its extents; a body has none.
    pub(super) fn extents(&self) -> &[Extent] {
        match self {
            Self::Body { .. } => &[],
            Self::Extents(extents) => extents,
        }
    }

    /// The length of a body; 0 for extents.
    pub(super) fn body_len(&self) -> u64 {
        match self {
            Self::Body { bytes, .. } => bytes.len() as u64,
            Self::Extents(_) => 0,
        }
    }

    /// The content without what is at or after a byte.
    pub(super) fn cut(&self, end: u64) -> Self {
        let mut cut = self.clone();
        match &mut cut {
            Self::Body { bytes, pages } => {
                let kept = usize::try_from(end).unwrap_or(usize::MAX);
                *bytes = bytes[..bytes.len().min(kept)].into();
                if end < BODY_MAX {
                    pages.0 &= (1 << end.div_ceil(PAGE)) - 1;
                }
            }
            Self::Extents(extents) => {
                extents.retain(|extent| extent.offset < end);
                if let Some(last) = extents.last_mut() {
                    last.len = last.len.min(end - last.offset);
                }
            }
        }
        cut.normal()
    }

    /// The same content as the database keeps it: empty bodies are no bodies.
    fn normal(self) -> Self {
        match self {
            Self::Body { bytes, pages } if bytes.is_empty() && pages == Pages(0) => Self::empty(),
            other => other,
        }
    }

    /// Can a file have this content?
    fn is_valid(&self) -> bool {
        match self {
            Self::Body { bytes, .. } => bytes.len() as u64 <= BODY_MAX,
            Self::Extents(extents) => {
                let in_order = |pair: &[Extent]| pair[0].end_of_pages() <= pair[1].offset;
                extents.iter().all(Extent::is_valid) && extents.windows(2).all(in_order)
            }
        }
    }

    /// The content after an edit. `None`: it cannot be applied to this content.
    ///
    /// # Errors
    /// `EINVAL`: the edit makes no sense.
    pub(super) fn edited(&self, edit: &Edit) -> Result<Option<Self>> {
        match edit {
            Edit::None => Ok(Some(self.clone())),
            Edit::Replace { content, .. } if content.is_valid() => {
                Ok(Some(content.clone().normal()))
            }
            Edit::Replace { .. } => Err(Errno::EINVAL),
            Edit::Map {
                cut, clear, add, ..
            } => {
                let whole = |&(offset, len): &(u64, u64)| {
                    offset.is_multiple_of(PAGE)
                        && len.is_multiple_of(PAGE)
                        && offset.checked_add(len).is_some()
                };
                if !clear.iter().all(whole) || !add.iter().all(Extent::is_valid) {
                    return Err(Errno::EINVAL);
                }
                let Self::Extents(old) = self else {
                    return Ok(None);
                };
                let mut extents = match cut {
                    Some(end) => self.cut(*end).extents().to_vec(),
                    None => old.clone(),
                };
                for (offset, len) in clear {
                    clear_range(&mut extents, *offset, offset + len);
                }
                for extent in add {
                    clear_range(&mut extents, extent.offset, extent.end_of_pages());
                    let place = extents.partition_point(|it| it.offset < extent.offset);
                    extents.insert(place, *extent);
                }
                Ok(Some(Self::Extents(extents)))
            }
        }
    }
}

/// Whole pages become a hole.
fn clear_range(extents: &mut Vec<Extent>, start: u64, end: u64) {
    let mut rest = Vec::with_capacity(extents.len() + 1);
    for extent in extents.drain(..) {
        let extent_end = extent.offset + extent.len;
        if extent.offset < start {
            rest.push(Extent {
                len: extent.len.min(start - extent.offset),
                ..extent
            });
        }
        if extent_end > end {
            let skipped = end.saturating_sub(extent.offset);
            rest.push(Extent {
                offset: extent.offset + skipped,
                len: extent.len - skipped,
                object_offset: match extent.object {
                    0 => extent.object_offset,
                    _ => extent.object_offset + skipped,
                },
                ..extent
            });
        }
    }
    *extents = rest;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn extent(offset: u64, len: u64, object_offset: u64) -> Extent {
        Extent {
            offset,
            len,
            object: 9,
            object_offset,
        }
    }

    fn map(cut: Option<u64>, clear: &[(u64, u64)], add: &[Extent]) -> Edit {
        Edit::Map {
            cut,
            clear: clear.into(),
            add: add.into(),
            objects: Vec::new(),
        }
    }

    #[test]
    fn a_cleared_range_splits_an_extent() {
        let content = Content::Extents(vec![extent(0, 10 * PAGE - 5, 100)]);
        let edit = map(None, &[(2 * PAGE, 3 * PAGE)], &[]);
        let edited = content.edited(&edit).unwrap().unwrap();
        let expected = [
            extent(0, 2 * PAGE, 100),
            extent(5 * PAGE, 5 * PAGE - 5, 100 + 5 * PAGE),
        ];
        assert_eq!(edited.extents(), expected);
        assert_eq!(edited.space(), 7);
    }

    #[test]
    fn an_added_range_replaces_the_pages_that_it_touches() {
        let content = Content::Extents(vec![extent(0, 3 * PAGE, 0)]);
        let edited = content.edited(&map(None, &[], &[extent(PAGE, 5, 7)]));
        let expected = [
            extent(0, PAGE, 0),
            extent(PAGE, 5, 7),
            extent(2 * PAGE, PAGE, 2 * PAGE),
        ];
        assert_eq!(edited.unwrap().unwrap().extents(), expected);
    }

    #[test]
    fn a_cut_keeps_the_bytes_before_it() {
        let content = Content::Extents(vec![extent(0, PAGE, 0), extent(PAGE, PAGE, PAGE)]);
        assert_eq!(content.cut(PAGE + 1).extents()[1].len, 1);
        assert_eq!(content.cut(0), Content::empty());
        let body = Content::Body {
            bytes: vec![1; 5000].into(),
            pages: Pages(0b111),
        };
        assert!(body.is_behind(5000));
        let cut = body.cut(4097);
        assert_eq!((cut.body_len(), cut.space()), (4097, 2));
        assert!(!cut.is_behind(4097));
        assert_eq!(body.cut(0), Content::empty());
        assert_eq!(body.cut(1 << 40), body);
    }

    #[test]
    fn edits_that_make_no_sense_are_errors() {
        let content = Content::empty();
        for edit in [
            map(None, &[(1, PAGE)], &[]),
            map(None, &[(PAGE, u64::MAX - PAGE + 1)], &[]),
            map(None, &[], &[extent(1, 1, 0)]),
            map(None, &[], &[extent(0, 0, 0)]),
            map(None, &[], &[extent(PAGE, u64::MAX, 0)]),
            Edit::Replace {
                content: Content::Extents(vec![extent(0, PAGE + 1, 0), extent(PAGE, 1, 0)]),
                objects: Vec::new(),
            },
        ] {
            assert_eq!(content.edited(&edit), Err(Errno::EINVAL), "{edit:?}");
        }
    }
}
