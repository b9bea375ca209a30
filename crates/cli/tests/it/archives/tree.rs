//! Random trees on the host.

use std::ffi::OsStr;
use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileExt as _, PermissionsExt as _, lchown, symlink};
use std::path::{Path, PathBuf};

use holdfast_testkit::rng::Rng;
use rustix::fs::{AtFlags, CWD, FileType, Mode, Timespec, Timestamps, XattrFlags};

const OWNERS: [u32; 6] = [0, 7, 1000, 70_000, 3_000_000, 4_000_000_000];
const MODES: [u32; 8] = [0o644, 0o600, 0o755, 0o4711, 0o2755, 0o1777, 0o400, 0];
const SECONDS: [i64; 6] = [0, 1, 1_234_567_890, 8_589_934_597, -2, -1_000_000_000];
const NANOS: [i64; 4] = [0, 1, 500_000_000, 123_456_789];
const XATTRS: [&str; 6] = [
    "user.plain",
    "user.a=b",
    "user.a%3Db",
    "user.with blank",
    "trusted.mark",
    "user.\u{e4}",
];
/// A page, which both file systems allocate by.
const PAGE: u64 = 4096;

/// A name that is difficult for archives.
fn name(rng: &mut Rng, number: usize) -> PathBuf {
    let long = *rng.pick(&[90, 99, 100, 101, 155, 156, 250]);
    let bytes = match rng.below(8) {
        0 => [b"n".repeat(long - 4), format!("{number:04}").into_bytes()].concat(),
        1 => [&b"\xff\xfe odd\n"[..], number.to_string().as_bytes()].concat(),
        2 => format!("a=b%3D{number}").into_bytes(),
        3 => format!("\u{e4}\u{20ac} {number}").into_bytes(),
        _ => format!("f{number}").into_bytes(),
    };
    PathBuf::from(OsStr::from_bytes(&bytes))
}

/// Makes a tree in an empty directory.
pub(crate) fn grow(rng: &mut Rng, top: &Path) -> io::Result<()> {
    let mut dirs = vec![top.to_owned()];
    let mut all = vec![top.to_owned()];
    let mut files: Vec<PathBuf> = Vec::new();
    for number in 0..4 + rng.index(14) {
        let path = rng.pick(&dirs).join(name(rng, number));
        // Below PATH_MAX, for the programs that use whole paths.
        let path = if path.as_os_str().len() > 1500 {
            top.join(format!("t{number}"))
        } else {
            path
        };
        match rng.below(12) {
            0..3 => {
                fs::create_dir(&path)?;
                dirs.push(path.clone());
            }
            3 => symlink("s/".repeat(rng.index(120) + 1), &path)?,
            4 if !files.is_empty() => fs::hard_link(rng.pick(&files), &path)?,
            5 => rustix::fs::mknodat(CWD, &path, FileType::Fifo, Mode::RUSR, 0)?,
            6 => {
                let rdev = rustix::fs::makedev(rng.below(300) as u32, rng.below(300) as u32);
                rustix::fs::mknodat(CWD, &path, FileType::CharacterDevice, Mode::RUSR, rdev)?;
            }
            7 | 8 => {
                sparse(rng, &path)?;
                files.push(path.clone());
            }
            _ => {
                let len = *rng.pick(&[0, 1, 511, 512, 513, 5000, 70_000]);
                fs::write(&path, content(rng, len))?;
                files.push(path.clone());
            }
        }
        all.push(path);
    }
    // Bottom up, since making names in a directory changes its time.
    all.iter().rev().try_for_each(|path| attributes(rng, path))
}

fn content(rng: &mut Rng, len: usize) -> Vec<u8> {
    let mut bytes: Vec<u8> = (0..len).map(|_| rng.bits() as u8 | 1).collect();
    // Half of it can be compressed.
    bytes[len / 2..].fill(b'x');
    bytes
}

fn sparse(rng: &mut Rng, path: &Path) -> io::Result<()> {
    let file = File::create(path)?;
    let mut at = PAGE * rng.below(4);
    for _ in 0..rng.below(40) {
        let len = PAGE * (1 + rng.below(2));
        file.write_all_at(&content(rng, len as usize), at)?;
        at += len + PAGE * rng.below(6);
    }
    file.set_len(at + rng.below(3) * 1000)
}

fn attributes(rng: &mut Rng, path: &Path) -> io::Result<()> {
    let kind = fs::symlink_metadata(path)?.file_type();
    lchown(path, Some(*rng.pick(&OWNERS)), Some(*rng.pick(&OWNERS)))?;
    if !kind.is_symlink() {
        fs::set_permissions(path, Permissions::from_mode(*rng.pick(&MODES)))?;
    }
    if kind.is_file() || kind.is_dir() {
        for _ in 0..rng.below(3) {
            let len = *rng.pick(&[0, 1, 20, 300]);
            let name: &&str = rng.pick(&XATTRS);
            set_xattr(path, name, &content(rng, len))?;
        }
        if rng.one_in(4) {
            set_xattr(path, "system.posix_acl_access", &acl(rng))?;
        }
        if kind.is_dir() && rng.one_in(4) {
            set_xattr(path, "system.posix_acl_default", &acl(rng))?;
        }
    }
    let time = Timespec {
        tv_sec: *rng.pick(&SECONDS),
        tv_nsec: *rng.pick(&NANOS),
    };
    let times = Timestamps {
        last_access: time,
        last_modification: time,
    };
    Ok(rustix::fs::utimensat(
        CWD,
        path,
        &times,
        AtFlags::SYMLINK_NOFOLLOW,
    )?)
}

/// Left out if the file system does not support them.
fn set_xattr(path: &Path, name: &str, value: &[u8]) -> io::Result<()> {
    match rustix::fs::lsetxattr(path, name, value, XattrFlags::empty()) {
        Err(rustix::io::Errno::OPNOTSUPP) => Ok(()),
        set => Ok(set?),
    }
}

/// An ACL with a user, a group and a mask, as Linux keeps it.
fn acl(rng: &mut Rng) -> Vec<u8> {
    let mut value = 2_u32.to_le_bytes().to_vec();
    // bsdtar has no larger ones in ACLs.
    let small = &OWNERS[..OWNERS.len() - 1];
    let (user, group) = (*rng.pick(small), *rng.pick(small));
    let none = u32::MAX;
    for (tag, id) in [
        (1, none),
        (2, user),
        (4, none),
        (8, group),
        (16, none),
        (32, none),
    ] {
        let perm = rng.below(8) as u16;
        value.extend(u16::to_le_bytes(tag));
        value.extend(perm.to_le_bytes());
        value.extend(u32::to_le_bytes(id));
    }
    value
}
