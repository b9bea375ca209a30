//! Dumps of parts of a volume.

use super::sample::crashed;
use holdfast_device::BlockDevice;
use holdfast_testkit::dump::Dump;
use holdfast_volume::superblock::Superblock;
use std::sync::Arc;

#[test]
fn a_dump_shows_every_part_of_a_volume() {
    let device: Arc<dyn BlockDevice> = crashed();
    let mut bytes = vec![0; 4096];
    device.read(0, &mut bytes).unwrap();
    let superblock = Superblock::decode(&bytes, 0).unwrap();
    let dump = Dump::open(Arc::clone(&device)).unwrap();
    let shows = |text: &str, parts: &[&str]| {
        for part in parts {
            assert!(text.contains(part), "{part} is not in\n{text}");
        }
    };
    let text = dump.superblock().unwrap();
    shows(
        &text,
        &["label: \"golden\"", "clean: false", "roots: ", "orphans: "],
    );
    let text = dump.group(0).unwrap();
    shows(&text, &["length: 300", "free: "]);
    assert!(dump.group(99).unwrap_err().to_string().contains("99"));
    let text = dump.inode(1).unwrap();
    shows(
        &text,
        &["kind: Directory", "name: \"many\"", "name: \"long-link\""],
    );
    assert!(dump.inode(1 << 40).is_err());
    for tree in &superblock.roots {
        let root = tree[0].unwrap();
        let text = dump.node(root.node.block).unwrap();
        assert!(!text.contains("damage"), "{text}");
        let inside = if root.level == 0 {
            "record: "
        } else {
            "child: "
        };
        shows(&text, &[inside, "generation: "]);
    }
    let mut batches = String::new();
    dump.journal(|batch| batches += batch).unwrap();
    for change in [
        "Change(Create",
        "Change(Attributes",
        "Change(Enter",
        "Change(Leave",
        "Change(Write",
        "Change(Collapse",
        "Change(Insert",
        "Change(Xattr",
        "Map(",
    ] {
        shows(&batches, &[&format!("change: {change}")]);
    }
}

#[test]
fn a_dump_of_a_damaged_node_says_what_is_wrong_with_it() {
    let device: Arc<dyn BlockDevice> = crashed();
    let dump = Dump::open(Arc::clone(&device)).unwrap();
    let is_node = |block: &u64| {
        let mut bytes = vec![0; 4096];
        device.read(block * 4096, &mut bytes).unwrap();
        bytes.starts_with(b"HfTn")
    };
    let block = (0..device.size() / 4096).rfind(is_node).unwrap();
    device.write((block + 1) * 4096, &[9; 4096]).unwrap();
    let text = dump.node(block).unwrap();
    assert!(text.contains("damage: "), "{text}");
    assert!(text.contains("checksum"), "{text}");
    assert!(dump.node(2).is_err() && dump.node(u64::MAX).is_err());
}
