//! Bringing the neighbours of what a commit places together with it.
//!
//! They are read before the cut, when nobody has to wait for it. What comes to be written while they are read is looked
//! at once more; neighbours of what comes after that stay where they are, as do those of files that are
//! [being read](crate::store::load::pins).
//!
//! *Invariant.* Between a commit's beginning and its end nobody else writes to places that files have written to: only
//! commits do, one at a time. So what was read is what is there, as long as the file has it at the same place still.

use holdfast_core::store::Stamp;
use holdfast_types::Ino;

use crate::space::Reservation;
use crate::store::Inner;
use crate::store::file::content::{Content, Neighbours, Runs, Source};
use crate::store::file::extent_map::Run;
use crate::{BLOCK, Result};

/// Blocks that are looked at before writers to the file have their turn.
const AT_ONCE: usize = 1024;

/// What was found in a file.
#[derive(Debug)]
pub(in crate::store) struct Looked {
    pub(in crate::store) ino: Ino,
    neighbours: Vec<Neighbours>,
}

impl Inner {
    /// Looks for [neighbours](Content::neighbours) in files that have many blocks waiting far apart, ascending. What cannot
    /// be read stays where it is.
    pub(in crate::store) fn look_for_neighbours(&self) -> Vec<Looked> {
        let files = {
            let layers = self.gate.pass();
            match layers.active.ready() {
                0 => Vec::new(),
                _ => layers.active.dirty_files(),
            }
        };
        files
            .into_iter()
            .filter_map(|ino| self.look_at(ino))
            .collect()
    }

    /// Looks for neighbours in one file.
    fn look_at(&self, ino: Ino) -> Option<Looked> {
        let waited = self.content(ino, Content::waiting_far_apart).flatten()?;
        let mut runs = Runs::new();
        for some in waited.chunks(AT_ONCE) {
            runs.extend(self.content(ino, |content| content.neighbours(some))?);
        }
        // Those between two chunks may be beside blocks of both.
        runs.dedup();
        let mut neighbours = self.read_runs(runs);
        // That took its time.
        let late = self.content(ino, |content| content.neighbours_since(&waited));
        neighbours.extend(self.read_runs(late.unwrap_or_default()));
        Some(Looked { ino, neighbours })
    }

    fn content<R>(&self, ino: Ino, look: impl FnOnce(&Content) -> R) -> Option<R> {
        let layers = self.gate.pass();
        layers
            .active
            .with(ino, |object| object.content().map(look))?
    }

    fn read_runs(&self, runs: Runs) -> Vec<Neighbours> {
        let read = |(at, run): (u64, Run)| {
            let mut bytes = vec![0; run.extent.length as usize * BLOCK];
            let read = self.blocks().read_row(run.extent.start, &mut bytes);
            read.ok().map(|()| Neighbours::new(at, run, bytes))
        };
        runs.into_iter().filter_map(read).collect()
    }

    /// Lets neighbours wait for a place as well, before the commit with this cut places what waits. Nobody passes the gate
    /// meanwhile.
    ///
    /// # Errors
    /// Those of the space.
    pub(in crate::store) fn take_along(
        &self,
        content: &mut Content,
        looked: Looked,
        promise: &mut Reservation,
        cut: Stamp,
    ) -> Result<()> {
        let along = looked.neighbours;
        if self.pins.holds(looked.ino) {
            return Ok(());
        }
        let blocks = along.iter().map(Neighbours::blocks).sum();
        // Until this is durable they have two places.
        if promise.grow(blocks).is_ok() {
            for place in content.take_along(along) {
                self.space.free_data(place, cut.0)?;
            }
        }
        Ok(())
    }
}
