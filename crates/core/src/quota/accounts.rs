//! The accounts of all users and groups, from one switching on to the next switching off.

use std::collections::BTreeMap;

use super::balance::Balance;
use super::terms::{
    Check, Owner, QuotaGrace, QuotaKind, QuotaLimit, QuotaLimits, QuotaRecord, QuotaUsage,
};
use crate::types::{Result, Time};

/// Bytes are counted in pages of this size.
const PAGE: u64 = 4096;

/// A number of pages, and of inodes.
type Amounts = [u64; 2];

/// A user or a group.
type Id = (QuotaKind, u32);

/// The accounts.
#[derive(Debug)]
pub(super) struct Accounts {
    enforce: bool,
    clock: fn() -> Time,
    /// By kind.
    grace: [QuotaGrace; 2],
    /// The balances of bytes and inodes.
    table: BTreeMap<Id, [Balance; 2]>,
}

impl Accounts {
    pub(super) fn new(enforce: bool, clock: fn() -> Time) -> Self {
        Self {
            enforce,
            clock,
            grace: [QuotaGrace::default(); 2],
            table: BTreeMap::new(),
        }
    }

    /// Charges user and group with all of this, or neither with anything.
    ///
    /// # Errors
    /// `EDQUOT` if that would exceed a limit of either, and `check` enforces limits.
    pub(super) fn charge(&mut self, owner: Owner, amounts: Amounts, check: Check) -> Result<()> {
        self.charge_each(&owner.ids(), amounts, check)
    }

    fn charge_each(&mut self, ids: &[Id], amounts: Amounts, check: Check) -> Result<()> {
        let now = (self.clock)();
        let [pages, inodes] = amounts;
        let amounts = [pages.saturating_mul(PAGE), inodes];
        if self.enforce && check == Check::Limits {
            let accounts = ids.iter().filter_map(|id| self.table.get(id));
            for (balance, more) in accounts.flat_map(|account| account.iter().zip(amounts)) {
                balance.judge(more, now)?;
            }
        }
        for id in ids {
            self.change(*id, |account| {
                for (balance, more) in account.iter_mut().zip(amounts) {
                    balance.held = balance.held.saturating_add(more);
                }
            });
        }
        Ok(())
    }

    pub(super) fn release(&mut self, owner: Owner, amounts: Amounts) {
        self.release_each(&owner.ids(), amounts);
    }

    fn release_each(&mut self, ids: &[Id], amounts: Amounts) {
        let [pages, inodes] = amounts;
        for id in ids {
            self.change(*id, |account| {
                for (balance, less) in account.iter_mut().zip([pages * PAGE, inodes]) {
                    debug_assert!(less <= balance.held, "more released than was charged");
                    balance.held = balance.held.saturating_sub(less);
                }
            });
        }
    }

    /// Charges `to` and releases `from`, kind by kind where they differ; all or nothing.
    ///
    /// # Errors
    /// As [`charge`](Self::charge).
    pub(super) fn transfer(
        &mut self,
        from: Owner,
        to: Owner,
        amounts: Amounts,
        check: Check,
    ) -> Result<()> {
        let only = |one: Owner, other: Owner| -> Vec<Id> {
            let ids = one.ids().into_iter();
            ids.filter(|id| !other.ids().contains(id)).collect()
        };
        self.charge_each(&only(to, from), amounts, check)?;
        self.release_each(&only(from, to), amounts);
        Ok(())
    }

    pub(super) fn set_limits(&mut self, kind: QuotaKind, id: u32, limits: &QuotaLimits) {
        let whole = |bytes: Option<u64>| bytes.map(|bytes| bytes / PAGE * PAGE);
        let bytes = QuotaLimit {
            soft: whole(limits.bytes.soft),
            hard: whole(limits.bytes.hard),
        };
        self.change((kind, id), |account| {
            account[0].limit = bytes;
            account[1].limit = limits.inodes;
        });
    }

    pub(super) fn set_grace(&mut self, kind: QuotaKind, grace: QuotaGrace) {
        self.grace[kind as usize] = grace;
    }

    /// Changes the balances of an account, and then their grace periods.
    fn change(&mut self, id: Id, act: impl Fn(&mut [Balance; 2])) {
        let now = (self.clock)();
        let grace = self.grace[id.0 as usize];
        let account = self.table.entry(id).or_default();
        act(account);
        for (balance, grace) in account.iter_mut().zip([grace.bytes, grace.inodes]) {
            let grace = i64::try_from(grace.as_nanos()).unwrap_or(i64::MAX);
            balance.update(Time(now.0.saturating_add(grace)));
        }
    }

    pub(super) fn usage(&self, kind: QuotaKind, id: u32) -> QuotaUsage {
        self.table.get(&(kind, id)).map(usage).unwrap_or_default()
    }

    /// All accounts with usage or limits, in order.
    pub(super) fn report(&self) -> Vec<QuotaRecord> {
        let records = self.table.iter().map(|(&(kind, id), account)| {
            let [bytes, inodes] = account;
            QuotaRecord {
                kind,
                id,
                usage: usage(account),
                limits: QuotaLimits {
                    bytes: bytes.limit,
                    inodes: inodes.limit,
                },
                bytes_deadline: bytes.deadline,
                inodes_deadline: inodes.deadline,
            }
        });
        let is_empty = |record: &QuotaRecord| {
            record.usage == QuotaUsage::default() && record.limits == QuotaLimits::default()
        };
        records.filter(|record| !is_empty(record)).collect()
    }
}

fn usage([bytes, inodes]: &[Balance; 2]) -> QuotaUsage {
    QuotaUsage {
        bytes: bytes.held,
        inodes: inodes.held,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_on_bytes_are_kept_in_whole_pages() {
        let given = QuotaLimits {
            bytes: QuotaLimit {
                soft: Some(4095),
                hard: Some(3 * 4096 + 1),
            },
            inodes: QuotaLimit {
                soft: None,
                hard: Some(7),
            },
        };
        let mut accounts = Accounts::new(true, || Time(0));
        accounts.set_limits(QuotaKind::User, 1, &given);
        let kept = accounts.report()[0].limits;
        assert_eq!(
            (kept.bytes.soft, kept.bytes.hard),
            (Some(0), Some(3 * 4096))
        );
        assert_eq!(kept.inodes, given.inodes);
    }
}
