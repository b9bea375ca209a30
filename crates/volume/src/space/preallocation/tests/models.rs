//! What may happen at the same time, under schedules that shuttle chooses: a switch before every
//! lock. A failure prints the schedule; `shuttle::replay` runs it again.

use super::*;
use crate::primitive::model;
use shuttle::thread;

/// Schedules of each model, chosen at random and by few switches at random places.
const SCHEDULES: usize = 400;

fn explore(scenario: impl Fn() + Send + Sync + Clone + 'static) {
    let modelled = move || {
        model();
        scenario();
    };
    shuttle::check_random(modelled.clone(), SCHEDULES);
    shuttle::check_pct(modelled, SCHEDULES, 3);
}

/// Runs both, then gives what they gave.
fn both<A: Send + 'static, B: Send + 'static>(
    one: impl FnOnce() -> A + Send + 'static,
    other: impl FnOnce() -> B + Send + 'static,
) -> (A, B) {
    let (one, other) = (thread::spawn(one), thread::spawn(other));
    (
        one.join().expect("no panic"),
        other.join().expect("no panic"),
    )
}

fn small_space() -> Arc<Space> {
    Space::format(tiny(2, 40)).expect("a layout")
}

/// Checks the invariants of a state without concurrent changes.
fn settle(space: &Arc<Space>, files: Vec<File>) {
    let files = Files {
        space: Arc::clone(space),
        files,
        reservations: Vec::new(),
    };
    files.check();
}

#[test]
fn a_lookup_beside_a_sweep_gets_its_blocks_or_finds_nothing() {
    explore(|| {
        let space = small_space();
        let mut file = File::new(&space);
        file.write(18, 1, None).expect("room");
        let sweeper = Arc::clone(&space);
        let (file, _) = both(
            move || {
                file.write(19, 2, None).expect("room");
                file.write(4, 1, None).expect("room");
                file
            },
            move || sweeper.sweep(u64::MAX),
        );
        settle(&space, vec![file]);
    });
}

#[test]
fn the_last_use_of_a_piece_beside_a_sweep_and_a_new_piece_in_its_place_leaves_one_entry() {
    explore(|| {
        let space = small_space();
        let mut file = File::new(&space);
        file.write(17, 20, None).expect("room");
        let mut next = File::new(&space);
        let sweeper = Arc::clone(&space);
        let (file, next) = both(
            move || {
                let (from, to) = file
                    .pieces()
                    .first()
                    .map_or((0, 0), |p| (p.logical, p.end()));
                for logical in from..to {
                    file.write(logical, 1, None).expect("set aside or not");
                }
                let space = Arc::clone(&file.ahead.space);
                file.truncate(&space, 0);
                file
            },
            move || {
                sweeper.sweep(3);
                next.write(20, 1, None).expect("room");
                sweeper.sweep(3);
                next
            },
        );
        settle(&space, vec![file, next]);
    });
}

#[test]
fn an_eviction_beside_a_sweep_gives_every_block_back_once() {
    explore(|| {
        let space = small_space();
        let mut file = File::new(&space);
        file.write(18, 2, None).expect("room");
        let sweeper = Arc::clone(&space);
        let blocks = file.blocks.len() as u64;
        both(move || drop(file), move || sweeper.sweep(10));
        let report = space.report();
        assert_eq!(
            (report.preallocated, report.free),
            (0, report.total - blocks)
        );
    });
}

#[test]
fn a_discard_beside_a_sweep_counts_what_it_freed_once() {
    explore(|| {
        let space = small_space();
        let mut file = File::new(&space);
        file.write(18, 2, None).expect("room");
        let (before, ahead) = (space.report(), Arc::clone(&file.ahead));
        let sweeper = Arc::clone(&space);
        let (discarded, swept) = both(move || ahead.discard(0), move || sweeper.sweep(u64::MAX));
        assert_eq!(discarded + swept, before.preallocated);
        settle(&space, vec![file]);
    });
}

#[test]
fn two_threads_of_one_core_get_different_blocks_beside_a_sweep() {
    explore(|| {
        let space = small_space();
        let write = |mut file: File| {
            move || {
                file.write(0, 3, None).expect("room");
                file
            }
        };
        let (one, other) = (File::new(&space), File::new(&space));
        let sweeper = Arc::clone(&space);
        let sweep = thread::spawn(move || sweeper.sweep(u64::MAX));
        let (one, other) = both(write(one), write(other));
        sweep.join().expect("no panic");
        settle(&space, vec![one, other]);
    });
}

/// Bitmaps are written while what was set aside for small files is used and recorded.
#[test]
fn a_bitmap_written_beside_the_use_of_preallocations_is_that_of_the_cut() {
    explore(|| {
        let space = small_space();
        let mut file = File::new(&space);
        file.write(0, 2, None).expect("room");
        let first = Extent::new(file.blocks[&0], 2);
        space.record(first, 1).expect("placed");
        space.begin_checkpoint(1).expect("consistent");
        let writer = Arc::clone(&space);
        let (bitmaps, _) = both(
            move || writer.dirty_bitmaps(2),
            move || {
                let space = Arc::clone(&file.ahead.space);
                let mut other = File::new(&space);
                other.write(0, 3, None).expect("room");
                let extent = Extent::new(other.blocks[&0], 3);
                space.record(extent, 2).expect("placed");
                space.free_data(first, 3).expect("recorded");
                space.committed(3).expect("consistent");
            },
        );
        let mut loader = Loader::new(tiny(2, 40), 2).expect("a layout");
        let blank = [0; crate::block::BLOCK];
        for group in 0..loader.groups() {
            let slot = loader.slots(group)[0];
            let written = bitmaps.blocks.iter().find(|(block, _)| *block == slot);
            let bytes = written.map_or(&blank, |(_, bytes)| bytes);
            loader.add(group, [bytes, &blank]).expect("a bitmap");
        }
        let again = loader.finish(bitmaps.seal).expect("what the seal says");
        assert_eq!(again.report().free, again.report().total - first.length);
        assert!(matches!(again.mark_used(first), Err(Error::Used { .. })));
    });
}

/// Invariant P7: of two that need all that is set aside, none is told that there is nothing.
#[test]
fn two_that_need_what_is_set_aside_both_get_it() {
    explore(|| {
        let space = small_space();
        let mut file = File::new(&space);
        file.write(18, 1, None).expect("room");
        let half = (space.report().total - 1) / 2;
        let reserve =
            |space: Arc<Space>| move || space.reserve(half).map(|reservation| reservation.blocks());
        let both = both(reserve(Arc::clone(&space)), reserve(Arc::clone(&space)));
        assert_eq!(both, (Ok(half), Ok(half)));
        settle(&space, vec![file]);
    });
}

#[test]
fn a_trim_beside_an_allocation_takes_no_block_away_and_gives_none_twice() {
    explore(|| {
        let space = small_space();
        fill(&space);
        let at = space.layout().start + 5;
        space.give_back(Extent::new(at, 6)).expect("placed");
        let reservation = space.reserve(3).expect("room");
        let trimmer = Arc::clone(&space);
        let placer = Arc::clone(&space);
        let (trimmed, placed) = both(
            move || trimmer.trim(Extent::new(0, u64::MAX), 1, |_| Ok::<(), ()>(())),
            move || {
                let mut reservation = reservation;
                let mut placed = 0;
                while reservation.blocks() > 0 {
                    let one = placer.allocate_reserved(&mut reservation, &Request::data(1));
                    placed += one.expect("promised").length;
                }
                placed
            },
        );
        assert!(trimmed.is_ok());
        assert_eq!((placed, space.report().free), (3, 3));
    });
}
