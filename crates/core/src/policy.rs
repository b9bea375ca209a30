//! The options that every operation checks, in words that are read without a lock.

use std::sync::atomic::Ordering::{Acquire, Relaxed, SeqCst};
use std::sync::atomic::{AtomicU32, fence};

use crate::options::{AtimePolicy, Options};

const READ_ONLY: u32 = 1;
const SYNC: u32 = 1 << 1;
const NODEV: u32 = 1 << 2;
const NOEXEC: u32 = 1 << 3;
const NODIRATIME: u32 = 1 << 4;
const LAZYTIME: u32 = 1 << 5;
const ATIME_STRICT: u32 = 1 << 6;
const ATIME_NONE: u32 = 1 << 7;
const STATAHEAD: u32 = 1 << 10;
const DIRSYNC: u32 = 1 << 12;
/// No option: every operation fails.
const REVOKED: u32 = 1 << 8;
/// No option: there is or was a watch.
const WATCHED: u32 = 1 << 9;

/// No option: cached data expires.
const DATED: u32 = 1 << 11;

/// A copy of [`Options`] that is read without a lock.
pub(crate) struct Policy {
    bits: AtomicU32,
    link_max: AtomicU32,
    whole_directory: AtomicU32,
    /// Nothing can be loaded: no directory is partial, and nothing is read ahead.
    pinned: bool,
}

impl Policy {
    pub(crate) fn of(options: &Options, pinned: bool) -> Self {
        let policy = Self {
            bits: AtomicU32::new(0),
            link_max: AtomicU32::new(0),
            whole_directory: AtomicU32::new(0),
            pinned,
        };
        policy.set(options);
        policy
    }

    pub(crate) fn set(&self, options: &Options) {
        let bit = |on: bool, bit: u32| if on { bit } else { 0 };
        let bits = bit(options.read_only, READ_ONLY)
            | bit(options.sync, SYNC)
            | bit(options.dirsync, DIRSYNC)
            | bit(options.nodev, NODEV)
            | bit(options.noexec, NOEXEC)
            | bit(options.nodiratime, NODIRATIME)
            | bit(options.lazytime, LAZYTIME)
            | bit(options.statahead && !self.pinned, STATAHEAD)
            | bit(options.atime == AtimePolicy::Strict, ATIME_STRICT)
            | bit(options.atime == AtimePolicy::None, ATIME_NONE);
        let beside = |old: u32| Some(old & (REVOKED | WATCHED | DATED) | bits);
        let _ = self.bits.fetch_update(Relaxed, Relaxed, beside);
        self.link_max.store(options.link_max, Relaxed);
        let whole_directory = match self.pinned {
            true => u32::MAX,
            false => options.whole_directory,
        };
        self.whole_directory.store(whole_directory, Relaxed);
    }

    fn has(&self, bit: u32) -> bool {
        self.bits.load(Relaxed) & bit != 0
    }

    pub(crate) fn sync(&self) -> bool {
        self.has(SYNC)
    }

    pub(crate) fn dirsync(&self) -> bool {
        self.has(DIRSYNC)
    }

    pub(crate) fn nodev(&self) -> bool {
        self.has(NODEV)
    }

    pub(crate) fn noexec(&self) -> bool {
        self.has(NOEXEC)
    }

    pub(crate) fn nodiratime(&self) -> bool {
        self.has(NODIRATIME)
    }

    pub(crate) fn lazytime(&self) -> bool {
        self.has(LAZYTIME)
    }

    pub(crate) fn statahead(&self) -> bool {
        self.has(STATAHEAD)
    }

    #[inline]
    pub(crate) fn atime(&self) -> AtimePolicy {
        match self.bits.load(Relaxed) & (ATIME_STRICT | ATIME_NONE) {
            0 => AtimePolicy::Relatime,
            ATIME_STRICT => AtimePolicy::Strict,
            _ => AtimePolicy::None,
        }
    }

    /// From now on every operation fails.
    pub(crate) fn revoke(&self) {
        // Ordered before the walk that follows: see `publish_inode`.
        self.bits.fetch_or(REVOKED, SeqCst);
        fence(SeqCst);
    }

    #[inline]
    pub(crate) fn revoked(&self) -> bool {
        self.bits.load(Acquire) & REVOKED != 0
    }

    /// Are changes allowed by the options?
    #[inline]
    pub(crate) fn allows_changes(&self) -> bool {
        self.bits.load(Acquire) & (REVOKED | READ_ONLY) == 0
    }

    /// From now on reads check for watches.
    pub(crate) fn watched(&self) {
        if !self.has(WATCHED) {
            self.bits.fetch_or(WATCHED, Relaxed);
        }
    }

    /// From now on cached data is checked before its use.
    pub(crate) fn dated(&self) {
        self.bits.fetch_or(DATED, Relaxed);
    }

    /// Is cached data valid without a request to the store?
    #[inline]
    pub(crate) fn believes_memory(&self) -> bool {
        self.bits.load(Acquire) & (REVOKED | DATED) == 0
    }

    pub(crate) fn link_max(&self) -> u32 {
        self.link_max.load(Relaxed)
    }

    pub(crate) fn whole_directory(&self) -> u32 {
        self.whole_directory.load(Relaxed)
    }
}
