//! What content in the database says of pages, and how it changes.

use super::page::PAGE;
use crate::meta::{Content, Extent, Pages};
use holdfast_types::{Errno, Result};
use std::ops::Range;

/// The largest size of a file, and of an object.
pub(super) const MOST: u64 = i64::MAX as u64;

/// Do pages from this one on take space, and up to which page is that so, at least?
pub(super) fn space_at(content: &Content, page: u64) -> (bool, u64) {
    match content {
        Content::Body { pages, .. } => {
            let Some(rest) = pages.0.checked_shr(u32::try_from(page).unwrap_or(64)) else {
                return (false, u64::MAX);
            };
            match (rest.trailing_ones(), rest.trailing_zeros()) {
                (0, 64) => (false, u64::MAX),
                (0, holes) => (false, page + u64::from(holes)),
                (ones, _) => (true, page + u64::from(ones)),
            }
        }
        Content::Extents(extents) => {
            let after = extents.partition_point(|extent| extent.offset / PAGE <= page);
            let end = extents[..after].last().map_or(0, end_page);
            if end > page {
                return (true, end);
            }
            let next = extents.get(after);
            (false, next.map_or(u64::MAX, |extent| extent.offset / PAGE))
        }
    }
}

/// The page behind the last one of an extent.
pub(super) fn end_page(extent: &Extent) -> u64 {
    end(extent).div_ceil(PAGE)
}

/// The byte behind the last one of an extent.
pub(super) fn end(extent: &Extent) -> u64 {
    extent.offset.saturating_add(extent.len)
}

/// Pages that take space.
pub(super) fn page_count(content: &Content) -> u64 {
    match content {
        Content::Body { pages, .. } => pages.0.count_ones().into(),
        Content::Extents(extents) => {
            let pages = extents.iter().map(|extent| extent.len.div_ceil(PAGE));
            pages.fold(0, u64::saturating_add)
        }
    }
}

/// Bytes of memory.
pub(super) fn memory(content: &Content) -> u64 {
    match content {
        Content::Body { bytes, .. } => bytes.len() as u64,
        Content::Extents(extents) => (extents.capacity() * size_of::<Extent>()) as u64,
    }
}

/// Content as a database answered it, with extents in order.
///
/// # Errors
/// `EUCLEAN`: extents overlap, are not whole pages, or are beyond the largest file.
pub(super) fn checked(content: Content) -> Result<Content> {
    let Content::Extents(mut extents) = content else {
        return Ok(content);
    };
    extents.sort_unstable_by_key(|extent| extent.offset);
    let mut covered = 0;
    for extent in &extents {
        let fits = |start: u64| start.checked_add(extent.len).is_some_and(|end| end <= MOST);
        let starts = extent.offset.is_multiple_of(PAGE) && extent.offset >= covered;
        if !starts || extent.len == 0 || !fits(extent.offset) || !fits(extent.object_offset) {
            return Err(Errno::EUCLEAN);
        }
        covered = end(extent);
    }
    Ok(Content::Extents(extents))
}

/// The part of an extent within a range of the file.
pub(super) fn within(extent: &Extent, range: &Range<u64>) -> Option<Extent> {
    let (from, to) = (extent.offset.max(range.start), end(extent).min(range.end));
    let len = to.checked_sub(from).filter(|len| *len > 0)?;
    let object_offset = match extent.object {
        0 => 0,
        _ => extent.object_offset.saturating_add(from - extent.offset),
    };
    Some(Extent {
        offset: from,
        len,
        object: extent.object,
        object_offset,
    })
}

/// The extents that touch a range of the file.
pub(super) fn touching<'e>(extents: &'e [Extent], range: &Range<u64>) -> &'e [Extent] {
    let first = extents.partition_point(|extent| end(extent) <= range.start);
    let after = extents.partition_point(|extent| extent.offset < range.end);
    extents.get(first..after).unwrap_or_default()
}

/// The extents after a part of the file became a hole.
fn without(extents: &[Extent], hole: &Range<u64>) -> Vec<Extent> {
    let keeps = [0..hole.start, hole.end..u64::MAX];
    let parts = extents.iter().flat_map(|extent| {
        let parts = keeps.iter().filter_map(|keep| within(extent, keep));
        parts.collect::<Vec<_>>()
    });
    parts.collect()
}

/// The extents after a [`Map`](crate::meta::Edit::Map).
pub(super) fn mapped(
    extents: &[Extent],
    cut: Option<u64>,
    clear: &[(u64, u64)],
    add: &[Extent],
) -> Vec<Extent> {
    let mut now = extents.to_vec();
    if let Some(cut) = cut {
        now = without(&now, &(cut..u64::MAX));
    }
    let added = add
        .iter()
        .map(|extent| (extent.offset, extent.len.next_multiple_of(PAGE)));
    let holes: Vec<_> = clear.iter().copied().chain(added).collect();
    now = without_all(&now, holes);
    now.extend_from_slice(add);
    now.sort_unstable_by_key(|extent| extent.offset);
    now
}

/// Content that ends at a byte.
pub(super) fn truncated(content: &Content, size: u64) -> Content {
    match content {
        Content::Extents(extents) => Content::Extents(mapped(extents, Some(size), &[], &[])),
        Content::Body { bytes, pages } => {
            let len = usize::try_from(size).unwrap_or(usize::MAX).min(bytes.len());
            let kept = match size.div_ceil(PAGE) {
                kept @ 0..64 => pages.0 & ((1 << kept) - 1),
                _ => pages.0,
            };
            Content::Body {
                bytes: bytes[..len].into(),
                pages: Pages(kept),
            }
        }
    }
}

/// The extents after several parts of the file became holes.
fn without_all(extents: &[Extent], mut holes: Vec<(u64, u64)>) -> Vec<Extent> {
    holes.sort_unstable();
    let mut now = Vec::with_capacity(extents.len());
    for extent in extents {
        let mut rest = Some(*extent);
        let first = holes.partition_point(|hole| hole.0.saturating_add(hole.1) <= extent.offset);
        for hole in &holes[first..] {
            let Some(left) = rest else { break };
            if hole.0 >= end(&left) {
                break;
            }
            now.extend(within(&left, &(0..hole.0)));
            rest = within(&left, &(hole.0.saturating_add(hole.1)..u64::MAX));
        }
        now.extend(rest);
    }
    now
}

/// The extents after a range was removed: what follows moves down.
pub(super) fn collapsed(extents: &[Extent], offset: u64, len: u64) -> Vec<Extent> {
    let kept = without(extents, &(offset..offset.saturating_add(len)));
    let moved = kept.into_iter().map(|mut extent| {
        if extent.offset >= offset {
            extent.offset -= len;
        }
        extent
    });
    moved.collect()
}

/// The extents after a hole was inserted: what follows moves up.
pub(super) fn inserted(extents: &[Extent], offset: u64, len: u64) -> Vec<Extent> {
    let parts = without(extents, &(offset..offset)).into_iter();
    let moved = parts.map(|mut extent| {
        if extent.offset >= offset {
            extent.offset = extent.offset.saturating_add(len);
        }
        extent
    });
    moved.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn extent(offset: u64, len: u64, object: u64, object_offset: u64) -> Extent {
        Extent {
            offset: offset * PAGE,
            len: len * PAGE,
            object,
            object_offset: object_offset * PAGE,
        }
    }

    #[test]
    fn space_comes_in_runs() {
        let body = Content::Body {
            bytes: Box::new([]),
            pages: Pages(0b1101 | 1 << 63),
        };
        assert_eq!(space_at(&body, 0), (true, 1));
        assert_eq!(space_at(&body, 1), (false, 2));
        assert_eq!(space_at(&body, 2), (true, 4));
        assert_eq!(space_at(&body, 4), (false, 63));
        assert_eq!(space_at(&body, 63), (true, 64));
        assert_eq!(space_at(&body, 64), (false, u64::MAX));
        assert_eq!(space_at(&body, 1 << 40), (false, u64::MAX));
        let mut last = extent(4, 1, 7, 0);
        last.len = 5;
        let extents = Content::Extents(vec![extent(1, 2, 7, 1), last]);
        assert_eq!(space_at(&extents, 0), (false, 1));
        assert_eq!(space_at(&extents, 2), (true, 3));
        assert_eq!(space_at(&extents, 3), (false, 4));
        assert_eq!(space_at(&extents, 4), (true, 5));
        assert_eq!(space_at(&extents, 5), (false, u64::MAX));
        assert_eq!((page_count(&body), page_count(&extents)), (4, 3));
    }

    #[test]
    fn a_map_cuts_clears_and_adds() {
        let old = [extent(0, 10, 1, 0), extent(20, 10, 2, 5)];
        let clear = [(2 * PAGE, PAGE), (22 * PAGE, PAGE)];
        let add = [extent(5, 1, 3, 0)];
        let now = mapped(&old, Some(25 * PAGE + 7), &clear, &add);
        let mut tail = extent(23, 2, 2, 8);
        tail.len += 7;
        let expected = [
            extent(0, 2, 1, 0),
            extent(3, 2, 1, 3),
            extent(5, 1, 3, 0),
            extent(6, 4, 1, 6),
            extent(20, 2, 2, 5),
            tail,
        ];
        assert_eq!(now, expected);
    }

    #[test]
    fn ranges_are_removed_and_inserted() {
        let old = [extent(0, 10, 1, 0)];
        let now = collapsed(&old, 2 * PAGE, 3 * PAGE);
        assert_eq!(now, [extent(0, 2, 1, 0), extent(2, 5, 1, 5)]);
        let now = inserted(&old, 2 * PAGE, 3 * PAGE);
        assert_eq!(now, [extent(0, 2, 1, 0), extent(5, 8, 1, 2)]);
    }

    #[test]
    fn damaged_extents_are_refused() {
        let check = |extents: &[Extent]| checked(Content::Extents(extents.to_vec()));
        let right = [extent(0, 5, 1, 9), extent(5, 2, 1, 0)];
        let content = Content::Extents(right.to_vec());
        assert_eq!(check(&[right[1], right[0]]), Ok(content));
        let (mut odd, mut far) = (extent(0, 1, 1, 0), extent(0, 1, 1, 0));
        (odd.offset, far.object_offset) = (13, u64::MAX - 4096);
        let long = extent(1 << 50, 1 << 51, 1, 0);
        for wrong in [extent(4, 2, 1, 0), extent(9, 0, 1, 0), odd, far, long] {
            assert_eq!(check(&[right[0], wrong]), Err(Errno::EUCLEAN), "{wrong:?}");
        }
    }
}
