//! Operations on names.

use holdfast_core::types::{Errno, FileType, OpenFlags, RenameFlags};

use super::Operation;
use super::Trait::{ChangesNames, ChangesSpace, Lists, Names, Reads};

/// Names that one listing takes.
const LISTED: usize = 32;

/// Finding names.
pub(super) const LOOKING: &[Operation] = &[
    Operation {
        name: "lookup",
        traits: &[Names, Reads],
        prepare: |s| {
            Ok(Box::new(move || {
                s.fs.lookup(&s.who, &s.dir, &s.file).map(drop)
            }))
        },
    },
    Operation {
        name: "lookup-absent",
        traits: &[Names, Reads],
        prepare: |s| {
            let absent = s.name("absent");
            Ok(Box::new(move || {
                match s.fs.lookup(&s.who, &s.dir, &absent) {
                    Err(Errno::ENOENT) => Ok(()),
                    other => other.and(Err(Errno::EEXIST)),
                }
            }))
        },
    },
    Operation {
        name: "stat",
        traits: &[Names, Reads],
        prepare: |s| {
            let path = s.path(&s.file);
            Ok(Box::new(move || {
                s.fs.stat_at(&s.who, &s.root, &path, true).map(drop)
            }))
        },
    },
    Operation {
        name: "resolve",
        traits: &[Names, Reads],
        prepare: |s| {
            let path = s.path(&s.file);
            Ok(Box::new(move || {
                s.fs.resolve(&s.who, &s.root, &path, true).map(drop)
            }))
        },
    },
    Operation {
        name: "open",
        traits: &[Names, Reads],
        prepare: |s| {
            let path = s.path(&s.file);
            Ok(Box::new(move || {
                let flags = OpenFlags::empty();
                s.fs.open_at(&s.who, &s.root, &path, flags, 0).map(drop)
            }))
        },
    },
    Operation {
        name: "readdir",
        traits: &[Names, Reads, Lists],
        prepare: |s| {
            let dir = s.fs.open(&s.who, &s.dir, OpenFlags::DIRECTORY)?;
            Ok(Box::new(move || {
                let mut left = LISTED;
                s.fs.read_dir(&dir, 0, &mut |_| {
                    left -= 1;
                    left > 0
                })
            }))
        },
    },
    Operation {
        name: "readdir-plus",
        traits: &[Names, Reads, Lists],
        prepare: |s| {
            let dir = s.fs.open(&s.who, &s.dir, OpenFlags::DIRECTORY)?;
            Ok(Box::new(move || {
                let mut left = LISTED;
                s.fs.read_dir_plus(&dir, 0, &mut |_, _| {
                    left -= 1;
                    left > 0
                })
            }))
        },
    },
];

/// Making, removing and moving names.
pub(super) const CHANGING: &[Operation] = &[
    Operation {
        name: "create",
        traits: &[Names, ChangesNames, ChangesSpace],
        prepare: |s| {
            let name = s.name("made");
            Ok(Box::new(move || {
                let flags = OpenFlags::WRITE_ONLY | OpenFlags::EXCLUSIVE;
                s.fs.create(&s.who, &s.dir, &name, 0o644, flags).map(drop)
            }))
        },
    },
    Operation {
        name: "mkdir",
        traits: &[Names, ChangesNames, ChangesSpace],
        prepare: |s| {
            let name = s.name("made");
            Ok(Box::new(move || {
                s.fs.mkdir(&s.who, &s.dir, &name, 0o755).map(drop)
            }))
        },
    },
    Operation {
        name: "mknod",
        traits: &[Names, ChangesNames, ChangesSpace],
        prepare: |s| {
            let name = s.name("made");
            Ok(Box::new(move || {
                s.fs.mknod(&s.who, &s.dir, &name, FileType::Fifo, 0o644, 0)
                    .map(drop)
            }))
        },
    },
    Operation {
        name: "symlink",
        traits: &[Names, ChangesNames, ChangesSpace],
        prepare: |s| {
            let name = s.name("made");
            Ok(Box::new(move || {
                s.fs.symlink(&s.who, &s.dir, &name, b"where it leads")
                    .map(drop)
            }))
        },
    },
    Operation {
        name: "link",
        traits: &[Names, ChangesNames],
        prepare: |s| {
            let name = s.name("made");
            let node = s.make(&s.extra, &s.name("linked"))?;
            Ok(Box::new(move || s.fs.link(&s.who, &node, &s.dir, &name)))
        },
    },
    Operation {
        name: "tmpfile",
        traits: &[Names, ChangesSpace],
        prepare: |s| {
            Ok(Box::new(move || {
                let flags = OpenFlags::READ_WRITE;
                s.fs.tmpfile(&s.who, &s.dir, 0o600, flags).map(drop)
            }))
        },
    },
    Operation {
        name: "unlink",
        traits: &[Names, ChangesNames, ChangesSpace],
        prepare: |s| {
            let name = s.name("gone");
            drop(s.make(&s.dir, &name)?);
            Ok(Box::new(move || s.fs.unlink(&s.who, &s.dir, &name)))
        },
    },
    Operation {
        name: "rmdir",
        traits: &[Names, ChangesNames, ChangesSpace],
        prepare: |s| {
            let name = s.name("gone");
            drop(s.fs.mkdir(&s.who, &s.dir, &name, 0o755)?);
            Ok(Box::new(move || s.fs.rmdir(&s.who, &s.dir, &name)))
        },
    },
    Operation {
        name: "rename",
        traits: &[Names, ChangesNames],
        prepare: |s| {
            let (from, to) = (s.name("from"), s.name("to"));
            drop(s.make(&s.dir, &from)?);
            Ok(Box::new(move || {
                let flags = RenameFlags::empty();
                s.fs.rename(&s.who, &s.dir, &from, &s.dir, &to, flags)
            }))
        },
    },
    Operation {
        name: "rename-over",
        traits: &[Names, ChangesNames, ChangesSpace],
        prepare: |s| {
            let (from, to) = (s.name("from"), s.name("to"));
            drop(s.make(&s.dir, &from)?);
            drop(s.make(&s.dir, &to)?);
            Ok(Box::new(move || {
                let flags = RenameFlags::empty();
                s.fs.rename(&s.who, &s.dir, &from, &s.dir, &to, flags)
            }))
        },
    },
    Operation {
        name: "exchange",
        traits: &[Names, ChangesNames],
        prepare: |s| {
            let (from, to) = (s.name("from"), s.name("to"));
            drop(s.make(&s.dir, &from)?);
            drop(s.make(&s.dir, &to)?);
            Ok(Box::new(move || {
                let flags = RenameFlags::EXCHANGE;
                s.fs.rename(&s.who, &s.dir, &from, &s.dir, &to, flags)
            }))
        },
    },
    Operation {
        name: "move",
        traits: &[Names, ChangesNames],
        prepare: |s| {
            let name = s.name("moved");
            drop(s.make(&s.dir, &name)?);
            Ok(Box::new(move || {
                let flags = RenameFlags::empty();
                s.fs.rename(&s.who, &s.dir, &name, &s.extra, &name, flags)
            }))
        },
    },
    Operation {
        name: "move-directory",
        traits: &[Names, ChangesNames],
        prepare: |s| {
            let name = s.name("moved");
            drop(s.fs.mkdir(&s.who, &s.dir, &name, 0o755)?);
            Ok(Box::new(move || {
                let flags = RenameFlags::empty();
                s.fs.rename(&s.who, &s.dir, &name, &s.extra, &name, flags)
            }))
        },
    },
];
