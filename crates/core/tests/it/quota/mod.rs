//! Quotas of a file system: what is counted, what is refused, and switching while others work.

mod accounting;
mod limits;
mod model;
mod rounds;
mod switching;

use holdfast_core::types::{Caller, Caps};
use holdfast_core::{
    FileSystem, MemoryLimits, Node, Options, QuotaKind, QuotaLimit, QuotaLimits, QuotaUsage, Visit,
};
use std::collections::BTreeMap;

const PAGE: u64 = 4096;

fn memory() -> FileSystem {
    FileSystem::memory(MemoryLimits::default(), Options::default())
}

/// A file system with enforced quotas.
fn enforcing() -> FileSystem {
    let fs = memory();
    fs.quota_on(true).unwrap();
    fs
}

/// A user with every capability but that of exceeding limits.
fn user(uid: u32, gid: u32) -> Caller {
    Caller {
        caps: Caps::all().difference(Caps::SYS_RESOURCE),
        ..Caller::user(uid, gid)
    }
}

/// Hard limits in pages and inodes.
fn hard(pages: Option<u64>, inodes: Option<u64>) -> QuotaLimits {
    let limit = |hard| QuotaLimit { soft: None, hard };
    QuotaLimits {
        bytes: limit(pages.map(|pages| pages * PAGE)),
        inodes: limit(inodes),
    }
}

/// Pages and inodes of each user and group that has any.
type Usage = BTreeMap<(QuotaKind, u32), (u64, u64)>;

fn add(usage: &mut Usage, (uid, gid): (u32, u32), pages: u64) {
    for account in [(QuotaKind::User, uid), (QuotaKind::Group, gid)] {
        let sum = usage.entry(account).or_default();
        *sum = (sum.0 + pages, sum.1 + 1);
    }
}

/// Usage by the quotas' report.
fn told(fs: &FileSystem) -> Usage {
    let report = fs.quota_report();
    for record in &report {
        assert_eq!(fs.quota_usage(record.kind, record.id), record.usage);
    }
    report
        .iter()
        .filter(|record| record.usage != QuotaUsage::default())
        .map(|record| {
            let usage = record.usage;
            assert_eq!(usage.bytes % PAGE, 0);
            ((record.kind, record.id), (usage.bytes / PAGE, usage.inodes))
        })
        .collect()
}

/// Usage by the inodes.
fn truth(fs: &FileSystem) -> Usage {
    let mut usage = Usage::new();
    for mut walk in fs.inode_walks(1) {
        fs.walk_inodes(&mut walk, |node| {
            let attr = fs.getattr(node);
            add(&mut usage, (attr.uid, attr.gid), attr.blocks / 8);
            Ok(Visit::Continue)
        })
        .unwrap();
    }
    usage
}

fn used(fs: &FileSystem, kind: QuotaKind, id: u32) -> (u64, u64) {
    let usage = fs.quota_usage(kind, id);
    (usage.bytes / PAGE, usage.inodes)
}

/// A directory in which every caller may do everything.
fn common(fs: &FileSystem, name: &[u8]) -> Node {
    let who = Caller::root().with_umask(0);
    fs.mkdir(&who, &fs.root(), name, 0o777).unwrap()
}
