//! Prefetch: what a program knows that it will ask for comes into memory at once.
//!
//! As with the `dirreadahead` that was proposed for Linux (Das, 2014) the program holds the place up to which it has come, a
//! cookie: so it needs no handle of its own for that, and changes of the directory neither skip nor repeat names that stay.
//! What comes is what a listing and a stat of each name would have brought, and takes the same permissions.

use crate::FileSystem;
use crate::directory::{FIRST_COOKIE, Place};
use crate::file_system::Core;
use crate::inode::{DirectoryBody, Inode};
use crate::readahead::BATCH;
use crate::readdir::Listing;
use crate::store::NameRun;
use crate::types::{Caller, Errno, Ino, OpenFlags, Result};

use holdfast_sync::epoch;

/// Names that a call goes over where there is no room for what nobody has asked for.
const LEAST: u64 = 128;

/// How much [`FileSystem::prefetch_dir`] brings, at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prefetch {
    /// Names that are gone over.
    pub entries: u64,
}

impl Default for Prefetch {
    /// A batch.
    fn default() -> Self {
        Self {
            entries: BATCH as u64,
        }
    }
}

impl FileSystem {
    /// Brings the inodes of the names behind `cursor` (0: from the first one) into memory, in the order of a listing, and sets it to the
    /// last of those names. How many names that was: 0 at the end of the directory.
    ///
    /// It may be fewer than the budget allows while there are more: memory holds only so many inodes that nobody has asked for
    /// yet. Names that vanish meanwhile are passed over. That an inode cannot be read is not told here, but to whatever
    /// asks for it.
    ///
    /// # Errors
    /// `ENOTDIR`; `EACCES` without permission to search, `EBADF` for a handle that is not open for reading; `ENOENT` for a
    /// removed directory; what the store answers for names.
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
        let added = core.added_so_far();
        let body = core.search(who, dir)?;
        if body.names.is_dead() {
            return Err(Errno::ENOENT);
        }
        let mut passed = 0;
        while passed < budget.entries {
            let room = core.room_ahead().min(BATCH) as u64;
            let most = match (room, passed) {
                // A call goes on at least by what a look at the directory would have brought.
                (0, 0) => LEAST,
                (0, _) => break,
                (room, _) => room,
            };
            let most = most.min(budget.entries - passed);
            let some = core.prefetch_some(dir, body, cursor, most as usize)?;
            if some == 0 {
                break;
            }
            passed += some;
        }
        core.shrink_inodes_since(added);
        Ok(passed)
    }
}

impl Core {
    /// Goes over at most so many names behind `cursor`. How many there were.
    fn prefetch_some(
        &self,
        dir: &Inode,
        body: &DirectoryBody,
        cursor: &mut u64,
        most: usize,
    ) -> Result<u64> {
        let mut run = NameRun::default();
        loop {
            let seen = body.names.see();
            match seen.place() {
                Place::Unloaded => {
                    self.load_names(dir, body)?;
                    continue;
                }
                Place::Partial => {
                    let after = (*cursor).max(FIRST_COOKIE - 1);
                    self.learn_run(dir, body, after, most, &mut run)?;
                }
                Place::Whole | Place::Dated => {
                    run.clear();
                    let guard = epoch::pin();
                    for (name, entry) in body.names.after(*cursor, &guard).take(most) {
                        run.push(name, entry.cookie, entry.ino, entry.kind);
                    }
                    // Else names may have left the catalog meanwhile that are not gone.
                    if !body.names.is_still(seen) {
                        continue;
                    }
                }
            }
            break;
        }
        let mut inos: Vec<Ino> = run.inos().filter(|ino| !self.is_there(*ino)).collect();
        inos.sort_unstable();
        inos.dedup();
        if !inos.is_empty() {
            // One that cannot be read keeps the others of its batch away, too: all are asked for again where they are needed.
            let _ = match self.coherence.is_some() {
                true => self.look_up_ahead(dir, body, &inos, None).map(drop),
                false => self.bring_ahead(&inos, None),
            };
        }
        if let Some(last) = run.last_cookie() {
            *cursor = last;
        }
        Ok(run.len() as u64)
    }
}
