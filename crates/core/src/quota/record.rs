//! One user's or group's account.
//!
//! *Invariants.* A balance holds what is in use and all credits on it. While a batch is not 0, it
//! holds no more than its limits allow: credits are within the limits, too.
//!
//! *Locking.* `balances` is a leaf: under it nothing is locked, only a core's credits allocated,
//! once.

use super::balance::Balance;
use super::credits::Credits;
use super::ledger::Rules;
use super::terms::{
    Amounts, Check, INODES, PAGES, QuotaKind, QuotaLimits, QuotaRecord, QuotaUsage,
};
use crate::types::Result;
use holdfast_sync::{Padded, Published};
use parking_lot::Mutex;

/// Charges and releases that the balances see before there are credits. Most ids own a few files
/// and do little; a kilobyte of credits each would be a lot for them.
const MEETINGS: u16 = 500;

/// An account, and a node of the tree in which it is found.
#[derive(Debug)]
pub(super) struct Record {
    /// What every charge reads, and only rare events write.
    head: Padded<Head>,
    /// What is written near limits, and for an id that does little.
    body: Padded<Mutex<Body>>,
}

#[derive(Debug)]
struct Head {
    kind: QuotaKind,
    id: u32,
    credits: Credits,
    children: [Published<Record>; 4],
}

#[derive(Debug, Default)]
struct Body {
    balances: [Balance; 2],
    /// How often somebody came here, until there are credits.
    meetings: u16,
}

const _: () = assert!(size_of::<Record>() == 256, "an account grew");

impl Record {
    pub(super) fn new(kind: QuotaKind, id: u32) -> Self {
        Self {
            head: Padded(Head {
                kind,
                id,
                credits: Credits::default(),
                children: Default::default(),
            }),
            body: Padded::default(),
        }
    }

    pub(super) fn id(&self) -> u32 {
        self.head.id
    }

    /// The records found through this one.
    pub(super) fn children(&self) -> &[Published<Self>; 4] {
        &self.head.children
    }

    /// Charges all of this, or nothing.
    ///
    /// # Errors
    /// `EDQUOT` if that would pass a limit, and `check` says that limits count.
    pub(super) fn charge(&self, amounts: Amounts, check: Check, rules: &Rules) -> Result<()> {
        if self.head.credits.spend(amounts) {
            return Ok(());
        }
        self.charge_balances(amounts, check, rules)
    }

    #[cold]
    fn charge_balances(&self, amounts: Amounts, check: Check, rules: &Rules) -> Result<()> {
        let mut body = self.body.lock();
        self.meet(&mut body);
        for (thing, &amount) in amounts.iter().enumerate() {
            let balance = &mut body.balances[thing];
            if amount > balance.room() {
                self.gather(thing, balance);
                if amount > balance.room() {
                    balance.judge(amount, rules.check(check), rules.now())?;
                }
            }
        }
        for (thing, &amount) in amounts
            .iter()
            .enumerate()
            .filter(|(_, amount)| **amount > 0)
        {
            let balance = &mut body.balances[thing];
            balance.add(amount, || rules.deadline(self.head.kind, thing));
            self.head.credits.fit(thing, balance.room());
            let lent = self.head.credits.lend(thing, balance.room());
            balance.add(lent, || unreachable!("lent within the limits"));
        }
        Ok(())
    }

    /// Gives back what was charged.
    pub(super) fn release(&self, amounts: Amounts) {
        for (thing, &amount) in amounts.iter().enumerate() {
            if amount > 0 && !self.head.credits.put(thing, amount) {
                self.release_balance(thing, amount);
            }
        }
    }

    #[cold]
    fn release_balance(&self, thing: usize, amount: u64) {
        let mut body = self.body.lock();
        self.meet(&mut body);
        let balance = &mut body.balances[thing];
        balance.subtract(amount + self.head.credits.reclaim(thing));
        if balance.deadline().is_some() {
            // A credit put late must not keep it beyond the limit.
            self.gather(thing, balance);
        }
        self.head.credits.fit(thing, balance.room());
    }

    /// Sets limits. They hold for whatever is charged from now on.
    pub(super) fn set_limits(&self, limits: &QuotaLimits, rules: &Rules) {
        let mut body = self.body.lock();
        for (thing, bounds) in limits.bounds().into_iter().enumerate() {
            let balance = &mut body.balances[thing];
            // What was borrowed under the old limits, much perhaps, must not count as exceeding
            // the new ones.
            self.gather(thing, balance);
            balance.limit(bounds, || rules.deadline(self.head.kind, thing));
            self.head.credits.fit(thing, balance.room());
        }
    }

    /// What is in use: exact while nobody charges or releases.
    pub(super) fn usage(&self) -> QuotaUsage {
        self.usage_of(&self.body.lock())
    }

    fn usage_of(&self, body: &Body) -> QuotaUsage {
        let used = |thing: usize| {
            let credit = self.head.credits.sum(thing);
            body.balances[thing].held.saturating_sub(credit)
        };
        QuotaUsage::of([used(PAGES), used(INODES)])
    }

    /// All there is to say, if there is anything.
    pub(super) fn report(&self) -> Option<QuotaRecord> {
        let body = self.body.lock();
        let report = QuotaRecord {
            kind: self.head.kind,
            id: self.head.id,
            usage: self.usage_of(&body),
            limits: QuotaLimits::from_bounds(body.balances.each_ref().map(Balance::bounds)),
            bytes_deadline: body.balances[PAGES].deadline(),
            inodes_deadline: body.balances[INODES].deadline(),
        };
        let nothing = QuotaRecord {
            usage: QuotaUsage::default(),
            limits: QuotaLimits::default(),
            ..report
        };
        (report != nothing).then_some(report)
    }

    /// Makes credits for an id that does much.
    fn meet(&self, body: &mut Body) {
        if self.head.credits.exist() {
            return;
        }
        body.meetings += 1;
        if body.meetings > MEETINGS {
            self.head.credits.create();
            for (thing, balance) in body.balances.iter().enumerate() {
                self.head.credits.fit(thing, balance.room());
            }
        }
    }

    fn gather(&self, thing: usize, balance: &mut Balance) {
        balance.subtract(self.head.credits.gather(thing));
    }
}

#[cfg(test)]
mod tests {
    use super::super::ledger::Ledger;
    use super::*;
    use crate::types::Time;
    use std::sync::Barrier;
    use std::thread;

    const BOTH: Amounts = [1, 1];

    fn work(record: &Record, rules: &Rules) {
        for _ in 0..10_000 {
            record.charge(BOTH, Check::Limits, rules).unwrap();
            record.charge([5, 0], Check::Limits, rules).unwrap();
            record.release(BOTH);
            record.release([5, 0]);
        }
    }

    fn held(record: &Record) -> Amounts {
        let body = record.body.lock();
        [PAGES, INODES].map(|thing| body.balances[thing].held)
    }

    /// Lets two threads borrow; then works on both, and says whether that touched a balance, the
    /// only thing they could meet at.
    fn steady_work_meets(record: &Record, rules: &Rules) -> bool {
        work(record, rules);
        let step = Barrier::new(2);
        let turn = || {
            record.charge(BOTH, Check::Limits, rules).unwrap();
            step.wait();
        };
        thread::scope(|scope| {
            let other = scope.spawn(|| {
                turn();
                step.wait();
                work(record, rules);
            });
            turn();
            let before = held(record);
            step.wait();
            work(record, rules);
            other.join().unwrap();
            before != held(record)
        })
    }

    #[test]
    fn two_threads_that_charge_one_id_far_from_its_limit_do_not_meet() {
        let ledger = Ledger::new(true, || Time(0));
        let rules = ledger.rules();
        let record = Record::new(QuotaKind::User, 1);
        assert!(!steady_work_meets(&record, rules), "without limits");
        let record = Record::new(QuotaKind::User, 1);
        let limits = QuotaLimits::from_bounds([(1 << 20, 1 << 21), (1 << 20, 1 << 20)]);
        record.set_limits(&limits, rules);
        assert!(!steady_work_meets(&record, rules), "far from the limits");
        assert_eq!(record.usage(), QuotaUsage::of([2, 2]));
    }

    #[test]
    fn who_only_releases_comes_to_the_balance_once_a_batch() {
        let ledger = Ledger::new(true, || Time(0));
        let record = Record::new(QuotaKind::User, 1);
        work(&record, ledger.rules());
        let limits = QuotaLimits::from_bounds([(u64::MAX, 1 << 20), (u64::MAX, 1 << 20)]);
        record.set_limits(&limits, ledger.rules());
        record
            .charge([100_000, 0], Check::Limits, ledger.rules())
            .unwrap();
        let mut visits = 0;
        for _ in 0..100_000 {
            let before = held(&record);
            record.release([1, 0]);
            visits += u32::from(held(&record) != before);
        }
        assert!(visits < 1000, "{visits}");
        assert_eq!(record.usage(), QuotaUsage::default());
    }

    #[test]
    fn an_id_that_does_little_needs_no_credits() {
        let ledger = Ledger::new(true, || Time(0));
        let record = Record::new(QuotaKind::User, 1);
        for file in 1..=100 {
            record
                .charge([3, 1], Check::Limits, ledger.rules())
                .unwrap();
            assert_eq!(held(&record), [3 * file, file]);
        }
        record.release([300, 100]);
        assert!(!record.head.credits.exist());
        assert_eq!((record.usage(), record.report()), Default::default());
    }

    #[test]
    fn near_the_limit_everything_held_is_in_use() {
        let ledger = Ledger::new(true, || Time(0));
        let rules = ledger.rules();
        let record = Record::new(QuotaKind::User, 1);
        assert!(!steady_work_meets(&record, rules));
        let limits = QuotaLimits::from_bounds([(u64::MAX, 12), (u64::MAX, 12)]);
        record.set_limits(&limits, rules);
        record.charge([4, 4], Check::Limits, rules).unwrap();
        assert_eq!(held(&record), [6, 6]);
        record.release([3, 0]);
        assert_eq!(held(&record), [3, 6]);
        assert!(record.charge([9, 7], Check::Limits, rules).is_err());
        record.charge([9, 6], Check::Limits, rules).unwrap();
    }
}
