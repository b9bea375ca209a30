//! Numbers, flags, attributes: mostly ordinary, now and then at an edge.

use crate::diff::cast::IDS;
use crate::diff::op::{Bytes, LockFamily, LockWant, When};
use crate::rng::{Rng, pattern};
use holdfast_types::{Fallocate, OpenFlags, RenameFlags};

/// Flags of an open.
pub(super) fn open_flags(rng: &mut Rng) -> OpenFlags {
    let mut flags = match rng.below(4) {
        0 => OpenFlags::empty(),
        1 => OpenFlags::WRITE_ONLY,
        _ => OpenFlags::READ_WRITE,
    };
    match rng.below(24) {
        0..10 => flags |= OpenFlags::CREATE,
        10..12 => flags |= OpenFlags::CREATE | OpenFlags::EXCLUSIVE,
        12..15 => flags |= OpenFlags::TMPFILE,
        15 => flags |= OpenFlags::TMPFILE | OpenFlags::EXCLUSIVE,
        16 => flags = OpenFlags::PATH,
        17..20 => flags = OpenFlags::DIRECTORY,
        _ => {}
    }
    for (flag, odds) in [
        (OpenFlags::TRUNCATE, 8),
        (OpenFlags::APPEND, 6),
        (OpenFlags::NOFOLLOW, 10),
        (OpenFlags::DIRECTORY, 40),
        (OpenFlags::NOATIME, 20),
        (OpenFlags::SYNC, 30),
        (OpenFlags::PATH, 80),
        (OpenFlags::CREATE, 80),
    ] {
        if rng.one_in(odds) {
            flags |= flag;
        }
    }
    flags
}

/// Permission bits, set-id and sticky bits among them.
pub(super) fn perm(rng: &mut Rng) -> u16 {
    match rng.below(8) {
        0 => rng.below(0o10000) as u16,
        1 => 0o777,
        2 => 0o1777,
        3 => 0o2775,
        4 => *rng.pick(&[0o6755, 0o4755, 0o2755, 0o2745, 0o1000, 0]),
        _ => *rng.pick(&[0o644, 0o755, 0o600, 0o700, 0o666, 0o664, 0o640, 0o511]),
    }
}

/// Permission bits for a directory: mostly ones that let the cast in.
pub(super) fn dir_perm(rng: &mut Rng) -> u16 {
    if rng.one_in(3) {
        perm(rng)
    } else {
        *rng.pick(&[0o777, 0o755, 0o775, 0o1777, 0o2777])
    }
}

/// A user or group id of the cast, or none.
pub(super) fn id(rng: &mut Rng) -> Option<u32> {
    (!rng.one_in(3)).then(|| *rng.pick(&IDS))
}

/// A device number.
pub(super) fn rdev(rng: &mut Rng) -> u64 {
    let (major, minor) = *rng.pick(&[(0, 0), (1, 3), (8, 1), (259, 70_000), (0, 1)]);
    rustix::fs::makedev(major, minor)
}

/// A time for utimensat(2); mostly one long past, so that the next change shows.
pub(super) fn when(rng: &mut Rng) -> When {
    match rng.below(10) {
        0 => When::Omit,
        1 => When::Now,
        2 => When::At(
            -(rng.below(1 << 31) as i64),
            rng.below(1_000_000_000) as u32,
        ),
        3 => When::At((1 << 32) + rng.below(1 << 31) as i64, 999_999_999),
        4 if rng.one_in(8) => When::At(5, 1_000_000_000),
        _ => When::At(
            1_000_000_000 + rng.below(1 << 20) as i64,
            rng.below(1_000_000_000) as u32,
        ),
    }
}

/// An offset in a file.
pub(super) fn offset(rng: &mut Rng) -> i64 {
    let near = rng.below(9) as i64 - 4;
    match rng.below(64) {
        0 => i64::MAX - rng.below(9000) as i64,
        1 => (1_i64 << *rng.pick(&[31, 32, 40, 52, 62])) + near,
        2 => -1 - rng.below(5000) as i64,
        3..20 => (rng.below(20) as i64 * 4096 + near).max(0),
        20..30 => 0,
        30..50 => rng.below(20_000) as i64,
        _ => rng.below(80_000) as i64,
    }
}

/// A number of bytes to move.
pub(super) fn len(rng: &mut Rng) -> usize {
    match rng.below(32) {
        0 => 0,
        1 => 1,
        2..6 => 4096 * (1 + rng.index(4)),
        6 => rng.index(100_000),
        7..16 => rng.index(9000),
        _ => rng.index(300),
    }
}

/// Lengths of a vectored transfer: one, or up to five.
pub(super) fn lens(rng: &mut Rng) -> Vec<usize> {
    let count = if rng.one_in(5) { 1 + rng.index(5) } else { 1 };
    (0..count).map(|_| len(rng)).collect()
}

/// Lengths for truncate.
pub(super) fn size(rng: &mut Rng) -> i64 {
    if rng.one_in(6) { 0 } else { offset(rng) }
}

/// Modes of fallocate that tmpfs knows, and now and then one that does not exist.
pub(super) fn fallocate(rng: &mut Rng) -> Fallocate {
    match rng.below(12) {
        0..4 => Fallocate::empty(),
        4..7 => Fallocate::KEEP_SIZE,
        7..11 => Fallocate::PUNCH_HOLE | Fallocate::KEEP_SIZE,
        _ => *rng.pick(&[Fallocate::PUNCH_HOLE, Fallocate::from_bits_retain(1 << 12)]),
    }
}

/// Flags of renameat2(2).
pub(super) fn rename_flags(rng: &mut Rng) -> RenameFlags {
    match rng.below(16) {
        0..3 => RenameFlags::NOREPLACE,
        3..6 => RenameFlags::EXCHANGE,
        6 => RenameFlags::WHITEOUT,
        7 => *rng.pick(&[
            RenameFlags::NOREPLACE | RenameFlags::EXCHANGE,
            RenameFlags::WHITEOUT | RenameFlags::EXCHANGE,
            RenameFlags::WHITEOUT | RenameFlags::NOREPLACE,
            RenameFlags::from_bits_retain(1 << 5),
        ]),
        _ => RenameFlags::empty(),
    }
}

const ACCESS_ACL: &[u8] = b"system.posix_acl_access";
const DEFAULT_ACL: &[u8] = b"system.posix_acl_default";

/// The name of an extended attribute.
pub(super) fn xattr_name(rng: &mut Rng) -> Bytes {
    Bytes(match rng.below(32) {
        0..10 => [b"user.".as_slice(), &[*rng.pick(b"abc")]].concat(),
        10..14 => b"trusted.t".to_vec(),
        14..17 => b"security.holdfast".to_vec(),
        17..22 => ACCESS_ACL.to_vec(),
        22..27 => DEFAULT_ACL.to_vec(),
        27 => [
            b"user.".as_slice(),
            &vec![b'l'; *rng.pick(&[249, 250, 251])],
        ]
        .concat(),
        28 => b"user.".to_vec(),
        29 => b"nowhere.x".to_vec(),
        30 => rng
            .pick(&[&b"system.other"[..], b"plain", b"", b"system.", b"trusted."])
            .to_vec(),
        _ => b"user.\xff\n".to_vec(),
    })
}

/// A value for it: an ACL for the ACL names.
pub(super) fn xattr_value(rng: &mut Rng, name: &Bytes) -> Bytes {
    if name.0 == ACCESS_ACL || name.0 == DEFAULT_ACL {
        return Bytes(acl(rng));
    }
    let len = match rng.below(24) {
        0 => *rng.pick(&[4095, 4096, 4097, 65_535, 65_536, 65_537]),
        1 => 0,
        _ => rng.index(40),
    };
    Bytes(pattern(rng.bits(), len))
}

// Tags of ACL entries, as the kernel numbers them.
const USER_OBJ: u16 = 1;
const USER: u16 = 2;
const GROUP_OBJ: u16 = 4;
const GROUP: u16 = 8;
const MASK: u16 = 16;
const OTHER: u16 = 32;

/// An ACL in the kernel's form; wrong in one of some ways now and then.
fn acl(rng: &mut Rng) -> Vec<u8> {
    let none = u32::MAX;
    let mut entries = vec![(USER_OBJ, rng.below(8), none)];
    let (users, groups) = (rng.below(3), rng.below(3));
    let mut users: Vec<u32> = (0..users).map(|_| *rng.pick(&IDS)).collect();
    let mut groups: Vec<u32> = (0..groups).map(|_| *rng.pick(&IDS)).collect();
    for ids in [&mut users, &mut groups] {
        ids.sort_unstable();
        ids.dedup();
    }
    entries.extend(users.iter().map(|&id| (USER, rng.below(8), id)));
    entries.push((GROUP_OBJ, rng.below(8), none));
    entries.extend(groups.iter().map(|&id| (GROUP, rng.below(8), id)));
    if !users.is_empty() || !groups.is_empty() || rng.one_in(4) {
        entries.push((MASK, rng.below(8), none));
    }
    entries.push((OTHER, rng.below(8), none));
    match rng.below(48) {
        0 => entries.truncate(entries.len() - 1),
        1 => entries.swap(0, 1),
        2 => entries[0].1 = 9,
        3 => entries[0].0 = 64,
        4 => entries.retain(|entry| entry.0 != MASK),
        5 => entries.clear(),
        _ => {}
    }
    let version: u32 = if rng.one_in(64) { 1 } else { 2 };
    let mut bytes = version.to_le_bytes().to_vec();
    for (tag, perm, id) in entries {
        bytes.extend_from_slice(&tag.to_le_bytes());
        bytes.extend_from_slice(&(perm as u16).to_le_bytes());
        bytes.extend_from_slice(&id.to_le_bytes());
    }
    match rng.below(64) {
        0 => bytes.truncate(bytes.len() - 1),
        1 => bytes.clear(),
        _ => {}
    }
    bytes
}

/// A lock: its family, what is wanted, and its range.
pub(super) fn lock(rng: &mut Rng) -> (LockFamily, LockWant, i64, i64) {
    let family = if rng.one_in(2) {
        LockFamily::Posix
    } else {
        LockFamily::Ofd
    };
    let want = *rng.pick(&[LockWant::Read, LockWant::Write, LockWant::Unlock]);
    let start = match rng.below(40) {
        0 => i64::MAX - rng.below(10) as i64,
        1 => -1,
        _ => rng.below(60) as i64,
    };
    let len = match rng.below(12) {
        0 => 0,
        1 => -(rng.below(30) as i64),
        2 if rng.one_in(8) => i64::MAX - rng.below(10) as i64,
        _ => 1 + rng.below(30) as i64,
    };
    (family, want, start, len)
}
