//! The hash of names, with a seed of this process.
//!
//! Users choose names. Without a secret seed they could choose names that all fall into one bucket.

use crate::primitive::random;
use foldhash::SharedSeed;
use foldhash::quality::SeedableRandomState;
use std::hash::{BuildHasher, Hasher};
use std::sync::OnceLock;

static SHARED: OnceLock<(SharedSeed, u64)> = OnceLock::new();

/// Computes hashes.
pub(super) struct NameHasher(SeedableRandomState);

impl NameHasher {
    /// The hasher of this process.
    pub(super) fn new() -> Self {
        let (shared, own) = SHARED.get_or_init(|| (SharedSeed::from_u64(random()), random()));
        Self(SeedableRandomState::with_seed(*own, shared))
    }

    /// All of its bits are equally good.
    #[inline]
    pub(super) fn hash(&self, key: &[u8]) -> u64 {
        let mut hasher = self.0.build_hasher();
        hasher.write(key);
        hasher.finish()
    }
}
