//! Changes of a file's content that lie over older content.
//!
//! *Invariants.* Runs do not overlap each other, nor pages. Below `cut` the layer says nothing of
//! the pages that are in neither; from `cut` on they are holes.

use super::page::{LEN, PAGE, Page, pieces};
use std::collections::BTreeMap;

/// Changes since a moment.
#[derive(Clone, Debug, Default)]
pub(super) struct Layer {
    /// The least length since then: older bytes from there on are gone.
    cut: Option<u64>,
    /// Runs of whole pages: the first page, the page behind the last, and what they are.
    runs: BTreeMap<u64, (u64, Kind)>,
    pages: BTreeMap<u64, Page>,
}

/// What a run of pages is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Zeros without space.
    Hole,
    /// Zeros with space.
    Zeros,
    /// The older bytes, with space in any case.
    Space,
}

/// What a layer says of pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Says {
    /// Nothing: they are as below.
    Below,
    /// They are a run.
    Run(Kind),
    /// It is a page with written bytes.
    Page,
}

impl Layer {
    pub(super) fn cut(&self) -> Option<u64> {
        self.cut
    }

    /// Does it say nothing but where older content ends?
    pub(super) fn is_bare(&self) -> bool {
        self.runs.is_empty() && self.pages.is_empty()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.is_bare() && self.cut.is_none()
    }

    pub(super) fn pages(&self) -> impl Iterator<Item = (u64, &Page)> {
        self.pages.iter().map(|(&page, bytes)| (page, bytes))
    }

    pub(super) fn page(&self, page: u64) -> Option<&Page> {
        self.pages.get(&page)
    }

    pub(super) fn page_count(&self) -> u64 {
        self.pages.len() as u64
    }

    /// Runs: first page, the page behind, kind.
    pub(super) fn runs(&self) -> impl Iterator<Item = (u64, u64, Kind)> {
        self.runs
            .iter()
            .map(|(&from, &(to, kind))| (from, to, kind))
    }

    /// Bytes of memory.
    pub(super) fn memory(&self) -> u64 {
        self.page_count() * (PAGE + 64) + self.runs.len() as u64 * 48
    }

    /// What it says of a page, and up to which page it says the same, at least.
    pub(super) fn says(&self, page: u64) -> (Says, u64) {
        if self.pages.contains_key(&page) {
            return (Says::Page, page + 1);
        }
        if let Some((_, &(end, kind))) = self.runs.range(..=page).next_back()
            && end > page
        {
            return (Says::Run(kind), end);
        }
        let next_page = self.pages.range(page..).next().map(|(&page, _)| page);
        let next_run = self.runs.range(page..).next().map(|(&page, _)| page);
        let next = next_page
            .unwrap_or(u64::MAX)
            .min(next_run.unwrap_or(u64::MAX));
        match self.cut.map(|cut| cut.div_ceil(PAGE)) {
            Some(cut) if page >= cut => (Says::Run(Kind::Hole), next),
            Some(cut) => (Says::Below, next.min(cut)),
            None => (Says::Below, next),
        }
    }

    /// The page, to be written: with all bytes if they do not depend on what is below.
    fn page_mut(&mut self, page: u64) -> &mut Page {
        if !self.pages.contains_key(&page) {
            let new = match self.says(page).0 {
                Says::Run(Kind::Hole | Kind::Zeros) => Page::zeros(),
                _ => {
                    let mut new = Page::new();
                    if let Some(cut) = self.cut
                        && cut / PAGE == page
                    {
                        new.zero((cut % PAGE) as usize, LEN);
                    }
                    new
                }
            };
            self.clear(page, page + 1);
            self.pages.insert(page, new);
        }
        self.pages.entry(page).or_insert_with(Page::new)
    }

    /// Writes bytes.
    pub(super) fn write(&mut self, offset: u64, data: &[u8]) {
        let mut rest = data;
        for (page, start, count) in pieces(offset, data.len() as u64) {
            let (now, later) = rest.split_at(count);
            self.page_mut(page).write(start, now);
            rest = later;
        }
    }

    /// Writes zeros within one page.
    pub(super) fn zero(&mut self, page: u64, start: usize, end: usize) {
        self.page_mut(page).zero(start, end);
    }

    /// Everything from this byte on is gone.
    pub(super) fn truncate(&mut self, size: u64) {
        let first = size.div_ceil(PAGE);
        self.clear(first, u64::MAX);
        let tail = (size % PAGE) as usize;
        if tail > 0
            && let Some(page) = self.pages.get_mut(&(size / PAGE))
        {
            page.zero(tail, LEN);
        }
        self.cut = Some(self.cut.map_or(size, |cut| cut.min(size)));
    }

    /// Makes whole pages a run.
    pub(super) fn set(&mut self, from: u64, to: u64, kind: Kind) {
        if from >= to {
            return;
        }
        if kind != Kind::Space {
            self.clear(from, to);
            self.runs.insert(from, (to, kind));
            return;
        }
        let mut at = from;
        while at < to {
            let (says, end) = self.says(at);
            let end = end.min(to);
            let new = match says {
                Says::Page | Says::Run(Kind::Zeros | Kind::Space) => None,
                Says::Below => Some(Kind::Space),
                Says::Run(Kind::Hole) => Some(Kind::Zeros),
            };
            if let Some(kind) = new {
                self.clear(at, end);
                self.runs.insert(at, (end, kind));
            }
            at = end;
        }
    }

    /// Removes pages and runs from a range.
    fn clear(&mut self, from: u64, to: u64) {
        while let Some((&page, _)) = self.pages.range(from..to).next() {
            self.pages.remove(&page);
        }
        if let Some((_, run)) = self.runs.range_mut(..from).next_back()
            && run.0 > from
        {
            let (end, kind) = *run;
            run.0 = from;
            if end > to {
                self.runs.insert(to, (end, kind));
            }
        }
        while let Some((&start, &(end, kind))) = self.runs.range(from..to).next() {
            self.runs.remove(&start);
            if end > to {
                self.runs.insert(to, (end, kind));
            }
        }
    }

    /// Adds the later changes of another layer.
    pub(super) fn merge(&mut self, later: Self) {
        if let Some(cut) = later.cut {
            self.truncate(cut);
        }
        for (from, (to, kind)) in later.runs {
            self.set(from, to, kind);
        }
        for (page, bytes) in later.pages {
            if bytes.is_whole() {
                self.clear(page, page + 1);
                self.pages.insert(page, bytes);
            } else {
                let into = self.page_mut(page);
                bytes
                    .pieces()
                    .for_each(|(start, data)| into.write(start, data));
            }
        }
    }

    /// A copy of what it says of pages in a range.
    pub(super) fn part(&self, from: u64, to: u64) -> Self {
        let mut part = Self {
            cut: self.cut,
            ..Self::default()
        };
        let pages = self.pages.range(from..to);
        part.pages = pages.map(|(page, bytes)| (*page, bytes.clone())).collect();
        let before = self.runs.range(..from).next_back();
        let runs = before.into_iter().chain(self.runs.range(from..to));
        part.runs = runs.map(|(from, run)| (*from, *run)).collect();
        part
    }

    /// Puts its bytes over those of the layers below, and zeros where older bytes are gone. `buf`
    /// begins at `offset`.
    pub(super) fn lay_over(&self, offset: u64, buf: &mut [u8]) {
        for (page, start, at, count) in places(offset, buf.len()) {
            let out = &mut buf[at..at + count];
            match self.says(page).0 {
                Says::Run(Kind::Hole | Kind::Zeros) => out.fill(0),
                Says::Page => self.pages[&page].copy_to(start, out),
                Says::Below | Says::Run(Kind::Space) => {
                    let gone = self
                        .cut
                        .unwrap_or(u64::MAX)
                        .saturating_sub(page * PAGE + start as u64);
                    if gone < count as u64 {
                        out[gone as usize..].fill(0);
                    }
                }
            }
        }
    }

    /// Does what it says of a page depend on older bytes?
    pub(super) fn needs_below(&self, page: u64) -> bool {
        match self.says(page).0 {
            Says::Below => true,
            Says::Run(kind) => kind == Kind::Space && self.cut.is_none_or(|cut| page * PAGE < cut),
            Says::Page => !self.pages[&page].is_whole(),
        }
    }
}

/// Cuts a range at pages: page, first byte in it, index in the range, number of bytes.
pub(super) fn places(offset: u64, len: usize) -> impl Iterator<Item = (u64, usize, usize, usize)> {
    let mut at = 0;
    pieces(offset, len as u64).map(move |(page, start, count)| {
        let place = (page, start, at, count);
        at += count;
        place
    })
}

#[cfg(test)]
#[path = "layer_tests.rs"]
mod tests;
