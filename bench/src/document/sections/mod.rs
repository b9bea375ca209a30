//! What the page says of each part, from the runs that are at hand.

mod baselines;
mod contests;
mod memory;
mod scaling;
#[cfg(test)]
mod tests;

use super::figures::Figures;
use super::plot::Chart;
use crate::report::Chapter;
use anyhow::Result;
use std::path::{Path, PathBuf};

/// How baselines' names begin.
const BASELINE: &str = "baseline:";

/// Where charts go, and how the page calls them.
pub(super) struct Plots {
    folder: PathBuf,
    /// The folder's name, which is beside the page.
    name: &'static str,
}

impl Plots {
    /// Beside this page.
    ///
    /// # Errors
    /// If there is no such folder and none can be made.
    pub(super) fn beside(page: &Path) -> Result<Self> {
        let name = "plots";
        let folder = page.with_file_name(name);
        std::fs::create_dir_all(&folder)?;
        Ok(Self { folder, name })
    }

    /// Draws a chart, and says how to show it.
    fn draw(&self, file: &str, chart: &Chart) -> Result<String> {
        chart.save(&self.folder.join(file))?;
        Ok(format!("![{}]({}/{file})\n\n", chart.title, self.name))
    }
}

/// A part of the page: its name, and what it says; nothing if no run tells.
pub(super) type Section = (
    &'static str,
    fn(&[Chapter], &Plots) -> Result<Option<String>>,
);

/// In the order of the page.
pub(super) const SECTIONS: [Section; 5] = [
    ("sharded", contests::files),
    ("memory", memory::section),
    ("cached-read", contests::reads),
    ("scaling", scaling::section),
    ("baselines", baselines::section),
];

fn is_baseline(chapter: &Chapter) -> bool {
    let mut records = chapter.records.iter();
    records.any(|record| record.target.starts_with(BASELINE))
}

/// The first run of this workload that has a rival.
fn contest<'c>(chapters: &'c [Chapter], workload: &str) -> Option<Figures<'c>> {
    let mut chapters = chapters.iter().filter(|chapter| {
        let mine = chapter.records.iter().all(|one| one.workload == workload);
        mine && !is_baseline(chapter)
    });
    chapters.find_map(|chapter| {
        let figures = Figures::of(chapter);
        figures.rival().is_some().then_some(figures)
    })
}
