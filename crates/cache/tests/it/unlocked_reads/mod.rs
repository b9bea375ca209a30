//! Reads without a lock beside every kind of change. Each read must be what a read under the lock
//! could have been at one moment of the call: F1, all of its range from one state; F2, no byte
//! behind the size of that state; F3, the bytes that a locked read gives; F5, no memory that was
//! given away (which the address sanitizer sees, and whoever gets it next shows here).

mod file;

use file::{File, generation, only_byte};
use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

const PAGE: u64 = 4096;

#[test]
fn f1_a_read_beside_overwrites_of_one_page_sees_one_of_them() {
    let file = File::new();
    file.write(0, &[1; 4096]);
    file.write(PAGE, &[1; 100]);
    file.race(
        20_000,
        |round| file.write(500, &[generation(round); 3000]),
        || {
            let mut buf = [0; 2900];
            assert_eq!(file.read(550, &mut buf), 2900);
            only_byte(&buf);
        },
    );
}

#[test]
fn f1_a_read_beside_overwrites_of_several_pages_sees_one_of_them() {
    let file = File::new();
    file.write(0, &[1; 100_000]);
    file.race(
        3000,
        |round| file.write(1000, &[generation(round); 90_000]),
        || {
            for (offset, len) in [(1000, 90_000), (3000, 5000), (2000, 100), (4000, 30_000)] {
                let mut buf = vec![0; len];
                assert_eq!(file.read(offset, &mut buf), len);
                only_byte(&buf);
            }
        },
    );
}

#[test]
fn f1_a_read_beside_writes_of_one_page_each_sees_no_later_one_without_the_earlier() {
    let file = File::new();
    file.write(0, &[1; 4 * 4096]);
    // Page 3 first, page 0 last: from left to right, generations never fall.
    let mut now = [1_u8; 4];
    file.race(
        20_000,
        |round| {
            let page = 3 - round % 4;
            now[page as usize] = (round / 4 % 200) as u8 + 2;
            if now[page as usize] == 2 && page == 3 {
                // The count begins again: all at once.
                now = [2; 4];
                file.write(0, &[2; 4 * 4096]);
            }
            file.write(page * PAGE, &[now[page as usize]; 4096]);
        },
        || {
            let mut buf = [0; 4 * 4096];
            assert_eq!(file.read(0, &mut buf), buf.len());
            let pages: Vec<_> = buf.chunks(4096).map(only_byte).collect();
            assert!(pages.is_sorted(), "{pages:?}");
            assert!(pages[3] - pages[0] <= 1, "{pages:?}");
        },
    );
}

#[test]
fn f1_a_read_beside_appends_sees_whole_ones() {
    let file = File::new();
    // 5000 records of 100 bytes, then from the start again.
    file.race(
        60_000,
        |round| {
            let record = round % 5000;
            if record == 0 {
                file.truncate(0);
            }
            file.write(record * 100, &[generation(record); 100]);
        },
        || {
            let records = file.size() / 100;
            let first = records.saturating_sub(30);
            let mut buf = [0; 10_000];
            let read = file.read(first * 100, &mut buf);
            assert_eq!(read % 100, 0, "an append in part");
            for (record, bytes) in (first..).zip(buf[..read].chunks(100)) {
                assert_eq!(only_byte(bytes), generation(record));
            }
        },
    );
}

#[test]
fn f1_a_read_beside_writes_across_the_end_sees_them_whole() {
    let file = File::new();
    file.write(0, &[1; 200]);
    file.race(
        20_000,
        |round| {
            file.truncate(200);
            // Grown by the size alone: what lies behind byte 100 is zeros by then.
            if round % 2 == 0 {
                file.truncate(100);
                file.truncate(200);
            } else {
                file.write(100, &[0; 100]);
            }
            file.write(100, &[generation(round); 200]);
        },
        || {
            let mut buf = [0; 400];
            let read = file.read(0, &mut buf);
            assert!([100, 200, 300].contains(&read), "{read}");
            only_byte(&buf[..100]);
            let byte = if read > 100 {
                only_byte(&buf[100..read])
            } else {
                0
            };
            // 200 bytes: before the write, or cut after it. 300: the write, all of it.
            assert!(read == 200 || read == 100 || byte != 0);
        },
    );
}

#[test]
fn f1_a_read_beside_truncation_sees_bytes_and_size_of_one_state() {
    let file = File::new();
    file.write(0, &[1; 10_000]);
    file.race(
        10_000,
        |round| {
            let byte = generation(round);
            file.truncate(5000);
            file.truncate(10_000);
            file.write(0, &[byte; 10_000]);
            if round % 8 == 0 {
                // The same within the small form.
                file.truncate(0);
                file.write(0, &[byte; 10_000]);
            }
        },
        || {
            let mut buf = [0xEE; 12_000];
            let read = file.read(0, &mut buf);
            assert!([0, 5000, 10_000].contains(&read), "{read}");
            if read > 0 {
                assert_ne!(only_byte(&buf[..5000]), 0);
            }
            if read == 10_000 {
                let rest = only_byte(&buf[5000..read]);
                assert!(rest == 0 || rest == buf[0]);
            }
            assert!(buf[read..].iter().all(|byte| *byte == 0xEE));
        },
    );
}

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
            // All or nothing is there of what was written in one piece.
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
fn f1_a_read_beside_punches_sees_none_or_all_of_a_hole() {
    let file = File::new();
    file.write(0, &[1; 20_000]);
    file.race(
        10_000,
        |round| {
            let size = file.size();
            // A hole with edges; then one within a page.
            let (offset, len) = if round % 2 == 0 {
                (3000, 10_000)
            } else {
                (5000, 1000)
            };
            file.change(size, |pages, account| pages.punch(offset, len, account));
            file.write(0, &[generation(round); 20_000]);
        },
        || {
            let mut buf = [0; 20_000];
            assert_eq!(file.read(0, &mut buf), 20_000);
            let byte = only_byte(&buf[..3000]);
            assert_eq!(only_byte(&buf[13_000..]), byte);
            let middle = &buf[3000..13_000];
            if middle[0] == 0 {
                assert_eq!(only_byte(middle), 0);
            } else if middle[2000] == 0 {
                assert_eq!(only_byte(&middle[2000..3000]), 0);
                assert_eq!(only_byte(&middle[..2000]), byte);
                assert_eq!(only_byte(&middle[3000..]), byte);
            } else {
                assert_eq!(only_byte(middle), byte);
            }
        },
    );
}

#[test]
fn f1_a_read_beside_pages_that_go_and_come_sees_their_bytes() {
    let file = File::new();
    file.write(0, &[1; 20 * PAGE as usize]);
    // Where threads are not interrupted, a reader may find all pages there each time.
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
fn f1_a_read_beside_collapse_and_insert_sees_the_pages_in_one_order() {
    let file = File::new();
    // Pages say consecutive numbers at all times.
    let page = |number: u64| vec![generation(number); PAGE as usize];
    for number in 0..200 {
        file.write(number * PAGE, &page(number));
    }
    let mut first = 0;
    file.race(
        3000,
        |round| {
            let size = file.size();
            let pages = size / PAGE;
            if round % 2 == 0 {
                // Two off the front; two on the back.
                file.change(size - 2 * PAGE, |file, account| {
                    file.collapse(0, 2 * PAGE, account).expect("aligned");
                });
                first += 2;
                let next = [page(first + pages - 2), page(first + pages - 1)].concat();
                file.write(size - 2 * PAGE, &next);
            } else {
                // One in at the front, with its number at once; one off the back.
                first -= 1;
                file.change(size + PAGE, |file, account| {
                    file.insert(0, PAGE, account).expect("aligned");
                    file.write(0, &page(first), account).expect("room");
                });
                file.truncate(size);
            }
        },
        || {
            for (from, pages) in [(0, 210), (60, 8), (199, 3), (5, 1)] {
                let mut buf = vec![0; pages * PAGE as usize];
                let read = file.read(from * PAGE, &mut buf);
                assert_eq!(read as u64 % PAGE, 0);
                let numbers: Vec<_> = buf[..read].chunks(4096).map(only_byte).collect();
                for pair in numbers.windows(2) {
                    assert_eq!(pair[0] % 255 + 1, pair[1], "{numbers:?}");
                }
            }
        },
    );
}

#[test]
fn f2_a_read_ends_at_a_size_that_it_saw_and_writes_nothing_behind() {
    let file = File::new();
    file.write(0, &[1; 50_000]);
    file.race(
        20_000,
        |round| {
            let size = 1 + round * 7919 % 50_000;
            if size < file.size() {
                file.truncate(size);
            } else {
                file.write(size - 1, &[generation(round)]);
            }
        },
        || {
            let seen = Cell::new(0);
            let size = || {
                seen.set(file.size());
                seen.get()
            };
            for (offset, len) in [(0, 60_000), (10_000, 4096), (49_000, 10), (60_000, 10)] {
                // Who finds a page wholly inside the file does not ask how long it is.
                seen.set(u64::MAX);
                let mut buf = vec![0xEE; len];
                let Ok(read) = file.pages.read_with(offset, &mut buf, size, || true) else {
                    continue;
                };
                file.fast.fetch_add(1, Ordering::Relaxed);
                let there = seen.get().saturating_sub(offset).min(len as u64);
                assert_eq!(read as u64, there);
                assert!(buf[read..].iter().all(|byte| *byte == 0xEE));
            }
        },
    );
}

#[test]
fn f3_without_contention_fast_reads_are_locked_reads() {
    let file = File::new();
    let mut random = 1_u64;
    let mut next = |below: u64| {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (random >> 33) % below
    };
    let mut refused = 0;
    for round in 0..3000 {
        let (mut offset, mut len) = (next(400_000), next(20_000) + 1);
        if next(4) == 0 {
            (offset, len) = (offset / 512 * 512, 512 + len % 2048 / 512 * 512);
        }
        match next(8) {
            0 => file.truncate(offset),
            1 => file.change(file.size(), |pages, account| {
                pages.punch(offset, len, account)
            }),
            2 => file.change(file.size(), |pages, account| {
                pages.zero(offset, len, account).expect("room");
            }),
            _ => file.write(offset, &vec![generation(round); len as usize]),
        }
        let (offset, len) = (next(420_000), next(100_000) as usize);
        let (mut fast, mut locked) = (vec![0xEE; len], vec![0xEE; len]);
        let mut read = || {
            let read = file
                .pages
                .read_with(offset, &mut fast, || file.size(), || true);
            read.map(|read| (read, fast.clone()))
        };
        let first = read();
        let expected = file.pages.lock().read(offset, &mut locked, file.size());
        // What a page with gaps took the lock for, nobody does after that.
        refused += u32::from(first.is_err());
        if expected == 0 {
            continue;
        }
        let (read, fast) = first.or_else(|_| read()).expect("nobody is in the way");
        assert_eq!(read, expected);
        assert!(fast == locked, "round {round}");
    }
    assert!(refused > 10, "only {refused} reads met gaps");
}

#[test]
fn f5_memory_given_away_is_read_by_nobody() {
    let file = File::new();
    let other = File::new();
    file.write(0, &[1; 4 * 4096]);
    // What one file drops the other gets, and fills with what the first never holds.
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
