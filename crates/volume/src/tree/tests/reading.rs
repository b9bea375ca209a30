//! Reading beside merges, reading ahead, and what stays in memory.

use super::super::node::{BLOCK, reseal};
use super::super::{Error, Inodes, Kind, NodeCache, NodeSize, Tree, UncheckedHeader};
use super::memory::{Change, Memory};
use super::model::{Bench, Changes};
use super::sample::Sample;
use super::sizes::fresh;
use holdfast_types::{Errno, Ino};
use std::ops::ControlFlow;
use std::thread;

fn numbered(memory: &Memory, count: u64) -> Bench<'_, Inodes> {
    let mut bench = Bench::<Inodes>::new(memory, NodeSize::tiny(1000, 16));
    let inode = |ino| (Ino(ino), Some(fresh(ino, ino as i64, 1)));
    bench
        .merge(&(1..=count).map(inode).collect())
        .expect("sound");
    bench
}

#[test]
fn a_cursor_stays_in_its_tree_while_the_tree_gets_new_roots() {
    let memory = Memory::default();
    let bench = numbered(&memory, 2000);
    let mut cursor = bench.tree().range(Some(&Ino(500))).expect("sound");
    let origin = super::super::Origin {
        generation: 2,
        subvolume: 1,
    };
    let all = (1..=2000).map(|ino| Ok::<_, Error>((Ino(ino), Change::Delete)));
    let merged = bench
        .tree()
        .merge_all(origin, bench.node_size, &mut &memory, all)
        .expect("sound");
    assert_eq!((merged.root, merged.deleted), (None, 2000));
    for ino in 500..=2000 {
        let (key, _) = cursor.next().expect("sound").expect("more");
        assert_eq!(key, Ino(ino));
    }
    assert!(cursor.next().expect("sound").is_none());
}

#[test]
fn a_scan_reads_every_node_once_and_leaves_in_batches() {
    let memory = Memory::default();
    let bench = numbered(&memory, 5000);
    let nodes = bench.nodes().len();
    bench.cache.clear();
    memory.state().reads = 0;
    let mut next = 1;
    let mut cursor = bench.tree().range(None).expect("sound");
    let each = cursor.each(|key, _| {
        assert_eq!(key, Ino(next));
        next += 1;
        ControlFlow::Continue(())
    });
    each.expect("sound");
    assert_eq!(next, 5001);
    let state = memory.state();
    assert_eq!(state.reads, nodes);
    assert!(
        state.batches > 0 && state.batches < nodes / 4,
        "{} of {nodes}",
        state.batches
    );
}

#[test]
fn a_scan_that_stops_goes_on_behind_the_last_record() {
    let memory = Memory::default();
    let bench = numbered(&memory, 500);
    let mut cursor = bench.tree().range(None).expect("sound");
    let mut seen = Vec::new();
    while seen.len() < 500 {
        let before = seen.len();
        let each = cursor.each(|key, _| {
            seen.push(key.0);
            if seen.len() % 7 == 0 {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        });
        each.expect("sound");
        assert!(seen.len() > before);
        if let Some((key, _)) = cursor.next().expect("sound") {
            seen.push(key.0);
        }
    }
    assert!(seen.into_iter().eq(1..=500));
}

#[test]
fn parts_cover_the_tree_and_are_about_equal() {
    let memory = Memory::default();
    let bench = numbered(&memory, 20_000);
    let cuts = bench.tree().split_points(4).expect("sound");
    assert_eq!(cuts.len(), 3);
    let ends: Vec<u64> = cuts.iter().map(|cut| cut.0).chain([20_001]).collect();
    let mut begin = 1;
    for end in ends {
        assert!((3000..8000).contains(&(end - begin)), "{begin} to {end}");
        begin = end;
    }
}

#[test]
fn the_cache_keeps_to_its_bound_and_keeps_what_is_used_through_a_scan() {
    let memory = Memory::default();
    let bench = numbered(&memory, 90_000);
    let bound = 160 * 2 * BLOCK;
    let cache = NodeCache::new(&memory, bound);
    let tree = Tree::<Inodes, _>::new(&cache, bench.root);
    assert!(bench.nodes().len() > 200);
    // Often enough to leave the small queue of every shard.
    for _ in 0..4 {
        for ino in 1..=20 {
            assert!(tree.get(&Ino(ino * 100), |_| ()).expect("sound").is_some());
        }
    }
    for _ in 0..2 {
        let mut cursor = tree.range(None).expect("sound");
        cursor
            .each(|_, _| ControlFlow::Continue(()))
            .expect("sound");
        assert!(cache.counts().bytes <= bound);
    }
    let misses = cache.counts().misses;
    for ino in 1..=20 {
        assert!(tree.get(&Ino(ino * 100), |_| ()).expect("sound").is_some());
    }
    assert!(cache.counts().misses - misses <= 10, "{:?}", cache.counts());
}

#[test]
fn what_a_scan_alone_reads_is_forgotten_behind_it() {
    let memory = Memory::default();
    let bench = numbered(&memory, 90_000);
    let cache = NodeCache::new(&memory, 1 << 30);
    let tree = Tree::<Inodes, _>::new(&cache, bench.root);
    let look_up = || {
        for ino in 1..=20 {
            let found = tree.get(&Ino(ino * 4000), |_| ()).expect("sound");
            assert!(found.is_some());
        }
    };
    look_up();
    let before = cache.counts();
    // In parts, as a walk is made.
    let (mut from, mut records) = (Ino(0), 0);
    loop {
        let mut cursor = tree.scan(Some(&from)).expect("sound");
        let mut part = 0;
        cursor
            .each(|ino, _| {
                if part == 1000 {
                    return ControlFlow::Break(());
                }
                from = Ino(ino.0 + 1);
                part += 1;
                ControlFlow::Continue(())
            })
            .expect("sound");
        records += part;
        let counts = cache.counts();
        assert_eq!(counts.bytes - counts.once, before.bytes);
        if part < 1000 {
            break;
        }
    }
    assert_eq!(records, 90_000);
    let after = cache.counts();
    assert_eq!(
        (after.nodes, after.bytes, after.once),
        (before.nodes, before.bytes, 0)
    );
    assert!(after.misses - before.misses <= 2 * bench.nodes().len() as u64);
    look_up();
    assert_eq!(
        cache.counts().misses,
        after.misses,
        "what was there is there"
    );
    // What another reader asks for while a scan is under way stays.
    let mut cursor = tree.scan(None).expect("sound");
    assert!(cursor.next().expect("sound").is_some());
    let first = || tree.get(&Ino(1), |_| ()).expect("sound");
    assert!(first().is_some());
    cursor
        .each(|_, _| ControlFlow::Continue(()))
        .expect("sound");
    let counts = cache.counts();
    assert_eq!((counts.nodes, counts.once), (before.nodes + 1, 0));
    assert!(first().is_some());
    assert_eq!(cache.counts().misses, counts.misses);
}

#[test]
fn a_bound_that_was_lowered_is_kept_once_nodes_are_reclaimed() {
    let memory = Memory::default();
    let bench = numbered(&memory, 90_000);
    let cache = NodeCache::new(&memory, 1 << 30);
    let tree = Tree::<Inodes, _>::new(&cache, bench.root);
    let mut cursor = tree.range(None).expect("sound");
    cursor
        .each(|_, _| ControlFlow::Continue(()))
        .expect("sound");
    let before = cache.counts();
    assert_eq!(before.bytes, before.nodes * 2 * BLOCK);
    assert_eq!(cache.shrink(1000), (0, 1000), "no more than it may keep");
    cache.limit(before.bytes / 2);
    assert_eq!(cache.counts(), before);
    let (gone, left) = cache.shrink(10);
    assert!((1..=10).contains(&gone) && left == 0);
    assert_eq!(cache.counts().nodes, before.nodes - gone as usize);
    let (_, left) = cache.shrink(100_000);
    assert!(left > 0 && cache.counts().bytes <= cache.most());
    assert!(
        cache.counts().bytes > before.bytes / 4,
        "no more than needed"
    );
}

#[test]
fn forgotten_nodes_give_their_memory_back() {
    let memory = Memory::default();
    let bench = numbered(&memory, 3000);
    let nodes = bench.nodes();
    for _ in 0..50 {
        for (node, level) in &nodes {
            bench.cache.load::<Inodes>(*node, *level).expect("sound");
        }
        for (node, _) in &nodes {
            bench.cache.forget(*node);
        }
        assert_eq!(bench.cache.counts().bytes, 0);
    }
}

#[test]
fn failing_reads_are_errors_and_do_not_stay() {
    let memory = Memory::default();
    let mut bench = numbered(&memory, 2000);
    bench.cache.clear();
    memory.state().broken = true;
    let root = bench.root.expect("not empty").node.block;
    let expected = Error::Device {
        block: root,
        errno: Errno::EIO,
    };
    assert_eq!(bench.tree().get(&Ino(5), |_| ()), Err(expected.clone()));
    assert_eq!(bench.tree().range(None).map(|_| ()), Err(expected.clone()));
    let gone = Changes::<Inodes>::from([(Ino(5), None)]);
    assert_eq!(bench.merge(&gone), Err(expected));
    memory.state().broken = false;
    assert_eq!(
        bench.tree().get(&Ino(5), Inodes::own),
        Ok(Some(fresh(5, 5, 1)))
    );
}

#[test]
fn many_threads_read_one_tree() {
    let memory = Memory::default();
    let bench = numbered(&memory, 5000);
    // Too small for all: nodes come and go.
    let cache = NodeCache::new(&memory, 40 * 2 * BLOCK);
    thread::scope(|scope| {
        for reader in 0..4 {
            let tree = Tree::<Inodes, _>::new(&cache, bench.root);
            scope.spawn(move || {
                for step in 0..2000 {
                    let ino = (step * 37 + reader * 11) % 5000 + 1;
                    let inode = tree.get(&Ino(ino), Inodes::own).expect("sound");
                    assert_eq!(inode, Some(fresh(ino, ino as i64, 1)));
                }
            });
        }
    });
}

#[test]
fn single_nodes_can_be_looked_at_and_damage_costs_one_block_of_records() {
    let memory = Memory::default();
    let bench = numbered(&memory, 3000);
    let mut records = 0;
    for (node, level) in bench.nodes() {
        let bytes = memory.state().nodes[&node.block].clone();
        let header = UncheckedHeader::read(&bytes).expect("a node");
        assert_eq!(
            (header.kind, header.level, header.node),
            (Kind::Inodes, level, node)
        );
        let read = bench.cache.read_node::<Inodes>(node, level).expect("sound");
        let mut children = 0;
        read.each_child::<Inodes>(|_, child| {
            assert_ne!(child, node);
            children += 1;
        })
        .expect("sound");
        read.each_record::<Inodes>(|_, _| records += 1)
            .expect("sound");
        assert_eq!(children, if level > 0 { read.count() } else { 0 });
    }
    assert_eq!(records, 3000);
    let (leaf, _) = *bench
        .nodes()
        .iter()
        .find(|(_, level)| *level == 0)
        .expect("leaves");
    memory.change(leaf.block, |bytes| {
        // The mode of the first record: no such type.
        let run = 49 + 1;
        bytes[run..run + 60].fill(0xff);
        reseal(bytes);
    });
    let read = bench.cache.read_node::<Inodes>(leaf, 0).expect("sealed");
    let mut left = 0;
    let error = read.each_record::<Inodes>(|_, _| left += 1);
    assert!(matches!(error, Err(Error::Corrupt { block, .. }) if block == leaf.block));
    assert!(left > 0 && left < read.count());
}
