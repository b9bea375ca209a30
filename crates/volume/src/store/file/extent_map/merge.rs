//! Many runs put over those that are there, in one pass through both.

use std::collections::BTreeMap;

use super::Run;

/// What is there with new runs in its place, both in the order of the file.
pub(super) fn merged(there: BTreeMap<u64, Run>, runs: Vec<(u64, Run)>) -> Vec<(u64, Run)> {
    let mut merged = Merged(Vec::with_capacity(there.len() + runs.len()));
    let mut there = Cut {
        runs: there.into_iter(),
        next: None,
    };
    for (at, run) in runs {
        while let Some((before, left)) = there.before(at) {
            merged.put(before, left);
        }
        there.skip_to(at + run.extent.length);
        merged.put(at, run);
    }
    while let Some((at, run)) = there.before(u64::MAX) {
        merged.put(at, run);
    }
    merged.0
}

/// Runs in the order of the file, with neighbours that continue each other as one.
struct Merged(Vec<(u64, Run)>);

impl Merged {
    fn put(&mut self, at: u64, run: Run) {
        match self.0.last_mut() {
            Some((first, left)) if *first + left.extent.length == at && run.continues(left) => {
                *left = left.with(&run);
            }
            _ => self.0.push((at, run)),
        }
    }
}

/// Runs in the order of the file, of which what is passed over is cut off.
struct Cut<I> {
    runs: I,
    /// What is left of the run taken last.
    next: Option<(u64, Run)>,
}

impl<I: Iterator<Item = (u64, Run)>> Cut<I> {
    /// The next run, or what of it lies before this block, if any does.
    fn before(&mut self, block: u64) -> Option<(u64, Run)> {
        let (at, run) = self.next.take().or_else(|| self.runs.next())?;
        if at >= block {
            self.next = Some((at, run));
            return None;
        }
        let before = block - at;
        if before < run.extent.length {
            self.next = Some((block, run.behind(before)));
            return Some((at, run.first(before)));
        }
        Some((at, run))
    }

    /// Forgets what lies before this block.
    fn skip_to(&mut self, block: u64) {
        while self.before(block).is_some() {}
    }
}
