//! Prefetch by ioctl(2) on any open directory: what `docs/prefetch.md` says.

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
    /// Of this structure.
    size: u32,
    /// None are known.
    flags: u32,
    /// Where to go on from, and how far it came.
    cursor: u64,
    /// Names to go over, at most; 0: a batch.
    entries: u64,
    /// 0.
    bytes: u64,
    /// Names that were gone over; 0 at the end.
    done: u64,
    /// 0.
    reserved: [u64; 2],
}

impl PrefetchRange {
    /// What a program asked for, if it asked for nothing that is not known here.
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
    /// Brings inodes of a directory into memory. Its kernel opened it for reading; whether the caller may search it is asked
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_is_the_documented_one_and_what_is_not_known_is_refused() {
        assert_eq!(PREFETCH, 0xc038_68f7);
        let asked = PrefetchRange {
            size: 56,
            cursor: 7,
            entries: 9,
            done: 5,
            ..PrefetchRange::default()
        };
        assert_eq!(PrefetchRange::asked(asked.as_bytes()), Ok(asked));
        let refused = [
            PrefetchRange { size: 48, ..asked },
            PrefetchRange { size: 0, ..asked },
            PrefetchRange { flags: 1, ..asked },
            PrefetchRange { bytes: 1, ..asked },
            PrefetchRange {
                reserved: [0, 1],
                ..asked
            },
        ];
        for wrong in refused {
            let bytes = wrong.as_bytes();
            assert_eq!(PrefetchRange::asked(bytes), Err(Errno::EINVAL), "{wrong:?}");
        }
        assert_eq!(
            PrefetchRange::asked(&asked.as_bytes()[1..]),
            Err(Errno::EINVAL)
        );
    }
}
