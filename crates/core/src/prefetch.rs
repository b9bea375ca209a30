//! Prefetch: a program announces the inodes that it will use, and they are loaded in batches.
//!
//! As in the `dirreadahead` that was proposed for Linux (Das, 2014), the program keeps the
//! position, a cookie. So it needs no handle for that, and changes of the directory neither skip
//! nor repeat names that stay. The effect is that of a listing with a stat of each name, and the
//! same permissions are checked.

use crate::FileSystem;
use crate::core::Core;
use crate::directory::{FIRST_COOKIE, Residency};
use crate::inode::{DirectoryBody, Inode};
use crate::listing::Listing;
use crate::load::prefetch_inodes;
use crate::namespace::load::{learn_run, load_names};
use crate::namespace::lookup::search;
use crate::readahead::BATCH;
use crate::reclaim::metadata::{added_so_far, shrink_inodes_since};
use crate::reclaim::usage::prefetch_room;
use crate::shared::by_name::prefetch_names;
use crate::shared::is_in_memory;
use crate::store::NameRun;
use crate::types::{Caller, Errno, Ino, OpenFlags, Result};

use holdfast_sync::epoch;

/// Names that a call visits if there is no room for read-ahead.
const LEAST: u64 = 128;

/// Limits of one call of [`FileSystem::prefetch_dir`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prefetch {
    /// The most names that are visited.
    pub entries: u64,
}

impl Default for Prefetch {
    /// One batch.
    fn default() -> Self {
        Self {
            entries: BATCH as u64,
        }
    }
}

impl FileSystem {
    /// Loads the inodes of the names after `cursor` (0: from the first one), in the order of a
    /// listing, and sets `cursor` to the last of these names. Returns their number: 0 at the end of
    /// the directory.
    ///
    /// It may be less than the limit although there are more names: memory holds only a limited
    /// number of inodes that were not used yet. Names that vanish meanwhile are skipped. If an
    /// inode cannot be read, the error is returned to the operation that uses it.
    ///
    /// # Errors
    /// `ENOTDIR`. `EACCES` without permission to search, `EBADF` for a handle that is not open for
    /// reading. `ENOENT` for a removed directory. Errors of the store for names.
    pub fn prefetch_dir<'a>(
        &self,
        who: &Caller,
        dir: impl Into<Listing<'a>>,
        cursor: &mut u64,
        budget: Prefetch,
    ) -> Result<u64> {
        let core = &self.core;
        let Listing { dir, flags, .. } = dir.into();
        if flags.intersects(OpenFlags::PATH | OpenFlags::WRITE_ONLY) {
            return Err(Errno::EBADF);
        }
        let dir = dir.inode();
        let added = added_so_far(core);
        let body = search(core, who, dir)?;
        if body.names.is_dead() {
            return Err(Errno::ENOENT);
        }
        let mut passed = 0;
        while passed < budget.entries {
            let room = prefetch_room(core).min(BATCH) as u64;
            let most = match (room, passed) {
                // A call visits at least as many names as a lookup in the directory would load.
                (0, 0) => LEAST,
                (0, _) => break,
                (room, _) => room,
            };
            let most = most.min(budget.entries - passed);
            let some = prefetch_some(core, dir, body, cursor, most as usize)?;
            if some == 0 {
                break;
            }
            passed += some;
        }
        shrink_inodes_since(core, added);
        Ok(passed)
    }
}

/// Visits at most `most` names after `cursor`; returns their number.
fn prefetch_some(
    core: &Core,
    dir: &Inode,
    body: &DirectoryBody,
    cursor: &mut u64,
    most: usize,
) -> Result<u64> {
    let mut run = NameRun::default();
    loop {
        let seen = body.names.see();
        match seen.place() {
            Residency::Unloaded => {
                load_names(core, dir, body)?;
                continue;
            }
            Residency::Partial => {
                let after = (*cursor).max(FIRST_COOKIE - 1);
                learn_run(core, dir, body, after, most, &mut run)?;
            }
            Residency::Whole | Residency::Dated => {
                run.clear();
                let guard = epoch::pin();
                for (name, entry) in body.names.after(*cursor, &guard).take(most) {
                    run.push(name, entry.cookie, entry.ino, entry.kind);
                }
                // Otherwise names may have left the index meanwhile that still exist.
                if !body.names.is_still(seen) {
                    continue;
                }
            }
        }
        break;
    }
    let mut inos: Vec<Ino> = run.inos().filter(|ino| !is_in_memory(core, *ino)).collect();
    inos.sort_unstable();
    inos.dedup();
    if !inos.is_empty() {
        // An inode that cannot be read fails its whole batch: each is loaded again where it is
        // used.
        let _ = match core.coherence.is_some() {
            true => prefetch_names(core, dir, body, &inos, None).map(drop),
            false => prefetch_inodes(core, &inos, None),
        };
    }
    if let Some(last) = run.last_cookie() {
        *cursor = last;
    }
    Ok(run.len() as u64)
}
