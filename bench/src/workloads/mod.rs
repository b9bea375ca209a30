//! Workloads: what is done to a tree, in which phases, by how many threads.

pub(crate) mod cached_read;
pub(crate) mod cluster;
pub(crate) mod fuse;
pub(crate) mod listing;
pub(crate) mod reclaim;
pub(crate) mod request;
pub(crate) mod sharded;
pub(crate) mod sparse;
pub(crate) mod trees;

use crate::mode::Slots;
use crate::team::worker::Boss;
use anyhow::Result;
use serde::{Deserialize, Serialize};

/// What a team's workers are for.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) enum Task {
    /// Many small files.
    Sharded(sharded::Task),
    /// Reads of one file.
    CachedRead(cached_read::Task),
    /// Small writes, scattered over files.
    Sparse(sparse::Task),
    /// Whatever it is, within a budget of memory.
    Reclaim(reclaim::Task),
}

impl Task {
    /// Does a worker's part of it.
    ///
    /// # Errors
    /// Those of the workload.
    pub(crate) fn staff(&self, slots: Slots, boss: &mut Boss) -> Result<()> {
        match self {
            Self::Sharded(task) => task.staff(slots, boss),
            Self::CachedRead(task) => task.staff(slots, boss),
            Self::Sparse(task) => task.staff(slots, boss),
            Self::Reclaim(task) => task.staff(slots, boss),
        }
    }
}
