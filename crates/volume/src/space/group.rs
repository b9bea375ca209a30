use super::map::Map;
use super::preallocation::Listed;
use super::slot::{self, Block};
use super::{Error, Extent, Layout, bits, map};
use std::collections::BTreeMap;

/// One group: the use of its blocks.
///
/// Three views of the same blocks. A view has its own bitmap only while it differs:
/// - *used*: cannot be allocated now;
/// - *recorded*: the trees or the journal refer to the block;
/// - *frozen*: recorded at the cut of the checkpoint in progress; kept from the first change of
///   data after the cut on. Nodes belong to the checkpoint that writes them, so they change the
///   frozen view as well.
///
/// *Invariants.* Recorded blocks are used. Used and not recorded are preallocations, data placed
/// and not recorded yet, and freed blocks that may not be reused yet.
#[derive(Debug)]
pub(super) struct State {
    number: u64,
    /// The group's blocks.
    extent: Extent,
    /// Blocks at its head that hold bitmaps.
    reserved: u32,
    /// `None`: only bitmap blocks are used.
    used: Option<Map>,
    /// `None`: equal to `used`.
    recorded: Option<Box<[u64]>>,
    /// Blocks that are used and not recorded.
    unrecorded: u32,
    frozen: Option<Box<[u64]>>,
    /// The cut for which `frozen` was taken, or for which it was not needed.
    cut: u64,
    /// Does the frozen view differ from the current slot's bitmap?
    frozen_changed: bool,
    /// Does the recorded view differ from the bitmap of the current slot (or from the frozen view)?
    changed: bool,
    /// The slot that the newest durable superblock means, if the group was ever written.
    current: Option<Current>,
    /// Written for a checkpoint that is not durable yet.
    written: Option<Current>,
    /// The highest class of its runs of free blocks, as the table's hints have it; may be too high.
    pub(super) class: u8,
    /// Preallocations of inodes here, by their first block in the group and their number.
    pub(super) preallocated: BTreeMap<(u32, u64), Listed>,
}

#[derive(Clone, Copy, Debug)]
struct Current {
    slot: usize,
    print: u64,
}

/// The cut of the checkpoint in progress.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cut {
    pub(super) number: u64,
    /// Are current changes behind the cut?
    pub(super) open: bool,
}

/// A range of a group's blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Range {
    pub(super) from: u32,
    pub(super) to: u32,
}

impl Range {
    pub(super) fn length(self) -> u32 {
        self.to - self.from
    }
}

impl State {
    /// A group that was never written.
    pub(super) fn fresh(layout: &Layout, number: u64) -> Self {
        Self {
            number,
            extent: layout.group(number),
            reserved: layout.reserved(number) as u32,
            used: None,
            recorded: None,
            unrecorded: 0,
            frozen: None,
            cut: 0,
            frozen_changed: false,
            changed: false,
            current: None,
            written: None,
            class: 0,
            preallocated: BTreeMap::new(),
        }
    }

    /// A group with the bitmap of a slot. `spoiled`: the other slot's content must be replaced, or
    /// it could pass for this group's bitmap later.
    pub(super) fn loaded(
        layout: &Layout,
        number: u64,
        words: &[u64],
        (slot, print): (usize, u64),
        spoiled: bool,
    ) -> Self {
        let length = layout.group(number).length as u32;
        Self {
            used: Some(Map::of(words, length)),
            changed: spoiled,
            current: Some(Current { slot, print }),
            ..Self::fresh(layout, number)
        }
    }

    /// A group with all blocks free until they are marked as used again.
    pub(super) fn rebuilt(layout: &Layout, number: u64) -> Self {
        Self {
            changed: true,
            ..Self::fresh(layout, number)
        }
    }

    pub(super) fn extent(&self) -> Extent {
        self.extent
    }

    /// The map of used blocks, created now if there was none.
    pub(super) fn map(&mut self) -> &mut Map {
        let (length, reserved) = (self.extent.length as u32, self.reserved);
        self.used.get_or_insert_with(|| {
            let mut words = map::blank_words(length);
            bits::set(&mut words, 0, reserved);
            Map::of(&words, length)
        })
    }

    pub(super) fn free(&self) -> u32 {
        match &self.used {
            Some(map) => map.free(),
            None => self.extent.length as u32 - self.reserved,
        }
    }

    /// Blocks that are used and not recorded.
    pub(super) fn unrecorded(&self) -> u32 {
        self.unrecorded
    }

    /// The group's part of the fingerprint in the newest durable superblock.
    pub(super) fn print(&self) -> u64 {
        self.current.map_or(0, |current| current.print)
    }

    /// Marks free blocks as used and not recorded.
    pub(super) fn take(&mut self, range: Range) {
        self.recorded_bits(|_| ());
        self.map().set(range.from, range.to);
        self.unrecorded += range.length();
    }

    /// Marks free blocks as used by a node of the checkpoint in progress.
    pub(super) fn take_node(&mut self, range: Range) {
        self.map().set(range.from, range.to);
        self.change_node(range, bits::set);
    }

    /// Frees used blocks that are no longer recorded.
    ///
    /// # Errors
    /// If one of them is recorded or not used: nothing is changed then.
    pub(super) fn release(&mut self, range: Range) -> Result<(), Error> {
        self.expect_unrecorded(range)?;
        self.map().clear(range.from, range.to);
        self.unrecorded -= range.length();
        Ok(())
    }

    /// Records used blocks.
    ///
    /// # Errors
    /// If one of them is recorded already or not used: nothing is changed then.
    pub(super) fn record(&mut self, range: Range, cut: &Cut) -> Result<(), Error> {
        self.expect_unrecorded(range)?;
        self.freeze(cut);
        self.recorded_bits(|words| bits::set(words, range.from, range.to));
        self.unrecorded -= range.length();
        self.changed = true;
        Ok(())
    }

    /// Marks recorded blocks as not recorded; they remain used.
    ///
    /// # Errors
    /// If one of them is not recorded: nothing is changed then.
    pub(super) fn forget(&mut self, range: Range, cut: &Cut) -> Result<(), Error> {
        self.expect_recorded(range)?;
        self.freeze(cut);
        self.recorded_bits(|words| bits::clear(words, range.from, range.to));
        self.unrecorded += range.length();
        self.changed = true;
        Ok(())
    }

    /// Like [`forget`](Self::forget), for a node that the checkpoint in progress replaced or gave
    /// up.
    pub(super) fn forget_node(&mut self, range: Range) -> Result<(), Error> {
        self.expect_recorded(range)?;
        self.recorded_bits(|_| ());
        self.change_node(range, bits::clear);
        self.unrecorded += range.length();
        Ok(())
    }

    /// Marks the free blocks of a range as used and not recorded; returns how many.
    pub(super) fn take_free(&mut self, range: Range) -> u32 {
        let (mut at, mut taken) = (range.from, 0);
        while let Some(from) = self.map().first_free(at, range.to) {
            at = self.map().run_end(from, range.to);
            self.take(Range { from, to: at });
            taken += at - from;
        }
        taken
    }

    /// The runs of blocks that are used and not recorded.
    pub(super) fn unrecorded_runs(&self) -> Vec<Range> {
        let (Some(map), Some(recorded)) = (&self.used, &self.recorded) else {
            return Vec::new();
        };
        let words = map.words().iter().zip(recorded);
        let others: Vec<u64> = words.map(|(used, recorded)| !used | recorded).collect();
        let runs = bits::clear_runs(&others, 0, self.extent.length as u32);
        runs.map(|(from, to)| Range { from, to }).collect()
    }

    /// Copies the recorded view at the cut, before a change of data.
    fn freeze(&mut self, cut: &Cut) {
        if cut.open && self.cut != cut.number {
            self.cut = cut.number;
            self.frozen = Some(match &self.recorded {
                Some(words) => words.clone(),
                None => self.map().words().into(),
            });
            self.frozen_changed = std::mem::take(&mut self.changed);
        }
    }

    fn change_node(&mut self, range: Range, change: fn(&mut [u64], u32, u32)) {
        if let Some(words) = &mut self.recorded {
            change(words, range.from, range.to);
        }
        match &mut self.frozen {
            Some(words) => {
                change(words, range.from, range.to);
                self.frozen_changed = true;
            }
            None => self.changed = true,
        }
    }

    fn recorded_bits(&mut self, change: impl FnOnce(&mut [u64])) {
        if self.recorded.is_none() {
            self.recorded = Some(self.map().words().into());
        }
        self.recorded.as_deref_mut().map(change);
    }

    /// The bitmap for the next superblock, unless the current slot holds it already: the block of
    /// its slot, and its bytes.
    pub(super) fn image(
        &mut self,
        layout: &Layout,
        generation: u64,
        cut: &Cut,
    ) -> Option<(u64, Box<Block>)> {
        // Later changes are not in the image, and need no frozen view for this cut.
        self.cut = cut.number;
        let frozen = self.frozen.take();
        let changed = match frozen {
            Some(_) => std::mem::take(&mut self.frozen_changed),
            None => std::mem::take(&mut self.changed),
        };
        if self.unrecorded == 0 {
            self.recorded = None;
        }
        if !changed {
            return None;
        }
        let slot = self.current.map_or(0, |current| 1 - current.slot);
        let words = match (&frozen, &self.recorded) {
            (Some(words), _) | (None, Some(words)) => words,
            (None, None) => self.map().words(),
        };
        let words: Box<[u64]> = words.into();
        let (block, print) = slot::encode(layout, self.number, slot, generation, &words);
        self.written = Some(Current { slot, print });
        Some((layout.slot(self.number, slot), block))
    }

    /// The group's part of the fingerprint once the checkpoint in progress is durable.
    pub(super) fn next_print(&self) -> u64 {
        self.written.or(self.current).map_or(0, |slot| slot.print)
    }

    /// The superblock that means the written bitmap is durable.
    pub(super) fn checkpointed(&mut self) {
        if let Some(written) = self.written.take() {
            self.current = Some(written);
        }
    }

    /// Free blocks in the bitmap of the checkpoint in progress.
    pub(super) fn free_at_checkpoint(&self) -> u32 {
        match &self.frozen {
            Some(words) => {
                let length = self.extent.length as u32;
                length - bits::count(words, 0, length)
            }
            None => self.free() + self.unrecorded,
        }
    }

    /// Adds the blocks that the group gained at its end.
    pub(super) fn grow(&mut self, layout: &Layout) -> u32 {
        let (old, new) = (self.extent, layout.group(self.number));
        let (from, to) = (old.length as u32, new.length as u32);
        if self.used.is_some() {
            let larger = |words: &[u64]| {
                let mut own = map::blank_words(to);
                own.iter_mut()
                    .zip(words)
                    .for_each(|(own, &word)| *own = word);
                bits::clear(&mut own, from, to);
                let end = own.len() as u32 * 64;
                bits::set(&mut own, to, end);
                own
            };
            self.recorded = self.recorded.as_deref().map(larger);
            self.frozen = self.frozen.as_deref().map(larger);
            self.used = self
                .used
                .as_ref()
                .map(|map| Map::of(&larger(map.words()), to));
        }
        self.extent = new;
        to - from
    }

    fn first_recorded(&self, range: Range) -> Option<u32> {
        match (&self.recorded, &self.used) {
            (Some(words), _) => {
                let at = bits::next_set(words, range.from, range.to);
                (at < range.to).then_some(at)
            }
            (None, Some(map)) => map.first_used(range.from, range.to),
            (None, None) => None,
        }
    }

    fn expect_used(&mut self, range: Range) -> Result<(), Error> {
        match self.map().first_free(range.from, range.to) {
            Some(at) => Err(self.not_used(at)),
            None => Ok(()),
        }
    }

    fn expect_unrecorded(&mut self, range: Range) -> Result<(), Error> {
        self.expect_used(range)?;
        match self.first_recorded(range) {
            Some(at) => Err(Error::Used {
                block: self.extent.start + u64::from(at),
            }),
            None => Ok(()),
        }
    }

    fn expect_recorded(&mut self, range: Range) -> Result<(), Error> {
        self.expect_used(range)?;
        match &self.recorded {
            Some(words) => match bits::next_clear(words, range.from, range.to) {
                at if at < range.to => Err(self.not_used(at)),
                _ => Ok(()),
            },
            None => Ok(()),
        }
    }

    fn not_used(&self, at: u32) -> Error {
        Error::Unused {
            block: self.extent.start + u64::from(at),
        }
    }

    /// Is this block used; is it recorded?
    pub(super) fn views(&mut self, at: u32) -> (bool, bool) {
        let range = Range {
            from: at,
            to: at + 1,
        };
        let used = self.map().first_used(at, at + 1).is_some();
        (used, used && self.first_recorded(range).is_some())
    }
}
