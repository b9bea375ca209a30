mod models;

use super::super::tests::{bundled, fill, tiny};
use super::super::*;
use super::index::Piece;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A file: its preallocations, and the blocks it has.
struct File {
    ahead: Arc<Preallocations>,
    blocks: BTreeMap<u64, u64>,
}

struct Files {
    space: Arc<Space>,
    files: Vec<File>,
    reservations: Vec<Reservation>,
}

impl File {
    fn new(space: &Arc<Space>) -> Self {
        Self {
            ahead: Preallocations::new(space),
            blocks: BTreeMap::new(),
        }
    }

    fn pieces(&self) -> Vec<Piece> {
        self.ahead.index.lock().0.values().cloned().collect()
    }

    fn request(&self, logical: u64, length: u64) -> FileRequest {
        let mapped = |(&logical, &block): (&u64, &u64)| Mapped {
            logical,
            extent: Extent::new(block, 1),
        };
        let behind = self.blocks.range(logical..).next();
        let room = behind.map_or(length, |(&next, _)| length.min(next - logical));
        FileRequest {
            size: self.blocks.keys().next_back().map_or(0, |last| last + 1),
            before: self.blocks.range(..logical).next_back().map(mapped),
            after: behind.map(mapped),
            ..FileRequest::new(logical, room)
        }
    }

    fn write(
        &mut self,
        logical: u64,
        length: u64,
        reservation: Option<&mut Reservation>,
    ) -> Result<(), Error> {
        let mut reservation = reservation;
        let mut at = logical;
        while at < logical + length {
            if self.blocks.contains_key(&at) {
                at += 1;
                continue;
            }
            let request = self.request(at, logical + length - at);
            let extent = self.ahead.place(&request, reservation.as_deref_mut())?;
            assert!(
                (1..=request.length).contains(&extent.length),
                "{request:?} {extent:?}"
            );
            for block in extent.start..extent.end() {
                assert_eq!(self.blocks.insert(at, block), None);
                at += 1;
            }
        }
        Ok(())
    }

    fn truncate(&mut self, space: &Space, logical: u64) {
        self.ahead.discard(logical);
        for block in self.blocks.split_off(&logical).into_values() {
            space.give_back(Extent::new(block, 1)).expect("placed");
        }
    }
}

impl Files {
    fn new(groups: u64, group_blocks: u64, bundle: u64) -> Self {
        let layout = bundled(tiny(groups, group_blocks), bundle);
        let space = Space::format(layout).expect("a layout");
        Self {
            files: (0..4).map(|_| File::new(&space)).collect(),
            space,
            reservations: Vec::new(),
        }
    }

    fn step(&mut self, (step, a, b): (u8, u64, u64)) {
        let file = &mut self.files[a as usize % 4];
        // Around the start, around 2^32 blocks, and at the end of what a file can have.
        let base = [0, (1 << 32) - 1100, FILE_BLOCKS_MAX - 2200][b as usize % 3];
        let logical = base + (b >> 8) % 2150;
        let length = (a >> 8) % 40 + 1;
        let before = self.space.report();
        match step % 9 {
            0..=4 => {
                if let Err(error) = file.write(logical, length, None) {
                    self.nothing_was_left(&error);
                }
            }
            5 => file.truncate(&self.space, logical),
            6 => self.replace(a),
            7 => {
                let swept = self.space.sweep((b >> 8) % 100 + 1);
                let after = self.space.report();
                assert_eq!(after.free, before.free + swept);
                assert_eq!(after.preallocated, before.preallocated - swept);
            }
            _ => self.write_reserved(a, logical, length),
        }
        self.check();
    }

    /// Replaces a file by a new one; what it had is given back.
    fn replace(&mut self, a: u64) {
        let file = &mut self.files[a as usize % 4];
        for block in std::mem::take(&mut file.blocks).into_values() {
            self.space.give_back(Extent::new(block, 1)).expect("placed");
        }
        *file = File::new(&self.space);
    }

    /// A reservation is always honoured.
    fn write_reserved(&mut self, a: u64, logical: u64, length: u64) {
        match self.space.reserve(length) {
            Ok(mut reservation) => {
                let file = &mut self.files[a as usize % 4];
                let written = file.write(logical, length, Some(&mut reservation));
                assert_eq!(written, Ok(()));
                if a.is_multiple_of(5) {
                    self.reservations.push(reservation);
                } else if a.is_multiple_of(7) {
                    self.reservations.clear();
                }
            }
            Err(error) => {
                let report = self.space.report();
                assert!(matches!(error, Error::Full { .. }));
                assert!(report.free - report.reserved + report.preallocated < length);
            }
        }
    }

    /// Invariant P7.
    fn nothing_was_left(&self, error: &Error) {
        assert!(matches!(error, Error::Full { .. }), "{error}");
        let report = self.space.report();
        assert_eq!((report.free - report.reserved, report.preallocated), (0, 0));
    }

    fn check(&self) {
        let mut used = BTreeSet::new();
        let mut listed = BTreeSet::new();
        let mut take_preallocated = 0;
        for file in &self.files {
            let mut end = 0;
            for piece in file.pieces() {
                // P1 in the file, P2.
                assert!(piece.logical >= end, "pieces overlap in the file");
                end = piece.end();
                assert!(piece.free() > 0 && piece.free() <= piece.extent.length);
                listed.insert((piece.extent.start, piece.id));
                take_preallocated += piece.free();
                for extent in piece.unused() {
                    for block in extent.start..extent.end() {
                        assert!(used.insert(block), "P1: block {block} is set aside twice");
                    }
                }
                // P5: every block that the file has not taken is found through the piece.
                let found = file
                    .ahead
                    .index
                    .lock()
                    .at_or_before(piece.end() - 1)
                    .cloned();
                assert_eq!(found, Some(piece));
            }
            for &block in file.blocks.values() {
                assert!(used.insert(block), "block {block} is used twice");
            }
        }
        for locality in self.space.localities.iter() {
            for extent in locality.lock().extents() {
                take_preallocated += extent.length;
                for block in extent.start..extent.end() {
                    assert!(used.insert(block), "P3: block {block} is set aside twice");
                }
            }
        }
        let layout = self.space.layout();
        for group in 0..layout.groups() {
            let mut state = self.space.table().lock(group);
            let start = layout.group(group).start;
            let entries: Vec<_> = state.preallocated.keys().copied().collect();
            for (offset, id) in entries {
                let known = listed.remove(&(start + u64::from(offset), id));
                assert!(known, "P3: a list has a piece that no index has");
            }
            for offset in layout.reserved(group) as u32..layout.group(group).length as u32 {
                let expected = used.contains(&(start + u64::from(offset)));
                assert_eq!(state.views(offset), (expected, false));
            }
        }
        assert_eq!(
            listed,
            BTreeSet::new(),
            "P3: an index has a piece that no list has"
        );
        let report = self.space.report();
        assert_eq!(report.preallocated, take_preallocated);
        assert_eq!(report.free, report.total - used.len() as u64);
        let promised: u64 = self.reservations.iter().map(Reservation::blocks).sum();
        assert_eq!(report.reserved, promised);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    /// Invariants P1 to P5 and P7, with groups smaller than most windows.
    #[test]
    fn preallocations_keep_their_invariants_in_tiny_groups(
        groups in 1..5_u64,
        group_blocks in prop_oneof![Just(40_u64), Just(200), Just(1000)],
        bundle in 1..4_u64,
        steps in prop::collection::vec((any::<u8>(), any::<u64>(), any::<u64>()), 1..80),
    ) {
        let mut files = Files::new(groups, group_blocks, bundle);
        for step in steps {
            files.step(step);
        }
        // P4 across a remount: preallocations were never recorded, so they leave no trace.
        files.space.begin_checkpoint(0).expect("consistent");
        prop_assert!(files.space.dirty_bitmaps(2).blocks.is_empty());
    }
}

#[test]
fn sparse_writes_fill_their_window_in_one_piece() {
    let space = Space::format(tiny(4, 4000)).expect("a layout");
    let mut file = File::new(&space);
    file.write(1000, 1, None).expect("room");
    for logical in [1001, 1003, 1002, 900, 1010] {
        file.write(logical, 1, None).expect("room");
    }
    let origin = file.blocks[&1000] - 1000;
    assert!(
        file.blocks
            .iter()
            .all(|(logical, block)| block - logical == origin)
    );
    assert_eq!(file.pieces().len(), 1);
}

#[test]
fn small_files_of_a_core_lie_side_by_side() {
    let space = Space::format(tiny(4, 4000)).expect("a layout");
    let mut files: Vec<File> = (0..50).map(|_| File::new(&space)).collect();
    for file in &mut files {
        file.write(0, 3, None).expect("room");
    }
    let blocks: Vec<u64> = files
        .iter()
        .flat_map(|file| file.blocks.values().copied())
        .collect();
    assert!(blocks.is_sorted_by(|one, next| one + 1 == *next));
    assert_eq!(space.report().preallocated, 512 - 150);
}

#[test]
fn a_file_that_nobody_writes_any_more_gets_what_it_needs_and_nothing_besides() {
    let space = Space::format(tiny(4, 4000)).expect("a layout");
    let ahead = Preallocations::new(&space);
    let request = FileRequest {
        growing: false,
        ..FileRequest::new(0, 100)
    };
    assert_eq!(ahead.place(&request, None).expect("room").length, 100);
    assert_eq!(space.report().preallocated, 0);
}

/// Regression R-P6: a discard frees exactly the free blocks of the piece. A piece that was used up
/// to the end of its group still belongs to that group.
#[test]
fn pieces_used_up_at_the_end_of_a_group_leave_their_own_list() {
    let space = Space::format(tiny(2, 66)).expect("a layout");
    let mut file = File::new(&space);
    // The window of a file of 64 blocks is 64: a whole group.
    file.write(60, 4, None).expect("room");
    let (free, ahead) = (space.report().free, file.pieces()[0].free());
    assert_eq!(ahead, 60);
    let end = space.layout().find(file.blocks[&63]).expect("a block");
    assert_eq!(end.1, 65, "the last block of its group");
    file.write(10, 5, None).expect("set aside");
    assert_eq!(file.ahead.discard(0), 55);
    assert_eq!(space.report().free, free + 55);
    assert_eq!(space.report().preallocated, 0);

    let mut other = File::new(&space);
    other.write(0, 64, None).expect("room");
    let empty = |group| space.table().lock(group).preallocated.is_empty();
    assert!((0..2).all(empty));
}

#[test]
fn rows_far_apart_in_windows_that_follow_each_other_lie_in_a_row_across_groups() {
    // Windows of 2048 blocks do not fill groups: every second group has them in two pieces.
    let layout = bundled(tiny(8, 5000), 8);
    assert_eq!(layout.bundle, 8);
    let space = Space::format(layout).expect("a layout");
    let mut file = File::new(&space);
    let windows = 14;
    let first = layout.start + layout.reserved(0);
    for window in 0..windows {
        for row in [3, 700, 1500, 2000] {
            let logical = window * 2048 + row;
            let request = FileRequest {
                size: 20 * 2048,
                goal: Some(first),
                ..file.request(logical, 1)
            };
            let placed = file.ahead.place(&request, None).expect("room");
            assert_eq!(placed, Extent::new(first + logical, 1));
            file.blocks.insert(logical, placed.start);
        }
    }
    assert!(windows * 2048 > 5 * layout.group_blocks);
}

#[test]
fn what_a_file_gave_up_is_not_taken_for_set_aside() {
    let space = Space::format(tiny(3, 2000)).expect("a layout");
    let mut file = File::new(&space);
    file.write(100, 8, None).expect("room");
    // Punched without a discard: the piece cannot serve these blocks again.
    for logical in 102..104 {
        let block = file.blocks.remove(&logical).expect("written");
        space.give_back(Extent::new(block, 1)).expect("placed");
    }
    file.write(102, 2, None).expect("room");
    let blocks: BTreeSet<u64> = file.blocks.values().copied().collect();
    assert_eq!(blocks.len(), 8);
}

#[test]
fn files_sweeps_and_evictions_on_many_threads_lose_no_block() {
    let space = Space::format(tiny(6, 500)).expect("a layout");
    let total = space.report().total;
    std::thread::scope(|scope| {
        for thread in 0..4_u64 {
            let space = &space;
            scope.spawn(move || {
                for round in 0..60 {
                    let mut file = File::new(space);
                    for step in 0..20 {
                        let seed = thread * 7919 + round * 104_729 + step * 31;
                        let logical = if seed % 3 == 0 {
                            seed % 12
                        } else {
                            seed * 13 % 3000
                        };
                        // Lack of room is no failure here.
                        let _ = file.write(logical, seed % 9 + 1, None);
                        match seed % 11 {
                            0 => drop(space.sweep(seed % 50)),
                            1 => file.truncate(space, seed % 700),
                            _ => {}
                        }
                    }
                    file.truncate(space, 0);
                }
            });
        }
    });
    space.sweep(u64::MAX);
    let report = space.report();
    assert_eq!(
        (report.free, report.preallocated, report.reserved),
        (total, 0, 0)
    );
}
