//! What a worker of this workload is given, and the threads that it puts to it.

use super::pattern::WRITE;
use super::phase::Phase;
use super::writer::Writer;
use crate::mode::Slots;
use crate::pool::Pool;
use crate::targets::{DirectoryTree, Io, MemoryTree, Session, Target, Tree};
use crate::targets::{volume, volume_over};
use crate::team::worker::Boss;
use anyhow::Result;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// One run's tree, and how much is written.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Task {
    pub(super) target: Target,
    /// The image that a volume is made anew on; a new one if absent.
    pub(super) image: Option<PathBuf>,
    /// The limit of memory of a volume's file system, in bytes; the usual one if absent.
    pub(super) cache: Option<u64>,
    pub(super) amounts: Amounts,
}

/// Of each thread.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub(super) struct Amounts {
    /// Scattered writes.
    pub(super) scattered: u64,
    /// Bytes of a file that is filled.
    pub(super) fill: u64,
    /// Small files.
    pub(super) small: u64,
}

impl Amounts {
    /// Bytes of free memory that a thread may take: a page for each block that it writes, and
    /// another one if the image is in memory too.
    pub(super) fn memory(&self, phase: Phase) -> u64 {
        let blocks = match phase {
            Phase::Fill | Phase::FillSeq4 => self.fill / 4096,
            _ => self.writes(phase),
        };
        blocks * 2 * 4096
    }

    /// Writes of one thread, or its small files.
    pub(super) fn writes(&self, phase: Phase) -> u64 {
        match phase {
            Phase::SparseRandom | Phase::SparseStride => self.scattered,
            // Whole blocks, so that rows of writes are whole too.
            Phase::Fill | Phase::FillSeq4 => (self.fill / WRITE as u64).next_multiple_of(4),
            Phase::SmallFiles => self.small,
        }
    }
}

impl Task {
    /// Makes a fresh tree, lets a pool take steps from the boss, removes the tree.
    ///
    /// # Errors
    /// If the tree cannot be made or removed; orders that make no sense.
    pub(crate) fn staff(&self, slots: Slots, boss: &mut Boss) -> Result<()> {
        match &self.target {
            Target::Memory => self.on(MemoryTree::new(), slots, boss),
            Target::Volume(path) => {
                let tree = match &self.image {
                    Some(image) => volume_over(image, self.cache),
                    None => volume(path, self.cache),
                };
                self.on(tree?, slots, boss)
            }
            Target::Directory(path) => self.on(DirectoryTree::new(path)?, slots, boss),
        }
    }

    fn on<T: Tree>(&self, tree: T, slots: Slots, boss: &mut Boss) -> Result<()>
    where
        for<'t> T::Session<'t>: Io + Session,
    {
        let outcome = std::thread::scope(|scope| {
            let workers = (0..slots.threads).map(|index| {
                let mut writer = Writer::new(index, tree.session(), self.amounts);
                move |step| writer.step(step)
            });
            boss.serve(&Pool::hire(scope, slots.first, workers)?)
        });
        let closed = tree.close();
        outcome.and(closed)
    }
}
