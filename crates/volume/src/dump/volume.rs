//! Superblocks and groups.

use std::sync::Arc;

use holdfast_device::BlockDevice;

use super::Shown;
use crate::space::recorded;
use crate::superblock::{SLOTS, Superblock};
use crate::tree::Root;
use crate::{BLOCK, Error, Result};

fn root(root: Option<Root>) -> Shown {
    let Some(root) = root else {
        return Shown::of("empty");
    };
    Shown::Fields(vec![
        ("block", Shown::Number(root.node.block)),
        ("generation", Shown::Number(root.node.birth)),
        ("level", Shown::Number(root.level.into())),
        ("records", Shown::Number(root.records)),
    ])
}

pub(super) fn superblock(device: &Arc<dyn BlockDevice>, newest: &Superblock) -> Result<Shown> {
    let mut slots = Vec::new();
    for slot in SLOTS {
        let mut bytes = vec![0; BLOCK];
        device.read(slot * BLOCK as u64, &mut bytes)?;
        slots.push(match Superblock::decode(&bytes, slot) {
            Ok(superblock) => Shown::Fields(vec![
                ("generation", Shown::Number(superblock.generation)),
                ("closed", Shown::Flag(superblock.clean)),
            ]),
            Err(error) => Shown::Fields(vec![("damage", Shown::of(error))]),
        });
    }
    let position = newest.journal_position;
    let journal = Shown::Fields(vec![
        ("start", Shown::Number(newest.journal_start)),
        ("blocks", Shown::Number(newest.journal_blocks)),
        ("position", Shown::Number(position.block)),
        ("stamp", Shown::Number(position.lsn.0)),
        ("life", Shown::Number(position.incarnation)),
    ]);
    let layout = newest.layout();
    let groups = Shown::Fields(vec![
        ("start", Shown::Number(newest.groups_start)),
        ("blocks of each", Shown::Number(newest.group_blocks.into())),
        ("groups", Shown::Number(layout.groups())),
        ("groups of a bundle", Shown::Number(layout.bundle)),
        ("free blocks", Shown::Number(newest.seal.free)),
    ]);
    let [inodes, entries, hashes, data] = newest.roots.map(|tree| root(tree[0]));
    let trees = Shown::Fields(vec![
        ("inodes", inodes),
        ("entries", entries),
        ("hashes", hashes),
        ("data", data),
        ("orphans", root(newest.orphans)),
    ]);
    let features = Shown::Fields(vec![
        ("incompatible", Shown::Number(newest.features.incompatible)),
        (
            "read-only compatible",
            Shown::Number(newest.features.read_only_compatible),
        ),
        ("compatible", Shown::Number(newest.features.compatible)),
    ]);
    Ok(Shown::Fields(vec![
        ("slots", Shown::List(slots)),
        ("volume", Shown::of(newest.uuid)),
        ("label", Shown::of(newest.label)),
        ("features", features),
        ("blocks", Shown::Number(newest.blocks)),
        ("generation", Shown::Number(newest.generation)),
        ("closed", Shown::Flag(newest.clean)),
        ("created", Shown::Signed(newest.created.0)),
        ("written", Shown::Signed(newest.written.0)),
        ("last inode", Shown::Number(newest.last_ino)),
        ("inodes", Shown::Number(newest.inodes)),
        ("journal", journal),
        ("groups", groups),
        ("trees", trees),
    ]))
}

pub(super) fn group(
    device: &Arc<dyn BlockDevice>,
    superblock: &Superblock,
    group: u64,
) -> Result<Shown> {
    let layout = superblock.layout();
    layout.check()?;
    if group >= layout.groups() {
        let groups = layout.groups();
        let what = format!("there is no group {group}: the volume has {groups}, from 0 on");
        return Err(Error::Geometry(what));
    }
    let extent = layout.group(group);
    let mut pair = [[0; BLOCK]; 2];
    for (slot, bytes) in pair.iter_mut().enumerate() {
        device.read(layout.slot(group, slot) * BLOCK as u64, bytes)?;
    }
    let mut fields = vec![
        ("group", Shown::Number(group)),
        ("start", Shown::Number(extent.start)),
        ("blocks", Shown::Number(extent.length)),
    ];
    let found = match recorded(&layout, group, superblock.generation, [&pair[0], &pair[1]]) {
        Ok(found) => found,
        Err([one, other]) => {
            let damage = vec![Shown::of(one), Shown::of(other)];
            fields.push(("damage", Shown::List(damage)));
            return Ok(Shown::Fields(fields));
        }
    };
    fields.push(match found.slot {
        Some(slot) => ("bitmap in slot", Shown::Number(slot as u64)),
        None => ("never written", Shown::Flag(true)),
    });
    if let Some(suspect) = found.suspect {
        fields.push(("damage of the other slot", Shown::of(suspect)));
    }
    let is_used = |index: u64| {
        let word = found
            .words
            .as_ref()
            .map(|words| words.get((index / 64) as usize));
        word.is_some_and(|word| word.is_none_or(|word| word >> (index % 64) & 1 != 0))
    };
    let (mut runs, mut free): (Vec<(u64, u64)>, u64) = (Vec::new(), 0);
    for index in (layout.reserved(group)..extent.length).filter(|index| !is_used(*index)) {
        let block = extent.start + index;
        free += 1;
        match runs.last_mut() {
            Some((start, length)) if *start + *length == block => *length += 1,
            _ => runs.push((block, 1)),
        }
    }
    let runs = runs.into_iter().map(|(start, length)| {
        Shown::Fields(vec![
            ("start", Shown::Number(start)),
            ("blocks", Shown::Number(length)),
        ])
    });
    fields.push(("free blocks", Shown::Number(free)));
    fields.push(("free runs", Shown::List(runs.collect())));
    Ok(Shown::Fields(fields))
}
