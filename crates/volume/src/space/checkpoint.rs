use super::group::Range;
use super::layout::Part;
use super::slot::Block;
use super::table::Table;
use super::{Error, Extent, Kind, Layout, Space};
use crate::primitive::Ordering;

/// A change of data's records, handed in and not applied to the bitmaps yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Change {
    lsn: u64,
    extent: Extent,
    kind: ChangeKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum ChangeKind {
    Record,
    Free,
    /// Freed, and no longer recorded, but not to be used again before its stamp is durable.
    Forgotten,
}

/// The cut of the checkpoint under way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cut {
    pub(super) number: u64,
    /// Are changes made now behind the cut?
    pub(super) open: bool,
}

/// What keeps the changes of records in order.
#[derive(Debug, Default)]
pub(super) struct Order {
    /// All changes up to this stamp are applied, or will be before the cut.
    applied: u64,
    /// Replaced nodes, and the generation of the checkpoint that replaced each.
    nodes: Vec<(u64, Extent)>,
    /// Data whose records are gone durably, behind the cut of the checkpoint under way. Its bitmaps say that
    /// they are used, and a replay frees them: were a node of the same checkpoint placed there, the
    /// replay would free the node.
    kept: Vec<Extent>,
    /// Groups written for the checkpoint under way.
    written: Vec<u64>,
}

/// What the superblock says of the bitmaps, so that a lost one is noticed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seal {
    /// Of every group's bitmap, its generation and its checksum.
    pub fingerprint: u64,
    /// Free blocks of all groups.
    pub free: u64,
}

/// What a checkpoint must write before its superblock.
#[derive(Debug)]
pub struct Bitmaps {
    /// Block numbers, ascending, and the bytes that go there.
    pub blocks: Vec<(u64, Box<Block>)>,
    /// What goes into the superblock.
    pub seal: Seal,
    /// What the superblock says of the groups: the volume may grow while it is written.
    pub layout: Layout,
}

impl Space {
    /// Says that a record with this stamp refers to placed data.
    ///
    /// # Errors
    /// [`Error::Outside`].
    pub fn record(&self, extent: Extent, lsn: u64) -> Result<(), Error> {
        self.parts(extent).map(drop)?;
        self.change(lsn, extent, ChangeKind::Record);
        Ok(())
    }

    /// As [`record`](Self::record), of many.
    ///
    /// # Errors
    /// [`Error::Outside`]; then nothing was said.
    pub fn record_all(&self, extents: &[Extent], lsn: u64) -> Result<(), Error> {
        for extent in extents {
            self.parts(*extent).map(drop)?;
        }
        let recorded = |extent: &Extent| Change {
            lsn,
            extent: *extent,
            kind: ChangeKind::Record,
        };
        let mut changes = self.changes.mine().lock();
        changes.extend(extents.iter().map(recorded));
        Ok(())
    }

    /// Says that the record with this stamp freed data. The blocks return when that is
    /// [durable](Self::committed): were they used earlier, a crash would show another file's bytes.
    ///
    /// # Errors
    /// [`Error::Outside`]. That nobody used them shows later.
    pub fn free_data(&self, extent: Extent, lsn: u64) -> Result<(), Error> {
        self.parts(extent).map(drop)?;
        self.change(lsn, extent, ChangeKind::Free);
        Ok(())
    }

    fn change(&self, lsn: u64, extent: Extent, kind: ChangeKind) {
        self.changes
            .mine()
            .lock()
            .push(Change { lsn, extent, kind });
    }

    /// Gives back placed data to which no record will refer, or a node of a checkpoint that was
    /// given up. At once: nobody has seen it.
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

    /// Says that the checkpoint which will be `generation` replaced a node. It returns when no
    /// superblock that recovery may use refers to it: see [`checkpointed`](Self::checkpointed).
    ///
    /// # Errors
    /// [`Error::Outside`], [`Error::Unused`].
    pub fn free_node(&self, extent: Extent, generation: u64) -> Result<(), Error> {
        let parts = self.parts(extent)?;
        let mut order = self.order.lock();
        for (group, range) in parts {
            self.table().lock(group).forget_node(range)?;
        }
        order.nodes.push((generation, extent));
        Ok(())
    }

    /// Says that all records up to `lsn` are durable: freed data returns; what was freed behind the cut of
    /// a checkpoint under way, with [its end](Self::checkpointed).
    ///
    /// # Errors
    /// The first inconsistency, if any: [`Error::Used`] for what was recorded twice,
    /// [`Error::Unused`] for what was freed without being used. The rest is done all the same.
    pub fn committed(&self, lsn: u64) -> Result<(), Error> {
        let mut order = self.order.lock();
        order.applied = order.applied.max(lsn);
        let cut = self.cut();
        let mut outcome = Ok(());
        for change in self.drain(lsn) {
            // What was freed before the cut is in no bitmap of the checkpoint.
            let keep = cut.open && change.kind == ChangeKind::Free;
            let applied = self.apply(&change, &cut, !keep);
            if keep && applied.is_ok() {
                order.kept.push(change.extent);
            }
            outcome = outcome.and(applied);
        }
        outcome
    }

    /// Begins a checkpoint that holds every record up to `lsn` and none behind it. Nothing behind
    /// it may have been [`committed`](Self::committed) yet. Nodes that are placed and freed from now
    /// on belong to it.
    ///
    /// # Errors
    /// As [`committed`](Self::committed).
    ///
    /// # Panics
    /// If one is under way, or if records behind the cut were committed: the bitmaps would not be
    /// those of the trees.
    pub fn begin_checkpoint(&self, lsn: u64) -> Result<(), Error> {
        self.ready()?;
        let mut order = self.order.lock();
        let cut = self.cut();
        assert!(!cut.open, "one checkpoint at a time");
        assert!(order.applied <= lsn, "committed beyond the cut");
        order.applied = lsn;
        let mut outcome = Ok(());
        for change in self.drain(lsn) {
            outcome = outcome.and(self.apply(&change, &cut, false));
            if change.kind != ChangeKind::Record {
                self.change(change.lsn, change.extent, ChangeKind::Forgotten);
            }
        }
        // Relaxed: read under `order`, which is locked here, or under a group's lock by those who
        // hold `order` too.
        self.cuts.fetch_add(1, Ordering::Relaxed);
        self.folding.store(true, Ordering::Relaxed);
        outcome
    }

    /// What the checkpoint must write: of each group that changed, the bitmap as of the cut, in the
    /// slot that the current superblock does not mean. All its nodes are placed by now.
    pub fn dirty_bitmaps(&self, generation: u64) -> Bitmaps {
        let mut order = self.order.lock();
        let (layout, cut) = (self.layout(), self.cut());
        let mut bitmaps = Bitmaps {
            blocks: Vec::new(),
            seal: Seal::default(),
            layout,
        };
        order.written.clear();
        for group in 0..self.table().count() {
            let mut state = self.table().lock(group);
            bitmaps.seal.free += u64::from(state.unrecorded());
            if let Some(block) = state.image(&layout, generation, &cut) {
                bitmaps.blocks.push(block);
                order.written.push(group);
            }
            bitmaps.seal.fingerprint ^= state.next_print();
        }
        self.folding.store(false, Ordering::Relaxed);
        bitmaps
    }

    /// Says that the checkpoint's superblock is durable, and that recovery will never use one
    /// older than `oldest`: nodes return that were replaced up to there, and data that was freed
    /// meanwhile.
    ///
    /// # Errors
    /// [`Error::Unused`], [`Error::Used`]: an inconsistency.
    pub fn checkpointed(&self, oldest: u64) -> Result<(), Error> {
        let mut order = self.order.lock();
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

    /// Keeps blocks from being used that are free, for a record refers to them that is replayed later on.
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
            // Nothing is promised while a journal is replayed, so all that is free can be taken.
            let taken = self.ledger().take(held, held, Kind::Node);
            debug_assert_eq!(taken, Some(held));
            if state.free() == 0 {
                self.table().set_class(group, &mut state, 0);
            }
        }
        Ok(())
    }

    /// Marks what a record refers to that is replayed: blocks that are free or held.
    ///
    /// # Errors
    /// [`Error::Outside`]; [`Error::Used`] if another record refers to some of it.
    pub fn mark_used(&self, extent: Extent) -> Result<(), Error> {
        self.hold(extent)?;
        for (group, range) in self.parts(extent)? {
            self.table().lock(group).record(range, &self.cut())?;
        }
        Ok(())
    }

    /// Holds what a record freed that is replayed: a later one may refer to it.
    ///
    /// # Errors
    /// [`Error::Outside`]; [`Error::Unused`] if no record refers to some of it.
    pub fn mark_free(&self, extent: Extent) -> Result<(), Error> {
        for (group, range) in self.parts(extent)? {
            self.table().lock(group).forget(range, &self.cut())?;
        }
        Ok(())
    }

    /// All records are replayed: what is held and was not marked is free, since they are durable.
    ///
    /// # Errors
    /// None, but for an inconsistency.
    pub fn replayed(&self) -> Result<(), Error> {
        for group in 0..self.table().count() {
            let mut state = self.table().lock(group);
            for range in state.runs_ahead() {
                self.release(group, &mut state, range)?;
            }
        }
        Ok(())
    }

    /// Ends the checkpoint under way: its nodes were given back, and nothing changed behind its cut.
    pub fn give_up_checkpoint(&self) {
        let _order = self.order.lock();
        self.folding.store(false, Ordering::Relaxed);
    }

    /// The changes up to a stamp, records before frees: what is freed was recorded before, and
    /// what was freed is not recorded again before the free is applied.
    fn drain(&self, lsn: u64) -> Vec<Change> {
        let mut due: Vec<Change> = Vec::new();
        for changes in self.changes.iter() {
            due.extend(changes.lock().extract_if(.., |change| change.lsn <= lsn));
        }
        due.sort_unstable_by_key(|change| (change.kind, change.extent));
        due
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

    /// Makes blocks free that were used and not recorded.
    fn release_all(&self, extent: Extent) -> Result<(), Error> {
        for (group, range) in self.parts(extent)? {
            let mut state = self.table().lock(group);
            self.release(group, &mut state, range)?;
        }
        Ok(())
    }

    fn cut(&self) -> Cut {
        Cut {
            number: self.cuts.load(Ordering::Relaxed),
            open: self.folding.load(Ordering::Relaxed),
        }
    }

    /// In which groups an extent lies, and where: extents that continue each other across a border of groups
    /// may be one.
    fn parts(&self, extent: Extent) -> Result<impl Iterator<Item = (u64, Range)>, Error> {
        let layout = self.layout();
        let parts = layout.parts(extent)?;
        // The volume may be growing just now; not before its groups were read.
        let groups = self.table.get().map_or(layout.groups(), Table::count);
        if extent.end() > layout.group(groups).start {
            return Err(Error::Outside { extent });
        }
        let range = |Part { group, from, to }| (group, Range { from, to });
        Ok(parts.map(range))
    }

    /// As [`parts`](Self::parts), of what lies in one group.
    pub(super) fn range(&self, extent: Extent) -> Result<(u64, Range), Error> {
        let mut parts = self.parts(extent)?;
        match (parts.next(), parts.next()) {
            (Some(part), None) => Ok(part),
            _ => Err(Error::Outside { extent }),
        }
    }

    /// Blocks that return with a commit, and those that return with a checkpoint.
    pub(super) fn deferred(&self) -> (u64, u64) {
        let order = self.order.lock();
        let nodes = order.nodes.iter().map(|(_, node)| node);
        let with_checkpoint = nodes.chain(&order.kept).map(|extent| extent.length).sum();
        drop(order);
        let data = self.changes.iter().map(|changes| {
            let changes = changes.lock();
            let freed = changes
                .iter()
                .filter(|change| change.kind != ChangeKind::Record);
            freed.map(|change| change.extent.length).sum::<u64>()
        });
        (data.sum(), with_checkpoint)
    }
}
