//! Refusals at the limits, exact to the page and the inode.

use super::{PAGE, common, enforcing, hard, memory, told, truth, used, user};
use holdfast_core::types::{Caller, Errno, FileType, OpenFlags, RenameFlags, SetAttr};
use holdfast_core::{QuotaGrace, QuotaKind, QuotaLimit, QuotaLimits};
use std::time::Duration;

const READ_WRITE: OpenFlags = OpenFlags::READ_WRITE;

#[test]
fn inodes_of_every_type_count_until_their_last_use_ends() {
    let fs = enforcing();
    let (dir, who) = (common(&fs, b"d"), user(1, 10));
    let limits = hard(None, Some(5));
    fs.set_quota(QuotaKind::Group, 10, &limits).unwrap();
    let file = fs.create(&who, &dir, b"f", 0o600, READ_WRITE).unwrap();
    fs.mkdir(&who, &dir, b"d", 0o700).unwrap();
    fs.symlink(&who, &dir, b"s", b"f").unwrap();
    let pipe = FileType::Fifo;
    fs.mknod(&who, &dir, b"p", pipe, 0o600, 0).unwrap();
    let unnamed = fs.tmpfile(&who, &dir, 0o600, READ_WRITE).unwrap();

    let before = (fs.stats(), fs.getattr(&dir));
    let full = Some(Errno::EDQUOT);
    let made = fs.create(&who, &dir, b"x", 0o600, READ_WRITE);
    assert_eq!(made.err(), full);
    assert_eq!(fs.mkdir(&who, &dir, b"x", 0o700).err(), full);
    assert_eq!(fs.symlink(&who, &dir, b"x", b"f").err(), full);
    assert_eq!(fs.mknod(&who, &dir, b"x", pipe, 0o600, 0).err(), full);
    assert_eq!(fs.tmpfile(&who, &dir, 0o600, READ_WRITE).err(), full);
    assert_eq!(fs.lookup(&who, &dir, b"x"), Err(Errno::ENOENT));
    assert_eq!((fs.stats(), fs.getattr(&dir)), before, "nothing is left");
    let opened = fs.create(&who, &dir, b"f", 0o600, READ_WRITE);
    assert!(opened.is_ok(), "what is there can be opened");
    fs.link(&who, file.node(), &dir, b"g").unwrap();

    fs.unlink(&who, &dir, b"f").unwrap();
    fs.unlink(&who, &dir, b"g").unwrap();
    drop(opened);
    assert_eq!(fs.mkdir(&who, &dir, b"x", 0o700).err(), full, "still open");
    drop(file);
    fs.mkdir(&who, &dir, b"x", 0o700).unwrap();
    drop(unnamed);
    fs.rmdir(&who, &dir, b"x").unwrap();
    assert_eq!(used(&fs, QuotaKind::Group, 10), (0, 3));
    let root = user(2, 10);
    let root = Caller {
        caps: Caller::root().caps,
        ..root
    };
    for name in [b"1", b"2", b"3"] {
        fs.mkdir(&root, &dir, name, 0o700).unwrap();
    }
    assert_eq!(used(&fs, QuotaKind::Group, 10), (0, 6));
    assert_eq!(used(&fs, QuotaKind::User, 2), (0, 3));
}

#[test]
fn a_soft_limit_holds_when_its_grace_is_over() {
    let fs = enforcing();
    let (dir, who) = (common(&fs, b"d"), user(1, 10));
    let soft = |soft| QuotaLimit {
        soft: Some(soft),
        hard: None,
    };
    let limits = QuotaLimits {
        bytes: soft(2 * PAGE),
        inodes: soft(1),
    };
    let none = QuotaGrace {
        bytes: Duration::ZERO,
        inodes: Duration::from_secs(3600),
    };
    fs.set_quota_grace(QuotaKind::User, none).unwrap();
    fs.set_quota(QuotaKind::User, 1, &limits).unwrap();
    let file = fs.create(&who, &dir, b"f", 0o600, READ_WRITE).unwrap();
    assert_eq!(fs.write(&who, &file, 0, &[1; 4096 * 2]), Ok(4096 * 2));
    assert_eq!(fs.write(&who, &file, 2 * PAGE, &[1]), Ok(1), "just once");
    assert_eq!(fs.write(&who, &file, 3 * PAGE, &[1]), Err(Errno::EDQUOT));
    for name in [b"1", b"2", b"3"] {
        fs.mkdir(&who, &dir, name, 0o700).unwrap();
    }
    let report = fs.quota_report();
    let mine = report.iter().find(|record| record.id == 1).unwrap();
    assert_eq!((mine.kind, mine.limits), (QuotaKind::User, limits));
    assert!(mine.bytes_deadline.unwrap() < mine.inodes_deadline.unwrap());
}

#[test]
fn quotas_that_do_not_enforce_only_count() {
    let fs = memory();
    fs.quota_on(false).unwrap();
    let (dir, who) = (common(&fs, b"d"), user(1, 10));
    fs.set_quota(QuotaKind::User, 1, &hard(Some(1), Some(0)))
        .unwrap();
    let file = fs.create(&who, &dir, b"f", 0o600, READ_WRITE).unwrap();
    assert_eq!(fs.write(&who, &file, 0, &[1; 9000]), Ok(9000));
    assert_eq!(used(&fs, QuotaKind::User, 1), (3, 1));
}

#[test]
fn a_whiteout_that_is_refused_leaves_both_ends_as_they_were() {
    let fs = enforcing();
    let (dir, who) = (common(&fs, b"d"), user(1, 10));
    fs.mkdir(&who, &dir, b"from", 0o700).unwrap();
    let target = fs.mkdir(&who, &dir, b"to", 0o700).unwrap();
    fs.set_quota(QuotaKind::User, 1, &hard(None, Some(2)))
        .unwrap();
    let flags = RenameFlags::WHITEOUT;
    let rename = || fs.rename(&who, &dir, b"from", &dir, b"to", flags);
    assert_eq!(rename(), Err(Errno::EDQUOT));
    fs.set_quota(QuotaKind::User, 1, &QuotaLimits::default())
        .unwrap();
    fs.mkdir(&who, &target, b"alive", 0o700).unwrap();
    assert_eq!(rename(), Err(Errno::ENOTEMPTY));
    assert_eq!(told(&fs), truth(&fs));
    assert_eq!(used(&fs, QuotaKind::User, 1), (0, 3), "no whiteout");
    fs.rmdir(&who, &target, b"alive").unwrap();
    rename().unwrap();
    drop(target);
    let left = fs.lookup(&who, &dir, b"from").unwrap();
    assert_eq!(left.kind(), FileType::CharDevice);
    assert_eq!(used(&fs, QuotaKind::User, 1), (0, 2));
}

#[test]
fn what_is_made_in_a_set_group_id_directory_is_charged_to_that_group() {
    let fs = enforcing();
    let (dir, who) = (common(&fs, b"d"), user(1, 10));
    let shared = SetAttr {
        perm: Some(0o2777),
        gid: Some(30),
        ..SetAttr::default()
    };
    fs.setattr(&Caller::root(), &dir, &shared, None).unwrap();
    fs.set_quota(QuotaKind::Group, 30, &hard(Some(1), Some(2)))
        .unwrap();
    let file = fs.create(&who, &dir, b"f", 0o600, READ_WRITE).unwrap();
    assert_eq!(fs.write(&who, &file, 0, &[1; 5000]), Ok(4096));
    assert_eq!(fs.mkdir(&who, &dir, b"x", 0o700), Err(Errno::EDQUOT));
    assert_eq!(used(&fs, QuotaKind::Group, 10), (0, 0));
    assert_eq!(used(&fs, QuotaKind::Group, 30), (1, 2));
}

#[test]
fn a_copy_is_charged_to_the_owner_of_its_target() {
    let fs = enforcing();
    let (dir, who) = (common(&fs, b"d"), user(1, 10));
    let from = fs.create(&who, &dir, b"from", 0o666, READ_WRITE).unwrap();
    let to = fs
        .create(&user(2, 10), &dir, b"to", 0o666, READ_WRITE)
        .unwrap();
    fs.write(&who, &from, 0, &[1; 3 * 4096]).unwrap();
    fs.write(&who, &from, 90 * PAGE, &[1; 4 * 4096]).unwrap();
    fs.set_quota(QuotaKind::User, 2, &hard(Some(5), None))
        .unwrap();
    let copied = fs.copy_file_range(&who, &from, 0, &to, 0, 94 * PAGE);
    assert_eq!(copied, Ok(92 * PAGE));
    assert_eq!(used(&fs, QuotaKind::User, 2), (5, 1));
    assert_eq!(used(&fs, QuotaKind::User, 1), (7, 1));
    let within = fs.copy_file_range(&who, &to, 0, &to, 10 * PAGE, PAGE);
    assert_eq!(within, Err(Errno::EDQUOT));
    assert_eq!(told(&fs), truth(&fs));
}
