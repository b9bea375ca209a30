//! The record locks of one owner on one inode: disjoint spans, merged if adjacent and of one kind.

use super::lock::{LockKind, LockRange};
use std::collections::BTreeMap;

/// One span, keyed by its first byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    /// Last byte.
    pub(super) end: u64,
    pub(super) kind: LockKind,
    /// The process that locked last in this span.
    pub(super) pid: u32,
}

#[derive(Debug, Default)]
pub(super) struct Spans {
    by_start: BTreeMap<u64, Span>,
}

impl Spans {
    pub(super) fn len(&self) -> usize {
        self.by_start.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.by_start.is_empty()
    }

    /// The spans with a byte in `range`, in order.
    pub(super) fn overlapping(&self, range: LockRange) -> impl Iterator<Item = (u64, Span)> {
        let before = self.by_start.range(..=range.start).next_back();
        let first = match before {
            Some((&start, span)) if span.end >= range.start => start,
            _ => range.start,
        };
        self.by_start
            .range(first..=range.end)
            .map(|(&start, &span)| (start, span))
    }

    /// The most by which [`Spans::set`] increases the number of spans.
    pub(super) fn added_spans(&self, range: LockRange, kind: Option<LockKind>) -> usize {
        let splits = self
            .overlapping(range)
            .next()
            .is_some_and(|(start, span)| start < range.start && span.end > range.end);
        usize::from(splits) + usize::from(kind.is_some())
    }

    /// Sets the kind of the bytes of `range` (`None`: no lock), splitting and merging spans.
    pub(super) fn set(&mut self, range: LockRange, kind: Option<LockKind>, pid: u32) {
        self.cut(range);
        let Some(kind) = kind else { return };
        let LockRange { mut start, mut end } = range;
        if let Some((&left, span)) = self.by_start.range(..start).next_back()
            && span.kind == kind
            && span.end == start - 1
        {
            self.by_start.remove(&left);
            start = left;
        }
        if let Some(next) = end.checked_add(1)
            && let Some(&span) = self.by_start.get(&next)
            && span.kind == kind
        {
            self.by_start.remove(&next);
            end = span.end;
        }
        self.by_start.insert(start, Span { end, kind, pid });
    }

    /// Removes the bytes of `range`, and keeps the rest of the spans on either side.
    fn cut(&mut self, range: LockRange) {
        loop {
            let next = self.overlapping(range).next();
            let Some((start, span)) = next else { return };
            self.by_start.remove(&start);
            if start < range.start {
                self.by_start.insert(
                    start,
                    Span {
                        end: range.start - 1,
                        ..span
                    },
                );
            }
            if span.end > range.end {
                self.by_start.insert(range.end + 1, span);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use LockKind::Write;

    fn range(start: u64, end: u64) -> LockRange {
        LockRange { start, end }
    }

    fn list(spans: &Spans) -> Vec<(u64, u64, LockKind)> {
        spans
            .overlapping(LockRange::WHOLE)
            .map(|(start, s)| (start, s.end, s.kind))
            .collect()
    }

    #[test]
    fn the_last_byte_of_all_can_be_locked_alone() {
        let mut spans = Spans::default();
        spans.set(range(u64::MAX, u64::MAX), Some(Write), 1);
        spans.set(range(0, u64::MAX - 1), Some(Write), 1);
        assert_eq!(list(&spans), [(0, u64::MAX, Write)]);
        spans.set(range(u64::MAX, u64::MAX), None, 1);
        assert_eq!(list(&spans), [(0, u64::MAX - 1, Write)]);
    }
}
