//! The generator: an endless sequence of operations that follows from a seed.

mod paths;
mod values;

use crate::diff::op::{Object, Op};
use crate::diff::target::SLOTS;
use crate::diff::view::Snapshot;
use crate::rng::Rng;
use holdfast_types::{Access, FileType, OpenFlags, Whence, XattrSet};
use paths::Known;

/// Makes operations from a seed and from what it is told of their success.
#[derive(Debug)]
pub struct Generator {
    rng: Rng,
    known: Known,
    caller: usize,
    /// How each caller's slots were opened, as far as known.
    opened: Vec<[Option<OpenFlags>; SLOTS]>,
}

impl Generator {
    /// A generator for this many callers; caller 0 is the superuser.
    #[must_use]
    pub fn new(seed: u64, callers: usize) -> Self {
        let opened = vec![[None; SLOTS]; callers];
        Self {
            rng: Rng::new(seed),
            known: Known::default(),
            caller: 0,
            opened,
        }
    }

    /// The next operation, and the number of its caller.
    pub fn next_op(&mut self) -> (usize, Op) {
        if let Some((path, is_dir)) = self.known.surplus(&mut self.rng) {
            return (
                0,
                if is_dir {
                    Op::Rmdir { path }
                } else {
                    Op::Unlink { path }
                },
            );
        }
        // A caller goes on for a while: its operations then meet its own open files.
        if self.rng.one_in(6) {
            let anyone = self.rng.index(self.opened.len());
            self.caller = if self.rng.one_in(2) { 0 } else { anyone };
        }
        let op = match self.rng.below(100) {
            0..16 => self.opening(),
            16..40 => self.naming(),
            40..58 => self.attribute(),
            58..80 => self.data(),
            80..91 => self.xattr(),
            91..97 => self.lock(),
            _ => self.rest(),
        };
        (self.caller, op)
    }

    /// Learns what the last operation did.
    pub fn note(&mut self, caller: usize, op: &Op) {
        self.known.note(op);
        match op {
            Op::Open { slot, flags, .. } => self.opened[caller][*slot] = Some(*flags),
            Op::Close { slot } => self.opened[caller][*slot] = None,
            _ => {}
        }
    }

    /// Learns that the operation did not find what it names.
    pub fn note_missing(&mut self, op: &Op) {
        self.known.note_missing(op);
    }

    /// Learns what there is.
    pub fn learn(&mut self, tree: &Snapshot) {
        self.known.learn(tree);
    }

    fn slot(&mut self) -> usize {
        self.rng.index(SLOTS)
    }

    /// A slot that holds an open file, if there is one such that `suits`; mostly.
    fn slot_with(&mut self, suits: impl Fn(OpenFlags) -> bool) -> usize {
        let slots = &self.opened[self.caller];
        let fitting = (0..SLOTS).filter(|&slot| slots[slot].is_some_and(&suits));
        let fitting: Vec<usize> = fitting.collect();
        if fitting.is_empty() || self.rng.one_in(10) {
            return self.slot();
        }
        *self.rng.pick(&fitting)
    }

    fn object(&mut self) -> Object {
        match self.rng.below(8) {
            0..2 => Object::File(self.slot_with(|_| true)),
            2..4 => Object::Link(paths::present(&mut self.rng, &self.known, None)),
            _ => Object::Path(paths::present(&mut self.rng, &self.known, None)),
        }
    }

    fn opening(&mut self) -> Op {
        let slot = self.slot();
        if self.rng.one_in(8) {
            return Op::Close { slot };
        }
        let rng = &mut self.rng;
        let flags = values::open_flags(rng);
        let kind = if flags.contains(OpenFlags::DIRECTORY) {
            Some(FileType::Directory)
        } else {
            (!rng.one_in(3)).then_some(FileType::Regular)
        };
        let creating = flags.contains(OpenFlags::CREATE);
        let path = if creating && rng.one_in(2) {
            paths::fresh(rng, &self.known)
        } else {
            paths::present(rng, &self.known, kind)
        };
        Op::Open {
            path,
            flags,
            perm: values::perm(rng),
            slot,
        }
    }

    fn naming(&mut self) -> Op {
        let slot = self.slot();
        let (rng, known) = (&mut self.rng, &self.known);
        match rng.below(24) {
            0..4 => Op::Mkdir {
                path: paths::fresh(rng, known),
                perm: values::dir_perm(rng),
            },
            4..6 => {
                let kind = *rng.pick(&[
                    FileType::Regular,
                    FileType::Fifo,
                    FileType::Socket,
                    FileType::CharDevice,
                    FileType::BlockDevice,
                ]);
                let path = paths::fresh(rng, known);
                let rdev = if kind.is_device() {
                    values::rdev(rng)
                } else {
                    0
                };
                Op::Mknod {
                    path,
                    kind,
                    perm: values::perm(rng),
                    rdev,
                }
            }
            6..8 => Op::Symlink {
                target: paths::target(rng, known),
                path: paths::fresh(rng, known),
            },
            8 => Op::Readlink {
                path: paths::present(rng, known, Some(FileType::Symlink)),
            },
            9..12 => {
                let kind = (!rng.one_in(3)).then_some(FileType::Regular);
                let from = paths::present(rng, known, kind);
                Op::Link {
                    from,
                    to: paths::fresh(rng, known),
                    follow: rng.one_in(3),
                }
            }
            12 => Op::LinkOpen {
                slot,
                to: paths::fresh(rng, known),
            },
            13..16 => Op::Unlink {
                path: paths::present(rng, known, None),
            },
            16..18 => Op::Rmdir {
                path: paths::present(rng, known, Some(FileType::Directory)),
            },
            _ => {
                let from = paths::present(rng, known, None);
                let to = paths::destination(rng, known, &from);
                Op::Rename {
                    from,
                    to,
                    flags: values::rename_flags(rng),
                }
            }
        }
    }

    fn attribute(&mut self) -> Op {
        let object = self.object();
        let rng = &mut self.rng;
        match rng.below(12) {
            0..2 => Op::Stat { object },
            2..5 => Op::Chmod {
                object: without_link(object),
                perm: values::perm(rng),
            },
            5..7 => {
                let (uid, gid) = (values::id(rng), values::id(rng));
                // With neither, chown(2) still clears set-id bits: no front end can say so.
                let gid = if uid.is_none() {
                    gid.or(Some(1000))
                } else {
                    gid
                };
                Op::Chown { object, uid, gid }
            }
            7..9 => Op::Truncate {
                object: without_link(object),
                len: values::size(rng),
            },
            9..11 => Op::Utimens {
                object,
                atime: values::when(rng),
                mtime: values::when(rng),
            },
            _ => {
                let path = paths::present(rng, &self.known, None);
                let want = Access::from_bits_truncate(rng.below(8) as u8);
                Op::Access {
                    path,
                    want,
                    follow: !rng.one_in(4),
                }
            }
        }
    }

    /// The slots for the choice of [`Self::data`]: its file, and another that is written to.
    fn data_slots(&mut self, choice: u64) -> (usize, usize) {
        let is_file = |flags: OpenFlags| {
            flags.contains(OpenFlags::TMPFILE)
                || !flags.intersects(OpenFlags::DIRECTORY | OpenFlags::PATH)
        };
        let slot = match choice {
            0..6 | 14..16 | 19..22 => self.slot_with(|flags| is_file(flags) && flags.readable()),
            22 => self.slot_with(|flags| !is_file(flags)),
            _ => self.slot_with(|flags| is_file(flags) && flags.writable()),
        };
        (
            slot,
            self.slot_with(|flags| is_file(flags) && flags.writable()),
        )
    }

    fn data(&mut self) -> Op {
        let choice = self.rng.below(24);
        let (slot, other) = self.data_slots(choice);
        let rng = &mut self.rng;
        match choice {
            0..6 => Op::Pread {
                slot,
                offset: values::offset(rng),
                lens: values::lens(rng),
            },
            6..12 => {
                let (offset, lens) = (values::offset(rng), values::lens(rng));
                Op::Pwrite {
                    slot,
                    offset,
                    lens,
                    fill: rng.bits(),
                }
            }
            12..14 => Op::Append {
                slot,
                len: values::len(rng),
                fill: rng.bits(),
            },
            14..16 => {
                let whence = if rng.one_in(2) {
                    Whence::Data
                } else {
                    Whence::Hole
                };
                Op::Seek {
                    slot,
                    offset: values::offset(rng),
                    whence,
                }
            }
            16..19 => {
                let (mode, offset) = (values::fallocate(rng), values::offset(rng));
                Op::Fallocate {
                    slot,
                    mode,
                    offset,
                    len: values::len(rng) as i64,
                }
            }
            19..21 => {
                let (from_off, to_off) = (values::offset(rng).max(0), values::offset(rng).max(0));
                Op::CopyRange {
                    from: slot,
                    from_off,
                    to: other,
                    to_off,
                    len: values::len(rng),
                }
            }
            21 => Op::Fsync {
                slot,
                data_only: rng.one_in(2),
            },
            22 => Op::List {
                slot,
                chunk: 320 + rng.index(1000),
                resume: rng.index(8),
            },
            _ => Op::Truncate {
                object: Object::File(slot),
                len: values::size(rng),
            },
        }
    }

    fn xattr(&mut self) -> Op {
        let object = self.object();
        let rng = &mut self.rng;
        let name = values::xattr_name(rng);
        match rng.below(8) {
            0 => Op::GetXattr { object, name },
            1 => Op::ListXattr { object },
            2 => Op::RemoveXattr { object, name },
            _ => {
                let value = values::xattr_value(rng, &name);
                let how = match rng.below(6) {
                    0 => XattrSet::Create,
                    1 => XattrSet::Replace,
                    _ => XattrSet::Any,
                };
                Op::SetXattr {
                    object,
                    name,
                    value,
                    how,
                }
            }
        }
    }

    fn lock(&mut self) -> Op {
        let slot = self.slot_with(|_| true);
        let (family, want, start, len) = values::lock(&mut self.rng);
        match self.rng.below(6) {
            0 if want != crate::diff::op::LockWant::Unlock => Op::GetLock {
                slot,
                family,
                want,
                start,
                len,
            },
            1..3 => Op::Flock { slot, want },
            _ => Op::SetLock {
                slot,
                family,
                want,
                start,
                len,
            },
        }
    }

    fn rest(&mut self) -> Op {
        let slot = self.slot_with(|_| true);
        let rng = &mut self.rng;
        match rng.below(6) {
            0 => Op::StatFs {
                path: paths::present(rng, &self.known, None),
            },
            1 => Op::SyncFs { slot },
            2..4 => {
                let flags = if rng.one_in(2) {
                    OpenFlags::APPEND
                } else {
                    OpenFlags::empty()
                };
                Op::SetFlags { slot, flags }
            }
            _ => {
                let (chunk, resume) = (320 + rng.index(1000), rng.index(8));
                let slot = self.slot_with(|flags| flags.contains(OpenFlags::DIRECTORY));
                Op::List {
                    slot,
                    chunk,
                    resume,
                }
            }
        }
    }
}

fn without_link(object: Object) -> Object {
    match object {
        Object::Link(path) => Object::Path(path),
        other => other,
    }
}
