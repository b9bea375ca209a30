//! Damaged nodes: found, named, and never believed.

use super::super::node::{BLOCK, CHECKSUM, reseal};
use super::super::{
    Contents, Defect, Entries, Error, Hashes, Inodes, NodeCache, NodeSize, Record, Root,
};
use super::memory::Memory;
use super::model::{Bench, changes};
use super::sample::Sample;
use crate::varint::Reader;
use proptest::prelude::*;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

fn planted<'m, R: Sample>(memory: &'m Memory, rng: &mut ChaCha8Rng) -> Bench<'m, R> {
    let node_size = NodeSize::tiny([300, 1500][rng.random_range(0..2)], 16);
    let mut bench = Bench::<R>::new(memory, node_size);
    while bench.root.is_none_or(|root| root.level == 0) {
        bench.merge(&changes::<R>(rng, 600)).expect("sound");
    }
    bench
}

/// Reads in every way there is. What comes back is right, or an error that names a node.
fn read_everything<R: Sample>(bench: &Bench<'_, R>, rng: &mut ChaCha8Rng, honest: bool) {
    bench.cache.clear();
    let corrupt = |error: &Error| assert!(matches!(error, Error::Corrupt { .. }), "{error}");
    match bench.all() {
        Ok(all) => assert!(!honest || all == bench.model),
        Err(error) => corrupt(&error),
    }
    for _ in 0..10 {
        let key = R::key(rng, 600);
        match bench.tree().get(&key, R::own) {
            Ok(found) => assert!(!honest || found.as_ref() == bench.model.get(&key)),
            Err(error) => corrupt(&error),
        }
        let last = bench.tree().last_below(&key, |key, _| key);
        let _ = last.map_err(|error| corrupt(&error));
        let _ = bench
            .tree()
            .split_points(4)
            .map_err(|error| corrupt(&error));
    }
}

/// A merge over damage succeeds or fails as one.
fn merge_over<R: Sample>(bench: &mut Bench<'_, R>, rng: &mut ChaCha8Rng) {
    let taken = bench.memory.state().lengths.clone();
    let origin = super::super::Origin {
        generation: 1000,
        subvolume: 1,
    };
    let next = changes::<R>(rng, 600);
    let list = next.iter().map(|(&key, owned)| {
        let change = owned
            .as_ref()
            .map(|owned| super::memory::Change::Put(R::value(owned)));
        Ok::<_, Error>((key, change.unwrap_or(super::memory::Change::Delete)))
    });
    let mut space = bench.memory;
    let result = bench
        .tree()
        .merge_all(origin, bench.node_size, &mut space, list);
    if result.is_err() {
        assert_eq!(bench.memory.state().lengths, taken);
    }
}

fn a_flipped_bit_is_found<R: Sample>(seed: u64) {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let memory = Memory::default();
    let bench = planted::<R>(&memory, &mut rng);
    let nodes = bench.nodes();
    let (node, level) = nodes[rng.random_range(0..nodes.len())];
    let at = rng.random_range(0..BLOCK * usize::from(node.blocks));
    memory.change(node.block, |bytes| bytes[at] ^= 1 << rng.random_range(0..8));
    let seen = bench.check(1);
    assert_eq!(seen.findings.len(), 1, "{:?}", seen.findings);
    let finding = seen.findings[0];
    assert_eq!((finding.node, finding.level), (node, level));
    let of_volume = CHECKSUM.start + 4..CHECKSUM.end;
    match finding.defect {
        Defect::Magic => assert!(at < 4),
        // Which volume it is of is not under the checksum.
        Defect::Volume { .. } => assert!(of_volume.contains(&at)),
        Defect::Checksum => assert!(at >= 4 && !of_volume.contains(&at)),
        other => panic!("{other:?}"),
    }
    assert_eq!(bench.check(3).findings, seen.findings);
    for (key, owned) in &seen.records {
        assert_eq!(
            bench.model.get(key),
            Some(owned),
            "what is beside the damage stays"
        );
    }
    read_everything(&bench, &mut rng, true);
}

fn swapped_and_zeroed_nodes_are_found<R: Sample>(seed: u64) {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let memory = Memory::default();
    let bench = planted::<R>(&memory, &mut rng);
    let nodes = bench.nodes();
    let one = nodes[rng.random_range(1..nodes.len())].0;
    let other = nodes[rng.random_range(0..nodes.len())].0;
    let bytes = memory.state().nodes[&other.block].clone();
    if one == other {
        memory.change(one.block, |bytes| bytes.fill(0));
    } else {
        memory.change(one.block, |old| *old = bytes);
    }
    let findings = bench.check(1).findings;
    assert_eq!(findings.len(), 1);
    assert_eq!(findings[0].node, one);
    let zeroed = findings[0].defect == Defect::Magic;
    let misdirected = findings[0].defect == Defect::Address { found: other.block };
    assert!(if one == other { zeroed } else { misdirected });
    read_everything(&bench, &mut rng, true);
}

/// As if by malice: the damage has a right checksum.
fn sealed_damage_is_survived<R: Sample>(seed: u64) {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let memory = Memory::default();
    let mut bench = planted::<R>(&memory, &mut rng);
    let nodes = bench.nodes();
    for _ in 0..rng.random_range(1..4) {
        let (node, _) = nodes[rng.random_range(0..nodes.len())];
        memory.change(node.block, |bytes| {
            for _ in 0..rng.random_range(1..4) {
                let most = if rng.random() { 60 } else { 400 };
                let at = rng.random_range(0..most);
                bytes[at] = if rng.random() {
                    rng.random()
                } else {
                    bytes[at] ^ 1
                };
            }
            reseal(bytes);
        });
    }
    let seen = bench.check(rng.random_range(1..3));
    assert!(seen.nodes.len() <= 100 * nodes.len());
    if seen.findings.is_empty() {
        // Then only values changed, and there are as many records as the root says.
        assert_eq!(seen.records.len(), bench.model.len());
        assert!(seen.records.is_sorted_by(|a, b| a.0 < b.0));
    }
    read_everything(&bench, &mut rng, false);
    merge_over(&mut bench, &mut rng);
}

fn random_bytes_decode_or_do_not<R: Sample>(bytes: &[u8]) {
    let mut context = R::Context::default();
    let mut reader = Reader::new(bytes);
    while let Some((key, value)) = R::decode(&mut context, &mut reader) {
        assert!(R::is_storable(key, &value), "what is read could be written");
    }
    let _ = R::first_key(&mut Reader::new(bytes));
}

/// What a context makes of a value, it makes into the same value again.
fn decoding_undoes_encoding<R: Sample>(seed: u64) {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut keys: Vec<_> = (0..40).map(|_| R::key(&mut rng, 100)).collect();
    keys.sort_unstable();
    keys.dedup();
    let records: Vec<_> = keys
        .iter()
        .map(|&key| (key, R::owned(&mut rng, key)))
        .collect();
    let (mut out, mut context) = (Vec::new(), R::Context::default());
    for (key, owned) in &records {
        let before = out.len();
        R::encode(&mut context, *key, &R::value(owned), &mut out);
        assert!(out.len() - before <= R::LEN_MAX);
    }
    assert_eq!(R::first_key(&mut Reader::new(&out)), Some(records[0].0));
    let (mut reader, mut context) = (Reader::new(&out), R::Context::default());
    for (key, owned) in records {
        let (found, value) = R::decode(&mut context, &mut reader).expect("was encoded");
        assert_eq!((found, R::own(value)), (key, owned));
    }
    assert_eq!(reader.remaining(), 0);
}

macro_rules! for_every_kind {
    ($($name:ident: $check:ident($argument:ident: $type:ty);)*) => {
        proptest! {
            #![proptest_config(ProptestConfig::with_cases(48))]
            $(
                #[test]
                fn $name($argument: $type) {
                    $check::<Inodes>($argument.clone().into());
                    $check::<Entries>($argument.clone().into());
                    $check::<Hashes>($argument.clone().into());
                    $check::<Contents>($argument.into());
                }
            )*
        }
    };
}

for_every_kind! {
    flipped_bits_are_found_and_named: a_flipped_bit_is_found(seed: u64);
    misplaced_and_lost_nodes_are_found: swapped_and_zeroed_nodes_are_found(seed: u64);
    damage_with_a_right_checksum_is_survived: sealed_damage_is_survived(seed: u64);
    records_survive_the_round_trip: decoding_undoes_encoding(seed: u64);
}

proptest! {
    #[test]
    fn random_bytes_never_decode_to_what_nobody_writes(
        bytes in prop::collection::vec(prop_oneof![any::<u8>(), 0..32_u8], 0..400)
    ) {
        random_bytes_decode_or_do_not::<Inodes>(&bytes);
        random_bytes_decode_or_do_not::<Entries>(&bytes);
        random_bytes_decode_or_do_not::<Hashes>(&bytes);
        random_bytes_decode_or_do_not::<Contents>(&bytes);
    }
}

#[test]
fn a_stale_node_is_found_by_its_generation() {
    let memory = Memory::default();
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let mut bench = planted::<Entries>(&memory, &mut rng);
    let root = bench.root.expect("not empty");
    let generation = root.node.generation + 1;
    bench.root = Some(Root {
        node: super::super::Pointer {
            generation,
            ..root.node
        },
        ..root
    });
    bench.generation = generation;
    let expected = Defect::Generation {
        expected: generation,
        found: root.node.generation,
    };
    assert_eq!(bench.check(1).findings[0].defect, expected);
    bench.root = Some(root);
    bench.generation = root.node.generation - 1;
    let defect = bench.check(1).findings[0].defect;
    assert_eq!(
        defect,
        Defect::Future {
            found: root.node.generation,
            newest: root.node.generation - 1
        }
    );
}

#[test]
fn a_root_of_another_tree_or_beyond_the_device_is_refused() {
    let memory = Memory::default();
    let mut rng = ChaCha8Rng::seed_from_u64(2);
    let bench = planted::<Entries>(&memory, &mut rng);
    let root = bench.root.expect("not empty");
    let cache = NodeCache::new(&memory, 1 << 20);
    let defect = |root| match super::super::Tree::<Hashes, _>::new(&cache, Some(root)).range(None) {
        Err(Error::Corrupt { defect, .. }) => Some(defect),
        _ => None,
    };
    assert_eq!(
        defect(root),
        Some(Defect::Kind {
            found: Entries::KIND as u8
        })
    );
    for block in [0, (1 << 40) - 1, (1 << 48) - 1] {
        let node = super::super::Pointer { block, ..root.node };
        assert_eq!(defect(Root { node, ..root }), Some(Defect::Pointer));
    }
}
