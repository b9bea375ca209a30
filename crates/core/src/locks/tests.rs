use super::inode::InodeLocks;
use super::lock::{LockKind, LockOwner, LockRange, LockRequest, LockSpace};
use super::queue::OVERTAKEN_MAX;
use super::slot::YIELD_MAX;
use super::table::LOCKS_MAX;
use super::{Cancel, LockGraph};
use LockKind::{Read, Write};
use LockSpace::{Flock, Ofd, Posix};
use holdfast_testkit::rng::Rng;
use holdfast_types::{Errno, Result};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const LONG: Duration = Duration::from_secs(30);

/// Three files of one file system.
#[derive(Default)]
struct Files {
    graph: LockGraph,
    locks: [InodeLocks; 3],
}

fn lock(space: LockSpace, owner: u64, kind: LockKind, start: u64, end: u64) -> LockRequest {
    let range = LockRange { start, end };
    LockRequest {
        owner: LockOwner(owner),
        space,
        kind: Some(kind),
        range,
        pid: owner as u32,
    }
}

fn unlock(space: LockSpace, owner: u64, start: u64, end: u64) -> LockRequest {
    LockRequest {
        kind: None,
        ..lock(space, owner, Read, start, end)
    }
}

impl Files {
    fn set(&self, file: usize, request: LockRequest) -> Result<()> {
        self.locks[file].set(&self.graph, &request, None)
    }

    #[track_caller]
    fn grants(&self, file: usize, request: LockRequest) {
        assert_eq!(self.set(file, request), Ok(()));
    }

    /// Another lock is in the way.
    #[track_caller]
    fn refuses(&self, file: usize, request: LockRequest) {
        assert_eq!(self.set(file, request), Err(Errno::EAGAIN));
    }

    fn release(&self, file: usize, owner: u64, space: LockSpace) {
        self.locks[file].release(&self.graph, LockOwner(owner), space);
    }

    fn wait(&self, file: usize, request: LockRequest) -> Result<()> {
        self.locks[file].set(&self.graph, &request, Some(&Cancel::new()))
    }

    fn until_waiting(&self, file: usize, waiters: usize) {
        until(|| self.locks[file].waiting() == waiters);
    }

    /// No lock and no waiter is left in any structure.
    fn assert_clean(&self) {
        assert!(self.locks.iter().all(InodeLocks::is_empty));
        assert!(self.graph.is_idle());
        assert_eq!(self.graph.held(), 0);
    }
}

fn until(condition: impl Fn() -> bool) {
    let deadline = Instant::now() + LONG;
    while !condition() {
        assert!(Instant::now() < deadline, "waited in vain");
        thread::sleep(Duration::from_millis(1));
    }
}

/// The kind of each owner's lock on each byte. The last byte represents all that follow.
#[derive(Default)]
struct Model {
    bytes: BTreeMap<(LockSpace, u64), [Option<LockKind>; Model::BYTES]>,
    flocks: BTreeMap<u64, LockKind>,
}

impl Model {
    const BYTES: usize = 12;

    fn range(from: usize, to: usize) -> LockRange {
        let end = if to == Self::BYTES - 1 {
            u64::MAX
        } else {
            to as u64
        };
        LockRange {
            start: from as u64,
            end,
        }
    }

    fn is_free(&self, who: (LockSpace, u64), kind: LockKind, from: usize, to: usize) -> bool {
        let clash = |other: LockKind| kind == Write || other == Write;
        self.bytes
            .iter()
            .filter(|(holder, _)| **holder != who)
            .all(|(_, bytes)| {
                bytes[from..=to]
                    .iter()
                    .flatten()
                    .all(|&other| !clash(other))
            })
    }

    fn flock_is_free(&self, owner: u64, kind: LockKind) -> bool {
        self.flocks
            .iter()
            .all(|(&other, &held)| other == owner || (kind == Read && held == Read))
    }

    /// The first byte of the first conflicting lock.
    fn first_conflict(
        &self,
        who: (LockSpace, u64),
        kind: LockKind,
        from: usize,
        to: usize,
    ) -> Option<u64> {
        let runs = self.runs();
        let in_way = runs.iter().filter(|(holder, run_kind, start, end)| {
            *holder != who && *start <= to && *end >= from && (kind == Write || *run_kind == Write)
        });
        in_way.map(|&(_, _, start, _)| start as u64).min()
    }

    /// Maximal runs of one kind.
    fn runs(&self) -> Vec<((LockSpace, u64), LockKind, usize, usize)> {
        let mut runs = Vec::new();
        for (&who, bytes) in &self.bytes {
            let mut at = 0;
            while at < Self::BYTES {
                let end = (at..Self::BYTES)
                    .take_while(|&i| bytes[i] == bytes[at])
                    .last();
                let end = end.unwrap_or(at);
                if let Some(kind) = bytes[at] {
                    runs.push((who, kind, at, end));
                }
                at = end + 1;
            }
        }
        runs
    }
}

fn step_records(random: &mut Rng, files: &Files, model: &mut Model) {
    let space = if random.below(2) == 0 { Posix } else { Ofd };
    let who = (space, random.below(3));
    let a = random.below(Model::BYTES as u64) as usize;
    let b = random.below(Model::BYTES as u64) as usize;
    let (from, to) = (a.min(b), a.max(b));
    let range = Model::range(from, to);
    let kind = [None, Some(Read), Some(Read), Some(Write)][random.below(4) as usize];
    let owner = LockOwner(who.1);
    if random.below(16) == 0 {
        files.locks[0].release(&files.graph, owner, space);
        model.bytes.remove(&who);
        return;
    }
    if let Some(kind) = kind {
        let found = files.locks[0].conflict(owner, space, kind, range).unwrap();
        let expected = model.first_conflict(who, kind, from, to);
        assert_eq!(found.map(|held| held.range.start), expected);
    }
    let request = LockRequest {
        owner,
        space,
        kind,
        range,
        pid: 1,
    };
    let free = kind.is_none_or(|kind| model.is_free(who, kind, from, to));
    assert_eq!(
        files.set(0, request),
        if free { Ok(()) } else { Err(Errno::EAGAIN) }
    );
    if free {
        model.bytes.entry(who).or_default()[from..=to].fill(kind);
    }
}

fn step_flock(random: &mut Rng, files: &Files, model: &mut Model) {
    let owner = random.below(3);
    let Some(kind) = [None, Some(Read), Some(Write)][random.below(3) as usize] else {
        files.grants(0, unlock(Flock, owner, 0, 0));
        model.flocks.remove(&owner);
        return;
    };
    let free = model.flock_is_free(owner, kind);
    let answer = files.set(0, lock(Flock, owner, kind, 0, 0));
    assert_eq!(answer, if free { Ok(()) } else { Err(Errno::EAGAIN) });
    if free {
        model.flocks.insert(owner, kind);
    } else if model.flocks.get(&owner) != Some(&kind) {
        model.flocks.remove(&owner);
    }
}

#[test]
fn random_requests_agree_with_a_model_of_bytes() {
    for seed in 0..40 {
        let (mut random, files, mut model) = (Rng::new(seed), Files::default(), Model::default());
        for _ in 0..1500 {
            if random.below(5) == 0 {
                step_flock(&mut random, &files, &mut model);
            } else {
                step_records(&mut random, &files, &mut model);
            }
            let count = model.runs().len() + model.flocks.len();
            assert_eq!(files.graph.held(), count as u64, "seed {seed}");
            assert_eq!(files.locks[0].is_empty(), count == 0, "seed {seed}");
        }
    }
}

#[test]
fn a_range_that_ends_before_it_starts_is_refused() {
    let files = Files::default();
    assert_eq!(files.set(0, lock(Posix, 1, Read, 9, 8)), Err(Errno::EINVAL));
    assert_eq!(files.set(0, unlock(Ofd, 1, 9, 8)), Err(Errno::EINVAL));
    let range = LockRange { start: 9, end: 8 };
    let asked = files.locks[0].conflict(LockOwner(1), Posix, Read, range);
    assert_eq!(asked, Err(Errno::EINVAL));
    files.assert_clean();
}

#[test]
fn an_inode_holds_only_so_many_locks() {
    let files = Files::default();
    for n in 0..LOCKS_MAX as u64 {
        files.grants(0, lock(Posix, 1, Read, n * 4, n * 4 + 2));
    }
    assert_eq!(
        files.set(0, lock(Posix, 1, Read, 1 << 40, 1 << 40)),
        Err(Errno::ENOLCK)
    );
    assert_eq!(files.set(0, unlock(Posix, 1, 1, 1)), Err(Errno::ENOLCK));
    files.grants(0, unlock(Posix, 1, 0, 1));
    files.grants(0, unlock(Posix, 1, 0, 2));
    files.grants(0, lock(Posix, 1, Read, 1 << 40, 1 << 40));
    files.release(0, 1, Posix);
    files.assert_clean();
}

#[test]
fn an_unlock_wakes_who_waits_for_part_of_it() {
    for space in [Posix, Ofd, Flock] {
        let files = Files::default();
        files.grants(0, lock(space, 1, Write, 0, 99));
        thread::scope(|scope| {
            let waiter = scope.spawn(|| files.wait(0, lock(space, 2, Write, 50, 50)));
            files.until_waiting(0, 1);
            if space != Flock {
                files.grants(0, unlock(space, 1, 0, 49));
                assert_eq!(files.locks[0].waiting(), 1);
            }
            files.grants(0, unlock(space, 1, 50, 50));
            assert_eq!(waiter.join().unwrap(), Ok(()));
        });
        for owner in [1, 2] {
            files.release(0, owner, space);
        }
        files.assert_clean();
    }
}

#[test]
fn a_downgrade_lets_waiting_readers_in_together() {
    let files = Files::default();
    files.grants(0, lock(Ofd, 1, Write, 0, 99));
    thread::scope(|scope| {
        let readers = [2, 3, 4].map(|n| {
            scope.spawn({
                let files = &files;
                move || files.wait(0, lock(Posix, n, Read, n, 70))
            })
        });
        files.until_waiting(0, 3);
        files.grants(0, lock(Ofd, 1, Read, 0, 99));
        for reader in readers {
            assert_eq!(reader.join().unwrap(), Ok(()));
        }
    });
    assert_eq!(files.graph.held(), 4);
}

#[test]
fn an_upgrade_waits_for_the_other_reader_and_keeps_the_read_lock() {
    let files = Files::default();
    files.grants(0, lock(Posix, 1, Read, 0, 9));
    files.grants(0, lock(Posix, 2, Read, 5, 5));
    files.refuses(0, lock(Posix, 1, Write, 0, 9));
    thread::scope(|scope| {
        let upgrade = scope.spawn(|| files.wait(0, lock(Posix, 1, Write, 0, 9)));
        files.until_waiting(0, 1);
        files.refuses(0, lock(Ofd, 3, Write, 0, 0));
        assert_eq!(
            files.wait(0, lock(Posix, 2, Write, 5, 5)),
            Err(Errno::EDEADLK)
        );
        files.grants(0, unlock(Posix, 2, 5, 5));
        assert_eq!(upgrade.join().unwrap(), Ok(()));
    });
    files.release(0, 1, Posix);
    files.assert_clean();
}

#[test]
fn two_flock_upgrades_at_once_both_end() {
    let files = Files::default();
    files.grants(0, lock(Flock, 1, Read, 0, 0));
    files.grants(0, lock(Flock, 2, Read, 0, 0));
    thread::scope(|scope| {
        for owner in [1, 2] {
            let files = &files;
            scope.spawn(move || {
                assert_eq!(files.wait(0, lock(Flock, owner, Write, 0, 0)), Ok(()));
                files.release(0, owner, Flock);
            });
        }
    });
    files.assert_clean();
}

#[test]
fn rings_of_two_and_three_owners_are_deadlocks() {
    for owners in [2_usize, 3] {
        let files = Files::default();
        for n in 0..owners {
            files.grants(n, lock(Posix, n as u64, Write, 0, 0));
        }
        thread::scope(|scope| {
            for n in 0..owners - 1 {
                let files = &files;
                scope.spawn(move || {
                    let next = lock(Posix, n as u64, Write, 0, 0);
                    assert_eq!(files.wait(n + 1, next), Ok(()));
                    for file in [n, n + 1] {
                        files.release(file, n as u64, Posix);
                    }
                });
                files.until_waiting(n + 1, 1);
            }
            let last = owners as u64 - 1;
            assert_eq!(
                files.wait(0, lock(Posix, last, Read, 0, 9)),
                Err(Errno::EDEADLK)
            );
            files.locks[owners - 1].release(&files.graph, LockOwner(last), Posix);
        });
        files.assert_clean();
    }
}

#[test]
fn a_deadlock_that_a_grant_brings_about_is_found() {
    let files = Files::default();
    // Owner 1 waits on file 1 for owner 2; owner 2 waits on file 0 for owner 3 alone.
    files.grants(1, lock(Posix, 2, Write, 0, 0));
    files.grants(0, lock(Posix, 3, Read, 0, 0));
    thread::scope(|scope| {
        let first = scope.spawn(|| files.wait(1, lock(Posix, 1, Write, 0, 0)));
        files.until_waiting(1, 1);
        let second = scope.spawn(|| files.wait(0, lock(Posix, 2, Write, 0, 0)));
        files.until_waiting(0, 1);
        // Another thread of owner 1 now conflicts with owner 2.
        files.grants(0, lock(Posix, 1, Read, 0, 0));
        assert_eq!(second.join().unwrap(), Err(Errno::EDEADLK));
        files.release(1, 2, Posix);
        assert_eq!(first.join().unwrap(), Ok(()));
    });
    assert!(files.graph.is_idle());
}

#[test]
fn ofd_and_flock_waits_are_never_called_deadlocks() {
    for space in [Ofd, Flock] {
        let files = Files::default();
        files.grants(0, lock(space, 1, Write, 0, 0));
        files.grants(1, lock(space, 2, Write, 0, 0));
        let cancel = Cancel::new();
        thread::scope(|scope| {
            let first = scope.spawn(|| files.wait(1, lock(space, 1, Write, 0, 0)));
            files.until_waiting(1, 1);
            let second = scope.spawn(|| {
                files.locks[0].set(&files.graph, &lock(space, 2, Write, 0, 0), Some(&cancel))
            });
            files.until_waiting(0, 1);
            cancel.cancel();
            assert_eq!(second.join().unwrap(), Err(Errno::EINTR));
            files.release(1, 2, space);
            assert_eq!(first.join().unwrap(), Ok(()));
        });
    }
}

#[test]
fn cancelling_ends_present_and_future_waits_only() {
    let files = Files::default();
    let cancel = Cancel::new();
    files.grants(0, lock(Posix, 1, Write, 0, 0));
    thread::scope(|scope| {
        let waiters = [2, 3].map(|owner| {
            let (files, cancel) = (&files, &cancel);
            let request = lock(Posix, owner, Write, 0, 0);
            scope.spawn(move || files.locks[0].set(&files.graph, &request, Some(cancel)))
        });
        files.until_waiting(0, 2);
        assert!(!cancel.is_cancelled());
        cancel.clone().cancel();
        for waiter in waiters {
            assert_eq!(waiter.join().unwrap(), Err(Errno::EINTR));
        }
    });
    assert!(cancel.is_cancelled());
    let again = files.locks[0].set(&files.graph, &lock(Posix, 2, Read, 0, 0), Some(&cancel));
    assert_eq!(again, Err(Errno::EINTR));
    let free = files.locks[0].set(&files.graph, &lock(Posix, 2, Read, 5, 5), Some(&cancel));
    assert_eq!(free, Ok(()));
    assert_eq!(files.locks[0].waiting(), 0);
    assert!(files.graph.is_idle());
}

#[test]
fn a_waiter_overtaken_often_is_let_go_first() {
    let files = Files::default();
    files.grants(0, lock(Ofd, 0, Read, 0, 0));
    thread::scope(|scope| {
        let writer = scope.spawn(|| files.wait(0, lock(Ofd, 1, Write, 0, 0)));
        files.until_waiting(0, 1);
        for n in 0..u64::from(OVERTAKEN_MAX) {
            assert_eq!(files.wait(0, lock(Ofd, 10 + n, Read, 0, 0)), Ok(()));
            files.release(0, 10 + n, Ofd);
        }
        // A request that does not wait, and an owner with a lock here, do not yield.
        files.grants(0, lock(Ofd, 5, Read, 0, 0));
        files.grants(0, unlock(Ofd, 5, 0, 0));
        let cancelled = Cancel::new();
        cancelled.cancel();
        let more = lock(Ofd, 0, Read, 0, 5);
        assert_eq!(
            files.locks[0].set(&files.graph, &more, Some(&cancelled)),
            Ok(())
        );
        let newcomer = lock(Ofd, 2, Read, 0, 0);
        let polite = files.locks[0].set(&files.graph, &newcomer, Some(&cancelled));
        assert_eq!(polite, Err(Errno::EINTR));
        let start = Instant::now();
        let lazytime = scope.spawn(|| files.wait(0, lock(Ofd, 2, Read, 0, 0)));
        files.until_waiting(0, 2);
        assert_eq!(lazytime.join().unwrap(), Ok(()));
        assert!(start.elapsed() >= YIELD_MAX);
        files.release(0, 2, Ofd);
        let polite = scope.spawn(|| files.wait(0, lock(Ofd, 3, Read, 0, 0)));
        files.until_waiting(0, 2);
        files.release(0, 0, Ofd);
        assert_eq!(writer.join().unwrap(), Ok(()));
        assert_eq!(files.locks[0].waiting(), 1);
        files.release(0, 1, Ofd);
        assert_eq!(polite.join().unwrap(), Ok(()));
    });
}

/// Rng waiting requests from several threads: locks stay exclusive, every wait ends.
#[test]
fn waits_under_load_keep_the_locks_exclusive_and_end() {
    let files = Files::default();
    let bytes: [AtomicU64; 4] = Default::default();
    thread::scope(|scope| {
        for owner in 0..4_u64 {
            let (files, bytes) = (&files, &bytes);
            scope.spawn(move || {
                let mut random = Rng::new(owner);
                for _ in 0..2000 {
                    let space = [Posix, Ofd][random.below(2) as usize];
                    let (a, b) = (random.below(4), random.below(4));
                    let request = lock(space, owner, Write, a.min(b), a.max(b));
                    let cancel = Cancel::new();
                    if random.below(8) == 0 {
                        cancel.cancel();
                    }
                    let answer = files.locks[0].set(&files.graph, &request, Some(&cancel));
                    if answer == Err(Errno::EINTR) && cancel.is_cancelled() {
                        continue;
                    }
                    assert_eq!(answer, Ok(()));
                    for n in a.min(b)..=a.max(b) {
                        let old = bytes[n as usize].swap(owner + 1, Ordering::Relaxed);
                        assert_eq!(old, 0, "two writers on one byte");
                    }
                    for n in a.min(b)..=a.max(b) {
                        bytes[n as usize].store(0, Ordering::Relaxed);
                    }
                    files.release(0, owner, space);
                }
            });
        }
    });
    files.assert_clean();
}

/// Threads that hold one lock and wait for another: some get `EDEADLK`, none hangs.
#[test]
fn random_lock_orders_end_in_deadlock_errors_and_never_hang() {
    // Threads that rarely run at the same time may cause none.
    let met = (0..50).any(|_| deadlocks_of_random_orders() > 0);
    assert!(met, "the test met no deadlock");
}

fn deadlocks_of_random_orders() -> u64 {
    let files = Files::default();
    let deadlocks = AtomicU64::new(0);
    thread::scope(|scope| {
        for owner in 0..4_u64 {
            let (files, deadlocks) = (&files, &deadlocks);
            scope.spawn(move || {
                let mut random = Rng::new(100 + owner);
                for _ in 0..500 {
                    for _ in 0..3 {
                        let file = random.below(3) as usize;
                        let kind = [Read, Write][random.below(2) as usize];
                        match files.wait(file, lock(Posix, owner, kind, 0, 0)) {
                            Err(Errno::EDEADLK) => {
                                deadlocks.fetch_add(1, Ordering::Relaxed);
                                break;
                            }
                            answer => assert_eq!(answer, Ok(())),
                        }
                        thread::yield_now();
                    }
                    for locks in &files.locks {
                        locks.release(&files.graph, LockOwner(owner), Posix);
                    }
                }
            });
        }
    });
    files.assert_clean();
    deadlocks.load(Ordering::Relaxed)
}
