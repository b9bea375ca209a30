//! A bounded cache of open descriptors, the last used ones.

use holdfast_core::types::Ino;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// Descriptors by inode. One that is removed while in use is closed with its last use.
pub(crate) struct Descriptors {
    most: usize,
    open: Mutex<Open>,
}

#[derive(Default)]
struct Open {
    /// Each with the time of its last use.
    of: HashMap<Ino, (Arc<OwnedFd>, u64)>,
    now: u64,
    /// The time of the last [`Descriptors::drop_unused`].
    dropped: u64,
    /// To be closed later: close(2) may wait for the host.
    retired: Vec<Arc<OwnedFd>>,
}

impl Descriptors {
    /// An empty cache of `most` descriptors, at least 4.
    pub(crate) fn at_most(most: usize) -> Self {
        Self {
            most: most.max(4),
            open: Mutex::default(),
        }
    }

    pub(crate) fn get(&self, ino: Ino) -> Option<Arc<OwnedFd>> {
        let mut open = self.open.lock();
        open.now += 1;
        let now = open.now;
        let (found, used) = open.of.get_mut(&ino)?;
        *used = now;
        Some(Arc::clone(found))
    }

    /// Adds a descriptor. If the cache is full, closes the quarter that was not used for longest.
    pub(crate) fn keep(&self, ino: Ino, descriptor: OwnedFd) -> Arc<OwnedFd> {
        self.keep_and(ino, descriptor, |_, _| ())
    }

    /// The same, and calls `show` with those that are about to be closed.
    pub(crate) fn keep_and(
        &self,
        ino: Ino,
        descriptor: OwnedFd,
        mut show: impl FnMut(Ino, &OwnedFd),
    ) -> Arc<OwnedFd> {
        let descriptor = Arc::new(descriptor);
        let mut closed = Vec::new();
        {
            let mut open = self.open.lock();
            open.now += 1;
            let now = open.now;
            if open.of.len() >= self.most && !open.of.contains_key(&ino) {
                let mut used: Vec<u64> = open.of.values().map(|(_, used)| *used).collect();
                let (_, limit, _) = used.select_nth_unstable(self.most / 4);
                let limit = *limit;
                closed.extend(open.of.extract_if(|_, (_, used)| *used <= limit));
            }
            closed.extend(
                open.of
                    .insert(ino, (Arc::clone(&descriptor), now))
                    .map(|was| (ino, was)),
            );
        }
        // Without the lock: close(2) and `show` may wait for the host.
        for (ino, (descriptor, _)) in &closed {
            show(*ino, descriptor);
        }
        drop(closed);
        descriptor
    }

    /// The core has dropped the inode: removes its descriptor, for the next [`tidy`](Self::tidy) to
    /// close. Does not wait. Was there one?
    pub(crate) fn retire(&self, ino: Ino) -> bool {
        let mut open = self.open.lock();
        let gone = open.of.remove(&ino);
        let was_open = gone.is_some();
        open.retired.extend(gone.map(|(descriptor, _)| descriptor));
        was_open
    }

    /// Closes what was set aside.
    pub(crate) fn tidy(&self) {
        let retired = std::mem::take(&mut self.open.lock().retired);
        drop(retired);
    }

    /// Closes those that were not used since the last call. Are others left?
    pub(crate) fn drop_unused(&self) -> bool {
        let mut open = self.open.lock();
        let limit = open.dropped;
        let unused: Vec<_> = (open.of)
            .extract_if(|_, (_, used)| *used <= limit)
            .collect();
        open.dropped = open.now;
        let are_left = !open.of.is_empty();
        drop(open);
        // Without the lock: close(2) may wait for the host.
        drop(unused);
        are_left
    }

    /// How many are open.
    pub(crate) fn len(&self) -> usize {
        self.open.lock().of.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;

    #[test]
    fn what_is_not_used_from_one_look_to_the_next_goes() {
        let open = || OwnedFd::from(File::open("/").unwrap());
        let descriptors = Descriptors::at_most(8);
        descriptors.keep(Ino(1), open());
        descriptors.keep(Ino(2), open());
        assert!(descriptors.drop_unused(), "they have just come");
        assert!(descriptors.get(Ino(2)).is_some());
        assert!(descriptors.drop_unused());
        assert!(descriptors.get(Ino(1)).is_none());
        assert!(!descriptors.drop_unused());
    }

    #[test]
    fn the_latest_used_stay() {
        let open = || OwnedFd::from(File::open("/").unwrap());
        let descriptors = Descriptors::at_most(8);
        for ino in 1..=100 {
            let kept = descriptors.keep(Ino(ino), open());
            assert_eq!(Arc::strong_count(&kept), 2);
            assert!(descriptors.get(Ino(1)).is_some(), "it is always in use");
            assert!(descriptors.len() <= 8);
        }
        assert!(descriptors.get(Ino(100)).is_some() && descriptors.get(Ino(50)).is_none());
        let kept = descriptors.get(Ino(100)).unwrap();
        descriptors.retire(Ino(100));
        assert!(descriptors.get(Ino(100)).is_none());
        assert_eq!(Arc::strong_count(&kept), 2, "not closed yet");
        descriptors.tidy();
        assert_eq!(Arc::strong_count(&kept), 1);
    }
}
