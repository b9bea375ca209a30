use super::super::Extent;

const BUCKETS: usize = 10;
/// A bucket with more than `ENTRIES_MAX` entries is trimmed to `ENTRIES_KEPT`.
const ENTRIES_MAX: usize = 8;
const ENTRIES_KEPT: usize = 5;

/// A core's blocks for small files, which thus lie side by side.
///
/// *Invariant.* An extent is in the bucket of the logarithm of its length, and not empty. Within a
/// bucket the extents ascend by length.
#[derive(Debug, Default)]
pub(in super::super) struct Locality {
    buckets: [Vec<Extent>; BUCKETS],
}

fn bucket(length: u64) -> usize {
    (length.ilog2() as usize).min(BUCKETS - 1)
}

impl Locality {
    /// Takes `length` blocks from the front of the nearest extent to the goal that is long enough.
    pub(super) fn take(&mut self, length: u64, goal: u64) -> Option<Extent> {
        let of = |bucket: usize| {
            self.buckets[bucket]
                .iter()
                .enumerate()
                .map(move |(at, e)| (bucket, at, e))
        };
        let (bucket, at, _) = (bucket(length)..BUCKETS)
            .flat_map(of)
            .filter(|(_, _, extent)| extent.length >= length)
            .min_by_key(|(_, _, extent)| extent.start.abs_diff(goal))?;
        let (taken, rest) = self.buckets[bucket].remove(at).split(length);
        // A used-up extent is dropped.
        self.put(rest);
        Some(taken)
    }

    pub(super) fn put(&mut self, extent: Extent) {
        if extent.length > 0 {
            let bucket = &mut self.buckets[bucket(extent.length)];
            let at = bucket.partition_point(|other| other.length < extent.length);
            bucket.insert(at, extent);
        }
    }

    /// The surplus entries of all buckets, the shortest first.
    pub(super) fn trim(&mut self) -> Vec<Extent> {
        let full = self
            .buckets
            .iter_mut()
            .filter(|bucket| bucket.len() > ENTRIES_MAX);
        full.flat_map(|bucket| bucket.drain(..bucket.len() - ENTRIES_KEPT))
            .collect()
    }

    /// All of it.
    pub(super) fn empty(&mut self) -> Vec<Extent> {
        self.buckets.iter_mut().flat_map(std::mem::take).collect()
    }

    #[cfg(test)]
    pub(in super::super) fn extents(&self) -> Vec<Extent> {
        for (at, extents) in self.buckets.iter().enumerate() {
            assert!(extents.iter().all(|extent| bucket(extent.length) == at));
            assert!(extents.is_sorted_by_key(|extent| extent.length));
        }
        self.buckets.iter().flatten().copied().collect()
    }
}
