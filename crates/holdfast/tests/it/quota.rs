//! Quotas through the library: permissions and error numbers.

use crate::superuser;
use holdfast::types::Errno;
use holdfast::{Caller, FileSystem, Permissions, QuotaGrace, QuotaKind, QuotaLimits, QuotaUsage};
use std::io::Write;

const PAGE: u64 = 4096;

/// The operating system's number of a failure, if it is one.
fn failure<T>(result: std::io::Result<T>) -> Option<Errno> {
    let error = result.err()?;
    error.raw_os_error().map(Errno::from_raw)
}

fn hard(bytes: Option<u64>, inodes: Option<u64>) -> QuotaLimits {
    let mut limits = QuotaLimits::default();
    (limits.bytes.hard, limits.inodes.hard) = (bytes, inodes);
    limits
}

/// A file system with quotas and a world-writable `/tmp`.
fn shared() -> FileSystem {
    let fs = superuser();
    fs.create_dir("/tmp").unwrap();
    fs.set_permissions("/tmp", Permissions::from_mode(0o777))
        .unwrap();
    fs.quota_on(true).unwrap();
    fs
}

#[test]
fn a_user_sees_its_own_usage_and_changes_no_limits() {
    let fs = shared();
    let user = fs.as_user(Caller::user(1, 10).with_groups(&[11]));
    user.write("/tmp/file", "content").unwrap();
    let mine = QuotaUsage {
        bytes: PAGE,
        inodes: 1,
    };
    assert_eq!(user.quota_usage(QuotaKind::User, 1).unwrap(), mine);
    assert_eq!(user.quota_usage(QuotaKind::Group, 10).unwrap(), mine);
    let others = user.quota_usage(QuotaKind::Group, 11).unwrap();
    assert_eq!(others, QuotaUsage::default());
    let limits = QuotaLimits::default();
    for refused in [
        failure(user.quota_usage(QuotaKind::User, 10)),
        failure(user.quota_usage(QuotaKind::Group, 1)),
        failure(user.quota_report()),
        failure(user.set_quota(QuotaKind::User, 1, &limits)),
        failure(user.set_quota_grace(QuotaKind::User, QuotaGrace::default())),
        failure(user.quota_on(true)),
        failure(user.quota_off()),
    ] {
        assert_eq!(refused, Some(Errno::EPERM));
    }
    assert!(user.quota_is_on());
    assert_eq!(fs.quota_usage(QuotaKind::User, 1).unwrap(), mine);
}

#[test]
fn limits_hold_for_users_and_not_for_the_superuser() {
    let fs = shared();
    let user = fs.as_user(Caller::user(1, 10));
    let limits = hard(Some(PAGE), Some(1));
    fs.set_quota(QuotaKind::Group, 10, &limits).unwrap();
    let mut file = user.create("/tmp/file").unwrap();
    assert_eq!(file.write(&[1; 5000]).unwrap(), 4096, "what fits");
    assert_eq!(failure(file.write(&[1])), Some(Errno::EDQUOT));
    assert_eq!(failure(user.create("/tmp/2")), Some(Errno::EDQUOT));
    assert_eq!(failure(user.create_dir("/tmp/2")), Some(Errno::EDQUOT));
    assert!(!fs.exists("/tmp/2"));
    fs.write("/tmp/file", [1; 3 * 4096]).unwrap();
    let report = fs.quota_report().unwrap();
    let group = report.last().unwrap();
    assert_eq!((group.kind, group.id), (QuotaKind::Group, 10));
    assert_eq!((group.usage.bytes, group.limits), (3 * PAGE, limits));
    user.remove_file("/tmp/file").unwrap();
    assert_eq!(failure(user.create_dir("/tmp/2")), Some(Errno::EDQUOT));
    drop(file);
    user.create_dir("/tmp/2").unwrap();
}

#[test]
fn errors_are_those_of_quotactl() {
    let fs = shared();
    assert_eq!(failure(fs.quota_on(false)), Some(Errno::EBUSY));
    fs.quota_off().unwrap();
    fs.quota_off().unwrap();
    let (kind, limits) = (QuotaKind::User, QuotaLimits::default());
    assert_eq!(failure(fs.set_quota(kind, 1, &limits)), Some(Errno::ESRCH));
    let grace = QuotaGrace::default();
    let set = fs.set_quota_grace(kind, grace);
    assert_eq!(failure(set), Some(Errno::ESRCH));
    assert!(fs.quota_report().unwrap().is_empty());
    fs.quota_on(false).unwrap();
    fs.set_quota(kind, 0, &hard(None, Some(0))).unwrap();
    fs.revoke().unwrap();
    assert!(!fs.quota_is_on());
    assert_eq!(failure(fs.quota_on(true)), Some(Errno::EIO));
    assert_eq!(failure(fs.set_quota(kind, 1, &limits)), Some(Errno::EIO));
}
