//! Operations on one file, by handle or node.

use holdfast_core::types::{
    Access, Errno, Fallocate, OpenFlags, Result, SetAttr, SetTime, Time, Whence, XattrSet,
};
use holdfast_core::{EventMask, LockKind, LockOwner, LockRange, LockSpace};

use super::Trait::{ChangesSpace, File, Page, Reads};
use super::{Action, Operation};
use crate::setup::{PAGE, Setup, XATTR};

/// Telling what a file is and holds.
pub(super) const READING: &[Operation] = &[
    Operation {
        name: "getattr",
        traits: &[File, Reads],
        prepare: |s| {
            let node = s.node()?;
            Ok(Box::new(move || s.fs.attributes(&node).map(drop)))
        },
    },
    Operation {
        name: "number",
        traits: &[File, Reads],
        prepare: |s| {
            let ino = s.node()?.ino();
            Ok(Box::new(move || s.fs.node(ino).map(drop)))
        },
    },
    Operation {
        name: "forget",
        traits: &[File, Reads],
        prepare: |s| {
            let ino = s.node()?.ino();
            Ok(Box::new(move || {
                s.fs.forget(s.fs.node(ino)?.into_raw(), 1);
                Ok(())
            }))
        },
    },
    Operation {
        name: "reopen",
        traits: &[File, Reads],
        prepare: |s| {
            let node = s.node()?;
            Ok(Box::new(move || {
                s.fs.open(&s.who, &node, OpenFlags::empty()).map(drop)
            }))
        },
    },
    Operation {
        name: "read",
        traits: &[File, Page, Reads],
        prepare: |s| read(s, PAGE as usize),
    },
    Operation {
        name: "read-byte",
        traits: &[File, Page, Reads],
        prepare: |s| read(s, 1),
    },
    Operation {
        name: "seek",
        traits: &[File, Reads],
        prepare: |s| {
            let file = s.open()?;
            Ok(Box::new(move || {
                s.fs.seek(&file, 0, Whence::Data).map(drop)
            }))
        },
    },
    Operation {
        name: "access",
        traits: &[File, Reads],
        prepare: |s| {
            let node = s.node()?;
            Ok(Box::new(move || s.fs.access(&s.who, &node, Access::READ)))
        },
    },
    Operation {
        name: "readlink",
        traits: &[File, Reads],
        prepare: |s| {
            let node = s.fs.lookup(&s.who, &s.dir, &s.link)?;
            Ok(Box::new(move || s.fs.readlink(&node).map(drop)))
        },
    },
    Operation {
        name: "getxattr",
        traits: &[File, Reads],
        prepare: |s| {
            let node = s.node()?;
            Ok(Box::new(move || {
                s.fs.getxattr(&s.who, &node, XATTR).map(drop)
            }))
        },
    },
    Operation {
        name: "listxattr",
        traits: &[File, Reads],
        prepare: |s| {
            let node = s.node()?;
            Ok(Box::new(move || s.fs.listxattr(&s.who, &node).map(drop)))
        },
    },
    Operation {
        name: "getlk",
        traits: &[File, Page, Reads],
        prepare: |s| {
            let node = s.node()?;
            let (owner, range) = (owner(&s), range(&s));
            Ok(Box::new(move || {
                s.fs.get_lock(&node, owner, LockSpace::Posix, LockKind::Write, range)
                    .map(drop)
            }))
        },
    },
    Operation {
        name: "fsync",
        traits: &[File, Reads],
        prepare: |s| {
            let file = s.open()?;
            Ok(Box::new(move || s.fs.fsync(&file, false)))
        },
    },
];

/// Changing content and attributes, locking, watching.
pub(super) const WRITING: &[Operation] = &[
    Operation {
        name: "write",
        traits: &[File, Page],
        prepare: |s| {
            let file = s.open()?;
            let data = vec![7; PAGE as usize];
            Ok(Box::new(move || {
                let written = s.fs.write(&s.who, &file, s.offset(), &data)?;
                whole(written, data.len())
            }))
        },
    },
    Operation {
        name: "append",
        traits: &[File, ChangesSpace],
        prepare: |s| {
            let file = s.open()?;
            let data = vec![7; PAGE as usize];
            Ok(Box::new(move || {
                let (_, written) = s.fs.append(&s.who, &file, &data)?;
                whole(written, data.len())
            }))
        },
    },
    Operation {
        name: "truncate",
        traits: &[File, ChangesSpace],
        prepare: |s| {
            let size = Some(PAGE + 7);
            set(
                s,
                SetAttr {
                    size,
                    ..SetAttr::default()
                },
            )
        },
    },
    Operation {
        name: "fallocate",
        traits: &[File, Page, ChangesSpace],
        prepare: |s| {
            let file = s.open()?;
            let punch = Fallocate::PUNCH_HOLE | Fallocate::KEEP_SIZE;
            s.fs.fallocate(&s.who, &file, punch, s.offset(), PAGE)?;
            Ok(Box::new(move || {
                let mode = Fallocate::KEEP_SIZE;
                s.fs.fallocate(&s.who, &file, mode, s.offset(), PAGE)
            }))
        },
    },
    Operation {
        name: "punch",
        traits: &[File, Page, ChangesSpace],
        prepare: |s| {
            let file = s.open()?;
            s.fs.write(&s.who, &file, s.offset(), &[7; PAGE as usize])?;
            Ok(Box::new(move || {
                let mode = Fallocate::PUNCH_HOLE | Fallocate::KEEP_SIZE;
                s.fs.fallocate(&s.who, &file, mode, s.offset(), PAGE)
            }))
        },
    },
    Operation {
        name: "copy",
        traits: &[File],
        prepare: |s| {
            let file = s.open()?;
            Ok(Box::new(move || {
                let copied = s.fs.copy_file_range(&s.who, &file, 0, &file, PAGE, PAGE)?;
                whole(copied as usize, PAGE as usize)
            }))
        },
    },
    Operation {
        name: "chmod",
        traits: &[File],
        prepare: |s| {
            let perm = Some(0o600);
            set(
                s,
                SetAttr {
                    perm,
                    ..SetAttr::default()
                },
            )
        },
    },
    Operation {
        name: "chgrp",
        traits: &[File],
        prepare: |s| {
            let gid = Some(s.who.gid);
            set(
                s,
                SetAttr {
                    gid,
                    ..SetAttr::default()
                },
            )
        },
    },
    Operation {
        name: "utimes",
        traits: &[File],
        prepare: |s| {
            let mtime = Some(SetTime::At(Time::new(1_000_000_000, 7)));
            set(
                s,
                SetAttr {
                    mtime,
                    ..SetAttr::default()
                },
            )
        },
    },
    Operation {
        name: "setxattr",
        traits: &[File],
        prepare: |s| {
            let node = s.node()?;
            Ok(Box::new(move || {
                let (name, value) = (b"user.audit.other", b"another value");
                s.fs.setxattr(&s.who, &node, name, value, XattrSet::Any)
            }))
        },
    },
    Operation {
        name: "removexattr",
        traits: &[File],
        prepare: |s| {
            let node = s.node()?;
            Ok(Box::new(move || s.fs.removexattr(&s.who, &node, XATTR)))
        },
    },
    Operation {
        name: "drop-privileges",
        traits: &[File],
        prepare: |s| {
            let node = s.node()?;
            Ok(Box::new(move || s.fs.drop_privileges(&node)))
        },
    },
    Operation {
        name: "flock",
        traits: &[File],
        prepare: |s| {
            let file = s.open()?;
            Ok(Box::new(move || {
                let (node, owner) = (file.node(), file.owner());
                for kind in [Some(LockKind::Write), None] {
                    let space = LockSpace::Flock;
                    s.fs.set_lock(node, owner, space, kind, LockRange::WHOLE, 0, None)?;
                }
                Ok(())
            }))
        },
    },
    Operation {
        name: "setlk",
        traits: &[File, Page],
        prepare: |s| {
            let node = s.node()?;
            let (owner, range) = (owner(&s), range(&s));
            Ok(Box::new(move || {
                for kind in [Some(LockKind::Write), None] {
                    let space = LockSpace::Posix;
                    s.fs.set_lock(&node, owner, space, kind, range, 0, None)?;
                }
                Ok(())
            }))
        },
    },
    Operation {
        name: "watch",
        traits: &[File],
        prepare: |s| {
            let node = s.node()?;
            Ok(Box::new(move || {
                s.fs.watch(&node, EventMask::MODIFY).map(drop)
            }))
        },
    },
];

fn read(setup: Setup, len: usize) -> Result<Action> {
    let file = setup.open()?;
    let mut buffer = vec![0; len];
    Ok(Box::new(move || {
        let read = setup.fs.read(&file, setup.offset(), &mut buffer)?;
        whole(read, len)
    }))
}

fn set(setup: Setup, set: SetAttr) -> Result<Action> {
    let node = setup.node()?;
    Ok(Box::new(move || {
        setup.fs.setattr(&setup.who, &node, &set, None).map(drop)
    }))
}

/// Less than all was not what the audit meant to look at.
fn whole(done: usize, wanted: usize) -> Result<()> {
    if done == wanted {
        Ok(())
    } else {
        Err(Errno::EIO)
    }
}

fn owner(setup: &Setup) -> LockOwner {
    LockOwner(1 + setup.side as u64)
}

/// The bytes of the seat's page.
fn range(setup: &Setup) -> LockRange {
    LockRange {
        start: setup.offset(),
        end: setup.offset() + PAGE - 1,
    }
}
