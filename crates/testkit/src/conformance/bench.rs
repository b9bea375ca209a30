use super::Subject;
use crate::diff::op::{Bytes, Object, Op};
use crate::diff::outcome::Outcome;
use crate::diff::view::View;
use holdfast_types::{Errno, OpenFlags, RenameFlags};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What a case answers: nothing, or what did not hold.
pub type Check<T = ()> = Result<T, String>;

/// The superuser's number in the cast.
pub(super) const ROOT: usize = 0;

/// A subject, and a directory of it for one case.
pub struct Bench {
    subject: Arc<dyn Subject>,
    dir: Vec<u8>,
}

impl std::fmt::Debug for Bench {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Bench")
            .field("dir", &Bytes(self.dir.clone()))
            .finish_non_exhaustive()
    }
}

/// Fails with `claim` unless `holds`.
pub(super) fn expect(holds: bool, claim: &str) -> Check {
    if holds {
        Ok(())
    } else {
        Err(format!("does not hold: {claim}"))
    }
}

impl Bench {
    /// Makes the directory, open to everybody.
    ///
    /// # Errors
    /// If it cannot be made.
    pub fn new(subject: Arc<dyn Subject>, name: &str) -> Check<Self> {
        let bench = Self {
            subject,
            dir: name.as_bytes().to_vec(),
        };
        bench.ok(
            ROOT,
            &Op::Mkdir {
                path: Bytes(bench.dir.clone()),
                perm: 0o777,
            },
        )?;
        bench.chmod(".", 0o777)?;
        Ok(bench)
    }

    /// Removes the directory with all it holds.
    ///
    /// # Errors
    /// If something cannot be removed.
    pub fn clear(&self) -> Check {
        for slot in 0..crate::diff::target::SLOTS {
            self.call(ROOT, &Op::Close { slot });
        }
        self.remove_tree(&self.dir)
    }

    fn remove_tree(&self, dir: &[u8]) -> Check {
        let path = Bytes(dir.to_vec());
        self.open_at(ROOT, path.clone(), OpenFlags::DIRECTORY, 0)?;
        let names = self.ok(
            ROOT,
            &Op::List {
                slot: 0,
                chunk: 8000,
                resume: usize::MAX,
            },
        )?;
        let Outcome::Names(names) = names else {
            return Err("no names".into());
        };
        for (name, kind) in names {
            let child = [dir, b"/", &name.0].concat();
            match (&name.0[..], kind) {
                (b"." | b"..", _) => {}
                (_, 4) => self.remove_tree(&child)?,
                _ => drop(self.ok(ROOT, &Op::Unlink { path: Bytes(child) })?),
            }
        }
        self.ok(ROOT, &Op::Rmdir { path }).map(drop)
    }

    /// A path in the case's directory.
    pub(super) fn at(&self, path: impl AsRef<[u8]>) -> Bytes {
        Bytes([&self.dir[..], b"/", path.as_ref()].concat())
    }

    /// Runs an operation, whatever comes of it.
    pub(super) fn call(&self, caller: usize, op: &Op) -> Outcome {
        self.subject.call(caller, op)
    }

    /// Runs an operation that succeeds.
    pub(super) fn ok(&self, caller: usize, op: &Op) -> Check<Outcome> {
        let outcome = self.call(caller, op);
        if outcome.succeeded() {
            return Ok(outcome);
        }
        Err(format!(
            "caller {caller}: {op:?} answered {}",
            outcome.brief()
        ))
    }

    /// Runs an operation that fails with `error`.
    pub(super) fn fails(&self, caller: usize, op: &Op, error: Errno) -> Check {
        let outcome = self.call(caller, op);
        if outcome == Outcome::Failed(error) {
            return Ok(());
        }
        let got = outcome.brief();
        Err(format!(
            "caller {caller}: {op:?} answered {got}, should be {error:?}"
        ))
    }

    /// Opens into slot 0 of a caller.
    fn open_at(&self, caller: usize, path: Bytes, flags: OpenFlags, slot: usize) -> Check {
        self.ok(
            caller,
            &Op::Open {
                path,
                flags,
                perm: 0o644,
                slot,
            },
        )
        .map(drop)
    }

    pub(super) fn open(&self, caller: usize, slot: usize, path: &str, flags: OpenFlags) -> Check {
        self.open_at(caller, self.at(path), flags, slot)
    }

    pub(super) fn close(&self, caller: usize, slot: usize) -> Check {
        self.ok(caller, &Op::Close { slot }).map(drop)
    }

    /// Makes a file with these bytes, as the superuser, and leaves it open in slot 5.
    pub(super) fn file(&self, path: &str, fill: u64, len: usize) -> Check {
        let flags = OpenFlags::READ_WRITE | OpenFlags::CREATE | OpenFlags::TRUNCATE;
        self.open(ROOT, 5, path, flags)?;
        if len > 0 {
            self.write(ROOT, 5, 0, fill, len)?;
        }
        Ok(())
    }

    pub(super) fn write(
        &self,
        caller: usize,
        slot: usize,
        offset: i64,
        fill: u64,
        len: usize,
    ) -> Check {
        let outcome = self.ok(
            caller,
            &Op::Pwrite {
                slot,
                offset,
                lens: vec![len],
                fill,
            },
        )?;
        expect(
            outcome == Outcome::Number(len as u64),
            "a write writes all bytes",
        )
    }

    pub(super) fn read(&self, caller: usize, slot: usize, at: i64, len: usize) -> Check<Vec<u8>> {
        match self.ok(
            caller,
            &Op::Pread {
                slot,
                offset: at,
                lens: vec![len],
            },
        )? {
            Outcome::Data(bytes) => Ok(bytes),
            other => Err(format!("a read answered {}", other.brief())),
        }
    }

    pub(super) fn mkdir(&self, caller: usize, path: &str, perm: u16) -> Check {
        self.ok(
            caller,
            &Op::Mkdir {
                path: self.at(path),
                perm,
            },
        )
        .map(drop)
    }

    pub(super) fn chmod(&self, path: &str, perm: u16) -> Check {
        let object = Object::Path(self.at(path));
        self.ok(ROOT, &Op::Chmod { object, perm }).map(drop)
    }

    pub(super) fn chown(&self, path: &str, uid: u32, gid: u32) -> Check {
        let object = Object::Link(self.at(path));
        self.ok(
            ROOT,
            &Op::Chown {
                object,
                uid: Some(uid),
                gid: Some(gid),
            },
        )
        .map(drop)
    }

    pub(super) fn link(&self, from: &str, to: &str) -> Check {
        let op = Op::Link {
            from: self.at(from),
            to: self.at(to),
            follow: false,
        };
        self.ok(ROOT, &op).map(drop)
    }

    pub(super) fn unlink(&self, path: &str) -> Check {
        self.ok(
            ROOT,
            &Op::Unlink {
                path: self.at(path),
            },
        )
        .map(drop)
    }

    pub(super) fn renaming(&self, from: &str, to: &str, flags: RenameFlags) -> Op {
        Op::Rename {
            from: self.at(from),
            to: self.at(to),
            flags,
        }
    }

    pub(super) fn rename(&self, from: &str, to: &str, flags: RenameFlags) -> Check {
        self.ok(ROOT, &self.renaming(from, to, flags)).map(drop)
    }

    /// Attributes of what a path names, as the superuser sees them.
    pub(super) fn stat(&self, path: &str) -> Check<View> {
        self.attributes(Object::Link(self.at(path)))
    }

    pub(super) fn fstat(&self, slot: usize) -> Check<View> {
        self.attributes(Object::File(slot))
    }

    fn attributes(&self, object: Object) -> Check<View> {
        match self.ok(ROOT, &Op::Stat { object })? {
            Outcome::Attributes(view) => Ok(view),
            other => Err(format!("stat answered {}", other.brief())),
        }
    }

    pub(super) fn missing(&self, path: &str) -> Check {
        self.fails(
            ROOT,
            &Op::Stat {
                object: Object::Link(self.at(path)),
            },
            Errno::ENOENT,
        )
    }

    /// The names of a directory but `.` and `..`, read through slot 4.
    pub(super) fn names(&self, path: &str) -> Check<BTreeMap<Bytes, u8>> {
        self.open(ROOT, 4, path, OpenFlags::DIRECTORY)?;
        let listed = self.ok(
            ROOT,
            &Op::List {
                slot: 4,
                chunk: 2000,
                resume: 1,
            },
        )?;
        self.close(ROOT, 4)?;
        let Outcome::Names(mut names) = listed else {
            return Err("no names".into());
        };
        let special = names.remove(&Bytes::from(b".")).is_some()
            && names.remove(&Bytes::from(b"..")).is_some();
        expect(special, ". and .. are listed")?;
        Ok(names)
    }

    /// A run of names behind a cookie, of the directory open in a slot.
    pub(super) fn run_from(
        &self,
        slot: usize,
        after: u64,
        most: usize,
    ) -> Check<Vec<(Bytes, u8, u64)>> {
        match self.ok(ROOT, &Op::ListFrom { slot, after, most })? {
            Outcome::Entries(entries) => Ok(entries),
            other => Err(format!("a listing answered {}", other.brief())),
        }
    }
}
