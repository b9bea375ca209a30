use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Barrier};
use std::thread;

use proptest::prelude::*;

use super::pass::Passed;
use super::*;
use crate::PAGE_SIZE;

const PAGE: u64 = PAGE_SIZE as u64;

/// Objects of one page each, which are freed when scanned unless they are busy.
#[derive(Debug, Default)]
struct Pool {
    objects: AtomicU64,
    /// The number of objects that are not busy.
    idle: AtomicU64,
    stop: AtomicU64,
    /// Requests, and the objects that they were for.
    requests: AtomicU64,
    asked: AtomicU64,
    least: AtomicU64,
    firsts: AtomicU64,
    stops: AtomicBool,
}

impl Pool {
    fn of(objects: u64, stop: u64) -> Arc<Self> {
        let pool = Self::default();
        pool.fill(objects);
        pool.stop.store(stop, Relaxed);
        Arc::new(pool)
    }

    fn fill(&self, objects: u64) {
        self.objects.store(objects, Relaxed);
        self.idle.store(objects, Relaxed);
        self.least.store(objects, Relaxed);
    }

    fn held(&self) -> u64 {
        self.objects.load(Relaxed)
    }
}

/// Frees objects of a pool.
struct Idle {
    batch: u64,
    needs_store: bool,
}

impl Shrinker for Idle {
    type Owner = Pool;

    fn name(&self) -> &'static str {
        "idle"
    }

    fn batch(&self) -> u64 {
        self.batch
    }

    fn needs_store(&self) -> bool {
        self.needs_store
    }

    fn load(&self, pool: &Pool) -> Load {
        let stop = pool.stop.load(Relaxed) * PAGE;
        Load {
            held: pool.held() * PAGE,
            wake: stop,
            stop,
            wait: u64::MAX,
        }
    }

    fn count(&self, pool: &Pool) -> Count {
        match pool.held() {
            0 => Count::Empty,
            objects => Count::Objects(objects),
        }
    }

    fn scan(&self, pool: &Pool, request: Request) -> Scan {
        pool.requests.fetch_add(1, Relaxed);
        pool.firsts.fetch_add(u64::from(request.first), Relaxed);
        if pool.stops.load(Relaxed) {
            return Scan::Stop;
        }
        pool.asked.fetch_add(request.objects, Relaxed);
        let idle = pool.idle.load(Relaxed);
        let gone = request.objects.min(idle);
        pool.idle.store(idle - gone, Relaxed);
        pool.least
            .fetch_min(pool.objects.fetch_sub(gone, Relaxed) - gone, Relaxed);
        Scan::Freed(gone)
    }
}

fn registered(
    pool: &Arc<Pool>,
    batch: u64,
    needs_store: bool,
) -> (Registry, Arc<Registered<Idle>>) {
    let registry = Registry::default();
    let shrinker = Idle { batch, needs_store };
    let registered = registry.register(shrinker, pool);
    (registry, registered)
}

/// The records of the passes since this record.
fn steps(registry: &Registry, from: u64) -> Vec<Step> {
    let read = registry.trace().read(Some(from), usize::MAX);
    read.records.into_iter().map(|record| record.step).collect()
}

/// A class of inodes that frees what the source's file system freed: up to 1,025 objects for each
/// batch of 1,024.
struct Counted(u64);

impl Shrinker for Counted {
    /// Objects that can still be freed.
    type Owner = AtomicU64;

    fn name(&self) -> &'static str {
        "super_cache_scan"
    }

    fn batch(&self) -> u64 {
        1024
    }

    fn needs_store(&self) -> bool {
        true
    }

    fn load(&self, _: &AtomicU64) -> Load {
        Load {
            held: 1,
            ..Load::default()
        }
    }

    fn count(&self, _: &AtomicU64) -> Count {
        Count::Objects(self.0)
    }

    fn scan(&self, left: &AtomicU64, request: Request) -> Scan {
        let gone = left.load(Relaxed).min(request.objects + 1);
        left.fetch_sub(gone, Relaxed);
        Scan::Freed(gone)
    }
}

/// A pass over `objects`, with deferred work, for a pressure in pages.
fn recorded(items: u64, owed: u64, (scanned, lru): (u64, u64)) -> (Option<Passed>, Vec<Step>) {
    let registry = Registry::default();
    let left = Arc::new(AtomicU64::new(874_354));
    let class = registry.register(Counted(items), &left);
    class.owe(owed);
    let from = registry.trace().read(None, 0).next;
    let load = Load {
        held: lru * PAGE,
        ..Load::default()
    };
    let passed = class.pass(&left, &load, scanned * PAGE, &mut true);
    (passed, steps(&registry, from))
}

#[test]
fn the_records_of_the_source_are_those_of_the_passes() {
    let (passed, steps) = recorded(2_416_122, 882_936, (32, 6236));
    let start = Step::Start {
        deferred: 882_936,
        context: Context::Anywhere,
        pressure: Pressure {
            scanned: 32,
            lru: 6236,
        },
        items: 2_416_122,
        delta: 24_792,
        total: 907_728,
    };
    let end = Step::End {
        deferred: 882_936,
        owed: 464,
        total: 464,
        freed: 874_354,
    };
    assert_eq!(steps, [start, end]);
    assert_eq!(passed.map(|it| it.scanned), Some(886 * 1024));
    let guard = within_store();
    let (passed, steps) = recorded(2_236_078, 64_064, (32, 6697));
    drop(guard);
    assert!(passed.is_some_and(|it| it.stopped && it.freed == 0));
    let Step::Start { delta, total, .. } = steps[0] else {
        panic!("{steps:?}")
    };
    assert_eq!((delta, total), (21_365, 85_429));
    let end = Step::End {
        deferred: 64_064,
        owed: 85_429,
        total: 85_429,
        freed: 0,
    };
    assert_eq!(steps[1], end);
}

#[test]
fn a_pass_within_the_store_frees_nothing_and_owes_everything() {
    let pool = Pool::of(10_000, 9_000);
    let (registry, class) = registered(&pool, 128, true);
    let guard = within_store();
    assert_eq!(class.shrink(&pool), Shrunk::Left);
    assert_eq!(class.totals().deferred, 1999, "two tenths, about");
    registry.shrink();
    assert_eq!(class.totals().deferred, 3999);
    assert_eq!((pool.held(), pool.requests.load(Relaxed)), (10_000, 0));
    // What needs no store is freed there as anywhere.
    let (_registry, other) = registered(&pool, 128, false);
    assert_eq!(other.shrink(&pool), Shrunk::Reached);
    pool.fill(10_000);
    drop(guard);
    assert_eq!(class.shrink(&pool), Shrunk::Reached);
    assert!(class.totals().deferred > 0 && pool.held() <= 9_000);
}

#[test]
fn a_stop_beside_another_loses_no_debt() {
    let pool = Pool::of(100_000, 99_000);
    let (_registry, class) = registered(&pool, 128, true);
    let both = Barrier::new(2);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let _guard = within_store();
                both.wait();
                for _ in 0..10 {
                    class.shrink(&pool);
                }
            });
        }
    });
    // Each adds a fiftieth, less a fraction.
    let owed = class.totals().deferred;
    assert_eq!(pool.held(), 100_000);
    assert!((20 * 1999..=20 * 2000).contains(&owed), "{owed}");
}

#[test]
fn a_large_debt_is_repaid_over_passes_and_never_below_the_mark() {
    let pool = Pool::of(2_400_000, 2_390_000);
    let (_registry, class) = registered(&pool, 1024, true);
    class.owe(900_000);
    let mut reclaims = 0;
    while class.totals().deferred > 0 {
        let (owed, asked) = (class.totals().deferred, pool.asked.load(Relaxed));
        pool.fill(2_400_000);
        assert_eq!(class.shrink(&pool), Shrunk::Reached);
        assert!(
            pool.least.load(Relaxed) > 2_390_000 - 1024,
            "below the mark"
        );
        let asked = pool.asked.load(Relaxed) - asked;
        assert!(asked < 20_000, "{asked} at once");
        assert_eq!(class.totals().deferred, owed.saturating_sub(asked));
        reclaims += 1;
    }
    assert!((80..100).contains(&reclaims), "{reclaims}");
}

#[test]
fn an_object_that_came_after_a_class_was_empty_is_found_by_the_next_pass() {
    let pool = Pool::of(0, 0);
    let (registry, class) = registered(&pool, 128, true);
    class.owe(40);
    let from = registry.trace().read(None, 0).next;
    let load = Load {
        held: PAGE,
        ..Load::default()
    };
    assert_eq!(class.pass(&pool, &load, PAGE, &mut true), None);
    assert!(steps(&registry, from).is_empty(), "nothing is recorded");
    assert_eq!(class.totals().deferred, 40, "and nothing forgotten");
    pool.fill(1);
    assert_eq!(class.shrink(&pool), Shrunk::Reached);
    assert_eq!(pool.held(), 0);
}

#[test]
fn fifty_objects_of_which_a_hundredth_is_wanted_are_scanned_within_a_hundred_passes() {
    let pool = Pool::of(50, 0);
    let (_registry, class) = registered(&pool, 128, true);
    let load = Load {
        held: 100 * PAGE,
        ..Load::default()
    };
    let passes = (1..=100).find(|_| {
        class.pass(&pool, &load, PAGE, &mut true);
        pool.held() == 0
    });
    assert!(passes.is_some_and(|passes| passes > 10), "{passes:?}");
}

#[test]
fn a_scan_ends_though_everything_is_busy() {
    let pool = Pool::of(10_000, 5_000);
    let (_registry, class) = registered(&pool, 128, true);
    pool.idle.store(0, Relaxed);
    assert_eq!(class.shrink(&pool), Shrunk::Short);
    let asked = pool.asked.load(Relaxed);
    assert_eq!((pool.held(), pool.firsts.load(Relaxed)), (10_000, 1));
    assert!(asked >= 10_000, "only {asked} were looked at");
    // A few rounds; then the next reclaims are skipped.
    assert!(asked <= 120_000, "{asked}");
    let again = (0..64).filter(|_| class.shrink(&pool) != Shrunk::Left);
    assert!((1..10).contains(&again.count()));
    // A shrinker that has scanned everything says so.
    let pool = Pool::of(10_000, 5_000);
    let (_registry, class) = registered(&pool, 128, true);
    pool.stops.store(true, Relaxed);
    assert_eq!(class.shrink(&pool), Shrunk::Short);
    assert_eq!(pool.requests.load(Relaxed), 1);
}

#[test]
fn a_shrinker_is_asked_for_as_long_as_it_is_kept_and_its_owner_lives() {
    let (pool, other) = (Pool::of(100, 50), Pool::of(100, 50));
    let (registry, class) = registered(&pool, 8, true);
    let second = registry.register(
        Idle {
            batch: 8,
            needs_store: true,
        },
        &other,
    );
    registry.shrink();
    assert!(pool.held() <= 50 && other.held() <= 50);
    let sum = registry.totals()["idle"];
    assert_eq!(sum.freed, 200 - pool.held() - other.held());
    assert!(sum.passes >= 2 && sum.scanned >= sum.freed);
    assert_eq!(sum.nanoseconds_followed, sum.nanoseconds);
    pool.fill(100);
    assert_eq!(class.shrink(&pool), Shrunk::Reached);
    let own = registry.totals()["idle"];
    assert_eq!(own.nanoseconds_followed, sum.nanoseconds, "an operation's");
    assert!(own.nanoseconds > sum.nanoseconds);
    pool.fill(100);
    drop(class);
    registry.shrink();
    assert_eq!(pool.held(), 100);
    drop(other);
    registry.shrink();
    drop(second);
    assert!(registry.totals().is_empty());
}

#[test]
fn threads_that_reclaim_beside_each_other_free_what_is_too_much_and_little_more() {
    let pool = Pool::of(100_000, 50_000);
    let (_registry, class) = registered(&pool, 64, true);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| class.shrink(&pool));
        }
    });
    assert!((49_900..=50_000).contains(&pool.held()), "{pool:?}");
    assert!(!class.is_busy());
}

proptest! {
    #[test]
    fn deferral_stays_below_twice_the_objects(
        passes in prop::collection::vec((1_u64..5_000, 0_u64..5_000, any::<bool>()), 1..40)
    ) {
        let pool = Pool::of(1, 0);
        let (_registry, class) = registered(&pool, 128, true);
        let mut most = 0;
        for (objects, wanted, stops) in passes {
            pool.fill(objects);
            pool.stops.store(stops, Relaxed);
            let load = Load { held: objects * PAGE, ..Load::default() };
            class.pass(&pool, &load, wanted * PAGE, &mut true);
            most = 2 * objects;
            prop_assert!(class.totals().deferred <= most);
        }
        prop_assert!(most > 0);
    }
}
