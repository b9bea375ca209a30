//! Freed blocks are discarded, whatever is in progress.

use holdfast_core::Store;
use holdfast_core::store::{Behind, Change};
use holdfast_types::Ino;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use super::{BLOCK_LEN, MIB, create, volume, write};

const SIZE: u64 = 4 * MIB;
const ROUNDS: usize = 40;

/// The file existed half a checkpoint ago, so its blocks are held until that checkpoint ends. A
/// concurrent commit may be durable before it has released them.
#[test]
fn what_was_removed_before_is_trimmed_beside_checkpoints_and_commits() {
    let (_, store) = volume(64 * MIB, None);
    create(&store, Ino(9));
    for number in 100..20_000 {
        create(&store, Ino(number));
    }
    let ended = AtomicBool::new(false);
    let others = || {
        while !ended.load(Ordering::Relaxed) {
            store.commit(None).expect("committed");
            store.checkpoint().expect("folded");
        }
    };
    thread::scope(|scope| {
        scope.spawn(others);
        let least = (0..ROUNDS).map(|_| {
            write(&store, Ino(9), SIZE, 0, &vec![7; SIZE as usize]);
            store.commit(None).expect("committed");
            let extents = store.extents(Ino(9)).expect("told");
            let truncate = Change::Truncate {
                ino: Ino(9),
                size: 0,
            };
            store.change(&[truncate]).expect("cut");
            let places = extents.iter().map(|it| it.extent);
            let trimmed = places.map(|place| {
                let bytes = place.start * BLOCK_LEN..place.end() * BLOCK_LEN;
                store.trim(bytes, 0).expect("trimmed")
            });
            trimmed.sum::<u64>()
        });
        let least = least.min();
        ended.store(true, Ordering::Relaxed);
        // Nodes of checkpoints may be there by now.
        assert!(least > Some(SIZE / 2), "{least:?}");
    });
}
