//! What any client does for all.
//!
//! The thread `holdfast-sweep` does a round about every ten seconds: sessions that are silent are
//! ended, inodes without names are freed, [bodies] are moved into objects, and objects that nothing
//! maps are deleted. A round that meets an error ends there, and the next one begins anew.

mod bodies;

use crate::meta::Meta;
use crate::numbers::Numbers;
use crate::objects::Objects;
use crate::session::Periodic;
use holdfast_types::Result;
use parking_lot::Mutex;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// The shortest time between two rounds, and what a client adds to it at random.
const REST: Duration = Duration::from_secs(5);
const JITTER_MILLIS: u64 = 10_000;
/// Inodes that are freed in one transaction.
const INODES: usize = 1024;
/// Objects that are looked at, and deleted, in one round.
const OBJECTS: usize = 1000;

/// The sweeper of a client. Its thread ends when it is dropped.
pub(crate) struct Sweep {
    rounds: Arc<Rounds>,
    _thread: Periodic,
}

struct Rounds {
    meta: Arc<dyn Meta>,
    objects: Arc<dyn Objects>,
    numbers: Arc<Numbers>,
    /// The last object that was looked at.
    after: Mutex<u64>,
}

impl Sweep {
    /// Starts the thread.
    ///
    /// # Errors
    /// Those of starting a thread.
    pub(crate) fn start(
        meta: Arc<dyn Meta>,
        objects: Arc<dyn Objects>,
        numbers: Arc<Numbers>,
    ) -> io::Result<Self> {
        let after = Mutex::new(0);
        let rounds = Arc::new(Rounds {
            meta,
            objects,
            numbers,
            after,
        });
        let thread = {
            let rounds = Arc::clone(&rounds);
            let mut first = true;
            Periodic::start("holdfast-sweep", move || {
                if !std::mem::take(&mut first) {
                    // What is left is for the next round, here or at another client.
                    let _ = rounds.round();
                }
                REST + jitter()
            })?
        };
        Ok(Self {
            rounds,
            _thread: thread,
        })
    }

    /// Does a round now.
    ///
    /// # Errors
    /// Those of the database and of the objects.
    pub(crate) fn round(&self) -> Result<()> {
        self.rounds.round()
    }
}

impl Rounds {
    fn round(&self) -> Result<()> {
        while self.meta.sweep(INODES)? >= INODES as u64 {}
        bodies::move_all(&*self.meta, &*self.objects, &self.numbers)?;
        self.delete()
    }

    /// Deletes objects that nothing maps. The next objects of the store are among those looked at.
    fn delete(&self) -> Result<()> {
        let mut after = self.after.lock();
        let mut listed = Vec::new();
        self.objects.list(*after, OBJECTS, &mut listed)?;
        *after = match listed.len() < OBJECTS {
            true => 0,
            false => listed.last().copied().unwrap_or(0),
        };
        let deletable = self.meta.deletable(&listed, OBJECTS)?;
        if deletable.is_empty() {
            return Ok(());
        }
        self.objects.delete(&deletable)?;
        self.meta.deleted(&deletable)
    }
}

/// A random time, so that clients do not work at the same moments.
fn jitter() -> Duration {
    Duration::from_millis(RandomState::new().hash_one(0_u8) % JITTER_MILLIS)
}

#[cfg(test)]
mod tests;
