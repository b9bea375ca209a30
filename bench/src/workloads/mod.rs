//! Workloads: what is done to a tree, in which phases, by how many threads.

pub(crate) mod cached_read;
pub(crate) mod fuse;
pub(crate) mod listing;
pub(crate) mod names;
pub(crate) mod reclaim;
pub(crate) mod request;
pub(crate) mod sharded;
pub(crate) mod sparse;
pub(crate) mod trees;

use crate::shape::Seats;
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
    /// A directory of many names, within a budget of memory.
    Names(names::Task),
}

impl Task {
    /// Does a worker's part of it.
    ///
    /// # Errors
    /// Those of the workload.
    pub(crate) fn staff(&self, seats: Seats, boss: &mut Boss) -> Result<()> {
        match self {
            Self::Sharded(task) => task.staff(seats, boss),
            Self::CachedRead(task) => task.staff(seats, boss),
            Self::Sparse(task) => task.staff(seats, boss),
            Self::Reclaim(task) => task.staff(seats, boss),
            Self::Names(task) => task.staff(seats, boss),
        }
    }
}
