//! Volumes with free space, but only in fragments.

use crate::stage::{formatted, opened};
use holdfast_core::FileSystem;
use holdfast_device::BlockDevice;
use holdfast_types::{Caller, Errno, OpenFlags, Result};
use holdfast_volume::tree::UncheckedHeader;
use holdfast_volume::{CheckOptions, FormatOptions, VolumeStore, check};
use std::sync::Arc;

const SIZE: u64 = 6 << 20;

struct Volume {
    store: Arc<VolumeStore>,
    fs: FileSystem,
}

impl Volume {
    fn open(device: &Arc<dyn BlockDevice>) -> Self {
        let (store, fs) = opened(device);
        Self { store, fs }
    }

    fn make(&self, name: &str, bytes: &[u8]) -> Result<()> {
        let (who, root) = (Caller::root(), self.fs.root());
        let flags = OpenFlags::CREATE | OpenFlags::READ_WRITE;
        let file = self
            .fs
            .open_at(&who, &root, name.as_bytes(), flags, 0o600)?;
        match bytes.is_empty() || self.fs.write(&who, &file, 0, bytes)? == bytes.len() {
            true => Ok(()),
            false => Err(Errno::ENOSPC),
        }
    }

    fn remove(&self, name: &str) {
        let removed = self
            .fs
            .unlink_at(&Caller::root(), &self.fs.root(), name.as_bytes());
        removed.unwrap_or_else(|error| panic!("{name} stays: {error}"));
    }

    fn close(self) {
        self.fs.close().unwrap();
        self.store.close().unwrap();
    }
}

/// Creates files until there is no space; returns their names.
fn fill(volume: &Volume, kind: &str, bytes: &[u8]) -> Vec<String> {
    let mut names = Vec::new();
    loop {
        let name = format!("{kind}-{:0>200}", names.len());
        match volume.make(&name, bytes) {
            Ok(()) => names.push(name),
            Err(Errno::ENOSPC) => return names,
            Err(error) => panic!("{name}: {error}"),
        }
        assert!(names.len() < 100_000, "{kind}: there is no end");
    }
}

/// The number of blocks that begin like a one-block node.
fn small_nodes(device: &Arc<dyn BlockDevice>) -> usize {
    let mut bytes = vec![0; SIZE as usize];
    device.read(0, &mut bytes).unwrap();
    let claims = bytes.chunks(4096).filter_map(UncheckedHeader::read);
    claims.filter(|claim| claim.node.blocks == 1).count()
}

/// Every second block belongs to a file; still the trees grow, are checkpointed, and shrink.
#[test]
fn a_volume_without_four_free_blocks_in_a_row_goes_on() {
    let options = FormatOptions {
        seed: Some(1),
        journal: Some(512 << 10),
        ..FormatOptions::default()
    };
    let device = formatted(SIZE, &options);
    let volume = Volume::open(&device);
    let blocks = fill(&volume, "block", &[7; 4096]);
    volume.store.checkpoint().unwrap();
    let (gone, kept): (Vec<_>, Vec<_>) = blocks.iter().enumerate().partition(|(at, _)| at % 2 == 1);
    for (_, name) in gone {
        volume.remove(name);
    }
    volume.store.checkpoint().unwrap();
    // Their names need far more nodes than were set aside.
    let small = fill(&volume, "empty", b"");
    assert!(small.len() > kept.len(), "only {} names", small.len());
    volume.close();
    assert!(
        small_nodes(&device) > 0,
        "pieces of four blocks were enough"
    );
    let sound = |when: &str| {
        let report = check(&device, &CheckOptions::default(), &|_, _, _| {});
        assert!(report.findings.is_empty(), "{when}: {:?}", report.findings);
    };
    sound("full");
    let volume = Volume::open(&device);
    for name in small.iter().chain(kept.iter().map(|(_, name)| *name)) {
        volume.remove(name);
    }
    volume.close();
    sound("empty");
}
