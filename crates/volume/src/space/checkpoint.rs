use super::group::Cut;
use super::records::{Change, ChangeKind};
use super::slot::{Block, Seal};
use super::{Error, Extent, Kind, Space};

/// The writes of a checkpoint that precede its superblock.
#[derive(Debug)]
pub struct Bitmaps {
    /// Block numbers, ascending, and their new content.
    pub blocks: Vec<(u64, Box<Block>)>,
    /// The summary for the superblock.
    pub seal: Seal,
}

impl Space {
    /// Notes that a record with this LSN refers to placed data.
    ///
    /// # Errors
    /// [`Error::Outside`].
    pub fn record(&self, extent: Extent, lsn: u64) -> Result<(), Error> {
        self.record_all(&[extent], lsn)
    }

    /// Like [`record`](Self::record), for many extents.
    ///
    /// # Errors
    /// [`Error::Outside`]; then nothing was noted.
    pub fn record_all(&self, extents: &[Extent], lsn: u64) -> Result<(), Error> {
        for extent in extents {
            self.parts(*extent).map(drop)?;
        }
        let recorded = |extent: &Extent| Change {
            lsn,
            extent: *extent,
            kind: ChangeKind::Record,
        };
        self.records.extend(extents.iter().map(recorded));
        Ok(())
    }

    /// Notes that the record with this LSN freed data. The blocks become free when it is
    /// [durable](Self::committed): if they were reused earlier, a crash would show another file's
    /// bytes.
    ///
    /// # Errors
    /// [`Error::Outside`]. Blocks that were not used are detected later.
    pub fn free_data(&self, extent: Extent, lsn: u64) -> Result<(), Error> {
        self.parts(extent).map(drop)?;
        let kind = ChangeKind::Free;
        self.records.extend([Change { lsn, extent, kind }]);
        Ok(())
    }

    /// Frees placed data to which no record will refer, or a node of an abandoned checkpoint. At
    /// once, since no reader has seen it.
    ///
    /// # Errors
    /// [`Error::Outside`], [`Error::Unused`].
    pub fn give_back(&self, extent: Extent) -> Result<(), Error> {
        for (group, range) in self.parts(extent)? {
            let mut state = self.table().lock(group);
            if state.views(range.from).1 {
                state.forget_node(range)?;
            }
            self.release(group, &mut state, range)?;
        }
        Ok(())
    }

    /// Notes that the checkpoint of `generation` replaced a node. It becomes free when no
    /// superblock that recovery may use refers to it: see [`checkpointed`](Self::checkpointed).
    ///
    /// # Errors
    /// [`Error::Outside`], [`Error::Unused`].
    pub fn free_node(&self, extent: Extent, generation: u64) -> Result<(), Error> {
        let parts = self.parts(extent)?;
        let mut order = self.records.order.lock();
        for (group, range) in parts {
            self.table().lock(group).forget_node(range)?;
        }
        order.nodes.push((generation, extent));
        Ok(())
    }

    /// All records up to `lsn` are durable: data that they freed becomes free. Data freed behind
    /// the cut of a checkpoint in progress becomes free with [its end](Self::checkpointed).
    ///
    /// # Errors
    /// The first inconsistency, if any: [`Error::Used`] for blocks recorded twice,
    /// [`Error::Unused`] for blocks freed without being used. All other changes are applied.
    pub fn committed(&self, lsn: u64) -> Result<(), Error> {
        hop!();
        let mut order = self.records.order.lock();
        order.applied = order.applied.max(lsn);
        let cut = self.records.cut();
        let mut outcome = Ok(());
        for change in self.records.drain(lsn) {
            // No bitmap of the checkpoint has data that was freed before the cut.
            let keep = cut.open && change.kind == ChangeKind::Free;
            let applied = self.apply(&change, &cut, !keep);
            if keep && applied.is_ok() {
                order.kept.push(change.extent);
            }
            outcome = outcome.and(applied);
        }
        outcome
    }

    /// Begins a checkpoint that holds every record up to `lsn` and none behind it. No later record
    /// may have been [`committed`](Self::committed) yet. Nodes placed and freed from now on belong
    /// to it.
    ///
    /// # Errors
    /// As [`committed`](Self::committed).
    ///
    /// # Panics
    /// If a checkpoint is in progress, or if records behind the cut were committed: the bitmaps
    /// would not match the trees.
    pub fn begin_checkpoint(&self, lsn: u64) -> Result<(), Error> {
        self.ready()?;
        let mut order = self.records.order.lock();
        let cut = self.records.cut();
        assert!(!cut.open, "one checkpoint at a time");
        assert!(order.applied <= lsn, "committed beyond the cut");
        order.applied = lsn;
        let mut outcome = Ok(());
        for change in self.records.drain(lsn) {
            outcome = outcome.and(self.apply(&change, &cut, false));
            if change.kind != ChangeKind::Record {
                let kind = ChangeKind::Forgotten;
                self.records.extend([Change { kind, ..change }]);
            }
        }
        self.records.open_cut();
        outcome
    }

    /// The bitmaps to write: of each changed group the state at the cut, for the slot that the
    /// current superblock does not use. The checkpoint has placed all its nodes by now.
    pub fn dirty_bitmaps(&self, generation: u64) -> Bitmaps {
        let mut order = self.records.order.lock();
        let (layout, cut) = (self.layout(), self.records.cut());
        let mut bitmaps = Bitmaps {
            blocks: Vec::new(),
            seal: Seal::default(),
        };
        order.written.clear();
        for group in 0..self.table().count() {
            let mut state = self.table().lock(group);
            bitmaps.seal.free += u64::from(state.free_at_checkpoint());
            if let Some(block) = state.image(&layout, generation, &cut) {
                bitmaps.blocks.push(block);
                order.written.push(group);
            }
            bitmaps.seal.fingerprint ^= state.next_print();
        }
        self.records.close_cut();
        bitmaps
    }

    /// The checkpoint's superblock is durable, and recovery will never use one older than `oldest`.
    /// Frees the nodes replaced up to there, and data freed meanwhile.
    ///
    /// # Errors
    /// [`Error::Unused`] or [`Error::Used`]: an inconsistency.
    pub fn checkpointed(&self, oldest: u64) -> Result<(), Error> {
        let mut order = self.records.order.lock();
        for group in std::mem::take(&mut order.written) {
            self.table().lock(group).checkpointed();
        }
        let kept = std::mem::take(&mut order.kept);
        let replaced = order
            .nodes
            .extract_if(.., |&mut (replaced, _)| replaced <= oldest);
        let mut outcome = Ok(());
        for extent in replaced.map(|(_, extent)| extent).chain(kept) {
            outcome = outcome.and(self.release_all(extent));
        }
        outcome
    }

    /// Takes free blocks to which a record refers that is replayed later.
    ///
    /// # Errors
    /// [`Error::Outside`].
    pub fn hold(&self, extent: Extent) -> Result<(), Error> {
        for (group, range) in self.parts(extent)? {
            let mut state = self.table().lock(group);
            let held = u64::from(state.take_free(range));
            if held == 0 {
                continue;
            }
            // No blocks are reserved during a replay, so all free ones can be taken.
            let taken = self.counter.take(held, held, Kind::Node);
            debug_assert_eq!(taken, Some(held));
            if state.free() == 0 {
                self.table().set_class(group, &mut state, 0);
            }
        }
        Ok(())
    }

    /// Marks the blocks of a replayed record, which are free or held.
    ///
    /// # Errors
    /// [`Error::Outside`]; [`Error::Used`] if another record refers to some of it.
    pub fn mark_used(&self, extent: Extent) -> Result<(), Error> {
        self.hold(extent)?;
        for (group, range) in self.parts(extent)? {
            self.table()
                .lock(group)
                .record(range, &self.records.cut())?;
        }
        Ok(())
    }

    /// Holds the blocks that a replayed record freed: a later one may refer to them.
    ///
    /// # Errors
    /// [`Error::Outside`]; [`Error::Unused`] if no record refers to some of them.
    pub fn mark_free(&self, extent: Extent) -> Result<(), Error> {
        for (group, range) in self.parts(extent)? {
            self.table()
                .lock(group)
                .forget(range, &self.records.cut())?;
        }
        Ok(())
    }

    /// Ends the replay: held blocks without a record become free, since all records are durable.
    ///
    /// # Errors
    /// An inconsistency.
    pub fn replayed(&self) -> Result<(), Error> {
        for group in 0..self.table().count() {
            let mut state = self.table().lock(group);
            for range in state.unrecorded_runs() {
                self.release(group, &mut state, range)?;
            }
        }
        Ok(())
    }

    /// Ends the checkpoint in progress without a superblock. Its nodes were given back, and nothing
    /// changed behind its cut.
    pub fn give_up_checkpoint(&self) {
        let _order = self.records.order.lock();
        self.records.close_cut();
    }

    fn apply(&self, change: &Change, cut: &Cut, durable: bool) -> Result<(), Error> {
        for (group, range) in self.parts(change.extent)? {
            let mut state = self.table().lock(group);
            match change.kind {
                ChangeKind::Record => {
                    state.record(range, cut)?;
                    continue;
                }
                ChangeKind::Free => state.forget(range, cut)?,
                ChangeKind::Forgotten => {}
            }
            if durable {
                self.release(group, &mut state, range)?;
            }
        }
        Ok(())
    }

    /// Frees blocks that were used and not recorded.
    fn release_all(&self, extent: Extent) -> Result<(), Error> {
        for (group, range) in self.parts(extent)? {
            let mut state = self.table().lock(group);
            self.release(group, &mut state, range)?;
        }
        Ok(())
    }
}
