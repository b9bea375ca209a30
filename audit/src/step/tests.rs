use std::hint::black_box;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};

use super::{Access, Decoder, Recorder, Tape};

/// What a piece of code did to the bytes of `value`.
fn accesses<T>(value: &T, code: impl FnOnce()) -> Vec<Access> {
    let recorder = Recorder::new().expect("this processor can be asked to trap");
    let mut tape = Tape::new(1 << 20);
    recorder.record(&mut tape, code);
    assert!(tape.whole);
    let start = ptr::from_ref(value) as u64;
    let end = start + size_of::<T>() as u64;
    let mut found = Vec::new();
    Decoder::new()
        .expect("own memory can be read")
        .walk(&tape, |_, access, _| {
            if access.address < end && access.address + access.size > start {
                found.push(access);
            }
        })
        .expect("all is decoded");
    found
}

fn writes(found: &[Access]) -> usize {
    found.iter().filter(|access| access.write).count()
}

#[test]
fn a_load_is_a_read_and_a_store_a_write() {
    let word = AtomicU64::new(7);
    let found = accesses(&word, || {
        black_box(&word).load(Ordering::Relaxed);
    });
    assert_eq!((found.len(), writes(&found)), (1, 0), "{found:?}");
    let found = accesses(&word, || black_box(&word).store(1, Ordering::Relaxed));
    assert_eq!((found.len(), writes(&found)), (1, 1), "{found:?}");
    assert_eq!(found[0].size, 8);
}

#[test]
fn a_failed_exchange_is_a_write() {
    let word = AtomicU64::new(7);
    let found = accesses(&word, || {
        let failed = black_box(&word).compare_exchange(8, 9, Ordering::Relaxed, Ordering::Relaxed);
        assert!(failed.is_err());
    });
    assert_eq!(writes(&found), 1, "{found:?}");
}

#[test]
fn copies_of_the_c_library_are_seen_to_the_last_byte() {
    let source = vec![7_u8; 5000];
    let target = Box::new([0_u8; 5000]);
    let mut copy = target.clone();
    let place = ptr::from_ref(&*copy) as u64;
    let recorder = Recorder::new().unwrap();
    let mut tape = Tape::new(1 << 20);
    let inner = &mut *copy;
    recorder.record(&mut tape, || {
        black_box(&mut *inner).copy_from_slice(black_box(&source));
    });
    assert!(tape.whole);
    let mut written = vec![false; 5000];
    Decoder::new()
        .unwrap()
        .walk(&tape, |_, access, _| {
            for byte in access.address..access.address + access.size {
                if access.write && (place..place + 5000).contains(&byte) {
                    written[(byte - place) as usize] = true;
                }
            }
        })
        .unwrap();
    assert_eq!(written.iter().filter(|&&seen| !seen).count(), 0);
    assert_eq!(copy[4999], 7);
}

#[test]
fn an_access_over_a_border_counts_for_both_lines() {
    let access = Access {
        address: 64 * 3 - 4,
        size: 8,
        write: false,
        allocating: false,
    };
    assert_eq!(access.lines(), 2..=3);
    let inside = Access { size: 4, ..access };
    assert_eq!(inside.lines(), 2..=2);
}

#[test]
fn a_tape_that_is_too_short_says_so() {
    let recorder = Recorder::new().unwrap();
    let mut tape = Tape::new(10);
    recorder.record(&mut tape, || {
        black_box((0..1000_u64).map(black_box).sum::<u64>());
    });
    assert!(!tape.whole);
    assert_eq!(tape.steps().len(), 10);
}

#[test]
fn calls_are_known_where_an_access_happens() {
    #[inline(never)]
    fn inner(word: &AtomicU64) {
        word.fetch_add(1, Ordering::Relaxed);
    }
    #[inline(never)]
    fn outer(word: &AtomicU64) {
        inner(black_box(word));
        black_box(word).load(Ordering::Relaxed);
    }
    let word = AtomicU64::new(0);
    let place = ptr::from_ref(&word) as u64;
    let recorder = Recorder::new().unwrap();
    let mut tape = Tape::new(1 << 20);
    recorder.record(&mut tape, || outer(&word));
    let mut depths = Vec::new();
    Decoder::new()
        .unwrap()
        .walk(&tape, |_, access, calls| {
            if access.address == place {
                depths.push((access.write, calls.len()));
            }
        })
        .unwrap();
    let [(true, deep), (false, shallow)] = depths[..] else {
        panic!("{depths:?}");
    };
    assert_eq!(deep, shallow + 1);
}

#[test]
fn what_the_allocator_does_is_marked() {
    let recorder = Recorder::new().unwrap();
    let mut tape = Tape::new(1 << 20);
    recorder.record(&mut tape, || drop(black_box(Box::new(black_box(7_u64)))));
    let marked = tape.steps().iter().filter(|step| step.allocating).count();
    // A malloc and a free from the thread's own cache take some dozens of instructions.
    assert!(marked > 20, "{marked} of {}", tape.steps().len());
    assert!(!tape.steps()[0].allocating);
}
