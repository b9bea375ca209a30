use super::super::*;
use super::{Arc, bundled, tiny};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

/// What a block is, as a list of all blocks has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Now {
    Free,
    /// Placed, and no record of it.
    Placed,
    Recorded,
    /// Freed, but not to be used again before this stamp or generation is durable.
    Deferred,
}

/// A superblock: what it means.
#[derive(Clone, Debug)]
struct Root {
    generation: u64,
    cut: u64,
    seal: Seal,
    layout: Layout,
    recorded: BTreeSet<u64>,
}

/// The volume as it should be.
struct Model {
    space: Arc<Space>,
    blocks: BTreeMap<u64, Now>,
    /// Bitmaps on disk.
    slots: BTreeMap<u64, Box<Block>>,
    root: Root,
    /// What the journal has: stamp, extent, whether it was freed.
    log: Vec<(u64, Extent, bool)>,
    durable: u64,
    lsn: u64,
    placed: Vec<Extent>,
    files: Vec<Extent>,
    nodes: Vec<Extent>,
    freed: Vec<(u64, Extent)>,
    /// The cut of the checkpoint under way.
    cut: Option<u64>,
    /// Freed durably behind that.
    kept: Vec<Extent>,
    replaced: Vec<(u64, Extent)>,
    reservations: Vec<Reservation>,
}

impl Model {
    fn new(layout: Layout) -> Self {
        let space = Space::format(layout).expect("a layout");
        let seal = space.seal();
        let mut model = Self {
            space,
            blocks: BTreeMap::new(),
            slots: BTreeMap::new(),
            root: Root {
                generation: 1,
                cut: 0,
                seal,
                layout,
                recorded: BTreeSet::new(),
            },
            log: Vec::new(),
            durable: 0,
            lsn: 0,
            placed: Vec::new(),
            files: Vec::new(),
            nodes: Vec::new(),
            freed: Vec::new(),
            cut: None,
            kept: Vec::new(),
            replaced: Vec::new(),
            reservations: Vec::new(),
        };
        model.fresh_blocks();
        model
    }

    fn fresh_blocks(&mut self) {
        let layout = self.space.layout();
        self.blocks = (0..layout.groups())
            .flat_map(|group| {
                let extent = layout.group(group);
                extent.start + layout.reserved(group)..extent.end()
            })
            .map(|block| (block, Now::Free))
            .collect();
    }

    fn set(&mut self, extent: Extent, old: Now, new: Now) {
        for block in extent.start..extent.end() {
            let now = self.blocks.get_mut(&block).expect("a block of a group");
            assert_eq!(*now, old, "block {block}");
            *now = new;
        }
    }

    fn count(&self, which: Now) -> u64 {
        self.blocks.values().filter(|&&now| now == which).count() as u64
    }

    /// Invariant P4, the law of free space: every block is what the list says.
    fn check(&self) {
        let layout = self.space.layout();
        for (&block, &now) in &self.blocks {
            let (group, at) = layout.find(block).expect("a group");
            let views = self.space.table().lock(group).views(at);
            let expected = match now {
                Now::Free => (false, false),
                Now::Recorded => (true, true),
                Now::Placed | Now::Deferred => (true, false),
            };
            // Records and frees may still lie in the lists of changes.
            match now {
                Now::Free | Now::Placed if views != expected => {
                    panic!("{block}: {now:?} {views:?}")
                }
                _ => assert!(views.0 == expected.0, "{block}: {now:?} {views:?}"),
            }
        }
        let report = self.space.report();
        assert_eq!(report.free, self.count(Now::Free));
        let promised: u64 = self.reservations.iter().map(Reservation::blocks).sum();
        assert_eq!(report.reserved, promised);
        assert_eq!(
            report.deferred_data + report.deferred_nodes,
            self.count(Now::Deferred)
        );
    }

    fn step(&mut self, (step, a, b): (u8, u64, u64)) {
        match step % 12 {
            0..=2 => self.place(a, b),
            3 | 4 => self.record(a),
            5 => self.free(a),
            6 => self.commit(self.durable + a % (self.lsn - self.durable + 1)),
            7 => self.give_back(a),
            8 => self.reservation(a, b),
            9 => self.checkpoint(a, b),
            10 => self.crash(a),
            _ => self.commit(self.lsn),
        }
        self.check();
    }

    fn pick<T>(list: &mut Vec<T>, at: u64) -> Option<T> {
        let at = at.checked_rem(list.len() as u64)? as usize;
        Some(list.swap_remove(at))
    }

    fn place(&mut self, a: u64, b: u64) {
        let layout = self.space.layout();
        let span = layout.end - layout.start;
        let request = Request {
            goal: (!a.is_multiple_of(3)).then_some(layout.start + b % span),
            least: a % 4 + 1,
            wanted: a % 23 + 1,
            kind: Kind::Data,
        };
        let longest = self.longest();
        let report = self.space.report();
        match self.space.allocate(&request) {
            Ok(extent) => {
                assert!(extent.length >= request.least);
                assert!(extent.length <= request.wanted.max(request.least));
                self.set(extent, Now::Free, Now::Placed);
                self.placed.push(extent);
            }
            Err(Error::Full { .. }) => {
                // Invariant P7.
                let none = report.free - report.reserved < request.least;
                assert!(none || longest < request.least, "{report:?} {request:?}");
                assert_eq!(self.count(Now::Deferred), 0);
            }
            Err(Error::Later { .. }) => assert!(self.count(Now::Deferred) > 0),
            Err(other) => panic!("{other}"),
        }
    }

    /// The longest run of free blocks of one group, looked for block by block.
    fn longest(&self) -> u64 {
        let layout = self.space.layout();
        let (mut longest, mut run, mut last) = (0, 0, 0);
        for (&block, &now) in &self.blocks {
            let begins = layout.find(block).is_some_and(|(_, at)| at == 0);
            run = match now {
                Now::Free if block == last + 1 && !begins => run + 1,
                Now::Free => 1,
                _ => 0,
            };
            last = block;
            longest = longest.max(run);
        }
        longest
    }

    /// What continues this extent of a list is one with it, as in the places of a file.
    fn merged(list: &mut Vec<Extent>, extent: Extent) -> Extent {
        let mut extent = extent;
        while let Some(at) = list.iter().position(|next| next.start == extent.end()) {
            extent.length += list.swap_remove(at).length;
        }
        extent
    }

    fn record(&mut self, a: u64) {
        let Some(extent) = Self::pick(&mut self.placed, a) else {
            return;
        };
        let extent = Self::merged(&mut self.placed, extent);
        self.lsn += 1;
        self.space.record(extent, self.lsn).expect("placed");
        self.log.push((self.lsn, extent, false));
        self.set(extent, Now::Placed, Now::Recorded);
        self.files.push(extent);
    }

    fn free(&mut self, a: u64) {
        let Some(extent) = Self::pick(&mut self.files, a) else {
            return;
        };
        let extent = Self::merged(&mut self.files, extent);
        // Part of an extent, as truncation frees it.
        let (kept, freed) = extent.split(a % 3);
        if kept.length > 0 {
            self.files.push(kept);
        }
        if freed.length == 0 {
            return;
        }
        self.lsn += 1;
        self.space.free_data(freed, self.lsn).expect("recorded");
        self.log.push((self.lsn, freed, true));
        self.set(freed, Now::Recorded, Now::Deferred);
        self.freed.push((self.lsn, freed));
    }

    fn commit(&mut self, lsn: u64) {
        self.durable = lsn;
        self.space.committed(lsn).expect("consistent");
        for (freed, extent) in self
            .freed
            .extract_if(.., |(freed, _)| *freed <= lsn)
            .collect::<Vec<_>>()
        {
            match self.cut {
                Some(cut) if freed > cut => self.kept.push(extent),
                _ => self.set(extent, Now::Deferred, Now::Free),
            }
        }
    }

    fn give_back(&mut self, a: u64) {
        if let Some(extent) = Self::pick(&mut self.placed, a) {
            let extent = Self::merged(&mut self.placed, extent);
            self.space.give_back(extent).expect("placed");
            self.set(extent, Now::Placed, Now::Free);
        }
    }

    fn reservation(&mut self, a: u64, b: u64) {
        if a.is_multiple_of(2) {
            Self::pick(&mut self.reservations, b);
            return;
        }
        let report = self.space.report();
        match self.space.reserve(b % 40) {
            Ok(reservation) => self.reservations.push(reservation),
            Err(Error::Full { .. }) => assert!(report.free - report.reserved < b % 40),
            Err(_) => assert!(self.count(Now::Deferred) > 0),
        }
    }

    /// A checkpoint, with data changing meanwhile. `b` odd: a crash before the superblock.
    fn checkpoint(&mut self, a: u64, b: u64) {
        let cut = self.lsn;
        self.space.begin_checkpoint(cut).expect("consistent");
        self.cut = Some(cut);
        let generation = self.root.generation + 1;
        let mut recorded: BTreeSet<u64> = self.recorded();
        let mut seed = a;
        for round in 0..b % 7 {
            seed = seed
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(round | 1);
            match (seed >> 33) % 6 {
                0 => self.place(seed >> 40, seed >> 20),
                1 => self.record(seed >> 40),
                2 => self.free(seed >> 40),
                3 => self.replace(seed >> 40, generation, &mut recorded),
                4 => self.commit(self.lsn),
                _ => self.node(&mut recorded),
            }
        }
        let bitmaps = self.space.dirty_bitmaps(generation);
        if b % 5 == 4 {
            // Some of it was written, one block of it in part.
            for (place, (block, bytes)) in bitmaps.blocks.into_iter().enumerate() {
                if (a >> (place % 60)) & 1 == 1 {
                    let torn = self
                        .slots
                        .entry(block)
                        .or_insert_with(|| Box::new([0; crate::block::BLOCK]));
                    let whole = (a >> (place % 59)) & 2 == 0;
                    let written = if whole { crate::block::BLOCK } else { 512 };
                    torn[..written].copy_from_slice(&bytes[..written]);
                }
            }
            return self.crash(0);
        }
        self.slots.extend(bitmaps.blocks);
        self.root = Root {
            generation,
            cut,
            seal: bitmaps.seal,
            layout: self.space.layout(),
            recorded,
        };
        let oldest = generation - a % 2;
        self.space.checkpointed(oldest).expect("consistent");
        self.cut = None;
        for extent in std::mem::take(&mut self.kept) {
            self.set(extent, Now::Deferred, Now::Free);
        }
        let due = self
            .replaced
            .extract_if(.., |(replaced, _)| *replaced <= oldest);
        for (_, extent) in due.collect::<Vec<_>>() {
            self.set(extent, Now::Deferred, Now::Free);
        }
        if self.durable >= cut {
            self.log.retain(|(lsn, ..)| *lsn > cut);
        }
    }

    fn node(&mut self, recorded: &mut BTreeSet<u64>) {
        if let Ok(extent) = self.space.allocate(&Request::node(4)) {
            self.set(extent, Now::Free, Now::Recorded);
            for block in extent.start..extent.end() {
                assert!(
                    recorded.insert(block),
                    "{block} is in the same superblock twice"
                );
            }
            self.nodes.push(extent);
        }
    }

    fn replace(&mut self, a: u64, generation: u64, recorded: &mut BTreeSet<u64>) {
        if let Some(node) = Self::pick(&mut self.nodes, a) {
            self.space.free_node(node, generation).expect("a node");
            self.set(node, Now::Recorded, Now::Deferred);
            recorded.retain(|block| !node.contains(*block));
            self.replaced.push((generation, node));
        }
    }

    fn recorded(&self) -> BTreeSet<u64> {
        let recorded = self.blocks.iter().filter(|(_, now)| **now == Now::Recorded);
        recorded.map(|(&block, _)| block).collect()
    }

    /// Loses what was not durable: the newest superblock, and the journal behind it.
    fn crash(&mut self, a: u64) {
        self.reservations.clear();
        self.placed.clear();
        self.freed.clear();
        self.cut = None;
        self.kept.clear();
        self.replaced.clear();
        let blank = Box::new([0_u8; crate::block::BLOCK]);
        let mut loader = Loader::new(self.root.layout, self.root.generation).expect("a layout");
        for group in 0..loader.groups() {
            let slots = loader
                .slots(group)
                .map(|slot| self.slots.get(&slot).unwrap_or(&blank));
            loader
                .add(group, slots.map(|slot| &**slot))
                .expect("bitmaps");
        }
        self.space = loader
            .finish(self.root.seal)
            .expect("the bitmaps of the superblock");
        self.fresh_blocks();
        for block in self.root.recorded.clone() {
            self.set(Extent::new(block, 1), Now::Free, Now::Recorded);
        }
        if a.is_multiple_of(2) {
            self.check_remount();
        }
        let durable = self.durable.max(self.root.cut);
        self.log.retain(|(lsn, ..)| *lsn <= durable);
        for (lsn, extent, freed) in self.log.clone() {
            if lsn <= self.root.cut {
                continue;
            }
            if freed {
                self.space.mark_free(extent).expect("used");
                self.set(extent, Now::Recorded, Now::Free);
            } else {
                self.space.mark_used(extent).expect("free");
                self.set(extent, Now::Free, Now::Recorded);
            }
        }
        self.space.replayed().expect("consistent");
        self.durable = durable;
        self.lsn = durable;
        self.relist();
    }

    /// Nothing leaks: after opening, what is used is recorded.
    fn check_remount(&self) {
        let report = self.space.report();
        assert_eq!((report.unrecorded, report.reserved), (0, 0));
        assert_eq!(report.total - report.free, self.root.recorded.len() as u64);
    }

    /// Files and nodes after a crash: what is recorded, in runs.
    fn relist(&mut self) {
        let nodes = std::mem::take(&mut self.nodes);
        let live = |blocks: &BTreeMap<u64, Now>, extent: &Extent| {
            (extent.start..extent.end()).all(|block| blocks.get(&block) == Some(&Now::Recorded))
        };
        let root = &self.root.recorded;
        let in_root = |extent: &Extent| (extent.start..extent.end()).all(|b| root.contains(&b));
        let logged = self.log.clone();
        let untouched =
            |extent: &Extent| !logged.iter().any(|(_, other, _)| other.overlaps(extent));
        self.nodes = nodes
            .into_iter()
            .filter(|node| live(&self.blocks, node) && in_root(node) && untouched(node))
            .collect();
        let of_nodes: BTreeSet<u64> = self
            .nodes
            .iter()
            .flat_map(|node| node.start..node.end())
            .collect();
        let files = self.recorded();
        self.files = files
            .into_iter()
            .filter(|block| !of_nodes.contains(block))
            .map(|block| Extent::new(block, 1))
            .collect();
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 192, ..ProptestConfig::default() })]

    /// Invariant P4, after every step, checkpoint, crash and opening, at the edge of 2^32 blocks.
    #[test]
    fn the_law_of_free_space_holds_after_every_step(
        groups in 1..6_u64,
        group_blocks in prop_oneof![Just(16_u64), Just(40), Just(64), Just(700)],
        bundle in prop_oneof![Just(1_u64), Just(2), Just(4)],
        steps in prop::collection::vec((any::<u8>(), any::<u64>(), any::<u64>()), 1..120),
    ) {
        let mut model = Model::new(bundled(tiny(groups, group_blocks), bundle));
        for step in steps {
            model.step(step);
        }
    }
}

#[test]
fn a_node_is_not_placed_where_a_replay_frees_data() {
    // Data that the cut has is freed behind it, durably, before the nodes are placed; then a crash.
    let place = (12, 1_710_611_407_246_237_780, 15_359_751_872_535_032_720);
    let checkpoint = (81, 17_481_976_369_779_588_141, 1_938_623_363_623_158_231);
    let crash = (129, 0, 4_158_004_390_157_215_894);
    let mut model = Model::new(tiny(1, 16));
    for step in [place, (171, 0, 0), checkpoint, crash] {
        model.step(step);
    }
}
