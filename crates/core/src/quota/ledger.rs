//! All accounts from one switching on to the next switching off.
//!
//! A record is found without a lock: a table by the first bits of the mixed id, then a tree of
//! records by the next bits, two at a time. Records come in by one exchange, and none ever
//! moves or goes while the ledger lives. Mixing is one to one, so two ids part somewhere on the
//! way: the tree is at most 11 deep, and five for a million ids.

use super::record::Record;
use super::terms::{Amounts, Check, KINDS, Owner, QuotaGrace, QuotaKind, QuotaRecord};
use crate::types::{Result, Time};
use holdfast_sync::Published;
use holdfast_sync::epoch::Guard;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};

/// Bits of the table's index.
const ROOT_BITS: u32 = 10;

/// What holds for all accounts.
#[derive(Debug)]
pub(super) struct Rules {
    enforce: bool,
    clock: fn() -> Time,
    /// For each kind and each thing, nanoseconds.
    grace: [[AtomicI64; 2]; 2],
}

impl Rules {
    fn new(enforce: bool, clock: fn() -> Time) -> Self {
        let grace = || QuotaGrace::default().nanos().map(AtomicI64::new);
        Self {
            enforce,
            clock,
            grace: [grace(), grace()],
        }
    }

    /// The check to be made, where one is asked for.
    pub(super) fn check(&self, check: Check) -> Check {
        if self.enforce { check } else { Check::Nothing }
    }

    pub(super) fn now(&self) -> Time {
        (self.clock)()
    }

    /// The end of a grace period that begins now.
    pub(super) fn deadline(&self, kind: QuotaKind, thing: usize) -> Time {
        let grace = self.grace[kind as usize][thing].load(Relaxed);
        Time(self.now().0.saturating_add(grace))
    }
}

/// The accounts.
#[derive(Debug)]
pub(super) struct Ledger {
    rules: Rules,
    roots: [Box<[Published<Record>]>; 2],
}

impl Ledger {
    pub(super) fn new(enforce: bool, clock: fn() -> Time) -> Self {
        let roots = || (0..1 << ROOT_BITS).map(|_| Published::empty()).collect();
        Self {
            rules: Rules::new(enforce, clock),
            roots: [roots(), roots()],
        }
    }

    /// Charges user and group with all of this, or neither with anything.
    ///
    /// Where one refuses, the other has been charged for a moment; somebody else may meet a limit
    /// because of that.
    pub(super) fn charge(
        &self,
        owner: Owner,
        amounts: Amounts,
        check: Check,
        guard: &Guard,
    ) -> Result<()> {
        let [user, group] = KINDS.map(|kind| self.find_or_add(kind, owner.id(kind), guard));
        user.charge(amounts, check, &self.rules)?;
        let charged = group.charge(amounts, check, &self.rules);
        if charged.is_err() {
            user.release(amounts);
        }
        charged
    }

    pub(super) fn release(&self, owner: Owner, amounts: Amounts, guard: &Guard) {
        for kind in KINDS {
            if let Some(record) = self.find(kind, owner.id(kind), guard) {
                record.release(amounts);
            } else {
                debug_assert!(false, "released what was never charged");
            }
        }
    }

    /// Charges `to` and releases `from`, kind by kind where they differ; all or nothing.
    pub(super) fn transfer(
        &self,
        from: Owner,
        to: Owner,
        amounts: Amounts,
        check: Check,
        guard: &Guard,
    ) -> Result<()> {
        let find = |owner: Owner, kind| self.find_or_add(kind, owner.id(kind), guard);
        let differs = |kind: &QuotaKind| from.id(*kind) != to.id(*kind);
        let mut charged: [Option<&Record>; 2] = [None; 2];
        for kind in KINDS.into_iter().filter(differs) {
            let record = find(to, kind);
            if let Err(refused) = record.charge(amounts, check, &self.rules) {
                for record in charged.into_iter().flatten() {
                    record.release(amounts);
                }
                return Err(refused);
            }
            charged[kind as usize] = Some(record);
        }
        for kind in KINDS.into_iter().filter(differs) {
            find(from, kind).release(amounts);
        }
        Ok(())
    }

    pub(super) fn rules(&self) -> &Rules {
        &self.rules
    }

    pub(super) fn set_grace(&self, kind: QuotaKind, grace: QuotaGrace) {
        for (cell, nanos) in self.rules.grace[kind as usize].iter().zip(grace.nanos()) {
            cell.store(nanos, Relaxed);
        }
    }

    /// The account of this id, if there is one.
    pub(super) fn find<'g>(
        &'g self,
        kind: QuotaKind,
        id: u32,
        guard: &'g Guard,
    ) -> Option<&'g Record> {
        let (mut cell, mut path) = self.root(kind, id);
        loop {
            let record = cell.load(guard)?;
            if record.id() == id {
                return Some(record);
            }
            (cell, path) = step(record, path);
        }
    }

    /// The account of this id.
    pub(super) fn find_or_add<'g>(
        &'g self,
        kind: QuotaKind,
        id: u32,
        guard: &'g Guard,
    ) -> &'g Record {
        let (mut cell, mut path) = self.root(kind, id);
        loop {
            let record = match cell.load(guard) {
                Some(record) => record,
                None => {
                    let new = Box::new(Record::new(kind, id));
                    match cell.compare_exchange(None, new, guard) {
                        Ok(new) => new,
                        // Somebody else's came first: it is looked at next.
                        Err(_) => continue,
                    }
                }
            };
            if record.id() == id {
                return record;
            }
            (cell, path) = step(record, path);
        }
    }

    fn root(&self, kind: QuotaKind, id: u32) -> (&Published<Record>, u32) {
        // 2^32 divided by the golden ratio, an odd number.
        let path = id.wrapping_mul(0x9E37_79B9);
        let root = path >> (u32::BITS - ROOT_BITS);
        (&self.roots[kind as usize][root as usize], path << ROOT_BITS)
    }

    /// Adds the accounts of one of the [`Ledger::parts`] that have something to say.
    pub(super) fn report(&self, part: usize, records: &mut Vec<QuotaRecord>, guard: &Guard) {
        let mut open: Vec<&Record> = self
            .roots
            .iter()
            .filter_map(|table| table[part].load(guard))
            .collect();
        while let Some(record) = open.pop() {
            records.extend(record.report());
            open.extend(record.children().iter().filter_map(|cell| cell.load(guard)));
        }
    }

    /// The number of parts that together are all accounts.
    pub(super) const fn parts() -> usize {
        1 << ROOT_BITS
    }
}

/// The next cell on the way, and the rest of the way.
fn step(record: &Record, path: u32) -> (&Published<Record>, u32) {
    (&record.children()[(path >> 30) as usize], path << 2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_sync::epoch;
    use std::thread;

    fn noon() -> Time {
        Time(0)
    }

    #[test]
    fn every_id_has_one_account_of_each_kind() {
        let ledger = Ledger::new(true, noon);
        let ids = || (0..20_000_u32).chain((0..4000).map(|n| u32::MAX - n * 65_536));
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    let guard = epoch::pin();
                    for id in ids() {
                        let user = ledger.find_or_add(QuotaKind::User, id, &guard);
                        user.charge([1, 0], Check::Limits, &ledger.rules).unwrap();
                    }
                });
            }
        });
        let guard = epoch::pin();
        for id in ids() {
            let user = ledger.find(QuotaKind::User, id, &guard).unwrap();
            assert_eq!((user.id(), user.usage().bytes), (id, 2 * 4096));
            assert!(ledger.find(QuotaKind::Group, id, &guard).is_none());
        }
        assert!(ledger.find(QuotaKind::User, 20_000, &guard).is_none());
    }

    #[test]
    fn the_tree_is_shallow() {
        fn depth(cell: &Published<Record>, guard: &Guard) -> usize {
            cell.load(guard).map_or(0, |record| {
                let below = record.children().iter().map(|cell| depth(cell, guard));
                1 + below.max().unwrap_or(0)
            })
        }
        let ledger = Ledger::new(true, noon);
        let guard = epoch::pin();
        let deepest = |kind: QuotaKind| {
            let cells = ledger.roots[kind as usize].iter();
            cells.map(|cell| depth(cell, &guard)).max().unwrap()
        };
        for id in 1000..2000 {
            ledger.find_or_add(QuotaKind::User, id, &guard);
        }
        // Ids that agree in their lower bits, as those of containers do.
        for id in 0..4096 {
            ledger.find_or_add(QuotaKind::Group, id << 16, &guard);
        }
        let deep = (deepest(QuotaKind::User), deepest(QuotaKind::Group));
        assert!(deep.0 <= 3 && deep.1 <= 6, "{deep:?}");
    }
}
