use super::*;
use crate::types::Errno;
use QuotaKind::{Group, User};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

const ALICE: Owner = Owner { uid: 1, gid: 10 };
const BOB: Owner = Owner { uid: 2, gid: 10 };

/// Charges and releases on two threads until both surely have credits.
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
fn while_off_nothing_is_counted_or_limited() {
    let quotas = Quotas::new();
    assert!(!quotas.is_on());
    quotas.charge(ALICE, u64::MAX, u64::MAX).unwrap();
    quotas.release(ALICE, 5, 5);
    quotas.transfer(ALICE, BOB, 1, 1, Check::Limits).unwrap();
    assert_eq!(quotas.set_limits(User, 1, &hard(0, 0)), Err(Errno::ESRCH));
    assert_eq!(
        quotas.set_grace(User, QuotaGrace::default()),
        Err(Errno::ESRCH)
    );
    quotas.switch_off(|| unreachable!("they are off"));
    quotas.switch_on(true, || Ok(()), || ()).unwrap();
    assert!(quotas.is_on() && quotas.report().is_empty());
    assert_eq!(
        quotas.switch_on(true, || Ok(()), || unreachable!("they are on")),
        Err(Errno::EBUSY)
    );
    quotas.charge(ALICE, 1, 1).unwrap();
    quotas.switch_off(|| ());
    assert!(!quotas.is_on());
    assert_eq!((used(&quotas, User, 1), quotas.report().len()), ((0, 0), 0));
    quotas.switch_on(true, || Ok(()), || ()).unwrap();
    assert_eq!(
        used(&quotas, User, 1),
        (0, 0),
        "the former accounts are gone"
    );
}

#[test]
fn a_charge_is_all_or_nothing_over_user_and_group() {
    let quotas = enforcing();
    quotas.set_limits(User, 1, &hard(10, 3)).unwrap();
    quotas.set_limits(Group, 10, &hard(12, 100)).unwrap();
    quotas.charge(ALICE, 9, 1).unwrap();
    quotas.charge(BOB, 2, 1).unwrap();
    let full = Err(Errno::EDQUOT);
    assert_eq!(quotas.charge(ALICE, 2, 0), full, "the user's pages");
    assert_eq!(quotas.charge(ALICE, 1, 3), full, "the user's inodes");
    assert_eq!(quotas.charge(BOB, 2, 1), full, "the group's pages");
    assert_eq!(used(&quotas, User, 1), (9, 1));
    assert_eq!(used(&quotas, User, 2), (2, 1));
    assert_eq!(used(&quotas, Group, 10), (11, 2));
    quotas.charge(ALICE, 1, 2).unwrap();
    assert_eq!(quotas.charge(owner(3, 10), 1, 0), full);
    quotas.charge(owner(3, 11), 1, 0).unwrap();
    assert_eq!(used(&quotas, Group, 10), (12, 4));
}

#[test]
fn the_unchecked_pass_limits_and_are_counted() {
    let quotas = enforcing();
    quotas.set_limits(User, 1, &hard(2, 2)).unwrap();
    quotas.charge_unchecked(ALICE, 5, 1);
    assert_eq!(used(&quotas, User, 1), (5, 1));
    assert_eq!(quotas.charge(ALICE, 1, 0), Err(Errno::EDQUOT));
    quotas.charge(ALICE, 0, 1).unwrap();
    quotas.release(ALICE, 3, 0);
    assert_eq!(quotas.charge(ALICE, 1, 0), Err(Errno::EDQUOT));
    quotas.release(ALICE, 1, 0);
    quotas.charge(ALICE, 1, 0).unwrap();
}

#[test]
fn without_enforcement_limits_are_only_told() {
    let quotas = Quotas::new();
    quotas.switch_on(false, || Ok(()), || ()).unwrap();
    quotas.set_limits(User, 1, &hard(2, 2)).unwrap();
    quotas.charge(ALICE, 5, 5).unwrap();
    let report = quotas.report();
    assert_eq!((report[0].usage.inodes, report[0].limits), (5, hard(2, 2)));
}

#[test]
fn a_transfer_moves_what_differs_or_nothing() {
    let quotas = enforcing();
    quotas.charge(ALICE, 5, 1).unwrap();
    quotas.set_limits(User, 2, &hard(4, 9)).unwrap();
    let refused = quotas.transfer(ALICE, owner(2, 11), 5, 1, Check::Limits);
    assert_eq!(refused, Err(Errno::EDQUOT));
    quotas.set_limits(Group, 11, &hard(4, 9)).unwrap();
    let refused = quotas.transfer(ALICE, owner(3, 11), 5, 1, Check::Limits);
    assert_eq!(refused, Err(Errno::EDQUOT));
    let all = |quotas: &Quotas| [1, 2, 3].map(|uid| used(quotas, User, uid));
    assert_eq!(all(&quotas), [(5, 1), (0, 0), (0, 0)]);
    assert_eq!(used(&quotas, Group, 10), (5, 1));
    // The group's limit has no say where the group stays.
    quotas.set_limits(Group, 10, &hard(5, 1)).unwrap();
    quotas
        .transfer(ALICE, owner(3, 10), 5, 1, Check::Limits)
        .unwrap();
    assert_eq!(all(&quotas), [(0, 0), (0, 0), (5, 1)]);
    quotas
        .transfer(owner(3, 10), owner(2, 11), 5, 1, Check::Nothing)
        .unwrap();
    assert_eq!(all(&quotas), [(0, 0), (5, 1), (0, 0)]);
    assert_eq!(used(&quotas, Group, 11), (5, 1));
    assert_eq!(used(&quotas, Group, 10), (0, 0));
}

#[test]
fn the_last_page_can_be_had_whoever_borrowed_it() {
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
fn a_lowered_limit_leaves_no_credit_beyond_it() {
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
    assert_eq!(deadlines(&quotas), (None, None), "what is lent is not used");
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

/// Charges and releases at random, and checks that what is held never passes `limit`.
fn hold_to(limit: u64, quotas: &Quotas, owner: Owner, held: &AtomicU64, seed: u64) -> u64 {
    let (mut numbers, mut mine, mut refused) = (Numbers(seed), Vec::new(), 0);
    let release = |pages| {
        held.fetch_sub(pages, SeqCst);
        quotas.release(owner, pages, 1);
    };
    for round in 0..20_000 {
        // Thirty of these are more than the limit: even a thread alone meets it.
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
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let workers: Vec<_> = (0..3)
            .map(|seed| {
                let quotas = &quotas;
                scope.spawn(move || hold_to(1 << 40, quotas, ALICE, &AtomicU64::new(0), seed))
            })
            .collect();
        scope.spawn(|| {
            let mut numbers = Numbers(9);
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
