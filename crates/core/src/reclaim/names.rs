//! Names of large directories, which go while the directory stays: it is partial then.

use std::marker::PhantomData;

use holdfast_cache::reclaim::{Count, Load, Request, Scan, Shrinker};
use parking_lot::Mutex;

use crate::inodes::InodeWalk;

/// While names take less than this part of what inodes and names are to take, there is nothing to be had of them.
const PART: u64 = 4;

/// What has directories.
pub(crate) trait Directories: Send + Sync + 'static {
    /// What inodes and names take, and how much that is to be.
    fn metadata_load(&self) -> Load;

    /// Are inodes being freed?
    fn frees_inodes(&self) -> bool;

    /// Names in memory. `None`: none of them can go.
    fn names_in_memory(&self) -> Option<u64>;

    /// What these names take, in bytes.
    fn name_bytes(&self) -> u64;

    /// Lets go of the names of large directories that this walk meets, until so many went; says how many.
    fn forget_large_directories(&self, walk: &mut InodeWalk, most: u64) -> u64;
}

/// Frees names of directories that are in memory as a whole.
#[derive(Debug)]
pub(crate) struct Names<O> {
    /// What is left of the round.
    walk: Mutex<InodeWalk>,
    owner: PhantomData<fn(&O)>,
}

impl<O> Default for Names<O> {
    fn default() -> Self {
        Self {
            walk: Mutex::default(),
            owner: PhantomData,
        }
    }
}

impl<O: Directories> Shrinker for Names<O> {
    type Owner = O;

    fn name(&self) -> &'static str {
        "names"
    }

    /// The store answers for them then: an inode's lock is taken, under which it is asked.
    fn needs_store(&self) -> bool {
        true
    }

    fn load(&self, owner: &O) -> Load {
        owner.metadata_load()
    }

    fn count(&self, owner: &O) -> Count {
        match owner.names_in_memory() {
            Some(names) if owner.name_bytes() > self.load(owner).stop / PART => {
                // Inodes go first.
                Count::Objects(if owner.frees_inodes() { 0 } else { names })
            }
            _ => Count::Empty,
        }
    }

    fn scan(&self, owner: &O, request: Request) -> Scan {
        let mut walk = self.walk.lock();
        if request.first {
            *walk = InodeWalk::new();
        }
        if walk.is_done() {
            return Scan::Stop;
        }
        Scan::Freed(owner.forget_large_directories(&mut walk, request.objects))
    }
}
