//! Quotas as the core uses them: their limits, and switching while operations run.

mod limits;
mod switching;

use super::*;

/// A user and a group.
fn owner(uid: u32, gid: u32) -> Owner {
    Owner { uid, gid }
}

/// Quotas that are on and enforce.
fn enforcing() -> Quotas {
    let quotas = Quotas::new();
    quotas.switch_on(true, || Ok(()), || ()).unwrap();
    quotas
}

/// Hard limits in pages and inodes.
fn hard(pages: u64, inodes: u64) -> QuotaLimits {
    let hard = |hard| QuotaLimit {
        soft: None,
        hard: Some(hard),
    };
    QuotaLimits {
        bytes: hard(pages * 4096),
        inodes: hard(inodes),
    }
}

/// Pages and inodes in use.
fn used(quotas: &Quotas, kind: QuotaKind, id: u32) -> (u64, u64) {
    let usage = quotas.usage(kind, id);
    assert_eq!(usage.bytes % 4096, 0);
    (usage.bytes / 4096, usage.inodes)
}

/// Charges without an inode.
impl Quotas {
    /// Charges user and group with all of this, or neither with anything; nothing if quotas are off.
    ///
    /// # Errors
    /// `EDQUOT` if that would pass a limit of either.
    fn charge(&self, owner: Owner, pages: u64, inodes: u64) -> Result<()> {
        self.charge_as(owner, pages, inodes, Check::Limits)
    }

    /// Charges, whatever the limits.
    fn charge_unchecked(&self, owner: Owner, pages: u64, inodes: u64) {
        let charged = self.charge_as(owner, pages, inodes, Check::Nothing);
        debug_assert!(charged.is_ok(), "nothing was checked");
    }

    fn charge_as(&self, owner: Owner, pages: u64, inodes: u64, check: Check) -> Result<()> {
        self.section(|ledger, guard| ledger.charge(owner, [pages, inodes], check, guard))
            .unwrap_or(Ok(()))
    }

    /// Gives back what was charged while the same accounts were on.
    fn release(&self, owner: Owner, pages: u64, inodes: u64) {
        self.section(|ledger, guard| ledger.release(owner, [pages, inodes], guard));
    }

    /// What was charged to one owner is charged to another: all of it, or nothing changes.
    ///
    /// # Errors
    /// `EDQUOT` if that would pass a limit of the new user or group.
    fn transfer(
        &self,
        from: Owner,
        to: Owner,
        pages: u64,
        inodes: u64,
        check: Check,
    ) -> Result<()> {
        self.section(|ledger, guard| ledger.transfer(from, to, [pages, inodes], check, guard))
            .unwrap_or(Ok(()))
    }
}

/// Numbers that look random (an LCG of D. Knuth's).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}
