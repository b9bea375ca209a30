//! F1, F2, F3, F5, F6, R-F1, R-F5: reads without a lock, beside all changes of a file. A read is
//! atomic: it returns the bytes and the size that the file had at one moment of the call.

use super::stage::{Stage, gated, race};
use holdfast_core::types::{Fallocate, OpenFlags, SetAttr};
use holdfast_core::{AtimePolicy, EventMask, Node, OpenFile, Options, Watch};
use holdfast_testkit::rng::Rng;
use holdfast_testkit::store::{Call, ModelStore};
use std::io::{IoSlice, IoSliceMut};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

const PAGE: usize = 4096;

fn resize(stage: &Stage, node: &Node, size: u64) {
    let set = SetAttr {
        size: Some(size),
        ..SetAttr::default()
    };
    stage.fs.setattr(&stage.who, node, &set, None).unwrap();
}

fn read(stage: &Stage, file: &OpenFile, offset: u64, len: usize) -> Vec<u8> {
    let mut bytes = vec![0xee; len];
    let read = stage.fs.read(file, offset, &mut bytes).unwrap();
    bytes.truncate(read);
    bytes
}

/// The same under the page lock.
fn read_locked(stage: &Stage, file: &OpenFile, offset: u64, len: usize) -> Vec<u8> {
    let mut bytes = vec![0xee; len];
    let mut bufs = [IoSliceMut::new(&mut bytes)];
    let read = stage.fs.read_vectored(file, offset, &mut bufs).unwrap();
    bytes.truncate(read);
    bytes
}

/// F3.
#[test]
fn reads_without_and_with_the_lock_give_the_same_bytes() {
    let mut rng = Rng::new(4);
    for stage in Stage::each() {
        let mut file = stage.open("f");
        for round in 0..300_u32 {
            let offset = rng.below(40 * PAGE as u64);
            let len = rng.index(3 * PAGE);
            match rng.below(4) {
                0 => resize(&stage, file.node(), offset),
                1 => {
                    let mode = Fallocate::PUNCH_HOLE | Fallocate::KEEP_SIZE;
                    let punched =
                        stage
                            .fs
                            .fallocate(&stage.who, &file, mode, offset, len as u64 + 1);
                    assert_eq!(punched, Ok(()));
                }
                _ => stage.write(&file, offset, &vec![round as u8; len]),
            }
            if round % 10 == 0 {
                // Reloaded content is read in the same way.
                drop(file);
                stage.fs.drop_caches().unwrap();
                file = stage.open("f");
            }
            let offset = rng.below(45 * PAGE as u64);
            for len in [1, 17, PAGE, 2 * PAGE + 5, 30 * PAGE] {
                assert_eq!(
                    read(&stage, &file, offset, len),
                    read_locked(&stage, &file, offset, len),
                    "round {round}: {len} bytes at {offset}"
                );
            }
        }
    }
}

/// F1: a write of several pages or buffers is seen whole or not at all.
#[test]
fn a_read_never_mixes_two_writes() {
    for stage in Stage::each() {
        let file = stage.open("f");
        stage.write(&file, 0, &[0; 3 * PAGE]);
        race(3, |thread| match thread {
            0 => {
                for round in 1..200_u8 {
                    if round % 2 == 0 {
                        stage.write(&file, 0, &[round; 3 * PAGE]);
                    } else {
                        let (a, b) = ([round; 100], [round; 3 * PAGE - 100]);
                        let bufs = [IoSlice::new(&a), IoSlice::new(&b)];
                        let written = stage.fs.write_vectored(&stage.who, &file, 0, &bufs);
                        assert_eq!(written, Ok(3 * PAGE));
                    }
                }
            }
            _ => {
                let bytes = read(&stage, &file, 50, 2 * PAGE);
                assert_eq!(bytes.len(), 2 * PAGE);
                assert!(bytes.iter().all(|byte| *byte == bytes[0]), "two writes");
            }
        });
    }
}

/// F2: a truncation changes bytes and size at once; old bytes do not reappear after growth.
#[test]
fn no_read_sees_bytes_behind_the_size_or_of_an_earlier_life() {
    for stage in Stage::each() {
        let file = stage.open("f");
        let (full, half) = (2 * PAGE + 100, PAGE + 50);
        race(3, |thread| {
            if thread == 0 {
                // 1s to the end; cut; grown, which reads as zeros; 1s again.
                stage.write(&file, 0, &vec![1; full]);
                resize(&stage, file.node(), half as u64);
                resize(&stage, file.node(), full as u64);
                return;
            }
            let bytes = read(&stage, &file, 10, full);
            let ones = bytes.iter().take_while(|byte| **byte == 1).count();
            assert!(bytes[ones..].iter().all(|byte| *byte == 0), "zeros, then?");
            let state = (bytes.len() + 10, ones + 10);
            let states = [(full, full), (half, half), (full, half)];
            assert!(bytes.is_empty() || states.contains(&state), "{state:?}");
        });
    }
}

/// F2.
#[test]
fn an_append_is_seen_with_its_size_and_not_before() {
    let byte = |at: u64| (at % 251) as u8;
    for stage in Stage::each() {
        let file = stage.open("f");
        let size = AtomicU64::new(0);
        race(3, |thread| {
            if thread == 0 {
                let before = size.load(Ordering::Relaxed);
                if before > 1 << 22 {
                    return;
                }
                let data: Vec<u8> = (before..before + 77).map(byte).collect();
                let appended = stage.fs.append(&stage.who, &file, &data);
                assert_eq!(appended, Ok((before, 77)));
                size.store(before + 77, Ordering::Release);
                return;
            }
            let before = size.load(Ordering::Acquire);
            let offset = before.saturating_sub(3000);
            let bytes = read(&stage, &file, offset, 5000);
            let end = offset + bytes.len() as u64;
            assert!(end >= before, "shorter than it was before the call");
            assert!(
                end <= stage.fs.getattr(file.node()).size,
                "longer than after"
            );
            assert!(
                bytes.len() == 5000 || end.is_multiple_of(77),
                "half an append"
            );
            assert!(
                bytes
                    .iter()
                    .zip(offset..)
                    .all(|(read, at)| *read == byte(at))
            );
        });
    }
}

/// R-F5: zeroing a part of a page frees none, and is atomic as well.
#[test]
fn a_hole_within_a_page_is_seen_whole_or_not_at_all() {
    for stage in Stage::each() {
        let file = stage.open("f");
        stage.write(&file, 0, &[1; PAGE]);
        let (from, to) = (1000_usize, 3000_usize);
        race(3, |thread| {
            if thread == 0 {
                let mode = Fallocate::PUNCH_HOLE | Fallocate::KEEP_SIZE;
                let (from, len) = (from as u64, (to - from) as u64);
                let punched = stage.fs.fallocate(&stage.who, &file, mode, from, len);
                assert_eq!(punched, Ok(()));
                stage.write(&file, 0, &[1; PAGE]);
                return;
            }
            let bytes = read(&stage, &file, 0, PAGE);
            let inner = bytes[from];
            assert!(bytes[from..to].iter().all(|byte| *byte == inner), "half");
            assert!(
                bytes[..from]
                    .iter()
                    .chain(&bytes[to..])
                    .all(|byte| *byte == 1)
            );
        });
    }
}

/// F1 for pages that move.
#[test]
fn pages_that_are_collapsed_and_inserted_keep_their_order() {
    for stage in Stage::each() {
        let file = stage.open("f");
        for page in 0..8_u8 {
            stage.write(&file, u64::from(page) * PAGE as u64, &[page + 1; PAGE]);
        }
        race(3, |thread| {
            if thread == 0 {
                let page = PAGE as u64;
                for mode in [Fallocate::COLLAPSE_RANGE, Fallocate::INSERT_RANGE] {
                    let moved = stage.fs.fallocate(&stage.who, &file, mode, page, page);
                    assert_eq!(moved, Ok(()));
                }
                return;
            }
            let bytes = read(&stage, &file, 0, 8 * PAGE);
            let pages: Vec<u8> = bytes.chunks(PAGE).map(|page| page[0]).collect();
            for page in bytes.chunks(PAGE) {
                assert!(page.iter().all(|byte| *byte == page[0]), "two pages in one");
            }
            let states: [&[u8]; 3] = [
                &[1, 2, 3, 4, 5, 6, 7, 8],
                &[1, 3, 4, 5, 6, 7, 8],
                &[1, 0, 3, 4, 5, 6, 7, 8],
            ];
            assert!(states.contains(&&*pages), "{pages:?}");
        });
    }
}

/// R-F1: the path without a lock is the one taken. A writer that is blocked while it holds the page
/// lock, after it has changed one page, blocks no reader.
#[test]
fn a_writer_that_sleeps_with_the_lock_stops_no_reader() {
    let (gate, stage) = gated(Call::Apply);
    let file = stage.open("f");
    stage.write(&file, 0, &[1; PAGE]);
    gate.hook().arm();
    thread::scope(|scope| {
        let writing = scope.spawn(|| stage.write(&file, 8, &[2; 8]));
        gate.hook().wait();
        let bytes = read(&stage, &file, 0, 32);
        assert_eq!(bytes[..8], [1; 8]);
        assert!([[1; 8], [2; 8]].contains(&bytes[8..16].try_into().unwrap()));
        assert_eq!(stage.fs.getattr(file.node()).size, PAGE as u64);
        gate.hook().open();
        writing.join().unwrap();
    });
    assert_eq!(read(&stage, &file, 8, 8), [2; 8]);
}

/// R-F1 for names: while the lock of a directory is held, lookups and listings proceed.
#[test]
fn a_creator_that_sleeps_with_the_lock_stops_no_lookup() {
    let (gate, stage) = gated(Call::Apply);
    drop(stage.open("there"));
    let listed = stage
        .fs
        .open(&stage.who, &stage.root, OpenFlags::empty())
        .unwrap();
    // Access times would have to reach the store.
    let quiet = Options {
        atime: AtimePolicy::None,
        ..Options::default()
    };
    stage.fs.set_options(quiet);
    gate.hook().arm();
    thread::scope(|scope| {
        let making = scope.spawn(|| drop(stage.open("new")));
        gate.hook().wait();
        stage.lookup("there").unwrap();
        assert!(stage.lookup("missing").is_err());
        let stat = stage.fs.stat_at(&stage.who, &stage.root, b"/there", true);
        assert_eq!(stat.map(|attr| attr.nlink), Ok(1));
        let mut names = Vec::new();
        let mut push = |entry: holdfast_core::DirEntry<'_>| {
            names.push(entry.name.to_vec());
            true
        };
        stage.fs.read_dir(&listed, 0, &mut push).unwrap();
        assert!(names.contains(&b"there".to_vec()));
        gate.hook().open();
        making.join().unwrap();
    });
}

fn notified(watch: &Watch) -> Vec<(EventMask, Option<Box<[u8]>>)> {
    std::iter::from_fn(|| watch.try_next())
        .map(|event| (event.mask, event.name))
        .collect()
}

/// F6: an eviction makes no difference to watchers.
#[test]
fn watchers_of_a_directory_hear_of_files_that_were_evicted_meanwhile() {
    let stage = Stage::over(Arc::new(ModelStore::new()), Options::default());
    drop(stage.open("f"));
    let mask = EventMask::OPEN | EventMask::ACCESS | EventMask::CLOSE_NOWRITE;
    let watch = stage.fs.watch(&stage.root, mask).unwrap();
    for evicted in [false, true] {
        let dropped = if evicted {
            stage.fs.drop_caches().unwrap().inodes
        } else {
            0
        };
        assert_eq!(dropped, u64::from(evicted));
        let node = stage.lookup("f").unwrap();
        let file = stage
            .fs
            .open(&stage.who, &node, OpenFlags::empty())
            .unwrap();
        read(&stage, &file, 0, 1);
        drop(file);
        let masks: Vec<_> = notified(&watch)
            .into_iter()
            .map(|(mask, name)| {
                assert_eq!(name.as_deref(), Some(&b"f"[..]));
                mask
            })
            .collect();
        let expected = [EventMask::OPEN, EventMask::ACCESS, EventMask::CLOSE_NOWRITE];
        assert_eq!(masks, expected, "evicted: {evicted}");
    }
}
