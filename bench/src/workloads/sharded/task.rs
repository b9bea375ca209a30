//! What a worker of this workload is given, and the threads that it puts to it.

use super::phase::Phase;
use super::shard::Shard;
use crate::mode::Slots;
use crate::pool::{Pool, Work};
use crate::targets::{DirectoryTree, MemoryTree, Session, Target, Tree, volume, volume_over};
use crate::team::worker::Boss;
use anyhow::Result;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// One run's tree and files.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Task {
    pub(super) target: Target,
    /// The image that a volume is made anew on; a new one if absent.
    pub(super) image: Option<PathBuf>,
    /// Files of each thread.
    pub(super) files: usize,
    /// Of which so many are in one directory; all, if nothing is said.
    pub(super) per_dir: Option<usize>,
    /// Does each phase that writes end with everything durable?
    pub(super) syncs: bool,
}

impl Task {
    /// Bytes that a thread's files may take of the machine's free memory: xfs takes 1 KiB for an
    /// inode alone, and whatever lasts has its image in memory too.
    pub(super) fn memory_of_a_thread(&self) -> u64 {
        let each = if self.syncs { 4096 } else { 1536 };
        self.files as u64 * each
    }

    /// Makes a fresh tree, lets a pool take phases from the boss, removes the tree.
    ///
    /// # Errors
    /// If the tree cannot be made or removed; orders that make no sense.
    pub(crate) fn staff(&self, slots: Slots, boss: &mut Boss) -> Result<()> {
        match &self.target {
            Target::Memory => self.on(MemoryTree::new(), slots, boss),
            Target::Volume(path) => {
                let tree = match &self.image {
                    Some(image) => volume_over(image, None),
                    None => volume(path, None),
                };
                self.on(tree?, slots, boss)
            }
            Target::Directory(path) => self.on(DirectoryTree::new(path)?, slots, boss),
        }
    }

    fn on<T: Tree>(&self, tree: T, slots: Slots, boss: &mut Boss) -> Result<()>
    where
        for<'t> T::Session<'t>: Session,
    {
        let shard = |index| {
            Shard::new((index, slots.threads), self.files, self.per_dir)
                .map(|shard| shard.syncing(self.syncs))
        };
        let shards = (0..slots.threads).map(shard);
        let shards: Vec<Shard> = shards.collect::<Result<_>>()?;
        let outcome = std::thread::scope(|scope| {
            let workers = shards.iter().map(|shard| {
                let mut session = tree.session();
                move |phase: Phase| shard.run(phase, &mut session).map(Work::from)
            });
            boss.serve(&Pool::hire(scope, slots.first, workers)?)
        });
        let closed = tree.close();
        outcome.and(closed)
    }
}
