//! Making changes durable.
//!
//! A commit takes a *cut*: no operation is under way at that moment. All that was journalled before
//! belongs to it, and the pages that waited then get places, are written and flushed, and their
//! places are journalled as the commit's last batch. So a replay, which takes a commit whole or not
//! at all, finds the bytes of every file as they were at the cut.

use std::sync::Arc;

use holdfast_core::store::Stamp;
use parking_lot::Mutex;

use super::gather::Looked;
use super::layers::Layers;
use super::mapping::Run;
use super::outgoing::Outgoing;
use super::overlay::Overlay;
use super::placer::Placer;
use super::{Inner, REALM};
use crate::journal::{self, BeforeCommit, Commit, Map, Position, Record};
use crate::space::Extent;
use crate::{Error, Result};

/// What a commit does for a store besides writing the journal.
struct Hook<'s> {
    store: &'s Inner,
    /// Is the overlay to be frozen at the cut, for a checkpoint?
    freeze: bool,
    outcome: Mutex<Outcome>,
}

#[derive(Default)]
struct Outcome {
    frozen: Option<Frozen>,
    position: Option<Position>,
    error: Option<Error>,
}

/// What a checkpoint folds.
pub(super) struct Frozen {
    pub(super) overlay: Arc<Overlay>,
    /// Where a replay begins once it is folded.
    pub(super) position: Position,
    pub(super) inodes: u64,
    pub(super) last_ino: u64,
}

impl Inner {
    /// Makes everything up to a stamp durable; everything so far without one.
    pub(super) fn make_durable(&self, upto: Option<Stamp>) -> Result<()> {
        self.running()?;
        let hook = Hook::new(self, false);
        let committed = self.journal.commit(upto, &hook);
        hook.settle(committed)?;
        Ok(())
    }

    /// Lets what was removed so far be free: that is durable then, and no checkpoint under way keeps it.
    pub(super) fn let_go(&self) -> Result<()> {
        self.running()?;
        let _none = self.checkpointing.lock();
        let hook = Hook::new(self, false);
        // Not as one of several: what another's commit frees is durable before it is free.
        let committed = self.journal.commit_now(&hook);
        hook.settle(committed)?;
        Ok(())
    }

    /// Commits, and freezes what changed up to then.
    pub(super) fn freeze(&self) -> Result<Frozen> {
        self.running()?;
        let hook = Hook::new(self, true);
        let committed = self.journal.commit_now(&hook);
        let outcome = hook.settle(committed)?;
        let (Some(mut frozen), Some(position)) = (outcome.frozen, outcome.position) else {
            return Err(Error::Stopped("a commit came to no end".to_owned()));
        };
        frozen.position = position;
        Ok(frozen)
    }

    /// Gives places to all pages that wait. Nobody changes anything meanwhile.
    ///
    /// `looked`: where there are neighbours to be brought together with them.
    fn place_dirty(
        &self,
        layers: &Layers,
        cut: Stamp,
        looked: Vec<Looked>,
    ) -> Result<(Vec<Map>, Vec<Outgoing>)> {
        let mut looked = looked.into_iter().peekable();
        let mut maps = Vec::new();
        let mut outgoing = Vec::new();
        let mut promise = self.promises.gather();
        for ino in layers.active.take_dirty_files() {
            let mut shard = layers.active.shard(ino);
            let Some(content) = shard.get_mut(ino).and_then(|object| object.content_mut()) else {
                continue;
            };
            let before = content.dirty();
            outgoing.reserve(before.pages);
            while looked.next_if(|other| other.ino < ino).is_some() {}
            if let Some(looked) = looked.next_if(|other| other.ino == ino) {
                self.take_along(content, looked, &mut promise, cut)?;
            }
            let mut places = Placer::new(self, ino, &mut promise);
            let mut placed = |offset, run: Run| {
                maps.push(Map {
                    ino,
                    offset,
                    start: run.extent.start,
                    blocks: run.extent.length,
                    birth: run.birth,
                    unwritten: false,
                });
            };
            content.take_dirty(&mut places, &mut placed, &mut outgoing)?;
            layers.active.count_dirty(ino, before, content.dirty());
            self.space.record_all(&places.fresh, cut.0)?;
        }
        self.promises.committed(promise);
        self.patience.learn(&outgoing);
        Ok((maps, outgoing))
    }
}

impl<'s> Hook<'s> {
    fn new(store: &'s Inner, freeze: bool) -> Self {
        Self {
            store,
            freeze,
            outcome: Mutex::default(),
        }
    }

    fn cut(&self, commit: &mut Commit<'_>) -> Result<()> {
        let store = self.store;
        let looked = store.look_for_neighbours();
        let maps = {
            let mut layers = store.gate.close();
            let cut = commit.cut();
            let (maps, outgoing) = store.place_dirty(&layers, cut, looked)?;
            store.blocks().announce(outgoing);
            if self.freeze {
                store.space.begin_checkpoint(cut.0)?;
                let (overlay, next) = (Arc::clone(&layers.active), Arc::new(Overlay::new()));
                layers.change(|layers| {
                    layers.active = Arc::clone(&next);
                    layers.frozen = Some(Arc::clone(&overlay));
                });
                self.outcome.lock().frozen = Some(Frozen {
                    overlay,
                    position: Position::default(),
                    inodes: store.inodes(),
                    last_ino: store.met.get(),
                });
            }
            maps
        };
        store.progress.step();
        store.blocks().write_out()?;
        let records: Vec<Record<'_>> = maps.into_iter().map(Record::Map).collect();
        commit.append_records(REALM, &records)?;
        Ok(())
    }

    /// What the commit did; an error stops the store.
    fn settle(self, committed: journal::Result<()>) -> Result<Outcome> {
        let mut outcome = self.outcome.into_inner();
        let error = outcome.error.take().or(committed.err().map(Error::from));
        match error {
            Some(error) => Err(self.store.stop(error)),
            None => Ok(outcome),
        }
    }
}

impl BeforeCommit for Hook<'_> {
    fn before(&self, commit: &mut Commit<'_>) -> journal::Result<()> {
        self.cut(commit).map_err(|error| {
            self.outcome.lock().error = Some(error);
            journal::Error::Failed
        })
    }

    fn after(&self, position: Position) {
        let freed = self.store.space.committed(position.stamp.0);
        let mut outcome = self.outcome.lock();
        outcome.position = Some(position);
        if let Err(error) = freed {
            outcome.error = Some(error.into());
        }
    }
}

/// The extent of a map record.
pub(super) fn extent_of(map: &Map) -> Extent {
    Extent::new(map.start, map.blocks)
}
