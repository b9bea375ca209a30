//! Merges that fail, at every call that can.

use super::super::{Contents, Entries, Error, Hashes, Inodes, NodeSize, Origin};
use super::memory::Memory;
use super::model::{Bench, Changes, changes};
use super::sample::Sample;
use holdfast_types::Ino;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

/// Lets a merge fail at its first call, its second, and so on until it succeeds. How often?
fn every_call_may_fail<R: Sample>(seed: u64) -> usize {
    println!("seed {seed}");
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let memory = Memory::default();
    let mut bench = Bench::<R>::new(&memory, NodeSize::tiny(300, 8));
    bench.merge(&changes::<R>(&mut rng, 500)).expect("sound");
    let next: Changes<R> = changes::<R>(&mut rng, 500);
    let nodes = memory.state().lengths.clone();
    for luck in 0.. {
        memory.state().luck = Some(luck);
        let result = bench.merge(&next);
        memory.state().luck = None;
        if result.is_ok() {
            bench.compare(&mut rng, 500);
            return luck;
        }
        let state = memory.state();
        assert_eq!(state.lengths, nodes, "all that was taken came back");
        assert_eq!(state.freed, [], "nothing old was freed");
        drop(state);
        assert_eq!(bench.all().expect("sound"), bench.model);
    }
    unreachable!("a merge ends")
}

#[test]
fn a_failed_merge_changes_nothing() {
    let mut failures = 0;
    for seed in 0..6 {
        failures += every_call_may_fail::<Inodes>(seed);
        failures += every_call_may_fail::<Entries>(seed);
        failures += every_call_may_fail::<Hashes>(seed);
        failures += every_call_may_fail::<Contents>(seed);
    }
    assert!(failures > 200, "{failures}");
}

#[test]
fn changes_out_of_order_and_records_that_cannot_be_stored_are_refused() {
    let memory = Memory::default();
    let mut rng = ChaCha8Rng::seed_from_u64(4);
    let bench = Bench::<Inodes>::new(&memory, NodeSize::STANDARD);
    let origin = Origin {
        generation: 1,
        subvolume: 1,
    };
    let inode = Inodes::owned(&mut rng, Ino(7));
    let mut space = &memory;
    let mut merge = bench.tree().merge(origin, bench.node_size, &mut space);
    merge.put(Ino(7), &inode).expect("in order");
    assert_eq!(merge.put(Ino(7), &inode), Err(Error::Unsorted));
    assert_eq!(merge.delete(Ino(3)), Err(Error::Unsorted));
    assert_eq!(merge.put(Ino(8), &inode), Err(Error::Unstorable));
    drop(merge);
    assert!(memory.state().lengths.is_empty());
}

#[test]
fn a_merge_without_changes_keeps_the_root() {
    let memory = Memory::default();
    let mut rng = ChaCha8Rng::seed_from_u64(5);
    let mut bench = Bench::<Entries>::new(&memory, NodeSize::tiny(400, 8));
    bench
        .merge(&changes::<Entries>(&mut rng, 900))
        .expect("sound");
    let root = bench.root;
    bench.merge(&Changes::<Entries>::new()).expect("sound");
    assert_eq!(bench.root, root);
}
