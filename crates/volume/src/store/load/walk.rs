//! Walking all inodes by number.

use std::ops::ControlFlow;

use holdfast_core::store::InodeRecord;
use holdfast_types::Ino;

use super::SnapshotReader;
use crate::error::Result;

impl SnapshotReader<'_> {
    /// Inodes after `after`, by number: at most `max`.
    pub(in crate::store) fn walk(
        &self,
        after: Ino,
        max: usize,
        run: &mut Vec<InodeRecord>,
    ) -> Result<()> {
        let end = run.len().saturating_add(max);
        let mut after = after;
        while run.len() < end {
            after = match self.walk_part(after, end - run.len(), run)? {
                Some(upto) => upto,
                None => break,
            };
        }
        Ok(())
    }

    /// As [`SnapshotReader::walk`], as far as one look at each layer reaches. Returns the last
    /// number covered, or `None` at the end.
    fn walk_part(&self, after: Ino, max: usize, run: &mut Vec<InodeRecord>) -> Result<Option<Ino>> {
        let reach = |full: bool, last: Option<Ino>| last.filter(|_| full).unwrap_or(Ino(u64::MAX));
        let start = run.len();
        self.walk_trees(after, max, run)?;
        let last = run[start..].last().map(|record| record.ino);
        let mut upto = reach(run.len() - start == max, last);
        let mut inos: Vec<Ino> = Vec::new();
        let mut is_changed = false;
        for memtable in self.layers.memtables() {
            if let Some(fresh) = memtable.fresh_within(after, upto, max) {
                is_changed = true;
                upto = upto.min(reach(fresh.len() == max, fresh.last().copied()));
                inos.extend(fresh);
            }
        }
        if !is_changed {
            // No memtable has changes there.
            return Ok((upto.0 < u64::MAX).then_some(upto));
        }
        inos.extend(run[start..].iter().map(|record| record.ino));
        inos.retain(|ino| *ino <= upto);
        inos.sort_unstable();
        inos.dedup();
        let mut below = run.split_off(start).into_iter().peekable();
        let end = start.saturating_add(max);
        for ino in inos {
            let below = below.next_if(|record| record.ino == ino);
            run.extend(self.seen(ino).over(below));
            if run.len() == end {
                return Ok(Some(ino));
            }
        }
        Ok((upto.0 < u64::MAX).then_some(upto))
    }

    /// Numbers that split all inodes into roughly equal parts.
    pub(in crate::store) fn split(&self, parts: usize) -> Result<Vec<Ino>> {
        Ok(self.inodes().split_points(parts)?)
    }

    fn walk_trees(&self, after: Ino, max: usize, run: &mut Vec<InodeRecord>) -> Result<()> {
        let mut cursor = self.inodes().scan(Some(&Ino(after.0.saturating_add(1))))?;
        let mut left = max;
        cursor.each(|_, inode| {
            if left == 0 {
                return ControlFlow::Break(());
            }
            left -= 1;
            run.push(inode.record);
            ControlFlow::Continue(())
        })?;
        Ok(())
    }
}
