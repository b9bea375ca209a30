//! Tests of limits.

mod limits;

use super::*;
use crate::types::{Result, Time};

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
    /// Charges user and group with all of this, or neither with anything.
    ///
    /// # Errors
    /// `EDQUOT` if that would pass a limit of either.
    fn charge(&self, owner: Owner, pages: u64, inodes: u64) -> Result<()> {
        self.charge_as(owner, pages, inodes, Check::Limits)
    }

    fn charge_as(&self, owner: Owner, pages: u64, inodes: u64, check: Check) -> Result<()> {
        self.section(|accounts| accounts.charge(owner, [pages, inodes], check))
            .unwrap_or(Ok(()))
    }

    /// Releases a charge.
    fn release(&self, owner: Owner, pages: u64, inodes: u64) {
        self.section(|accounts| accounts.release(owner, [pages, inodes]));
    }
}
