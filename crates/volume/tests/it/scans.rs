//! Scans of all inodes leave the caches as they were, even if memory is full.

use crate::stage::formatted;
use holdfast_core::{Bulkstat, FileSystem, InodeWalk, Memory, Options, Visit};
use holdfast_device::BlockDevice;
use holdfast_types::{Caller, FileType, Ino, Result};
use holdfast_volume::{FormatOptions, OpenOptions, VolumeStore};
use std::collections::BTreeSet;
use std::sync::Arc;

const MIB: u64 = 1 << 20;
/// Directories, of which the first one is used.
const DIRS: usize = 12;
const FILES: usize = 4000;

/// A volume of many files.
fn filled() -> Arc<dyn BlockDevice> {
    let device = formatted(256 * MIB, &FormatOptions::default());
    let store = Arc::new(VolumeStore::open(Arc::clone(&device), &OpenOptions::default()).unwrap());
    let memory = Memory::separate(256 * MIB);
    let fs = FileSystem::within(store.clone(), Options::default(), memory).unwrap();
    let (who, root) = (Caller::root(), fs.root());
    for dir in 0..DIRS {
        let dir = fs
            .mkdir(&who, &root, dir.to_string().as_bytes(), 0o755)
            .unwrap();
        for file in 0..FILES {
            let name = file.to_string();
            fs.mknod(&who, &dir, name.as_bytes(), FileType::Regular, 0o644, 0)
                .unwrap();
        }
    }
    drop(root);
    fs.close().unwrap();
    drop(fs);
    store.close().unwrap();
    device
}

/// Looks up each file of the first directory.
fn use_files(fs: &FileSystem) {
    let (who, root) = (Caller::root(), fs.root());
    for file in 0..FILES {
        fs.resolve(&who, &root, format!("/0/{file}").as_bytes(), true)
            .unwrap();
    }
}

/// Memory in use after reclaim.
fn cached(fs: &FileSystem, memory: &Memory) -> BTreeSet<Ino> {
    memory.look();
    memory.shrinkers().shrink();
    let mut inodes = BTreeSet::new();
    fs.walk_inodes(&mut InodeWalk::new(), |node| {
        inodes.insert(node.ino());
        Ok(Visit::Continue)
    })
    .unwrap();
    inodes
}

fn by_inodes(fs: &FileSystem) -> Result<usize> {
    let mut shown = 0;
    fs.bulkstat(&mut Bulkstat::new(), |_, _| {
        shown += 1;
        Ok(Visit::Continue)
    })?;
    Ok(shown)
}

fn by_attributes(fs: &FileSystem) -> Result<usize> {
    let mut shown = 0;
    fs.bulkstat_attributes(&mut Bulkstat::new(), |_| {
        shown += 1;
        Ok(Visit::Continue)
    })?;
    Ok(shown)
}

/// As several threads do it, each a part; here in sequence.
fn in_parts(fs: &FileSystem) -> Result<usize> {
    let mut shown = 0;
    for mut scan in fs.bulkstats(4)? {
        fs.bulkstat_attributes(&mut scan, |_| {
            shown += 1;
            Ok(Visit::Continue)
        })?;
    }
    Ok(shown)
}

#[test]
fn a_scan_of_all_inodes_pushes_none_out_where_memory_is_full() {
    let device = filled();
    for scan in [by_attributes, by_inodes, in_parts] {
        let store = VolumeStore::open(Arc::clone(&device), &OpenOptions::default()).unwrap();
        let store = Arc::new(store);
        // So little that not much is read ahead.
        let memory = Memory::separate(16 * MIB);
        let fs = FileSystem::within(store.clone(), Options::default(), memory.clone()).unwrap();
        use_files(&fs);
        use_files(&fs);
        memory.look();
        // No more than what is held, and a little.
        let held = memory.seen().usage.total();
        memory.set(Some((held + 16 * 1024) * 64 / 63));
        let before = cached(&fs, &memory);
        assert!(before.len() > FILES);
        for _ in 0..2 {
            assert_eq!(scan(&fs).unwrap(), 1 + DIRS * (1 + FILES));
            let after = cached(&fs, &memory);
            let gone = before.difference(&after).count();
            assert_eq!(gone, 0, "of {} inodes", before.len());
            assert_eq!(after, before);
        }
        let loaded = fs.stats();
        use_files(&fs);
        assert_eq!(fs.stats().inodes, loaded.inodes);
        fs.close().unwrap();
        drop(fs);
        store.close().unwrap();
    }
}
