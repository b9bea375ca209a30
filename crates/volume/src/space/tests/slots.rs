use super::super::*;
use super::{Arc, data, tiny};

/// A volume after some checkpoints: its slots, by block, and what the superblock says.
struct Saved {
    layout: Layout,
    generation: u64,
    seal: Seal,
    slots: Vec<Vec<Box<Block>>>,
    free: u64,
}

impl Saved {
    /// Three checkpoints, each of which changed both groups.
    fn new() -> Self {
        let layout = tiny(2, 64);
        let space = Space::format(layout).expect("a layout");
        let mut saved = Self {
            layout,
            generation: 1,
            seal: space.seal(),
            slots: vec![vec![Box::new([0; crate::block::BLOCK]); 2]; 2],
            free: 0,
        };
        for lsn in 1..4 {
            for group in 0..2 {
                let goal = layout.group(group).start + 2;
                let extent = space.allocate(&Request::data(5).near(goal)).expect("room");
                space.record(extent, lsn).expect("placed");
            }
            space.begin_checkpoint(lsn).expect("consistent");
            saved.generation += 1;
            let bitmaps = space.dirty_bitmaps(saved.generation);
            for (block, bytes) in bitmaps.blocks {
                let (group, slot) = layout.find(block).expect("a group");
                saved.slots[group as usize][slot as usize] = bytes;
            }
            saved.seal = bitmaps.seal;
            space.checkpointed(saved.generation).expect("consistent");
            space.committed(lsn).expect("consistent");
            assert_eq!(space.seal(), saved.seal);
        }
        saved.free = space.report().free;
        saved
    }

    fn load(&self) -> Result<Arc<Space>, Error> {
        let mut loader = Loader::new(self.layout, self.generation)?;
        for group in 0..loader.groups() {
            let slots = &self.slots[group as usize];
            loader.add(group, [&slots[0], &slots[1]])?;
        }
        loader.finish(self.seal)
    }

    /// Which slot of a group has the newest bitmap: that of an odd number of writes is the first.
    const NEWEST: usize = 0;
}

#[test]
fn the_bytes_of_a_bitmap_never_change() {
    let saved = Saved::new();
    let block = &saved.slots[1][Saved::NEWEST];
    let header: String = block[..72]
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    assert_eq!(header, GOLDEN);
    assert!(block[72..].iter().all(|&byte| byte == 0xff));
}

/// Group 1 of [`Saved`], as `docs/format.md` explains it.
const GOLDEN: &str = concat!(
    "484667624000000066f309b400000000",
    "e0ffffff000000000400000000000000",
    "01000000000000002f00000000000000",
    "6120766f6c756d65206f66206f757273",
    "ffff010000000000",
);

#[test]
fn any_damage_to_the_newest_bitmap_is_noticed() {
    let saved = Saved::new();
    for at in 0..crate::block::BLOCK {
        for flip in [1, 0x80] {
            let mut hurt = saved.clone_slots();
            hurt.slots[1][Saved::NEWEST][at] ^= flip;
            match hurt.load() {
                Err(Error::Stale { suspects }) => assert!(suspects.is_empty() || suspects == [1]),
                other => panic!("byte {at}: {:?}", other.map(|space| space.report())),
            }
        }
    }
}

#[test]
fn damage_to_the_older_bitmap_harms_nobody() {
    let saved = Saved::new();
    for at in (0..crate::block::BLOCK).step_by(7) {
        let mut hurt = saved.clone_slots();
        hurt.slots[0][1 - Saved::NEWEST][at] ^= 0x55;
        assert_eq!(hurt.load().expect("intact").report().free, saved.free);
    }
}

#[test]
fn bitmaps_of_another_place_group_or_volume_are_refused() {
    let saved = Saved::new();
    let mut swapped = saved.clone_slots();
    swapped.slots.swap(0, 1);
    assert!(matches!(swapped.load(), Err(Error::Group { group: 0, .. })));
    let mut turned = saved.clone_slots();
    turned.slots[0].swap(0, 1);
    assert!(matches!(turned.load(), Err(Error::Group { group: 0, .. })));
    let mut foreign = saved.clone_slots();
    foreign.layout.volume[3] ^= 1;
    assert!(matches!(foreign.load(), Err(Error::Stale { .. })));
    let mut shifted = saved.clone_slots();
    shifted.layout.start += 1;
    shifted.layout.end += 1;
    assert!(shifted.load().is_err());
}

#[test]
fn a_bitmap_of_an_unfinished_checkpoint_is_overwritten_by_the_next() {
    let saved = Saved::new();
    let space = saved.load().expect("intact");
    let extent = data(&space, 3);
    space.record(extent, 1).expect("placed");
    space.begin_checkpoint(1).expect("consistent");
    let (block, bytes) = space.dirty_bitmaps(saved.generation + 1).blocks.remove(0);
    let mut crashed = saved.clone_slots();
    let (group, slot) = saved.layout.find(block).expect("a group");
    crashed.slots[group as usize][slot as usize] = bytes;
    // The checkpoint never became valid, and the next one has nothing to say of that group.
    let again = crashed.load().expect("the older bitmap");
    assert_eq!(again.report().free, saved.free);
    again.begin_checkpoint(1).expect("consistent");
    let blocks = again.dirty_bitmaps(saved.generation + 1).blocks;
    assert_eq!(
        blocks.iter().map(|(block, _)| *block).collect::<Vec<_>>(),
        [block]
    );
}

impl Saved {
    fn clone_slots(&self) -> Self {
        Self {
            slots: self.slots.clone(),
            ..*self
        }
    }
}
