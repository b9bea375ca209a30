use super::*;

use crate::reclaim::{Count, Load, Registered, Request, Scan, Shrinker};

const MIB: u64 = 1 << 20;
const PAGE: u64 = crate::PAGE_SIZE as u64;

/// Holds what it is set to, and keeps to its limit.
#[derive(Debug, Default)]
struct Ballast {
    content: AtomicU64,
    dirty: AtomicU64,
    all: AtomicU64,
    own: AtomicU64,
}

impl Member for Ballast {
    fn usage(&self) -> Usage {
        Usage::NONE
            .with(Class::Content, self.content.load(Relaxed))
            .with(Class::Dirty, self.dirty.load(Relaxed))
    }

    fn limit(&self, all: u64, own: u64) {
        self.all.store(all, Relaxed);
        self.own.store(own, Relaxed);
    }
}

/// Frees pages of a ballast.
struct Pages;

impl Shrinker for Pages {
    type Owner = Ballast;

    fn name(&self) -> &'static str {
        "content"
    }

    fn needs_store(&self) -> bool {
        false
    }

    fn load(&self, ballast: &Ballast) -> Load {
        let own = ballast.own.load(Relaxed);
        Load {
            held: ballast.content.load(Relaxed),
            wake: own,
            stop: own,
            wait: own,
        }
    }

    fn count(&self, ballast: &Ballast) -> Count {
        Count::Objects(ballast.content.load(Relaxed).div_ceil(PAGE))
    }

    fn scan(&self, ballast: &Ballast, request: Request) -> Scan {
        let held = ballast.content.load(Relaxed);
        let left = held.saturating_sub(request.objects * PAGE);
        ballast.content.store(left, Relaxed);
        Scan::Freed((held - left).div_ceil(PAGE))
    }
}

fn joined(memory: &Memory) -> (Arc<Ballast>, Arc<Registered<Pages>>) {
    let ballast = Arc::new(Ballast::default());
    memory.join(Arc::downgrade(&ballast) as Weak<dyn Member>);
    let shrinker = memory.shrinkers().register(Pages, &ballast);
    (ballast, shrinker)
}

#[test]
fn the_budget_is_a_quarter_of_the_machine_or_half_of_a_control_group() {
    assert_eq!(usual(4096 * MIB, None), 1024 * MIB);
    assert_eq!(usual(4096 * MIB, Some(128 * MIB)), 64 * MIB);
    assert_eq!(usual(4096 * MIB, Some(u64::MAX)), 1024 * MIB);
}

#[test]
fn what_can_be_freed_makes_way_for_what_cannot() {
    let memory = Memory::separate(64 * MIB);
    let (ballast, _shrinker) = joined(&memory);
    assert_eq!(ballast.all.load(Relaxed), 63 * MIB);
    assert_eq!(ballast.own.load(Relaxed), 63 * MIB);
    ballast.dirty.store(20 * MIB, Relaxed);
    ballast.content.store(63 * MIB, Relaxed);
    memory.look();
    assert_eq!(
        (ballast.all.load(Relaxed), ballast.own.load(Relaxed)),
        (63 * MIB, 43 * MIB)
    );
    memory.shrinkers().shrink();
    memory.look();
    assert_eq!(memory.seen().usage.total(), 63 * MIB);
    ballast.dirty.store(90 * MIB, Relaxed);
    memory.look();
    assert_eq!(
        ballast.own.load(Relaxed),
        63 * MIB / 8,
        "a little is left in any case"
    );
}

#[test]
fn members_leave_each_other_half_of_their_part_at_least() {
    let memory = Memory::separate(64 * MIB);
    let ((one, _pages), (other, _others)) = (joined(&memory), joined(&memory));
    one.content.store(60 * MIB, Relaxed);
    memory.look();
    assert_eq!(one.own.load(Relaxed), 63 * MIB);
    assert_eq!(other.own.load(Relaxed), 63 * MIB / 4);
    other.content.store(63 * MIB / 4, Relaxed);
    memory.look();
    memory.shrinkers().shrink();
    memory.look();
    assert!(memory.seen().usage.total() <= 63 * MIB);
    drop(one);
    memory.look();
    assert_eq!(
        other.own.load(Relaxed),
        63 * MIB,
        "what has ended holds nothing"
    );
}

#[test]
fn a_budget_is_changed_and_goes_back_to_what_the_host_decides() {
    let memory = Memory::separate(64 * MIB);
    memory.set(Some(u64::MAX));
    assert_eq!(memory.budget(), u64::MAX);
    memory.set(None);
    let usual = usual(host::machine(), host::control_groups()).max(LEAST);
    assert_eq!(memory.budget(), usual);
}

#[test]
fn a_process_that_is_followed_takes_what_nobody_counts_into_account() {
    static TRIMMED: AtomicU64 = AtomicU64::new(0);
    let memory = Memory::separate(1 << 40);
    let (ballast, _shrinker) = joined(&memory);
    let free = memory.limit();
    let reclaim_thread = memory.follow(|| {
        TRIMMED.fetch_add(1, Relaxed);
    });
    let seen = memory.seen();
    assert!(seen.resident.is_some_and(|bytes| bytes > 0));
    assert!(seen.limit < free);
    assert_eq!(TRIMMED.load(Relaxed), 0);
    ballast.content.store(MIB, Relaxed);
    memory.set(Some(1));
    assert!(TRIMMED.load(Relaxed) > 0, "more is resident than may be");
    let until = Instant::now() + Duration::from_secs(60);
    while ballast.content.load(Relaxed) > 0 {
        assert!(Instant::now() < until, "the thread frees nothing");
        memory.moved();
        std::thread::sleep(Duration::from_millis(5));
    }
    drop(reclaim_thread);
    assert!(memory.seen().resident.is_some());
    memory.look();
    assert_eq!(memory.seen().resident, None);
}
