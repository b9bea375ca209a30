use crate::diff::host::HostCallers;
use crate::diff::library::LibraryTarget;
use crate::diff::op::Op;
use crate::diff::outcome::Outcome;
use crate::diff::target::Target as _;
use holdfast_core::FileSystem;
use holdfast_types::Caller;
use std::sync::{Mutex, PoisonError};

/// What a case is run over: the callers of [`crate::diff::cast::cast`], which act concurrently.
pub trait Subject: Send + Sync {
    /// Runs an operation as the caller of this number.
    fn call(&self, caller: usize, op: &Op) -> Outcome;
}

impl Subject for HostCallers {
    fn call(&self, caller: usize, op: &Op) -> Outcome {
        Self::call(self, caller, op)
    }
}

/// The library, over any store.
#[derive(Debug)]
pub struct LibrarySubject {
    /// One target for each caller, all with the same file system.
    callers: Vec<Mutex<LibraryTarget>>,
}

impl LibrarySubject {
    /// The cast over this file system.
    #[must_use]
    pub fn new(fs: &FileSystem, cast: &[Caller]) -> Self {
        let alone = |who| Mutex::new(LibraryTarget::over(fs.clone(), std::slice::from_ref(who)));
        Self {
            callers: cast.iter().map(alone).collect(),
        }
    }
}

impl Subject for LibrarySubject {
    fn call(&self, caller: usize, op: &Op) -> Outcome {
        let mut target = self.callers[caller]
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        target.run(0, op, &[]).outcome
    }
}
