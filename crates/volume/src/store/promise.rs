//! Blocks promised to writers who have not made their pages known yet.

use crate::space::{self, Reservation};

/// Blocks that are kept for writers under way in any case.
const IDLE: u64 = 64;

/// What writers were promised and no page has got.
///
/// A writer takes his promise before he changes anything, and a commit may come before he is done: so what was
/// promised since the last one stays. The rest nobody needed, because it fitted into places that were
/// there.
#[derive(Debug)]
pub(super) struct Promise {
    left: Reservation,
    /// Promised since the last commit.
    lately: u64,
}

impl Promise {
    /// Out of this, at first.
    pub(super) fn new(left: Reservation) -> Self {
        Self { left, lately: 0 }
    }

    /// What blocks are placed out of.
    pub(super) fn left(&mut self) -> &mut Reservation {
        &mut self.left
    }

    /// Promises more.
    ///
    /// # Errors
    /// If there is no room; the promise stays as it was.
    pub(super) fn grow(&mut self, blocks: u64) -> Result<(), space::Error> {
        self.left.grow(blocks)?;
        self.lately += blocks;
        Ok(())
    }

    /// What was promised and will not be needed.
    pub(super) fn split(&mut self, blocks: u64) -> Reservation {
        self.lately = self.lately.saturating_sub(blocks);
        self.left.split(blocks)
    }

    /// A commit has placed all pages that waited: what is left over, for the space to have back.
    pub(super) fn committed(&mut self) -> Reservation {
        let kept = std::mem::take(&mut self.lately).max(IDLE);
        let idle = self.left.blocks().saturating_sub(kept);
        self.left.split(idle)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::space::{Layout, Space};

    #[test]
    fn what_was_promised_since_the_last_commit_outlives_the_next() {
        let layout = Layout {
            volume: [7; 16],
            start: 0,
            end: 4096,
            group_blocks: 2048,
        };
        let space = Space::format(layout).unwrap();
        let free = space.report().available();
        let mut promise = Promise::new(space.reserve(0).unwrap());
        promise.grow(500).unwrap();
        drop(promise.committed());
        assert_eq!(promise.left().blocks(), 500, "its writer may be under way");
        promise.grow(100).unwrap();
        drop(promise.split(30));
        drop(promise.committed());
        assert_eq!(promise.left().blocks(), 70);
        drop(promise.committed());
        assert_eq!(promise.left().blocks(), IDLE);
        assert_eq!(space.report().available(), free - IDLE);
    }
}
