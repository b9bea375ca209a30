//! Group commit, what a commit does besides, and failures.

use super::{commit_with, creation, formatted, fresh, reopened, shown};
use crate::journal::{Error, Group, Map, Position, Record, Result};
use holdfast_core::store::Lsn;
use std::collections::BTreeMap;
use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

/// Appends these maps, each in a batch of its own.
pub(super) fn append_maps(group: &mut Group<'_>, maps: &[Map]) -> Result<()> {
    maps.iter()
        .try_for_each(|map| group.append_records(1, &[Record::Map(*map)]))
}

#[test]
fn threads_that_commit_at_once_share_flushes() {
    const THREADS: u64 = 8;
    const EACH: u64 = 200;
    let (device, journal) = fresh(4096);
    device.flushes.store(0, Ordering::Relaxed);
    let start = Barrier::new(THREADS as usize);
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let (journal, start) = (&journal, &start);
            scope.spawn(move || {
                start.wait();
                for index in 0..EACH {
                    let batch = creation(thread * EACH + index, b"name");
                    let lsn = journal.append(1 + thread, &batch).expect("room");
                    // As slow as flushes are, so that other threads arrive meanwhile.
                    let slow = |_: &mut Group<'_>| {
                        thread::sleep(std::time::Duration::from_micros(200));
                        Ok(())
                    };
                    commit_with(journal, lsn, slow).expect("a device that works");
                    assert!(journal.durable() >= lsn);
                }
            });
        }
    });
    let flushes = device.flushes.load(Ordering::Relaxed);
    assert!(flushes < THREADS * EACH / 2, "{flushes} flushes");
    let (_, seen) = reopened(&device, 4096, Position::default());
    assert_eq!(seen.len() as u64, THREADS * EACH);
    assert!(seen.is_sorted_by_key(|(lsn, ..)| *lsn));
    let mut next = BTreeMap::new();
    for (_, subvolume, records) in seen {
        let index = next.entry(subvolume).or_insert(0);
        assert_eq!(
            records,
            shown(&creation((subvolume - 1) * EACH + *index, b"name"))
        );
        *index += 1;
    }
}

#[test]
fn a_failed_write_or_flush_ends_everything() {
    for calls in 0..2 {
        let device = formatted(64);
        let (journal, _) = reopened(&device, 64, Position::default());
        let first = journal.append(1, &creation(0, b"safe")).expect("room");
        journal.commit(None).expect("a device that works");
        let second = journal.append(1, &creation(1, b"lost")).expect("room");
        device.left.store(calls, Ordering::Relaxed);
        let error = journal.commit(Some(second));
        assert!(matches!(error, Err(Error::Device(_))), "{error:?}");
        device.left.store(u64::MAX, Ordering::Relaxed);
        assert!(journal.failed() && journal.durable() < second);
        assert_eq!(journal.append(1, &creation(2, b"no")), Err(Error::Failed));
        assert_eq!(journal.commit(Some(second)), Err(Error::Failed));
        assert_eq!(journal.commit(None), Err(Error::Failed));
        journal.commit(Some(first)).expect("it is durable already");
    }
}

#[test]
fn all_who_wait_for_a_failed_commit_hear_of_it() {
    let (device, journal) = fresh(1024);
    device.left.store(9, Ordering::Relaxed);
    let (done, failed) = (AtomicU64::new(0), AtomicU64::new(0));
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for index in 0..50 {
                    let appended = journal.append(1, &creation(index, b"name"));
                    let result = appended.and_then(|lsn| {
                        journal.commit(Some(lsn))?;
                        assert!(journal.durable() >= lsn);
                        Ok(())
                    });
                    let count = if result.is_ok() { &done } else { &failed };
                    count.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
    });
    let done = done.into_inner();
    assert_eq!(done + failed.into_inner(), 400);
    device.left.store(u64::MAX, Ordering::Relaxed);
    let (_, seen) = reopened(&device, 1024, Position::default());
    assert!(seen.len() as u64 >= done);
}

#[test]
fn a_group_that_is_given_up_ends_everything_before_another_begins() {
    const MAP: Map = Map {
        ino: holdfast_types::Ino(1),
        offset: 0,
        start: 9,
        blocks: 1,
        generation: 1,
        unwritten: true,
    };
    const WAITERS: usize = 4;
    for panics in [false, true] {
        let (device, journal) = fresh(64);
        let lsn = journal.append(1, &creation(0, b"lost")).expect("room");
        let come = Barrier::new(1 + WAITERS);
        // Fails, by an error or a panic, after all other threads have arrived.
        let refuse = |group: &mut Group<'_>| {
            append_maps(group, &[MAP; 3])?;
            come.wait();
            // They wait for the turn, or find it given back: either is right.
            (0..100).for_each(|_| thread::yield_now());
            assert!(!panics, "this is a test");
            Err(Error::Full)
        };
        let answers: Vec<_> = thread::scope(|scope| {
            let leader = scope.spawn(|| commit_with(&journal, lsn, refuse).map(drop));
            let wait = |nth| {
                let (journal, come) = (&journal, &come);
                scope.spawn(move || {
                    // The leader waits here during its turn.
                    come.wait();
                    match nth {
                        0 => journal.commit(None),
                        _ => journal.commit(Some(lsn)),
                    }
                })
            };
            let waiters: Vec<_> = (0..WAITERS).map(wait).collect();
            let answer = |call: thread::ScopedJoinHandle<'_, _>| call.join().ok();
            let answers = std::iter::once(leader).chain(waiters).map(answer);
            answers.collect()
        });
        assert_eq!(answers[0], (!panics).then_some(Err(Error::Full)));
        for answer in &answers[1..] {
            assert_eq!(*answer, Some(Err(Error::Failed)));
        }
        assert!(journal.durable() < lsn && journal.failed());
        let (_, seen) = reopened(&device, 64, Position::default());
        assert_eq!(seen, []);
    }
}

#[test]
fn a_commit_takes_its_cut_when_its_leader_says_so() {
    let (device, journal) = fresh(64);
    let first = journal.append(1, &creation(0, b"first")).expect("room");
    let mut lsns = Vec::new();
    let append_around_the_cut = |group: &mut Group<'_>| {
        lsns.push(journal.append(1, &creation(1, b"before"))?);
        lsns.push(group.cut());
        lsns.push(journal.append(1, &creation(2, b"behind"))?);
        Ok(())
    };
    let committed = commit_with(&journal, first, append_around_the_cut);
    let position = committed.expect("a device that works").expect("led");
    assert_eq!(position.lsn, lsns[1], "the position is the cut's");
    assert!(journal.durable() < lsns[2]);
    let (_, seen) = reopened(&device, 64, Position::default());
    let seen: Vec<Lsn> = seen.iter().map(|(lsn, ..)| *lsn).collect();
    assert_eq!(seen, [first, lsns[0]]);
}

#[test]
fn what_the_journal_has_nothing_of_is_durable_with_the_next_cut() {
    let (_, journal) = fresh(64);
    // A change that is made once the cut of a commit is taken.
    let commit = |upto: Lsn| {
        let mut late = Lsn(0);
        commit_with(&journal, upto, |group| {
            let cut = group.cut();
            assert!(cut >= upto);
            late = journal.before_next_cut();
            assert!(late > cut);
            Ok(())
        })
        .expect("a device that works");
        assert!(journal.durable() >= upto);
        late
    };
    let first = journal.before_next_cut();
    assert!(journal.durable() < first);
    let second = commit(first);
    assert!(journal.durable() < second, "it was late");
    commit(second);
}
