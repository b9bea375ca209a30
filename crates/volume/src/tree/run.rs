//! Reads the records of one leaf in order.
//!
//! *Invariants.* Keys ascend strictly, and counts and lengths agree with the header; otherwise
//! reading ends with an error. So a leaf of any content yields at most as many records as it has
//! bytes.

use super::error::{Defect, Error, Result};
use super::node::Node;
use super::record::Record;
use crate::varint::Reader;
use std::ops::ControlFlow;

/// A position in a leaf.
#[derive(Debug)]
pub(super) struct Run<R: Record> {
    node: Node,
    /// The next block of records.
    block: usize,
    /// The position in the open block.
    place: Place<R>,
    /// The key at `place`, once decoded.
    peeked: Option<R::Key>,
}

#[derive(Debug)]
struct Place<R: Record> {
    at: usize,
    end: usize,
    left: u8,
    context: R::Context,
    last: Option<R::Key>,
}

impl<R: Record> Clone for Place<R> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<R: Record> Copy for Place<R> {}

/// Consecutive records of a block, in coded form.
pub(super) struct Coded<'a, R: Record> {
    pub(super) bytes: &'a [u8],
    pub(super) records: u8,
    /// The context behind the last of them, and its key.
    pub(super) context: R::Context,
    pub(super) last: R::Key,
}

/// The result of [`Run::next_below`].
pub(super) enum Below<'a, R: Record> {
    /// A record below the bound.
    Record(R::Key, R::Value<'a>),
    /// The next record has the bound's key; it is not consumed.
    Met,
    /// The next record lies above the bound.
    Above,
    /// The leaf has no more.
    End,
}

impl<R: Record> Run<R> {
    /// The beginning of a leaf.
    pub(super) fn new(node: Node) -> Self {
        let place = Place {
            at: 0,
            end: 0,
            left: 0,
            context: R::Context::default(),
            last: None,
        };
        Self {
            node,
            block: 0,
            place,
            peeked: None,
        }
    }

    /// The beginning of a leaf; its keys must lie above `last`.
    pub(super) fn after(node: Node, last: Option<R::Key>) -> Self {
        let mut run = Self::new(node);
        run.place.last = last;
        run
    }

    /// The key of the last record that was read.
    pub(super) fn last(&self) -> Option<R::Key> {
        self.place.last
    }

    pub(super) fn node(&self) -> &Node {
        &self.node
    }

    fn corrupt(&self, defect: Defect) -> Error {
        Error::corrupt(self.node.pointer().block, defect)
    }

    /// Goes to the first record at or above `key`.
    pub(super) fn seek(&mut self, key: &R::Key) -> Result<()> {
        let upto = self.node.runs_upto::<R>(key);
        let upto = upto.ok_or_else(|| self.corrupt(Defect::Record))?;
        self.rewind(upto.saturating_sub(1));
        loop {
            match self.next_below(Some(key))? {
                Below::Record(..) => {}
                _ => return Ok(()),
            }
        }
    }

    /// Goes to the beginning of a block of records.
    pub(super) fn rewind(&mut self, block: usize) {
        self.block = block;
        self.place.left = 0;
        self.place.last = None;
        self.peeked = None;
    }

    /// Are there records before block `block`?
    pub(super) fn stays_before(&self, block: usize) -> bool {
        self.place.left > 0 || self.block < block
    }

    /// Opens the next block. `false` at the end.
    fn open(&mut self) -> Result<bool> {
        if self.block == self.node.runs() {
            return Ok(false);
        }
        let run = self.node.run(self.block);
        let run = run.ok_or_else(|| self.corrupt(Defect::Layout))?;
        let count = self.node.bytes().get(run.start).copied().unwrap_or(0);
        if count == 0 {
            return Err(self.corrupt(Defect::Layout));
        }
        self.block += 1;
        self.place = Place {
            at: run.start + 1,
            end: run.end,
            left: count,
            context: R::Context::default(),
            last: self.place.last,
        };
        Ok(true)
    }

    /// Is the open block finished?
    #[inline]
    pub(super) fn is_between_blocks(&self) -> bool {
        self.place.left == 0
    }

    /// The bytes of the next block of records, with its first key, if all of it lies below `bound`
    /// (`None`: in any case). Only its first record was decoded.
    pub(super) fn whole_block_below(
        &self,
        bound: Option<&R::Key>,
    ) -> Result<Option<(R::Key, &[u8])>> {
        debug_assert!(self.is_between_blocks(), "a part of a block is no block");
        if self.block == self.node.runs() {
            return Ok(None);
        }
        let key = |index| {
            let key = self.node.run_key::<R>(index);
            key.ok_or_else(|| self.corrupt(Defect::Record))
        };
        if let Some(bound) = bound
            && (self.block + 1 == self.node.runs() || key(self.block + 1)? > *bound)
        {
            return Ok(None);
        }
        let first = key(self.block)?;
        if self.place.last.is_some_and(|last| first <= last) {
            return Err(self.corrupt(Defect::Order));
        }
        let run = self.node.run(self.block);
        let bytes = run.and_then(|run| self.node.bytes().get(run));
        let bytes = bytes.ok_or_else(|| self.corrupt(Defect::Layout))?;
        if bytes.first().is_none_or(|&count| count == 0) {
            return Err(self.corrupt(Defect::Layout));
        }
        Ok(Some((first, bytes)))
    }

    /// Skips the next block, which begins with the key `first`.
    pub(super) fn skip_block(&mut self, first: R::Key) {
        debug_assert!(self.is_between_blocks(), "a part of a block is no block");
        self.block += 1;
        self.place.last = Some(first);
    }

    /// Records of the next block; 0 at the end.
    pub(super) fn records_of_next_block(&self) -> u8 {
        let run = self.node.run(self.block);
        run.map_or(0, |run| self.node.bytes()[run.start])
    }

    /// The context of the next record of the open block.
    #[inline]
    pub(super) fn context(&self) -> R::Context {
        self.place.context
    }

    /// The coded records of the open block below `bound` (`None`: all), at most so many records and
    /// bytes. `None` if there are none.
    pub(super) fn coded_below(
        &mut self,
        bound: Option<&R::Key>,
        records: u8,
        bytes: usize,
    ) -> Result<Option<Coded<'_, R>>> {
        if let (Some(key), Some(bound)) = (self.peeked, bound)
            && key >= *bound
        {
            return Ok(None);
        }
        self.peeked = None;
        let start = self.place.at;
        let (mut taken, mut last) = (0, None);
        while self.place.left > 0 && taken < records {
            let before = self.place;
            let (key, _) = decode(&self.node, &mut self.place)?;
            if bound.is_some_and(|bound| key >= *bound) {
                self.place = before;
                self.peeked = Some(key);
                break;
            }
            if self.place.at - start > bytes {
                self.place = before;
                break;
            }
            (taken, last) = (taken + 1, Some(key));
        }
        Ok(last.map(|last| Coded {
            bytes: &self.node.bytes()[start..self.place.at],
            records: taken,
            context: self.place.context,
            last,
        }))
    }

    /// Is there another record?
    #[inline]
    pub(super) fn has_more(&mut self) -> Result<bool> {
        Ok(self.place.left > 0 || self.open()?)
    }

    /// The next record.
    #[inline]
    pub(super) fn next(&mut self) -> Result<Option<(R::Key, R::Value<'_>)>> {
        if self.place.left == 0 && !self.open()? {
            return Ok(None);
        }
        self.peeked = None;
        decode(&self.node, &mut self.place).map(Some)
    }

    /// The value of `key`; moves behind it. Cheap if it is a little further on.
    pub(super) fn find(&mut self, key: &R::Key) -> Result<Option<R::Value<'_>>> {
        let beyond = self.place.last.is_some_and(|last| last < *key);
        let near = beyond
            && (self.block == self.node.runs() || {
                let next = self.node.run_key::<R>(self.block);
                next.ok_or_else(|| self.corrupt(Defect::Record))? > *key
            });
        if !near {
            self.seek(key)?;
        }
        while let Below::Record(..) = self.next_below(Some(key))? {}
        let met = matches!(self.next_below(Some(key))?, Below::Met);
        if met {
            Ok(self.next()?.map(|(_, value)| value))
        } else {
            Ok(None)
        }
    }

    /// Calls `read` with the remaining records until it breaks. Reads whole blocks, which is fast.
    pub(super) fn each(
        &mut self,
        read: &mut impl FnMut(R::Key, R::Value<'_>) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>> {
        self.peeked = None;
        while self.has_more()? {
            if each_of_block(&self.node, &mut self.place, read)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Calls `read` with the remaining records of this block.
    pub(super) fn each_of_open(
        &mut self,
        read: &mut impl FnMut(R::Key, R::Value<'_>) -> ControlFlow<()>,
    ) -> Result<()> {
        self.peeked = None;
        if self.has_more()? {
            let _ = each_of_block(&self.node, &mut self.place, read)?;
        }
        Ok(())
    }

    /// The next record if it lies below `bound` (`None`: in any case).
    #[inline]
    pub(super) fn next_below(&mut self, bound: Option<&R::Key>) -> Result<Below<'_, R>> {
        let Some(bound) = bound else {
            return Ok(match self.next()? {
                Some((key, value)) => Below::Record(key, value),
                None => Below::End,
            });
        };
        if let Some(key) = self.peeked
            && key >= *bound
        {
            return Ok(if key == *bound {
                Below::Met
            } else {
                Below::Above
            });
        }
        if self.place.left == 0 && !self.open()? {
            return Ok(Below::End);
        }
        let before = self.place;
        let (key, value) = decode(&self.node, &mut self.place)?;
        if key >= *bound {
            self.place = before;
            self.peeked = Some(key);
            return Ok(if key == *bound {
                Below::Met
            } else {
                Below::Above
            });
        }
        self.peeked = None;
        Ok(Below::Record(key, value))
    }
}

/// Decodes the record at `place`, where one is left, and moves behind it.
#[inline]
fn decode<'a, R: Record>(node: &'a Node, place: &mut Place<R>) -> Result<(R::Key, R::Value<'a>)> {
    let corrupt = |defect| Error::corrupt(node.pointer().block, defect);
    let bytes = node.bytes().get(place.at..place.end).unwrap_or(&[]);
    let mut reader = Reader::new(bytes);
    let record = R::decode(&mut place.context, &mut reader);
    let (key, value) = record.ok_or_else(|| corrupt(Defect::Record))?;
    place.at = place.end - reader.remaining();
    place.left -= 1;
    if place.left == 0 && place.at != place.end {
        return Err(corrupt(Defect::Layout));
    }
    if place.last.is_some_and(|last| key <= last) {
        return Err(corrupt(Defect::Order));
    }
    place.last = Some(key);
    Ok((key, value))
}

/// Decodes the rest of the open block, with its context in registers.
#[inline]
fn each_of_block<R: Record>(
    node: &Node,
    place: &mut Place<R>,
    read: &mut impl FnMut(R::Key, R::Value<'_>) -> ControlFlow<()>,
) -> Result<ControlFlow<()>> {
    let corrupt = |defect| Error::corrupt(node.pointer().block, defect);
    let Place {
        end,
        mut left,
        mut context,
        mut last,
        ..
    } = *place;
    let mut reader = Reader::new(node.bytes().get(place.at..end).unwrap_or(&[]));
    let mut flow = ControlFlow::Continue(());
    while left > 0 && flow.is_continue() {
        let Some((key, value)) = R::decode(&mut context, &mut reader) else {
            return Err(corrupt(Defect::Record));
        };
        if last.is_some_and(|last| key <= last) {
            return Err(corrupt(Defect::Order));
        }
        left -= 1;
        if left == 0 && reader.remaining() > 0 {
            return Err(corrupt(Defect::Layout));
        }
        last = Some(key);
        flow = read(key, value);
    }
    let at = end - reader.remaining();
    *place = Place {
        at,
        end,
        left,
        context,
        last,
    };
    Ok(flow)
}
