//! What a worker of this workload is given: one phase, which its only thread does.

use super::job::{Job, Met};
use crate::budget::{self, Bytes, Seen, Watch};
use crate::crew::{Crew, Work};
use crate::shape::Seats;
use crate::team::worker::Boss;
use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::{fs, thread};

/// One run.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Task {
    pub(super) image: PathBuf,
    /// The budget, in bytes; no limit if absent.
    pub(super) memory: Option<u64>,
    pub(super) job: Job,
    /// Where it writes what came of it.
    pub(super) scratch: PathBuf,
}

/// What came of it, beside the time that it took.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(super) struct Outcome {
    pub(super) seen: Seen,
    pub(super) met: Met,
}

const OUTCOME: &str = "outcome.json";

impl Outcome {
    /// What the last worker wrote into this folder.
    ///
    /// # Errors
    /// If it wrote nothing of sense.
    pub(super) fn load(scratch: &Path) -> Result<Self> {
        let path = scratch.join(OUTCOME);
        let text = fs::read(&path).with_context(|| path.display().to_string())?;
        serde_json::from_slice(&text).context("what a worker wrote makes no sense")
    }
}

impl Task {
    /// Does it, when the boss says so.
    ///
    /// # Errors
    /// If the volume cannot be made, opened or closed; orders that make no sense.
    pub(crate) fn staff(&self, seats: Seats, boss: &mut Boss) -> Result<()> {
        let _kept = budget::keep(Bytes(self.memory))?;
        let volume = self.job.open(&self.image)?;
        self.job.prepare(&volume)?;
        let watch = Watch::start(|| 0)?;
        let met = Mutex::new(Met::default());
        let outcome = thread::scope(|scope| {
            let worker = |(): ()| {
                let own = self.job.run(&volume)?;
                let items = own.items;
                *met.lock().unwrap_or_else(PoisonError::into_inner) = own;
                Ok(Work::from(items))
            };
            boss.serve(&Crew::hire(scope, seats.first, [worker])?)
        });
        let told = Outcome {
            seen: watch.end()?,
            met: met.into_inner().unwrap_or_else(PoisonError::into_inner),
        };
        let path = self.scratch.join(OUTCOME);
        fs::write(&path, serde_json::to_vec(&told)?).with_context(|| path.display().to_string())?;
        outcome.and(volume.close())
    }
}
