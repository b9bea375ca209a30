//! The library as a target: the core's operations, with what a system call does before it
//! reaches a file system (descriptors, negative offsets) around them.

mod calls;
mod data;
mod inspect;

use crate::diff::host::AtimeRule;
use crate::diff::op::{Bytes, Op};
use crate::diff::target::{SLOTS, Step, Target};
use crate::diff::view::{Detail, View};
use holdfast_core::{
    AtimePolicy, FileSystem, LockOwner, LockSpace, MemoryLimits, Node, OpenFile, Options,
};
use holdfast_types::{Caller, Errno, OpenFlags, Result};
use std::sync::atomic::{AtomicU64, Ordering};

/// One caller: its credentials and its open files.
struct Process {
    who: Caller,
    files: [Option<OpenFile>; SLOTS],
    /// Owner of its POSIX record locks.
    owner: LockOwner,
}

impl Process {
    /// The open file in a slot, even one that is a handle to the name only.
    fn handle(&self, slot: usize) -> Result<&OpenFile> {
        self.files
            .get(slot)
            .and_then(Option::as_ref)
            .ok_or(Errno::EBADF)
    }

    /// The open file in a slot, for calls that refuse handles to the name only.
    fn file(&self, slot: usize) -> Result<&OpenFile> {
        let file = self.handle(slot)?;
        if file.flags().contains(OpenFlags::PATH) {
            Err(Errno::EBADF)
        } else {
            Ok(file)
        }
    }
}

/// A file system of the library.
pub struct LibraryTarget {
    fs: FileSystem,
    root: Node,
    superuser: Caller,
    processes: Vec<Process>,
}

impl std::fmt::Debug for LibraryTarget {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LibraryTarget").finish_non_exhaustive()
    }
}

impl LibraryTarget {
    /// A fresh file system in memory.
    #[must_use]
    pub fn memory(cast: &[Caller], atime: AtimeRule) -> Self {
        Self::over(
            FileSystem::memory(MemoryLimits::default(), options(atime)),
            cast,
        )
    }

    /// Any file system, taken as it is.
    #[must_use]
    pub fn over(fs: FileSystem, cast: &[Caller]) -> Self {
        let processes = cast.iter().map(|who| Process {
            who: who.clone(),
            files: Default::default(),
            owner: next_owner(),
        });
        let superuser = Caller::root().with_umask(0);
        Self {
            root: fs.root(),
            processes: processes.collect(),
            superuser,
            fs,
        }
    }

    /// Closes a slot as close(2) does: the process's record locks on the file go, too.
    fn close(&mut self, caller: usize, slot: usize) -> Result<()> {
        let process = &mut self.processes[caller];
        let file = process.files[slot].take().ok_or(Errno::EBADF)?;
        if !file.flags().contains(OpenFlags::PATH) {
            self.fs
                .release_locks(file.node(), process.owner, LockSpace::Posix);
        }
        Ok(())
    }

    fn look_open(&self, caller: usize, slots: &[usize]) -> Vec<Result<View>> {
        let process = &self.processes[caller];
        let look = |&slot| {
            Ok(inspect::view(
                &self.fs.getattr(process.handle(slot)?.node()),
            ))
        };
        slots.iter().map(look).collect()
    }
}

/// An owner of POSIX record locks, as every process is one: no other target has it.
fn next_owner() -> LockOwner {
    // Far from the numbers that open files get.
    static NEXT: AtomicU64 = AtomicU64::new(u64::MAX);
    LockOwner(NEXT.fetch_sub(1, Ordering::Relaxed))
}

/// Options that make the library the counterpart of the host target's mount.
#[must_use]
pub fn options(atime: AtimeRule) -> Options {
    let atime = match atime {
        AtimeRule::Strict | AtimeRule::Ignored => AtimePolicy::Strict,
        AtimeRule::Relative => AtimePolicy::Relatime,
        AtimeRule::Never => AtimePolicy::None,
    };
    Options {
        atime,
        nodev: true,
        ..Options::default()
    }
}

impl Target for LibraryTarget {
    fn run(&mut self, caller: usize, op: &Op, slots: &[usize]) -> Step {
        let before = self.look_open(caller, slots);
        let outcome = self.call(caller, op);
        Step {
            before,
            outcome,
            after: self.look_open(caller, slots),
        }
    }

    fn look(&mut self, path: &Bytes, follow: bool, detail: Detail) -> Result<View> {
        inspect::look(&self.fs, &self.superuser, path, follow, detail)
    }
}
