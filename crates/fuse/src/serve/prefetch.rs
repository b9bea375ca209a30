//! Prefetch by ioctl(2) on any open directory: what `docs/book/reference/prefetch.md` says.

use super::{CoreOperations, caller::unchecked_caller};
use crate::Context;
use holdfast_core::types::{Errno, Ino, OpenFlags, Result};
use holdfast_core::{Listing, Prefetch};
use rustix::ioctl::{Opcode, opcode};
use std::sync::atomic::AtomicU64;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// `HOLDFAST_IOC_PREFETCH`.
pub(super) const PREFETCH: Opcode = opcode::read_write::<PrefetchRange>(b'h', 0xf7);

/// `struct holdfast_prefetch`.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, Immutable, IntoBytes, KnownLayout,
)]
#[repr(C)]
pub(super) struct PrefetchRange {
    /// Size of this structure.
    size: u32,
    /// None are known.
    flags: u32,
    /// Where to continue; updated to where this call ended.
    cursor: u64,
    /// Names to visit, at most; 0: one batch.
    entries: u64,
    /// 0.
    bytes: u64,
    /// Names visited; 0 at the end.
    done: u64,
    /// 0.
    reserved: [u64; 2],
}

impl PrefetchRange {
    /// Decodes a request, and refuses unknown flags and fields.
    fn asked(input: &[u8]) -> Result<Self> {
        let asked = Self::read_from_bytes(input).map_err(|_| Errno::EINVAL)?;
        let known = Self {
            size: size_of::<Self>() as u32,
            cursor: asked.cursor,
            entries: asked.entries,
            done: asked.done,
            ..Self::default()
        };
        if asked == known {
            Ok(asked)
        } else {
            Err(Errno::EINVAL)
        }
    }

    fn budget(&self) -> Prefetch {
        match self.entries {
            0 => Prefetch::default(),
            entries => Prefetch { entries },
        }
    }
}

impl CoreOperations {
    /// Loads inodes of a directory. The kernel opened it for reading; search permission is checked
    /// here.
    pub(super) fn prefetch(&self, cx: &Context<'_>, ino: Ino, input: &[u8]) -> Result<Vec<u8>> {
        let node = self.fs.node(ino)?;
        if !node.kind().is_dir() {
            return Err(Errno::ENOTTY);
        }
        let mut asked = PrefetchRange::asked(input)?;
        let end = AtomicU64::new(Listing::NO_END);
        let listing = Listing::new(&node, OpenFlags::DIRECTORY, &end);
        let who = unchecked_caller(cx);
        let budget = asked.budget();
        asked.done = (self.fs).prefetch_dir(&who, listing, &mut asked.cursor, budget)?;
        Ok(asked.as_bytes().to_vec())
    }
}
