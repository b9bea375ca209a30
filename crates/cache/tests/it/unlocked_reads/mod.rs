//! Reads without a lock beside every kind of change. Each read must have the result of a read under
//! the lock at one moment of the call. F1: all of its range comes from one state. F2: no byte comes
//! from after the size of that state. F3: the bytes are those that a locked read returns. F5: no
//! memory is read that was freed (the address sanitizer sees it, and so does the next user of that
//! memory).

mod file;

use file::{File, generation, only_byte};
use std::sync::atomic::{AtomicU64, Ordering};

const PAGE: u64 = 4096;

#[test]
fn f1_a_seek_beside_punches_and_truncation_sees_one_state() {
    let file = File::new();
    const DATA: [u64; 2] = [3 * PAGE, (1 << 30) + 5 * PAGE];
    let size = DATA[1] + 10 * PAGE;
    file.truncate(size);
    file.race(
        10_000,
        |round| {
            let at = DATA[round as usize % 2];
            file.write(at, &[generation(round); 4 * PAGE as usize]);
            if round % 16 == 0 {
                file.truncate(0);
                file.truncate(size);
            } else {
                file.change(size, |pages, account| pages.punch(at, 4 * PAGE, account));
            }
        },
        || {
            // A write in one piece is visible wholly or not at all.
            let size_now = || file.size();
            let Ok(data) = file.pages.seek_data(0, size_now, || true) else {
                return;
            };
            file.fast.fetch_add(1, Ordering::Relaxed);
            assert!(data.is_none_or(|data| DATA.contains(&data)), "{data:?}");
            for at in DATA {
                let Ok(hole) = file.pages.seek_hole(at, size_now, || true) else {
                    continue;
                };
                assert!(hole.is_none_or(|hole| [at, at + 4 * PAGE].contains(&hole)));
            }
        },
    );
}

#[test]
fn f1_a_read_beside_pages_that_go_and_come_sees_their_bytes() {
    let file = File::new();
    file.write(0, &[1; 20 * PAGE as usize]);
    // If threads are not preempted, a reader may find all pages present each time.
    for _ in 0..50 {
        race_with_forgotten_pages(&file);
        if file.locked.load(Ordering::Relaxed) > 0 {
            return;
        }
    }
    panic!("no reader met a page that was gone");
}

fn race_with_forgotten_pages(file: &File) {
    file.race(
        10_000,
        |round| match round % 4 {
            0 => file.write(0, &[generation(round); 20 * PAGE as usize]),
            1 => file.forget(3..4),
            2 => file.forget(0..20),
            _ => file.forget(10..20),
        },
        || {
            for (from, len) in [(0, 20 * PAGE), (3 * PAGE, 10), (9 * PAGE, 8 * PAGE)] {
                let mut buf = vec![0; len as usize];
                assert_eq!(file.read(from, &mut buf) as u64, len);
                assert_ne!(only_byte(&buf), 0);
            }
        },
    );
}

#[test]
fn f5_memory_given_away_is_read_by_nobody() {
    let file = File::new();
    let other = File::new();
    file.write(0, &[1; 4 * 4096]);
    // Memory that one file frees the other gets, and fills with bytes that the first never holds.
    let freed = AtomicU64::new(0);
    file.race(
        20_000,
        |round| {
            let odd = generation(round) | 1;
            match round % 4 {
                0 => file.write(round % 3 * PAGE + 100, &[odd; 4096]),
                1 => file.truncate(PAGE),
                2 => file.write(PAGE, &[odd; 3 * 4096]),
                _ => file.change(4 * PAGE, |pages, account| pages.punch(0, 2 * PAGE, account)),
            }
            other.write(round % 8 * PAGE, &[2; 4096]);
            freed.fetch_add(1, Ordering::Relaxed);
        },
        || {
            for (offset, len) in [(0, 4 * 4096), (50, 4000), (4000, 5000)] {
                let mut buf = vec![0; len];
                let read = file.read(offset, &mut buf);
                let foreign = buf[..read]
                    .iter()
                    .find(|byte| **byte % 2 == 0 && **byte != 0);
                assert_eq!(foreign, None);
            }
        },
    );
    assert!(freed.into_inner() >= 20_000);
}

#[test]
fn the_owner_learns_of_contention_and_waits_for_the_lock() {
    let file = File::new();
    file.write(0, &[1; 10]);
    let mut pages = file.pages.lock();
    pages.begin();
    let mut buf = [0; 10];
    assert!(file.pages.read_with(0, &mut buf, || 10, || true).is_err());
    drop(pages);
    assert_eq!(file.pages.read_with(0, &mut buf, || 10, || true), Ok(10));
    assert_eq!(file.pages.pages(), 1);
}
