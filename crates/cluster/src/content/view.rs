//! The space of a file as all layers together show it.

use super::layer::{Kind, Layer, Says};
use super::map;
use super::page::PAGE;
use crate::meta::Content;

/// A file's content: layers, the newest first, over what the database has.
#[derive(Clone, Copy, Debug)]
pub(super) struct View<'s> {
    pub(super) layers: [Option<&'s Layer>; 2],
    pub(super) base: Below<'s>,
}

/// What the database has.
#[derive(Clone, Copy, Debug)]
pub(super) enum Below<'s> {
    Content(&'s Content),
    /// Unknown bytes, with space for all of them: a file of this length without holes.
    Dense(u64),
}

impl View<'_> {
    /// Do pages from this one on take space, and up to which page is that so, at least?
    pub(super) fn space_at(&self, page: u64) -> (bool, u64) {
        let mut end = u64::MAX;
        for layer in self.layers.into_iter().flatten() {
            let (says, until) = layer.says(page);
            end = end.min(until);
            match says {
                Says::Below => {}
                Says::Run(Kind::Hole) => return (false, end),
                Says::Run(Kind::Zeros | Kind::Space) | Says::Page => return (true, end),
            }
        }
        let (space, until) = match self.base {
            Below::Content(content) => map::space_at(content, page),
            Below::Dense(size) => match size.div_ceil(PAGE) {
                pages if page < pages => (true, pages),
                _ => (false, u64::MAX),
            },
        };
        (space, end.min(until))
    }

    /// Runs of pages with space from this one on.
    pub(super) fn runs(&self, from: u64, to: u64) -> impl Iterator<Item = (u64, u64)> {
        let mut at = from;
        std::iter::from_fn(move || {
            while at < to {
                let (space, end) = self.space_at(at);
                let start = std::mem::replace(&mut at, end.min(to));
                if space {
                    return Some((start, at));
                }
            }
            None
        })
    }

    /// Pages with space in a range.
    pub(super) fn count(&self, from: u64, to: u64) -> u64 {
        self.runs(from, to).map(|(start, end)| end - start).sum()
    }

    /// The page behind the last one with space.
    pub(super) fn end(&self) -> u64 {
        self.runs(0, u64::MAX).last().map_or(0, |(_, end)| end)
    }

    /// The first run at or after a page, joined with those that follow directly.
    pub(super) fn next(&self, page: u64) -> Option<(u64, u64)> {
        let mut runs = self.runs(page, u64::MAX);
        let (start, mut end) = runs.next()?;
        for (from, to) in runs {
            if from != end {
                break;
            }
            end = to;
        }
        Some((start, end))
    }
}
