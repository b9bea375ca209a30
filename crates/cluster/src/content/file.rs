//! One file: what the database has of it, and what waits over that.
//!
//! *Invariants.* `top` is there exactly while changes wait or are on their way; it is the record as
//! callers see it. `base` only moves to later states: the `ctime` of an inode grows with each
//! change. While `flushing`, one thread brings `flight` to the database, and nobody else changes
//! `flight`. Each change of `base` raises `revision`.
//!
//! *Locking.* `state` is held for no call of the database or of the object store. Below it are only
//! the list of dirty files and the counters.

use super::clock::Clock;
use super::layer::Layer;
use super::map;
use super::page::PAGE;
use super::view::{Below, View};
use super::waiting::Waiting;
use crate::meta::{Content, Node};
use holdfast_core::store::{InodeRecord, StoredSpace, Version};
use holdfast_types::{Errno, FileType, Ino, Result, Time};
use parking_lot::{Condvar, Mutex};
use std::sync::Arc;
use std::time::Instant;

/// What an entry costs beside its content.
const ENTRY: u64 = 640;

/// No bytes.
pub(super) static EMPTY: Content = Content::Extents(Vec::new());

/// A regular file.
#[derive(Debug)]
pub(super) struct File {
    pub(super) ino: Ino,
    pub(super) state: Mutex<State>,
    /// `flushing` ended.
    pub(super) settled: Condvar,
}

#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) base: Base,
    pub(super) revision: u64,
    /// Changes of which nothing is on its way yet.
    pub(super) waiting: Option<Waiting>,
    /// Changes on their way to the database.
    pub(super) flight: Option<Arc<Waiting>>,
    pub(super) flushing: bool,
    pub(super) top: Option<InodeRecord>,
    /// Pages with space, of `top`; `None` if the base is not known.
    pub(super) pages: Option<u64>,
    /// How often it is open for writing.
    pub(super) opens: u32,
    /// After a failure, writeback begins again then.
    pub(super) retry_at: Option<Instant>,
    pub(super) failures: u32,
    pub(super) sequence: Sequence,
    /// What is counted of it: dirty, clean.
    pub(super) counted: (u64, u64),
}

/// What the database has, as far as it is known.
#[derive(Clone, Debug, Default)]
pub(super) struct Base {
    pub(super) record: Option<InodeRecord>,
    /// The generation of `content`, or if that is unknown, of the record.
    pub(super) generation: u64,
    pub(super) content: Option<Arc<Content>>,
    /// Is the content newer than the record?
    pub(super) moved: bool,
    /// Did another client change the inode since?
    pub(super) outdated: bool,
}

/// The recognition of sequential reads.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sequence {
    /// Where the next read would begin.
    pub(super) next: u64,
    /// Bytes to be read ahead.
    pub(super) window: u64,
    /// Everything up to here was asked for.
    pub(super) asked: u64,
}

/// What has to be loaded before a file can be changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lack {
    Record,
    Map,
}

impl File {
    pub(super) fn new(ino: Ino) -> Arc<Self> {
        Arc::new(Self {
            ino,
            state: Mutex::default(),
            settled: Condvar::new(),
        })
    }
}

impl State {
    pub(super) fn is_dirty(&self) -> bool {
        self.waiting.is_some() || self.flight.is_some()
    }

    /// May it be forgotten?
    pub(super) fn is_idle(&self) -> bool {
        !self.is_dirty() && !self.flushing && self.opens == 0
    }

    pub(super) fn lack(&self) -> Option<Lack> {
        match self.base.record {
            None => Some(Lack::Record),
            Some(_) if self.base.outdated => Some(Lack::Record),
            Some(_) if self.view().is_none() => Some(Lack::Map),
            Some(_) => None,
        }
    }

    /// All layers, if what lies below is known.
    pub(super) fn view(&self) -> Option<View<'_>> {
        let flight = self.flight.as_deref().map(|it| &it.layer);
        let layers = [self.waiting.as_ref().map(|it| &it.layer), flight];
        Some(View {
            layers,
            base: self.base.below(layers)?,
        })
    }

    /// The record as callers see it.
    pub(super) fn record(&self) -> Result<&InodeRecord> {
        let record = self.top.as_ref().or(self.base.record.as_ref());
        record.ok_or(Errno::ESTALE)
    }

    /// A change begins: returns the version before it. The file [lacks](Self::lack) nothing.
    pub(super) fn begin(&mut self) -> Result<Version> {
        let record = self.record()?.clone();
        if self.pages.is_none() {
            self.pages = self.view().map(|view| view.count(0, u64::MAX));
        }
        let before = Version::of(&record);
        self.top.get_or_insert(record);
        let waiting = self.waiting.get_or_insert_with(Waiting::new);
        waiting.last = Instant::now();
        Ok(before)
    }

    /// A change ends: the record shows it.
    pub(super) fn end(&mut self, clock: &Clock, content: bool) -> Result<InodeRecord> {
        let now = clock.after(self.record()?.ctime);
        self.end_at(now, content)
    }

    /// As [`end`](Self::end), at this time.
    pub(super) fn end_at(&mut self, now: Time, content: bool) -> Result<InodeRecord> {
        let (space, behind) = match (&self.top, self.view()) {
            (Some(top), Some(view)) => {
                let end = top.size.div_ceil(PAGE);
                let space = self.pages.map(|pages| StoredSpace::of(pages, top.size));
                (space, view.next(end).is_some())
            }
            _ => (None, false),
        };
        let top = self.top.as_mut().ok_or(Errno::ESTALE)?;
        top.ctime = now;
        if content {
            top.mtime = now;
            top.space = space.unwrap_or(StoredSpace::UNKNOWN);
            top.xattrs |= behind;
            if let Some(waiting) = &mut self.waiting {
                waiting.change.mtime = None;
            }
        }
        Ok(top.clone())
    }

    /// Everything from this byte on is gone.
    pub(super) fn cut(&mut self, size: u64) {
        self.keeps_count(size.div_ceil(PAGE), u64::MAX, |state| {
            if let Some(waiting) = &mut state.waiting {
                waiting.layer.truncate(size);
            }
        });
    }

    /// The length becomes at least this.
    pub(super) fn grow(&mut self, size: u64) {
        if let Some(waiting) = &mut self.waiting {
            waiting.reach = waiting.reach.max(size);
        }
        if let Some(top) = &mut self.top {
            top.size = top.size.max(size);
        }
    }

    /// The length becomes this.
    pub(super) fn resize(&mut self, size: u64) {
        if let Some(waiting) = &mut self.waiting {
            (waiting.exact, waiting.reach) = (true, size);
        }
        if let Some(top) = &mut self.top {
            top.size = size;
        }
    }

    /// Does something to pages, and counts those with space.
    pub(super) fn keeps_count(&mut self, from: u64, to: u64, act: impl FnOnce(&mut Self)) {
        let count = |state: &Self| state.view().map(|view| view.count(from, to));
        let before = count(self);
        act(self);
        self.pages = match (self.pages, before, count(self)) {
            (Some(pages), Some(before), Some(after)) => Some(pages + after - before),
            _ => None,
        };
    }

    /// Takes in a record of the database; `false`: it is older than what is known.
    pub(super) fn take_in_record(&mut self, record: &InodeRecord) -> bool {
        if record.kind != FileType::Regular {
            return false;
        }
        match &self.base.record {
            Some(known) if record.ctime < known.ctime => return false,
            Some(known) if known == record => return true,
            _ => {}
        }
        self.base.record = Some(record.clone());
        (self.base.moved, self.base.outdated) = (false, false);
        self.revision += 1;
        self.rebase();
        true
    }

    /// Takes in a node of the database.
    pub(super) fn take_in(&mut self, node: &Node) {
        if node.record.kind != FileType::Regular {
            return;
        }
        let known = self.base.record.as_ref();
        if known.is_some_and(|known| node.record.ctime < known.ctime) {
            return;
        }
        if self.base.generation != node.generation || known.is_none() {
            self.base.generation = node.generation;
            self.base.content = None;
            self.revision += 1;
        }
        if let (None, Some(content)) = (&self.base.content, &node.content) {
            // Damaged content is met when it is needed.
            self.base.content = map::checked(content.clone()).ok().map(Arc::new);
        }
        self.take_in_record(&node.record);
    }

    /// Takes in content that was asked for at a revision, unless the base has changed meanwhile.
    ///
    /// # Errors
    /// `EUCLEAN`: it is damaged.
    pub(super) fn take_in_content(
        &mut self,
        revision: u64,
        generation: u64,
        content: Content,
    ) -> Result<()> {
        let content = map::checked(content)?;
        if self.revision != revision {
            return Ok(());
        }
        self.base.moved |= self.base.record.is_some() && generation != self.base.generation;
        self.base.generation = generation;
        self.base.content = Some(Arc::new(content));
        self.revision += 1;
        self.rebase();
        Ok(())
    }

    /// The base has changed: makes the record anew that callers see.
    pub(super) fn rebase(&mut self) {
        let (Some(top), Some(record)) = (&self.top, &self.base.record) else {
            return;
        };
        if !self.is_dirty() {
            (self.top, self.pages) = (None, None);
            return;
        }
        let mut now = record.clone();
        let layers = [self.flight.as_deref(), self.waiting.as_ref()];
        for waiting in layers.into_iter().flatten() {
            waiting.lay_over(&mut now, top);
        }
        now.mtime = top.mtime;
        now.xattrs |= top.xattrs;
        now.ctime = match record.ctime < top.ctime {
            true => top.ctime,
            false => Time(record.ctime.0.wrapping_add(1)),
        };
        self.pages = self.view().map(|view| view.count(0, u64::MAX));
        let space = self.pages.map(|pages| StoredSpace::of(pages, now.size));
        now.space = space.unwrap_or(StoredSpace::UNKNOWN);
        self.top = Some(now);
    }

    /// Bytes that it takes: dirty, clean.
    pub(super) fn memory(&self) -> (u64, u64) {
        let waiting = self.waiting.as_ref().map_or(0, Waiting::memory);
        let flight = self.flight.as_deref().map_or(0, Waiting::memory);
        let content = self.base.content.as_deref().map_or(0, map::memory);
        (waiting + flight, content + ENTRY)
    }
}

impl Base {
    pub(super) fn below(&self, layers: [Option<&Layer>; 2]) -> Option<Below<'_>> {
        if let Some(content) = &self.content {
            return Some(Below::Content(content));
        }
        if layers.iter().flatten().any(|layer| layer.cut() == Some(0)) {
            return Some(Below::Content(&EMPTY));
        }
        let record = self.record.as_ref()?;
        let dense = record.space == StoredSpace::AS_SIZE && !record.xattrs;
        dense.then_some(Below::Dense(record.size))
    }
}
