use super::super::Space;
use crate::primitive::try_lock;
use std::sync::Weak;

/// Passes over localities that other threads have locked.
const PASSES: usize = 3;

impl Space {
    /// Gives up preallocations until `needed` blocks became free, or all. Those of small files go
    /// first, then those of inodes, by group in ascending order. The caller holds no lock. Returns
    /// how many blocks became free.
    pub(crate) fn sweep(&self, needed: u64) -> u64 {
        let mut freed = 0;
        for pass in 1..=PASSES {
            let mut busy = false;
            for locality in self.localities.iter() {
                let locked = match pass {
                    PASSES => Some(locality.lock()),
                    _ => try_lock(locality),
                };
                busy |= locked.is_none();
                let extents = locked.map(|mut locality| locality.empty());
                for extent in extents.into_iter().flatten() {
                    self.free_preallocated(extent);
                    freed += extent.length;
                }
            }
            for group in 0..self.table().count() {
                if freed >= needed {
                    return freed;
                }
                freed += self.sweep_group(group, needed - freed);
            }
            if !busy {
                break;
            }
        }
        freed
    }

    /// Gives up the preallocations of inodes in one group.
    fn sweep_group(&self, group: u64, needed: u64) -> u64 {
        let mut freed = 0;
        let mut state = self.table().lock(group);
        while freed < needed
            && let Some((_, listed)) = state.preallocated.pop_first()
        {
            // An owner that was dropped gives up its pieces itself, and finds no entry to remove.
            let Some(owner) = Weak::upgrade(&listed.owner) else {
                continue;
            };
            let piece = owner.lock().take_out(listed.logical, listed.id);
            // Used up, or removed by the owner, which then finds no entry to remove.
            let Some(piece) = piece else { continue };
            for extent in piece.unused() {
                let (_, range) = self.range(extent).expect("blocks of this group");
                self.release(group, &mut state, range)
                    .expect("blocks that were set aside");
            }
            freed += piece.free();
            self.preallocated.add(-(piece.free() as i64));
        }
        freed
    }
}
