//! What free space costs, in nanoseconds: allocations in groups that are fresh, half full and 92 %
//! full, sparse writes through preallocations.
//!
//! `cargo bench -p holdfast-volume --bench space`. One thread, over 1 GiB in groups of 126 MiB; the
//! medians of five runs. Rounds allocate near a random goal, then free what another round got.

use holdfast_volume::space::{
    Error, Extent, FileRequest, GROUP_BLOCKS_MAX, Layout, Preallocations, Request, Space,
};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

const GROUPS: u64 = 8;
const ROUNDS: u64 = 200_000;
/// Sparse writes of the source's first test: blocks far apart, in random order.
const SPARSE: u64 = 200_000;

fn main() {
    println!("{:<34} {:>10}", "", "ns");
    for (name, full) in [("fresh", 0), ("half full", 50), ("92 % full", 92)] {
        for length in [1, 8] {
            let name = format!("{name}, {length} blocks near a goal");
            report(&name, || near_goal(full, length));
        }
    }
    report("fresh, 1 block behind the last", behind_the_last);
    report("file of 4 blocks, small", small_files);
    for (name, from) in [("the 1,000th", 1000), ("the 200,000th", SPARSE)] {
        let name = format!("sparse write, around {name}");
        report(&name, || sparse_writes(from));
    }
}

fn report(name: &str, run: impl Fn() -> f64) {
    let mut times: Vec<f64> = (0..5).map(|_| run()).collect();
    times.sort_by(f64::total_cmp);
    println!("{name:<34} {:>10.1}", times[2]);
}

fn layout(groups: u64) -> Layout {
    Layout {
        volume: [1; 16],
        start: 64,
        end: 64 + groups * GROUP_BLOCKS_MAX,
        group_blocks: GROUP_BLOCKS_MAX,
        bundle: 1,
    }
}

fn space(groups: u64) -> Arc<Space> {
    Space::format(layout(groups)).expect("a layout")
}

fn near_goal(percent: u64, length: u64) -> f64 {
    let space = space(GROUPS);
    let mut random = ChaCha8Rng::seed_from_u64(percent + length);
    let span = GROUPS * GROUP_BLOCKS_MAX;
    let mut goal = || 64 + random.random_range(0..span);
    let mut placed: Vec<Extent> = Vec::new();
    let mut used = 0;
    while used * 100 < span * percent {
        match space.allocate(&Request::data(length).near(goal())) {
            Ok(extent) => {
                used += extent.length;
                placed.push(extent);
            }
            Err(error) => panic!("{error}"),
        }
    }
    let goals: Vec<u64> = (0..ROUNDS).map(|_| goal()).collect();
    let start = Instant::now();
    for &goal in &goals {
        let extent = space
            .allocate(&Request::data(length).near(goal))
            .expect("room");
        let at = (goal % (placed.len() as u64 + 1)) as usize;
        let back = match placed.get_mut(at) {
            Some(place) => std::mem::replace(place, extent),
            None => extent,
        };
        space.give_back(back).expect("placed");
    }
    per(start, ROUNDS)
}

fn behind_the_last() -> f64 {
    let space = space(GROUPS);
    let start = Instant::now();
    for _ in 0..ROUNDS {
        black_box(space.allocate(&Request::data(1)).expect("room"));
    }
    per(start, ROUNDS)
}

fn small_files() -> f64 {
    let space = space(GROUPS);
    let files: Vec<_> = (0..ROUNDS / 4)
        .map(|_| Preallocations::new(&space))
        .collect();
    let request = FileRequest::new(0, 4);
    let start = Instant::now();
    for file in &files {
        black_box(file.place(&request, None).expect("room"));
    }
    per(start, ROUNDS / 4)
}

/// Writes single blocks in stretches of their own, `until` of them; the time of each of the last
/// thousand.
fn sparse_writes(until: u64) -> f64 {
    // Each write gets a window of 2048 blocks: 1.7 TiB, of which only bitmaps are in memory.
    let space = space(14_000);
    let file = Preallocations::new(&space);
    let stretch = 4096;
    let mut last = Instant::now();
    for write in 0..until {
        if write + 1000 == until {
            last = Instant::now();
        }
        // In an order that is neither ascending nor descending.
        let logical = (write * 104_729 % 262_139) * stretch;
        let request = FileRequest {
            size: 262_139 * stretch,
            ..FileRequest::new(logical, 1)
        };
        match file.place(&request, None) {
            Ok(extent) => {
                black_box(extent);
            }
            Err(Error::Full { .. }) => panic!("the volume is too small for {until} writes"),
            Err(error) => panic!("{error}"),
        }
    }
    per(last, 1000)
}

fn per(start: Instant, rounds: u64) -> f64 {
    start.elapsed().as_nanos() as f64 / rounds as f64
}
