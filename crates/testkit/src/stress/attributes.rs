//! Operations on attributes, extended attributes, and watches.

use super::worker::{Row, Worker};
use holdfast_core::EventMask;
use holdfast_types::{Access, Errno, Result, SetAttr, SetTime, Time, XattrSet};

pub(super) const ROWS: &[Row] = &[
    ("attributes", 30, attributes),
    ("setattr", 30, setattr),
    ("access", 10, access),
    ("readlink", 10, readlink),
    ("drop_privileges", 3, drop_privileges),
    ("getxattr", 10, getxattr),
    ("setxattr", 12, setxattr),
    ("listxattr", 8, listxattr),
    ("removexattr", 6, removexattr),
    ("watch", 6, watch),
    ("events", 30, events),
    ("statfs", 3, statfs),
];

/// Bytes of a value, and fewer.
const VALUE_MAX: usize = 3000;
/// Pages that all values of one inode take at most, with their names.
pub(super) const VALUES_PAGES: u64 = (4 * (VALUE_MAX as u64 + 128)).div_ceil(4096);

const NAMES: [&[u8]; 6] = [
    b"user.a",
    b"user.b",
    b"trusted.c",
    b"security.capability",
    b"system.posix_acl_access",
    b"system.posix_acl_default",
];

/// An ACL with a named user: `u::rwx,u:1000:rw-,g::r-x,m::rwx,o::r--`.
fn acl() -> Vec<u8> {
    let mut bytes = 2_u32.to_le_bytes().to_vec();
    for (tag, perm, id) in [
        (0x01_u16, 7_u16, u32::MAX),
        (0x02, 6, 1000),
        (0x04, 5, u32::MAX),
        (0x10, 7, u32::MAX),
        (0x20, 4, u32::MAX),
    ] {
        bytes.extend_from_slice(&tag.to_le_bytes());
        bytes.extend_from_slice(&perm.to_le_bytes());
        bytes.extend_from_slice(&id.to_le_bytes());
    }
    bytes
}

fn attributes(worker: &mut Worker<'_>) -> Result<()> {
    let node = worker.node()?;
    let attr = worker.world.fs.attributes(&node)?;
    let same = (attr.ino, attr.kind) == (node.ino(), node.kind());
    worker
        .world
        .demand(same, || format!("{node:?} has {attr:?}"));
    Ok(())
}

fn setattr(worker: &mut Worker<'_>) -> Result<()> {
    let (who, node) = (worker.who(), worker.node()?);
    let rng = &mut worker.rng;
    let time = |rng: &mut crate::rng::Rng| match rng.below(3) {
        0 => None,
        1 => Some(SetTime::Now),
        _ => Some(SetTime::At(Time::new(rng.below(1 << 31) as i64, 0))),
    };
    // Directories stay open to all: else soon only root could search any of them.
    let open = if node.kind().is_dir() { 0o777 } else { 0o600 };
    let set = SetAttr {
        perm: rng.one_in(2).then(|| rng.below(0o10000) as u16 | open),
        uid: rng.one_in(4).then(|| 1000 + rng.below(2) as u32),
        gid: rng.one_in(4).then(|| 1000 + rng.below(2) as u32),
        atime: time(rng),
        mtime: time(rng),
        ..SetAttr::default()
    };
    worker.world.fs.setattr(&who, &node, &set, None).map(drop)
}

fn access(worker: &mut Worker<'_>) -> Result<()> {
    let (who, node) = (worker.who(), worker.node()?);
    let want = Access::from_bits_truncate(worker.rng.below(8) as u8);
    worker.world.fs.access(&who, &node, want)
}

fn readlink(worker: &mut Worker<'_>) -> Result<()> {
    let base = worker.base();
    let (who, path) = (worker.who(), super::paths::path(&mut worker.rng));
    let node = worker.world.fs.resolve(&who, &base, &path, false)?;
    worker.world.fs.readlink(&node).map(drop)
}

fn drop_privileges(worker: &mut Worker<'_>) -> Result<()> {
    let node = worker.node()?;
    worker.world.fs.drop_privileges(&node)
}

fn getxattr(worker: &mut Worker<'_>) -> Result<()> {
    let (who, node, name) = (worker.who(), worker.node()?, *worker.rng.pick(&NAMES));
    let value = worker.world.fs.getxattr(&who, &node, name)?;
    let plain = name.starts_with(b"system.") || value.iter().all(|byte| *byte == value[0]);
    worker
        .world
        .demand(plain, || format!("a value of two: {value:02x?}"));
    Ok(())
}

fn setxattr(worker: &mut Worker<'_>) -> Result<()> {
    let (who, node, name) = (worker.who(), worker.node()?, *worker.rng.pick(&NAMES));
    let how = [
        XattrSet::Any,
        XattrSet::Any,
        XattrSet::Create,
        XattrSet::Replace,
    ];
    let how = *worker.rng.pick(&how);
    let value = if name.starts_with(b"system.") {
        acl()
    } else {
        vec![worker.rng.bits() as u8; worker.rng.index(VALUE_MAX)]
    };
    worker.world.fs.setxattr(&who, &node, name, &value, how)
}

fn listxattr(worker: &mut Worker<'_>) -> Result<()> {
    let (who, node) = (worker.who(), worker.node()?);
    let names = worker.world.fs.listxattr(&who, &node)?;
    for name in names.split_inclusive(|byte| *byte == 0) {
        let known = name
            .split_last()
            .is_some_and(|(_, name)| NAMES.contains(&name));
        worker
            .world
            .demand(known, || format!("an attribute {name:02x?}"));
    }
    Ok(())
}

fn removexattr(worker: &mut Worker<'_>) -> Result<()> {
    let (who, node, name) = (worker.who(), worker.node()?, *worker.rng.pick(&NAMES));
    worker.world.fs.removexattr(&who, &node, name)
}

fn watch(worker: &mut Worker<'_>) -> Result<()> {
    let node = worker.node()?;
    let mask = if worker.rng.one_in(2) {
        EventMask::ALL_EVENTS
    } else {
        EventMask::CREATE | EventMask::DELETE_SELF
    };
    let watch = worker.world.fs.watch(&node, mask)?;
    worker.hands.keep_watch(&mut worker.rng, watch);
    Ok(())
}

fn events(worker: &mut Worker<'_>) -> Result<()> {
    let Some(watch) = worker.hands.watches.last() else {
        return Err(Errno::EAGAIN);
    };
    let mut ended = false;
    for event in std::iter::from_fn(|| watch.try_next()).take(100) {
        let trouble = || format!("{event:?} after the end of a watch");
        worker.world.demand(!ended, trouble);
        ended = event.mask.contains(EventMask::IGNORED);
    }
    if ended {
        worker.hands.watches.pop();
    }
    Ok(())
}

fn statfs(worker: &mut Worker<'_>) -> Result<()> {
    worker.world.fs.statfs().map(drop)
}
