//! Builds leaves out of records.

use super::error::{Error, Result};
use super::node::{HEADER, OFFSET};
use super::node_size::NodeSize;
use super::record::Record;
use super::run::Coded;
use crate::varint::Reader;

/// The content of a leaf that is not written yet.
#[derive(Debug)]
pub(super) struct Leaf<R: Record> {
    /// Room for the header, then the blocks of records.
    bytes: Vec<u8>,
    /// The start of each block.
    offsets: Vec<u16>,
    records: u32,
    first: Option<R::Key>,
}

impl<R: Record> Default for Leaf<R> {
    fn default() -> Self {
        Self {
            bytes: vec![0; HEADER],
            offsets: Vec::new(),
            records: 0,
            first: None,
        }
    }
}

impl<R: Record> Leaf<R> {
    pub(super) fn is_empty(&self) -> bool {
        self.records == 0
    }

    /// The bytes it takes in a node.
    pub(super) fn used(&self) -> usize {
        self.bytes.len() + self.offsets.len() * OFFSET
    }

    pub(super) fn records(&self) -> u32 {
        self.records
    }

    pub(super) fn runs(&self) -> u16 {
        self.offsets.len() as u16
    }

    pub(super) fn first(&self) -> Option<R::Key> {
        self.first
    }

    /// Writes the directory behind the blocks, and zeros up to `len`.
    pub(super) fn finish(&mut self, len: usize) -> &mut [u8] {
        for offset in &self.offsets {
            self.bytes.extend_from_slice(&offset.to_le_bytes());
        }
        self.bytes.resize(len, 0);
        &mut self.bytes
    }

    /// Empties it, and keeps its memory.
    pub(super) fn reset(&mut self) {
        self.bytes.clear();
        self.bytes.resize(HEADER, 0);
        self.offsets.clear();
        self.records = 0;
        self.first = None;
    }

    /// Moves blocks from the end of `self` to the beginning of `next` until both are about equally
    /// full; `next` takes at most `limit` bytes. Blocks are independent, so they need no new
    /// coding.
    pub(super) fn balance(&mut self, next: &mut Self, limit: usize) {
        let total = self.used() + next.used() - HEADER;
        let half = total.div_ceil(2);
        let mut keep = self.offsets.len();
        while keep > 1 {
            let left = usize::from(self.offsets[keep - 1]) + (keep - 1) * OFFSET;
            if left < half || total - left + HEADER > limit {
                break;
            }
            keep -= 1;
        }
        let Some(&cut) = self.offsets.get(keep) else {
            return;
        };
        let (cut, offsets) = (usize::from(cut), self.offsets.split_off(keep));
        let moved = self.bytes.split_off(cut);
        let count = |offset: &u16| u32::from(moved[usize::from(*offset) - cut]);
        let records: u32 = offsets.iter().map(count).sum();
        let shift = moved.len();
        next.first = R::first_key(&mut Reader::new(&moved[1..]));
        next.bytes.splice(HEADER..HEADER, moved);
        let own = next.offsets.iter().map(|offset| offset + shift as u16);
        let came = offsets.iter().map(|offset| offset - (cut - HEADER) as u16);
        next.offsets = came.chain(own).collect();
        next.records += records;
        self.records -= records;
    }
}

/// Fills a [`Leaf`].
#[derive(Debug)]
pub(super) struct LeafWriter<R: Record> {
    pub(super) leaf: Leaf<R>,
    node_size: NodeSize,
    /// The start of the open block.
    start: usize,
    /// Records of the open block.
    run: u8,
    context: R::Context,
    /// The most records of the open block.
    run_max: u8,
    /// Where the next block ends, if not where it is full.
    cut: Option<u8>,
    /// Does it follow an old leaf? A block then takes up to half as many more records, so that
    /// additions to an old block need no second one, and the next old block can be copied.
    pub(super) follows: bool,
}

/// Was the record appended?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fit {
    Yes,
    /// The leaf is full: close it, and try again.
    Full,
}

impl<R: Record> LeafWriter<R> {
    pub(super) fn new(node_size: NodeSize) -> Self {
        Self {
            leaf: Leaf::default(),
            node_size,
            start: 0,
            run: 0,
            context: R::Context::default(),
            run_max: 0,
            cut: None,
            follows: false,
        }
    }

    /// Announces the records of an old block, with changes among them. If they are too many, they
    /// become two blocks of the same size: a full one and a small rest would prevent copying the
    /// next old block.
    pub(super) fn rewrite_block(&mut self, records: u8) {
        let run = self.node_size.run::<R>();
        let many = records > run.saturating_add(run / 4);
        self.cut = (many && self.run == 0).then_some(records.div_ceil(2));
    }

    /// Is a block of so many records in so many bytes worth copying?
    fn is_worth_keeping(&self, records: u8, bytes: usize) -> bool {
        records >= self.node_size.run::<R>().div_ceil(2) || bytes > self.node_size.run_bytes() / 2
    }

    /// Ends the open block unless it is too small. Can a whole block follow?
    pub(super) fn end_block(&mut self) -> bool {
        if self.run > 0 {
            let bytes = self.leaf.bytes.len() - self.start;
            if !self.is_worth_keeping(self.run, bytes) {
                return false;
            }
            self.run = 0;
        }
        true
    }

    /// Copies a block with the first key `first`, above all keys so far. `None`: it is too small or
    /// too long for a copy, so its records must be appended one by one.
    pub(super) fn copy_block(&mut self, first: R::Key, block: &[u8]) -> Option<Fit> {
        debug_assert_eq!(self.run, 0, "no block is open");
        let records = block[0];
        if !self.is_worth_keeping(records, block.len()) {
            return None;
        }
        if self.leaf.used() + block.len() + OFFSET > self.node_size.fill() {
            return (!self.leaf.is_empty()).then_some(Fit::Full);
        }
        self.leaf.offsets.push(self.leaf.bytes.len() as u16);
        self.leaf.bytes.extend_from_slice(block);
        self.leaf.first.get_or_insert(first);
        self.leaf.records += u32::from(records);
        Some(Fit::Yes)
    }

    /// How many records, and bytes of them, fit into the open block, if records coded against
    /// `context` may follow unchanged.
    #[inline]
    pub(super) fn room_behind(&self, context: &R::Context) -> Option<(u8, usize)> {
        if self.run == 0 || self.context != *context {
            return None;
        }
        let records = self.run_max.saturating_sub(self.run);
        let block = self.leaf.bytes.len() - self.start;
        let bytes = usize::min(
            self.node_size.fill().saturating_sub(self.leaf.used()),
            self.node_size.run_bytes().saturating_sub(block),
        );
        Some((records, bytes))
    }

    /// Appends coded records; there is [room](Self::room_behind) for them.
    pub(super) fn append_coded(&mut self, coded: &Coded<'_, R>) {
        self.leaf.bytes.extend_from_slice(coded.bytes);
        self.leaf.records += u32::from(coded.records);
        self.run += coded.records;
        self.leaf.bytes[self.start] = self.run;
        self.context = coded.context;
    }

    /// Appends a record behind all others.
    #[inline]
    pub(super) fn append(&mut self, key: R::Key, value: &R::Value<'_>) -> Result<Fit> {
        let before = self.leaf.bytes.len();
        let opens = self.run == 0
            || self.run >= self.run_max
            || before - self.start > self.node_size.run_bytes();
        if opens {
            self.open(before);
        }
        R::encode(&mut self.context, key, value, &mut self.leaf.bytes);
        if self.leaf.used() > self.node_size.fill() {
            let alone = self.leaf.records == 0;
            if !alone || self.leaf.used() > self.node_size.longest() {
                self.leaf.bytes.truncate(before);
                if opens {
                    self.leaf.offsets.pop();
                }
                return if alone {
                    Err(Error::Unstorable)
                } else {
                    Ok(Fit::Full)
                };
            }
        }
        self.run += 1;
        if self.leaf.records == 0 {
            self.leaf.first = Some(key);
        }
        self.leaf.records += 1;
        self.leaf.bytes[self.start] = self.run;
        Ok(Fit::Yes)
    }

    fn open(&mut self, at: usize) {
        self.leaf.offsets.push(at as u16);
        self.leaf.bytes.push(0);
        self.context = R::Context::default();
        self.start = at;
        self.run = 0;
        let run = self.node_size.run::<R>();
        let more = if self.follows { run / 2 } else { 0 };
        self.run_max = self.cut.take().unwrap_or(run.saturating_add(more));
    }

    /// Takes the leaf out and puts `empty` in its place.
    pub(super) fn take(&mut self, empty: Leaf<R>) -> Leaf<R> {
        self.run = 0;
        std::mem::replace(&mut self.leaf, empty)
    }
}
