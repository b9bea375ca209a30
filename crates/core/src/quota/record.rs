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

/// The thread changed that often before credits were made: two threads work for this id.
const TURNS: u8 = 4;

/// An account, and a node of the tree in which it is found.
#[derive(Debug)]
pub(super) struct Record {
    /// What every charge reads, and only rare events write.
    head: Padded<Head>,
    /// What is written near limits, and while one thread alone works for this id.
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
    /// The thread that came last.
    lane: Option<u32>,
    turns: u8,
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
        self.meet(&mut body, rules);
        for (thing, &amount) in amounts.iter().enumerate() {
            let balance = &mut body.balances[thing];
            if amount > balance.room() {
                self.gather(thing, balance);
                if amount > balance.room() {
                    balance.judge(amount, rules.check(check), rules.now())?;
                }
            }
        }
        for (thing, &amount) in amounts.iter().enumerate().filter(|(_, amount)| **amount > 0) {
            let balance = &mut body.balances[thing];
            balance.add(amount, || rules.deadline(self.head.kind, thing));
            self.fit(thing, balance);
            let lent = self.head.credits.lend(thing, balance.room());
            balance.add(lent, || unreachable!("lent within the limits"));
        }
        Ok(())
    }

    /// Gives back what was charged.
    pub(super) fn release(&self, amounts: Amounts, rules: &Rules) {
        for (thing, &amount) in amounts.iter().enumerate() {
            if amount > 0 && !self.head.credits.put(thing, amount) {
                self.release_balance(thing, amount, rules);
            }
        }
    }

    #[cold]
    fn release_balance(&self, thing: usize, amount: u64, rules: &Rules) {
        let mut body = self.body.lock();
        self.meet(&mut body, rules);
        let balance = &mut body.balances[thing];
        balance.subtract(amount + self.head.credits.reclaim(thing));
        if balance.deadline().is_some() {
            // A stray must not keep it beyond the limit.
            self.gather(thing, balance);
        }
        self.fit(thing, balance);
    }

    /// Sets limits. They hold for whatever is charged from now on.
    pub(super) fn set_limits(&self, limits: &QuotaLimits, rules: &Rules) {
        let mut body = self.body.lock();
        for (thing, bounds) in limits.bounds().into_iter().enumerate() {
            let balance = &mut body.balances[thing];
            // What was borrowed under the old limits is no part of the new ones.
            self.head.credits.halt(thing);
            self.gather(thing, balance);
            balance.limit(bounds, || rules.deadline(self.head.kind, thing));
            self.fit(thing, balance);
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
            limits: QuotaLimits::from_bounds([PAGES, INODES].map(|thing| {
                let balance: &Balance = &body.balances[thing];
                balance.bounds()
            })),
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

    /// Makes credits once two threads take turns.
    fn meet(&self, body: &mut Body, rules: &Rules) {
        if self.head.credits.exist() {
            return;
        }
        let lane = Some(rules.lane());
        if body.lane != lane {
            body.lane = lane;
            body.turns += 1;
        }
        if body.turns > TURNS {
            self.head.credits.create();
            for (thing, balance) in body.balances.iter_mut().enumerate() {
                self.fit(thing, balance);
            }
        }
    }

    fn fit(&self, thing: usize, balance: &mut Balance) {
        if self.head.credits.fit(thing, balance.room()) {
            // After the batch went to 0: what comes later is a stray.
            self.gather(thing, balance);
        }
    }

    fn gather(&self, thing: usize, balance: &mut Balance) {
        balance.subtract(self.head.credits.gather(thing));
    }
}
