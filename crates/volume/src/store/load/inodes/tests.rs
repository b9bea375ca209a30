//! Inodes over three layers, against a map.

use std::collections::BTreeMap;
use std::sync::Arc;

use holdfast_core::store::{Behind as _, Change, Rest, Store as _, StoredSpace};
use holdfast_device::{BlockDevice, MemoryDevice};
use holdfast_types::FileFlags;
use holdfast_types::Time;
use proptest::prelude::*;

use super::*;
use crate::store::memtable::{Memtable, Object};
use crate::store::{FormatOptions, OpenOptions, VolumeStore, format};

type Model = BTreeMap<Ino, InodeRecord>;

fn record(ino: Ino, size: u64) -> InodeRecord {
    InodeRecord {
        ino,
        kind: FileType::Regular,
        perm: 0o644,
        nlink: 1,
        uid: 0,
        gid: 0,
        rdev: 0,
        size,
        atime: Time(1),
        mtime: Time(2),
        ctime: Time(3),
        btime: Time(4),
        parent: Ino::ROOT,
        xattrs: false,
        space: StoredSpace::of(0, size),
        flags: FileFlags::empty(),
        project: 0,
    }
}

/// A change of an inode: create, change or free.
type Step = (u64, bool);

/// Dense numbers, and some that are far apart.
fn steps() -> impl Strategy<Value = Vec<Step>> {
    let number = prop_oneof![4 => 2_u64..400, 1 => (2_u64..40).prop_map(|far| far * 1000)];
    prop::collection::vec((number, prop::bool::weighted(0.7)), 0..300)
}

/// Adds changes to a memtable and to the model.
fn memtable(steps: &[Step], model: &mut Model, size: u64) -> Arc<Memtable> {
    let memtable = Memtable::new();
    for (ino, stays) in steps {
        let ino = Ino(*ino);
        let mut shard = memtable.shard(ino);
        if *stays {
            let mut object = match model.insert(ino, record(ino, size)) {
                Some(_) => shard.changed(ino),
                // As in the core: numbers are not reused.
                None if shard.get(ino).is_some_and(Object::is_freed) => {
                    model.remove(&ino);
                    continue;
                }
                None => shard.create(ino),
            };
            object.record = Some(Some(record(ino, size)));
        } else if model.remove(&ino).is_some() {
            match shard.get(ino).is_some_and(|object| object.fresh) {
                true => shard.forget(ino),
                false => shard.changed(ino).end(),
            }
        }
    }
    Arc::new(memtable)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn inodes_are_those_of_the_newest_layer(
        layers in prop::array::uniform3(steps()),
        wanted in prop::collection::vec(1_u64..420, 0..200),
        (after, max) in (0_u64..500, 1_usize..200),
    ) {
        let [below, frozen, active] = layers;
        let device: Arc<dyn BlockDevice> = Arc::new(MemoryDevice::new(64 << 20));
        format(&device, &FormatOptions::default()).unwrap();
        let store = VolumeStore::open(device, &OpenOptions::default()).unwrap();
        let mut model = Model::new();
        for (ino, stays) in below {
            let ino = Ino(ino);
            if stays && model.insert(ino, record(ino, 0)).is_none() {
                store.change(&[Change::Create { inode: record(ino, 0), target: None }]).unwrap();
            }
        }
        store.checkpoint().unwrap();
        let inner = &store.inner;
        let frozen = Some(memtable(&frozen, &mut model, 1));
        let active = memtable(&active, &mut model, 2);
        let roots = inner.reader.freeze_barrier.pass().roots;
        let layers = Layers { active, frozen, roots };
        let snapshot_reader = inner.reader.snapshot_reader(&layers);

        let mut walked = Vec::new();
        let mut from = Ino(after);
        loop {
            let before = walked.len();
            snapshot_reader.walk(from, max, &mut walked).unwrap();
            prop_assert!(walked.len() - before <= max);
            match walked[before..].last() {
                Some(last) => from = last.ino,
                None => break,
            }
        }
        prop_assert!(walked.iter().eq(model.range(Ino(after + 1)..).map(|(_, record)| record)));

        let wanted: Vec<Ino> = wanted.into_iter().map(Ino).collect();
        let mut sorted = wanted.clone();
        sorted.sort_unstable();
        let mut once = sorted.clone();
        once.dedup();
        for inos in [wanted, sorted, once] {
            let mut found = Vec::new();
            snapshot_reader.each_inode(&inos, |inode| found.push(inode)).unwrap();
            prop_assert!(found.iter().eq(inos.iter().map(|ino| model.get(ino).cloned()).collect::<Vec<_>>().iter()));
        }
    }
}

#[test]
fn what_inodes_have_beside_their_records_is_found_in_any_order() {
    let device: Arc<dyn BlockDevice> = Arc::new(MemoryDevice::new(64 << 20));
    format(&device, &FormatOptions::default()).unwrap();
    let store = VolumeStore::open(device, &OpenOptions::default()).unwrap();
    let mut model: BTreeMap<Ino, (InodeRecord, Rest)> = BTreeMap::new();
    let set =
        |model: &mut BTreeMap<Ino, (InodeRecord, Rest)>, ino, name: &[u8], value: Option<&[u8]>| {
            store.change(&[Change::Xattr { ino, name, value }]).unwrap();
            let (record, rest) = model.get_mut(&ino).unwrap();
            record.xattrs = true;
            rest.xattrs.retain(|(held, _)| **held != *name);
            rest.xattrs
                .extend(value.map(|value| (name.into(), value.into())));
            rest.xattrs.sort();
        };
    let make = |model: &mut BTreeMap<Ino, (InodeRecord, Rest)>, number: u64| {
        let (ino, target) = (Ino(number), format!("target-{number}"));
        let mut inode = record(ino, 0);
        let target = (number.is_multiple_of(3)).then_some(target.as_bytes());
        if let Some(target) = target {
            (inode.kind, inode.size) = (FileType::Symlink, target.len() as u64);
        }
        let create = Change::Create {
            inode: inode.clone(),
            target,
        };
        store.change(&[create]).unwrap();
        let rest = Rest {
            target: target.map(Box::from),
            ..Rest::default()
        };
        model.insert(ino, (inode, rest));
    };
    for number in 10..200 {
        make(&mut model, number);
        if number.is_multiple_of(2) {
            // Some are too large for a node.
            let value = vec![number as u8; number as usize * 40];
            set(&mut model, Ino(number), b"user.size", Some(&value));
            set(&mut model, Ino(number), b"user.other", Some(b"other"));
        }
    }
    store.checkpoint().unwrap();
    for number in 180..220 {
        if number >= 200 {
            make(&mut model, number);
        }
        set(&mut model, Ino(number), b"user.new", Some(b"new"));
        set(&mut model, Ino(number), b"user.other", None);
    }
    let mut records: Vec<InodeRecord> = model.values().map(|(record, _)| record.clone()).collect();
    for _ in 0..2 {
        let mut found = Vec::new();
        store.load_rests(&records, &mut found).unwrap();
        assert_eq!(found.len(), records.len());
        for (record, rest) in records.iter().zip(found) {
            assert_eq!(rest, model[&record.ino].1, "inode {}", record.ino);
        }
        records.reverse();
    }
    let mut missing = record(Ino(1000), 3);
    missing.kind = FileType::Symlink;
    assert!(store.load_rests(&[missing], &mut Vec::new()).is_err());
}
