use super::*;
use crate::types::Errno;
use QuotaKind::{Group, User};
use holdfast_testkit::rng::Rng;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

const ALICE: Owner = Owner { uid: 1, gid: 10 };
const BOB: Owner = Owner { uid: 2, gid: 10 };

/// Charges and releases on two threads.
fn by_two_threads(quotas: &Quotas, owner: Owner) {
    for _ in 0..4 {
        let turn = || {
            for _ in 0..500 {
                quotas.charge(owner, 1, 1).unwrap();
                quotas.release(owner, 1, 1);
            }
        };
        turn();
        thread::scope(|scope| scope.spawn(turn).join().unwrap());
    }
}

#[test]
fn who_may_switch_on_is_asked_while_nobody_else_switches() {
    let quotas = Quotas::new();
    let forbidden = || {
        assert!(quotas.switching.try_lock().is_none());
        Err(Errno::EIO)
    };
    let refused = quotas.switch_on(true, forbidden, || unreachable!("they stay off"));
    assert_eq!((refused, quotas.is_on()), (Err(Errno::EIO), false));
    quotas.switch_on(true, || Ok(()), || ()).unwrap();
}

#[test]
fn the_last_page_can_be_had_by_any_thread() {
    let quotas = enforcing();
    quotas.set_limits(User, 1, &hard(10_000, 10_000)).unwrap();
    by_two_threads(&quotas, ALICE);
    thread::scope(|scope| {
        scope
            .spawn(|| quotas.charge(ALICE, 1, 1).unwrap())
            .join()
            .unwrap();
    });
    assert_eq!(used(&quotas, User, 1), (1, 1));
    assert_eq!(quotas.charge(ALICE, 10_000, 0), Err(Errno::EDQUOT));
    quotas.charge(ALICE, 9_999, 9_999).unwrap();
    assert_eq!(quotas.charge(ALICE, 1, 0), Err(Errno::EDQUOT));
    assert_eq!(quotas.charge(ALICE, 0, 1), Err(Errno::EDQUOT));
    assert_eq!(used(&quotas, User, 1), (10_000, 10_000));
    assert_eq!(used(&quotas, Group, 10), (10_000, 10_000));
}

#[test]
fn a_lowered_limit_refuses_every_thread() {
    let quotas = enforcing();
    by_two_threads(&quotas, ALICE);
    quotas.charge(ALICE, 1000, 1000).unwrap();
    quotas.set_limits(User, 1, &hard(600, 600)).unwrap();
    let refused = || {
        assert_eq!(quotas.charge(ALICE, 1, 0), Err(Errno::EDQUOT));
        assert_eq!(quotas.charge(ALICE, 0, 1), Err(Errno::EDQUOT));
    };
    let elsewhere = |run: &(dyn Fn() + Sync)| {
        thread::scope(|scope| scope.spawn(run).join().unwrap());
    };
    refused();
    elsewhere(&refused);
    quotas.release(ALICE, 300, 300);
    refused();
    elsewhere(&|| quotas.release(ALICE, 100, 100));
    refused();
    elsewhere(&refused);
    quotas.release(ALICE, 1, 1);
    elsewhere(&|| quotas.charge(ALICE, 1, 1).unwrap());
    refused();
    quotas.set_limits(User, 1, &QuotaLimits::default()).unwrap();
    quotas.charge(ALICE, 1 << 40, 1 << 40).unwrap();
    assert_eq!(used(&quotas, User, 1), ((1 << 40) + 600, (1 << 40) + 600));
}

static CLOCK: AtomicI64 = AtomicI64::new(0);

#[test]
fn a_soft_limit_binds_after_the_grace_period() {
    let quotas = Quotas::with_clock(|| Time(CLOCK.load(SeqCst)));
    quotas.switch_on(true, || Ok(()), || ()).unwrap();
    let grace = QuotaGrace {
        bytes: Duration::from_nanos(100),
        inodes: Duration::from_nanos(50),
    };
    quotas.set_grace(User, grace).unwrap();
    by_two_threads(&quotas, ALICE);
    let soft = |soft| QuotaLimit {
        soft: Some(soft),
        hard: Some(2000),
    };
    let limits = QuotaLimits {
        bytes: QuotaLimit {
            hard: None,
            ..soft(1000 * 4096)
        },
        inodes: soft(1000),
    };
    quotas.set_limits(User, 1, &limits).unwrap();
    let deadlines = |quotas: &Quotas| {
        let report = quotas.report();
        let alice = report.iter().find(|record| record.kind == User).unwrap();
        (alice.bytes_deadline, alice.inodes_deadline)
    };
    assert_eq!(deadlines(&quotas), (None, None), "no limit is exceeded");
    CLOCK.store(1000, SeqCst);
    quotas.charge(ALICE, 1000, 1000).unwrap();
    assert_eq!(deadlines(&quotas), (None, None));
    quotas.charge(ALICE, 1, 1).unwrap();
    assert_eq!(deadlines(&quotas), (Some(Time(1100)), Some(Time(1050))));
    CLOCK.store(1050, SeqCst);
    quotas.charge(ALICE, 1, 0).unwrap();
    assert_eq!(quotas.charge(ALICE, 0, 1), Err(Errno::EDQUOT));
    CLOCK.store(1100, SeqCst);
    thread::scope(|scope| {
        let refused = || assert_eq!(quotas.charge(ALICE, 1, 0), Err(Errno::EDQUOT));
        scope.spawn(refused).join().unwrap();
    });
    quotas.release(ALICE, 2, 0);
    assert_eq!(deadlines(&quotas), (None, Some(Time(1050))));
    quotas.charge(ALICE, 1, 0).unwrap();
    assert_eq!(deadlines(&quotas).0, Some(Time(1200)), "a new period");
}

#[test]
fn the_report_has_users_before_groups_by_number() {
    let quotas = enforcing();
    for id in [70_000, 3, 500] {
        quotas.charge(owner(id, id + 1), 1, 1).unwrap();
    }
    quotas.charge(owner(9, 3), 1, 1).unwrap();
    quotas.release(owner(9, 3), 1, 1);
    quotas.set_limits(User, 8, &hard(1, 1)).unwrap();
    let told: Vec<_> = quotas
        .report()
        .iter()
        .map(|record| (record.kind, record.id))
        .collect();
    let users = [3, 8, 500, 70_000].map(|id| (User, id));
    let groups = [4, 501, 70_001].map(|id| (Group, id));
    assert_eq!(told, [&users[..], &groups[..]].concat());
}

/// Charges and releases at random, and checks that usage never exceeds `limit`.
fn hold_to(limit: u64, quotas: &Quotas, owner: Owner, held: &AtomicU64, seed: u64) -> u64 {
    let (mut numbers, mut mine, mut refused) = (Rng::new(seed), Vec::new(), 0);
    let release = |pages| {
        held.fetch_sub(pages, SeqCst);
        quotas.release(owner, pages, 1);
    };
    for round in 0..20_000 {
        // Thirty of these exceed the limit: even one thread reaches it.
        let pages = numbers.below(limit / 10);
        if quotas.charge(owner, pages, 1).is_ok() {
            let before = held.fetch_add(pages, SeqCst);
            assert!(before + pages <= limit, "{before} + {pages}");
            mine.push(pages);
        } else {
            refused += 1;
        }
        if round % 3 == 0 || mine.len() > 30 {
            mine.pop().into_iter().for_each(release);
        }
    }
    mine.into_iter().for_each(release);
    refused
}

#[test]
fn hard_limits_hold_under_threads() {
    let quotas = enforcing();
    quotas.set_limits(Group, 10, &hard(4000, 1 << 20)).unwrap();
    let held = AtomicU64::new(0);
    let refused: u64 = thread::scope(|scope| {
        let threads: Vec<_> = [ALICE, BOB, ALICE, BOB]
            .into_iter()
            .zip(1..)
            .map(|(owner, seed)| {
                let (quotas, held) = (&quotas, &held);
                scope.spawn(move || hold_to(4000, quotas, owner, held, seed))
            })
            .collect();
        threads.into_iter().map(|it| it.join().unwrap()).sum()
    });
    assert!(refused > 0, "the limit was never met");
    for (kind, id) in [(User, 1), (User, 2), (Group, 10)] {
        assert_eq!(used(&quotas, kind, id), (0, 0));
    }
    quotas.charge(BOB, 4000, 1).unwrap();
    assert_eq!(quotas.charge(ALICE, 1, 0), Err(Errno::EDQUOT));
}

#[test]
fn limits_that_change_under_threads_hold_afterwards() {
    let quotas = enforcing();
    quotas.set_limits(User, 1, &hard(1 << 40, 100)).unwrap();
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let workers: Vec<_> = (0..3)
            .map(|seed| {
                let quotas = &quotas;
                scope.spawn(move || hold_to(1 << 40, quotas, ALICE, &AtomicU64::new(0), seed))
            })
            .collect();
        scope.spawn(|| {
            let mut numbers = Rng::new(9);
            while !done.load(SeqCst) {
                let limits = hard(numbers.below(1 << 40), numbers.below(100));
                quotas.set_limits(User, 1, &limits).unwrap();
            }
        });
        let ended: Vec<_> = workers.into_iter().map(|worker| worker.join()).collect();
        done.store(true, SeqCst);
        assert!(ended.iter().all(|end| end.is_ok()), "a worker failed");
    });
    assert_eq!(used(&quotas, User, 1), (0, 0));
    quotas.set_limits(User, 1, &hard(50, 1)).unwrap();
    quotas.charge(ALICE, 50, 1).unwrap();
    assert_eq!(quotas.charge(ALICE, 1, 0), Err(Errno::EDQUOT));
}
