//! Random merges, compared record by record with a `BTreeMap`.

use super::super::{
    Contents, Entries, Error, Finding, Hashes, Inodes, Inspect, NODE_BLOCKS_MAX, NodeCache,
    NodeSize, Origin, Pointer, Record, Root, Tree,
};
use super::memory::{Change, Memory};
use super::sample::Sample;
use proptest::prelude::*;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::collections::BTreeMap;
use std::ops::Bound;

pub(super) type Model<R> = BTreeMap<<R as Record>::Key, <R as Sample>::Owned>;
pub(super) type Changes<R> = BTreeMap<<R as Record>::Key, Option<<R as Sample>::Owned>>;

/// A tree in memory and what it should hold.
pub(super) struct Bench<'m, R: Sample> {
    pub(super) memory: &'m Memory,
    pub(super) cache: NodeCache<&'m Memory>,
    pub(super) root: Option<Root>,
    pub(super) model: Model<R>,
    pub(super) node_size: NodeSize,
    pub(super) generation: u64,
}

/// All that a check said.
pub(super) struct Seen<R: Sample> {
    pub(super) findings: Vec<Finding>,
    pub(super) nodes: Vec<(Pointer, u8)>,
    pub(super) records: Vec<(R::Key, R::Owned)>,
}

impl<R: Sample> Default for Seen<R> {
    fn default() -> Self {
        Self {
            findings: Vec::new(),
            nodes: Vec::new(),
            records: Vec::new(),
        }
    }
}

impl<R: Sample> Inspect<R> for Seen<R> {
    fn finding(&mut self, finding: Finding) {
        self.findings.push(finding);
    }

    fn node(&mut self, node: Pointer, level: u8) {
        self.nodes.push((node, level));
    }

    fn record(&mut self, key: R::Key, value: R::Value<'_>) {
        self.records.push((key, R::own(value)));
    }
}

impl<'m, R: Sample> Bench<'m, R> {
    pub(super) fn new(memory: &'m Memory, node_size: NodeSize) -> Self {
        let cache = NodeCache::new(memory, 1 << 20);
        Self {
            memory,
            cache,
            root: None,
            model: Model::<R>::new(),
            node_size,
            generation: 0,
        }
    }

    pub(super) fn tree(&self) -> Tree<'_, R, &'m Memory> {
        Tree::new(&self.cache, self.root)
    }

    pub(super) fn merge(&mut self, changes: &Changes<R>) -> Result<(), Error> {
        self.generation += 1;
        let origin = Origin {
            generation: self.generation,
            subvolume: 1,
        };
        let mut space = self.memory;
        let list = changes.iter().map(|(&key, owned)| {
            let change = owned
                .as_ref()
                .map_or(Change::Delete, |owned| Change::Put(R::value(owned)));
            Ok::<_, Error>((key, change))
        });
        let merged = self
            .tree()
            .merge_all(origin, self.node_size, &mut space, list)?;
        let before = self.model.len();
        for (&key, owned) in changes {
            match owned {
                Some(owned) => self.model.insert(key, owned.clone()),
                None => self.model.remove(&key),
            };
        }
        let difference = merged.added as i64 - merged.deleted as i64;
        assert_eq!(before as i64 + difference, self.model.len() as i64);
        let all = merged.added + merged.replaced + merged.deleted + merged.missing;
        assert_eq!(all, changes.len() as u64);
        self.root = merged.root;
        self.memory.settle();
        Ok(())
    }

    /// Everything in order, by a cursor.
    pub(super) fn all(&self) -> Result<Model<R>, Error> {
        let mut cursor = self.tree().range(None)?;
        let mut all = Model::<R>::new();
        while let Some((key, value)) = cursor.next()? {
            all.insert(key, R::own(value));
        }
        Ok(all)
    }

    pub(super) fn nodes(&self) -> Vec<(Pointer, u8)> {
        let mut nodes = Vec::new();
        let mut wanted: Vec<_> = self
            .root
            .iter()
            .map(|root| (root.node, root.level))
            .collect();
        while let Some((pointer, level)) = wanted.pop() {
            nodes.push((pointer, level));
            let node = self.cache.load::<R>(pointer, level).expect("sound");
            if level > 0 {
                let child = |index| (node.child::<R::Key>(index).expect("sound").1, level - 1);
                wanted.extend((0..node.count()).map(child));
            }
        }
        nodes
    }

    pub(super) fn check(&self, jobs: usize) -> Seen<R> {
        let mut all = Seen::default();
        for part in self.tree().check(self.generation, jobs, Seen::default) {
            all.findings.extend(part.findings);
            all.nodes.extend(part.nodes);
            all.records.extend(part.records);
        }
        all
    }

    /// Compares everything that can be asked.
    pub(super) fn compare(&self, rng: &mut ChaCha8Rng, space: u64) {
        assert_eq!(self.all().expect("sound"), self.model);
        assert_eq!(self.tree().records(), self.model.len() as u64);
        let blocks: Vec<u64> = self.memory.state().lengths.keys().copied().collect();
        let mut reached: Vec<u64> = self.nodes().iter().map(|(node, _)| node.block).collect();
        reached.sort_unstable();
        assert_eq!(blocks, reached, "what is taken is what is reached");
        let mut seen = self.check(rng.random_range(1..4));
        assert_eq!(seen.findings, []);
        assert!(seen.records.is_sorted_by(|a, b| a.0 < b.0));
        assert!(seen.records.into_iter().eq(self.model.clone()));
        seen.nodes.sort_unstable();
        let mut nodes = self.nodes();
        nodes.sort_unstable();
        assert_eq!(seen.nodes, nodes);
        for _ in 0..20 {
            let key = R::key(rng, space);
            let tree = self.tree();
            assert_eq!(
                tree.get(&key, R::own).expect("sound").as_ref(),
                self.model.get(&key)
            );
            let last = tree.last_below(&key, |key, value| (key, R::own(value)));
            let below = self
                .model
                .range(..key)
                .next_back()
                .map(|(&k, v)| (k, v.clone()));
            assert_eq!(last.expect("sound"), below);
            let mut cursor = tree.range(Some(&key)).expect("sound");
            for (at, owned) in self.model.range(key..).take(5) {
                let (found, value) = cursor.next().expect("sound").expect("more");
                assert_eq!((found, R::own(value)), (*at, owned.clone()));
            }
        }
        self.compare_found(rng, space);
        let parts = rng.random_range(1..9);
        let cuts = self.tree().split_points(parts).expect("sound");
        assert!(cuts.len() < parts && cuts.is_sorted_by(|a, b| a < b));
    }
}

impl<R: Sample> Bench<'_, R> {
    /// Finds keys by one cursor, here and there and in order.
    fn compare_found(&self, rng: &mut ChaCha8Rng, space: u64) {
        let mut keys: Vec<_> = (0..60).map(|_| R::key(rng, space)).collect();
        let present = self.model.keys().copied();
        keys.extend(present.filter(|_| rng.random_ratio(1, 3)));
        if rng.random() {
            keys.sort_unstable();
        }
        self.compare_found_together(rng, keys.clone());
        let mut cursor = self.tree().range(None).expect("sound");
        for key in keys {
            let found = cursor.find(&key).expect("sound").map(R::own);
            assert_eq!(found.as_ref(), self.model.get(&key), "{key:?}");
            if rng.random_ratio(1, 5) {
                let next = cursor
                    .next()
                    .expect("sound")
                    .map(|(key, value)| (key, R::own(value)));
                let after = (Bound::Excluded(key), Bound::Unbounded);
                let above = self.model.range(after).next();
                assert_eq!(next, above.map(|(&key, owned)| (key, owned.clone())));
            }
        }
    }
}

impl<R: Sample> Bench<'_, R> {
    /// Finds keys all at once, the cursor standing anywhere.
    fn compare_found_together(&self, rng: &mut ChaCha8Rng, mut keys: Vec<R::Key>) {
        keys.sort_unstable();
        keys.dedup();
        let start = rng.random::<bool>().then(|| keys.first()).flatten();
        let mut cursor = self.tree().range(start).expect("sound");
        let mut found = Vec::new();
        let each = |key, value: Option<R::Value<'_>>| found.push((key, value.map(R::own)));
        cursor.find_each(&keys, each).expect("sound");
        let expected = keys.iter().map(|key| (*key, self.model.get(key).cloned()));
        assert!(found.into_iter().eq(expected));
    }
}

/// Changes of one mood: few or many, here or everywhere, mostly new or mostly gone.
pub(super) fn changes<R: Sample>(rng: &mut ChaCha8Rng, space: u64) -> Changes<R> {
    let count = if rng.random_ratio(1, 3) {
        3
    } else {
        rng.random_range(1..400)
    };
    let deleted = rng.random_range(0..=4);
    let mut changes = Changes::<R>::new();
    for _ in 0..count {
        let key = R::key(rng, space);
        let gone = rng.random_ratio(deleted, 4);
        let owned = (!gone).then(|| R::owned(rng, key));
        changes.insert(key, owned);
    }
    if rng.random_ratio(1, 3) {
        let (low, high) = (R::key(rng, space), R::key(rng, space));
        changes.retain(|key, _| (low.min(high)..=low.max(high)).contains(key));
    }
    changes
}

fn follows_the_model<R: Sample>(seed: u64) {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let memory = Memory::default();
    let fill = [120, 200, 400, 1500, 8192][rng.random_range(0..5)];
    let node_size = NodeSize::tiny(fill, rng.random_range(1..40));
    let space = rng.random_range(1..3000);
    let mut bench = Bench::<R>::new(&memory, node_size);
    for _ in 0..12 {
        let changes = match rng.random_range(0..10) {
            0 => bench.model.keys().map(|&key| (key, None)).collect(),
            _ => changes::<R>(&mut rng, space),
        };
        bench.merge(&changes).expect("sound");
        bench.compare(&mut rng, space);
    }
    let gone = bench.model.keys().map(|&key| (key, None)).collect();
    bench.merge(&gone).expect("sound");
    assert_eq!(bench.root, None);
    assert!(memory.state().lengths.is_empty());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn inodes_follow_the_model(seed: u64) {
        follows_the_model::<Inodes>(seed);
    }

    #[test]
    fn entries_follow_the_model(seed: u64) {
        follows_the_model::<Entries>(seed);
    }

    #[test]
    fn hashes_follow_the_model(seed: u64) {
        follows_the_model::<Hashes>(seed);
    }

    #[test]
    fn contents_follow_the_model(seed: u64) {
        follows_the_model::<Contents>(seed);
    }
}

/// Nodes full to their last bytes, with the longest records there are among them.
fn nodes_of_a_length_follow_the_model<R: Sample>(blocks: u16) {
    let mut rng = ChaCha8Rng::seed_from_u64(u64::from(blocks));
    let memory = Memory::default();
    let mut bench = Bench::<R>::new(&memory, NodeSize::of(blocks));
    for keep in [1, 2, 40] {
        let keys: Vec<_> = (0..9000).map(|_| R::key(&mut rng, 20_000)).collect();
        let mut change = |key| {
            let put = rng.random_ratio(1, keep);
            (key, put.then(|| R::owned(&mut rng, key)))
        };
        let changes = keys.into_iter().map(&mut change).collect();
        bench.merge(&changes).expect("sound");
        bench.compare(&mut rng, 20_000);
    }
    let nodes = bench.nodes();
    let fullest = nodes.iter().map(|&(node, level)| {
        let node = bench.cache.load::<R>(node, level).expect("sound");
        assert_eq!(node.bytes().len(), usize::from(blocks) * 4096);
        node.used()
    });
    assert!(fullest.max() > Some(usize::from(blocks) * 3500));
}

#[test]
fn nodes_of_any_length_follow_the_model() {
    for blocks in [2, 4, NODE_BLOCKS_MAX] {
        nodes_of_a_length_follow_the_model::<Inodes>(blocks);
        nodes_of_a_length_follow_the_model::<Entries>(blocks);
        nodes_of_a_length_follow_the_model::<Contents>(blocks);
    }
}
