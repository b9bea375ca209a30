//! The space of a volume against a naive model, and the faults that it must survive.

mod model;
mod slots;

use super::*;
use std::sync::Arc;

const VOLUME: [u8; 16] = *b"a volume of ours";

/// A layout of tiny groups across the edge of 2^32 blocks.
pub(super) fn tiny(groups: u64, group_blocks: u64) -> Layout {
    Layout {
        volume: VOLUME,
        start: (1 << 32) - group_blocks - group_blocks / 2,
        end: (1 << 32) - group_blocks - group_blocks / 2 + groups * group_blocks,
        group_blocks,
        bundle: 1,
    }
}

/// The same with the bitmaps of some groups together, if they have room for these.
pub(super) fn bundled(layout: Layout, bundle: u64) -> Layout {
    let together = Layout { bundle, ..layout };
    together.check().map_or(layout, |()| together)
}

fn data(space: &Space, blocks: u64) -> Extent {
    space.allocate(&Request::data(blocks)).expect("room")
}

/// Places all that is left, block by block, and gives it.
pub(super) fn fill(space: &Space) -> Vec<Extent> {
    let mut placed = Vec::new();
    loop {
        match space.allocate(&Request::data(1 << 20)) {
            Ok(extent) => placed.push(extent),
            Err(_) => return placed,
        }
    }
}

#[test]
fn a_run_that_crosses_the_edge_of_32_bits_is_found_whole() {
    let space = Space::format(tiny(3, 64)).expect("a layout");
    let goal = (1_u64 << 32) - 10;
    let extent = space.allocate(&Request::data(20).near(goal)).expect("room");
    assert_eq!(extent, Extent::new(goal, 20));
    assert!(extent.end() > 1 << 32);
}

#[test]
fn a_shorter_run_is_given_when_nothing_is_as_long_but_never_below_the_least() {
    let space = Space::format(tiny(1, 64)).expect("a layout");
    let all = fill(&space);
    assert_eq!(all, [Extent::new(space.layout().start + 2, 62)]);
    for (at, length) in [(10, 3), (20, 5), (40, 4)] {
        let hole = Extent::new(space.layout().start + at, length);
        space.give_back(hole).expect("placed");
    }
    let least = |least| {
        space.allocate(&Request {
            least,
            ..Request::data(30)
        })
    };
    assert!(matches!(least(6), Err(Error::Full { .. })));
    let first = least(5).expect("one run is as long");
    assert_eq!(first, Extent::new(space.layout().start + 20, 5));
    assert_eq!(least(1).expect("room").length, 4);
}

#[test]
fn more_than_half_of_a_large_group_is_found_behind_one_that_has_less() {
    let space = Space::format(tiny(5, GROUP_BLOCKS_MAX)).expect("a layout");
    let all = GROUP_BLOCKS_MAX - SLOT_BLOCKS;
    let half = GROUP_BLOCKS_MAX / 2;
    let first = data(&space, half);
    let near = |blocks| {
        let request = Request::data(blocks).near(first.end());
        let exact = Request {
            least: blocks.min(all),
            ..request
        };
        space.allocate(&exact).expect("room").length
    };
    assert_eq!(near(half + 1), half + 1);
    assert_eq!(near(all - 1), all - 1);
    assert_eq!(near(all), all);
    assert_eq!(near(10 * all), all, "no run leaves its group");
    assert_eq!(
        data(&space, all).length,
        all - half,
        "what is left of the first"
    );
}

/// Regression R-P7: groups without room that stay on the lists of searches.
#[test]
fn a_full_group_is_offered_to_no_search() {
    let space = Space::format(tiny(4, 64)).expect("a layout");
    let placed = fill(&space);
    for group in 0..4 {
        for class in 1..16 {
            assert!(!space.table().is_offered(group, class), "{group} {class}");
        }
    }
    let (one, _) = placed[2].split(1);
    space.give_back(one).expect("placed");
    let group = space.layout().find(one.start).expect("a group").0;
    assert!(space.table().is_offered(group, 1));
    assert!(!space.table().is_offered(group, 2));
    assert_eq!(data(&space, 9), one);
    assert!(!space.table().is_offered(group, 1));
}

/// Invariant P7: there is no room only if there is none, and none on its way.
#[test]
fn nobody_is_told_full_while_something_is_on_its_way_back() {
    let space = Space::format(tiny(2, 64)).expect("a layout");
    let node = space.allocate(&Request::node(4)).expect("room");
    let placed = fill(&space);
    assert!(matches!(space.reserve(1), Err(Error::Full { .. })));

    space.record(placed[0], 1).expect("placed");
    space.free_data(placed[0], 2).expect("placed");
    let later = |remedy| Err(Error::Later { remedy });
    assert_eq!(space.reserve(1).map(drop), later(Remedy::Commit));
    space.committed(1).expect("consistent");
    assert_eq!(space.reserve(1).map(drop), later(Remedy::Commit));
    space.committed(2).expect("consistent");
    assert_eq!(space.reserve(1).map(drop), Ok(()));

    fill(&space);
    space.begin_checkpoint(2).expect("consistent");
    space.free_node(node, 7).expect("a node");
    assert_eq!(space.reserve(1).map(drop), later(Remedy::Checkpoint));
    let _ = space.dirty_bitmaps(7);
    space.checkpointed(6).expect("consistent");
    assert_eq!(space.reserve(1).map(drop), later(Remedy::Checkpoint));
    space.checkpointed(7).expect("consistent");
    assert_eq!(space.reserve(4).map(drop), Ok(()));
    assert!(matches!(space.reserve(5), Err(Error::Full { .. })));
}

#[test]
fn what_is_left_of_a_promise_goes_back_when_it_is_dropped() {
    let space = Space::format(tiny(2, 64)).expect("a layout");
    let total = space.report().free;
    let mut reservation = space.reserve(total).expect("all of it");
    assert!(matches!(space.reserve(1), Err(Error::Full { .. })));
    assert!(space.allocate(&Request::data(1)).is_err());
    let part = reservation.split(30);
    let placed = space.allocate_reserved(&mut reservation, &Request::data(8));
    assert_eq!(placed.expect("promised").length, 8);
    assert_eq!(space.report().reserved, total - 8);
    drop(part);
    assert_eq!(reservation.blocks(), total - 38);
    drop(reservation);
    assert_eq!(space.report().reserved, 0);
    assert_eq!(space.reserve(total - 8).map(drop), Ok(()));
}

#[test]
fn what_is_set_aside_for_nodes_is_not_given_to_data() {
    let space = Space::format(tiny(2, 64)).expect("a layout");
    assert_eq!(space.set_node_reserve(12), 12);
    let placed = fill(&space);
    assert_eq!(space.report().free, 12);
    let node = space.allocate(&Request::node(4)).expect("set aside");
    assert_eq!(space.report().node_reserve, 8);
    // What returns fills it up first.
    space.give_back(placed[0].split(6).0).expect("placed");
    assert_eq!((space.report().node_reserve, space.report().free), (12, 14));
    space.give_back(node).expect("a node");
    assert_eq!(data(&space, 9).length, 6);
}

#[test]
fn inconsistencies_are_errors_and_change_nothing() {
    let space = Space::format(tiny(2, 64)).expect("a layout");
    let start = space.layout().start;
    let extent = data(&space, 10);
    let free = space.report().free;
    let behind = Extent::new(extent.end() - 1, 2);
    assert_eq!(
        space.give_back(behind),
        Err(Error::Unused {
            block: extent.end()
        })
    );
    assert!(space.free_node(behind, 1).is_err());
    assert!(space.free_node(extent, 1).is_err(), "it was never recorded");
    for outside in [
        Extent::new(start, 1),
        Extent::new(start + 60, 10),
        Extent::new(u64::MAX, 5),
        Extent::new(start - 1, 1),
        Extent::new(start + 2, 0),
    ] {
        assert!(matches!(
            space.record(outside, 1),
            Err(Error::Outside { .. })
        ));
        assert!(matches!(
            space.give_back(outside),
            Err(Error::Outside { .. })
        ));
    }
    space.free_data(extent, 1).expect("in a group");
    assert!(matches!(space.committed(1), Err(Error::Unused { .. })));
    space.record(extent, 2).expect("placed");
    space.record(extent, 2).expect("in a group");
    assert!(matches!(space.committed(2), Err(Error::Used { .. })));
    assert!(matches!(space.mark_used(extent), Err(Error::Used { .. })));
    assert_eq!(space.report().free, free);
    assert_eq!(space.report().unrecorded, 0);
}

impl Loader {
    /// The space of the volume, if the bitmaps match the seal.
    pub(super) fn finish(self, seal: Seal) -> Result<Arc<Space>, Error> {
        let layout = self.layout;
        Ok(Space::of(layout, self.states(seal)?))
    }
}
