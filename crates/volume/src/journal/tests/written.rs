//! Commits that are written and not flushed: with which cache they count, and when.

use super::crash::{WRITE, live};
use super::{
    Event, Recorder, all, commit_with, creation, formatted, region, reopened, shown, write,
    write_with,
};
use crate::journal::{Error, Journal, Mode, Position};
use holdfast_core::store::Lsn;
use holdfast_device::MemoryDevice;
use std::sync::Arc;
use std::sync::atomic::Ordering;

const BLOCKS: u64 = 128;

fn journal(cache: u64) -> (Arc<Recorder>, Journal) {
    let device = formatted(BLOCKS);
    device.cache.store(cache, Ordering::Relaxed);
    let (journal, _) = reopened(&device, BLOCKS, Position::default());
    (device, journal)
}

/// What a kill leaves where the cache is this one.
fn copied(device: &Recorder, cache: u64) -> Arc<Recorder> {
    let copy = MemoryDevice::from_image("copy", device.inner.image());
    Arc::new(Recorder::new(copy).cached(cache))
}

/// The number of batches that a replay with this cache finds.
fn found(device: &Recorder, cache: u64) -> usize {
    let copy = copied(device, cache);
    reopened(&copy, BLOCKS, Position::default()).1.len()
}

fn append(journal: &Journal, index: u64) {
    let batch = creation(index, b"name");
    journal.append(1, &batch).expect("room");
}

#[test]
fn what_was_written_is_found_where_its_cache_is_and_everywhere_once_it_is_flushed() {
    let (device, journal) = journal(7);
    append(&journal, 0);
    journal.commit(None).expect("a device that works");
    let flushes = device.flushes.load(Ordering::Relaxed);
    for index in 1..4 {
        append(&journal, index);
        let durable = journal.durable();
        write(&journal).expect("a device that works");
        assert_eq!(journal.durable(), durable, "it was only written");
        let counts = [7, 8, 0].map(|cache| found(&device, cache));
        assert_eq!(counts, [index as usize + 1, 1, 1]);
    }
    assert_eq!(device.flushes.load(Ordering::Relaxed), flushes);
    // Without further batches, a commit still writes the mark.
    journal.commit(None).expect("a device that works");
    assert_eq!([7, 8, 0].map(|cache| found(&device, cache)), [4; 3]);
    append(&journal, 4);
    write(&journal).expect("a device that works");
    append(&journal, 5);
    journal.commit(None).expect("a device that works");
    assert_eq!([7, 8, 0].map(|cache| found(&device, cache)), [6; 3]);
}

#[test]
fn nothing_is_only_written_where_nobody_knows_the_cache_or_nothing_waits() {
    let (device, unknown) = journal(0);
    append(&unknown, 0);
    write(&unknown).expect("nothing to fail");
    assert_eq!(*device.log.lock(), []);
    let (device, idle) = journal(7);
    write(&idle).expect("nothing to fail");
    idle.commit(None).expect("nothing to fail");
    assert_eq!(*device.log.lock(), []);
}

#[test]
fn what_is_behind_it_on_the_device_is_durable_before_a_flushed_commit_says_so() {
    let (device, journal) = journal(7);
    append(&journal, 0);
    write(&journal).expect("a device that works");
    append(&journal, 1);
    journal.commit(None).expect("a device that works");
    let log = device.log.lock();
    let flushes = |event: &Event| *event == Event::Flush;
    let order: Vec<bool> = log.iter().map(flushes).collect();
    // Both groups and the place of a mark, and then the mark.
    assert_eq!(order, [false, false, false, true, false, true]);
}

#[test]
fn marks_are_paid_once() {
    let (_device, journal) = journal(7);
    for round in 0..10 {
        for number in 0..round {
            append(&journal, number);
            write(&journal).expect("room");
        }
        append(&journal, round);
        let committed = commit_with(&journal, Lsn(u64::MAX), |_| Ok(()));
        journal.trim(committed.expect("room").expect("led"));
        assert_eq!(journal.used(), 0, "round {round}");
    }
}

#[test]
fn a_commit_counts_for_its_cache_before_it_is_flushed_and_is_followed_by_what_is_written_meanwhile()
{
    let (device, journal) = journal(7);
    append(&journal, 0);
    let mut group = journal.begin_group(Mode::Flushed).expect("not failed");
    group.cut();
    group.needs_flush();
    group.write().expect("nothing to fail");
    assert!(!device.log.lock().contains(&Event::Flush));
    // The batch survives a kill of the process, and not a crash of the host.
    assert_eq!([7, 8].map(|cache| found(&device, cache)), [1, 0]);
    assert_eq!(group.flush(), Ok(true));
    let position = group.mark().expect("nothing to fail");
    drop(group);
    // Another group behind it.
    append(&journal, 1);
    write(&journal).expect("no turn is needed");
    assert_eq!([7, 8].map(|cache| found(&device, cache)), [2, 1]);
    // A replay from there loses nothing behind the commit.
    journal.trim(position);
    let copy = copied(&device, 7);
    let (_, seen) = reopened(&copy, BLOCKS, position);
    assert_eq!((seen.len(), position.block), (1, 2));
}

#[test]
fn a_journal_says_what_it_took_before_it_goes_on() {
    let (device, journal) = journal(7);
    append(&journal, 0);
    write(&journal).expect("a device that works");
    drop(journal);
    for cache in [7, 8] {
        let copy = copied(&device, cache);
        let (again, seen) = reopened(&copy, BLOCKS, Position::default());
        assert!(again.owes_mark());
        again.commit(None).expect("a device that works");
        assert!(!again.owes_mark());
        // From now on every replay finds the same, and none finds what this one did not.
        let counts = [7, 8, 0].map(|cache| found(&copy, cache));
        assert_eq!(counts, [seen.len(); 3]);
        assert_eq!(seen.len(), usize::from(cache == 7));
        let (later, _) = reopened(&copy, BLOCKS, Position::default());
        assert!(!later.owes_mark());
    }
}

#[test]
fn a_full_journal_is_flushed_where_it_could_not_say_so_later() {
    let device = formatted(64);
    device.cache.store(7, Ordering::Relaxed);
    let (journal, _) = reopened(&device, 64, Position::default());
    // Records that a commit appends take the last block.
    let data = |blocks: u64| vec![0; blocks as usize * 4096 - 1000];
    fn record(data: &[u8]) -> crate::journal::Record<'_> {
        crate::journal::Record::Change(holdfast_core::store::Change::Write {
            ino: holdfast_types::Ino(1),
            offset: 0,
            data,
        })
    }
    append(&journal, 0);
    write_with(&journal, &[record(&data(40))]).expect("room for it and its mark");
    append(&journal, 1);
    write_with(&journal, &[record(&data(10))]).expect("room");
    let free = 64 - journal.used() / 4096;
    let rest = data(free);
    commit_with(&journal, Lsn(u64::MAX), |group| {
        group.append_records(1, &[record(&rest)])
    })
    .expect("its mark is paid");
    append_nothing_fits(&journal);
    let copy = copied(&device, 0);
    let mut replay = Journal::open(copy, region(64), Position::default()).expect("a region");
    assert_eq!(all(&mut replay).expect("whole").len(), 5);
}

fn append_nothing_fits(journal: &Journal) {
    let full = journal.append(1, &creation(9, b"name"));
    assert!(matches!(full, Err(Error::Full)), "{full:?}");
}

#[test]
fn a_flush_that_fails_takes_back_what_counted_on_it() {
    let (device, journal) = journal(7);
    append(&journal, 0);
    journal.commit(None).expect("a device that works");
    append(&journal, 1);
    write(&journal).expect("a device that works");
    assert_eq!(found(&device, 7), 2);
    // The flush itself fails, and what follows it works.
    device.fail_flush.store(true, Ordering::Relaxed);
    append(&journal, 2);
    assert!(journal.commit(None).is_err() && journal.failed());
    assert_eq!([7, 8].map(|cache| found(&device, cache)), [1; 2]);
}

const STEPS: [u32; 15] = [
    9, WRITE, 300, WRITE, 9_000, 0, 70_000, WRITE, WRITE, 0, 5, WRITE, 150_000, 0, WRITE,
];

#[test]
fn a_process_killed_at_any_sector_leaves_all_that_was_written() {
    let device = formatted(BLOCKS);
    device.cache.store(7, Ordering::Relaxed);
    let incarnation = live(&device, Position::default(), &STEPS, 1);
    for events in 0..=incarnation.log.len() {
        for torn in 0..=incarnation.sectors(events) {
            let killed = incarnation.killed(events, torn);
            killed.cache.store(7, Ordering::Relaxed);
            let before = events - usize::from(torn < incarnation.sectors(events));
            incarnation.check(&killed, before, Position::default());
        }
    }
}

#[test]
fn power_that_fails_at_any_sector_leaves_what_was_flushed() {
    let device = formatted(BLOCKS);
    device.cache.store(7, Ordering::Relaxed);
    let incarnation = live(&device, Position::default(), &STEPS, 1);
    for events in 0..=incarnation.log.len() {
        let mut count = 0;
        incarnation.crashed(events, |sector| {
            count = sector + 1;
            true
        });
        for missing in 0..=count {
            let crashed = incarnation.crashed(events, |sector| sector != missing);
            crashed.cache.store(8, Ordering::Relaxed);
            incarnation.check(&crashed, events, Position::default());
            let behind = incarnation.crashed(events, |sector| sector >= missing);
            incarnation.check(&behind, events, Position::default());
        }
    }
}

#[test]
fn a_lot_that_is_only_written_is_flushed_now_and_then_and_still_not_durable() {
    let blocks = 4096;
    let device = formatted(blocks);
    device.cache.store(7, Ordering::Relaxed);
    let (journal, _) = reopened(&device, blocks, Position::default());
    let flushes = device.flushes.load(Ordering::Relaxed);
    let mut expected = Vec::new();
    for index in 0..2500 {
        let mut batch = creation(index, b"large");
        let data = vec![index as u8; 4000];
        batch.push(holdfast_core::store::Change::Write {
            ino: holdfast_types::Ino(1),
            offset: 0,
            data: &data,
        });
        let lsn = journal.append(1, &batch).expect("room");
        expected.push((lsn, 1, shown(&batch)));
        if index % 100 == 0 {
            write(&journal).expect("a device that works");
        }
    }
    write(&journal).expect("a device that works");
    assert_eq!(device.flushes.load(Ordering::Relaxed) - flushes, 1);
    let found = |cache| {
        let copy = copied(&device, cache);
        reopened(&copy, blocks, Position::default()).1
    };
    assert!(found(7) == expected);
    assert_eq!(found(8), []);
}
