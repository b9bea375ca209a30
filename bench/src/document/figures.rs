//! The figures of one run, and the tables and charts that several sections make of them.

use super::plot::{Chart, Group};
use crate::about::About;
use crate::goals::{ENGINE, MADE};
use crate::report::Chapter;
use crate::shape::Shape;
use crate::summary::{Row, distinct, rate, rows};
use std::fmt::Write as _;

/// One run.
pub(super) struct Figures<'c> {
    pub(super) chapter: &'c Chapter,
    rows: Vec<Row<'c>>,
}

impl<'c> Figures<'c> {
    pub(super) fn of(chapter: &'c Chapter) -> Self {
        let rows = rows(&chapter.records);
        Self { chapter, rows }
    }

    /// Who did what, where, when and how often, as a line of its own.
    pub(super) fn caption(&self) -> String {
        let About { layout, rounds, .. } = &self.chapter.about;
        let about = &self.chapter.about;
        format!("*{about}; {layout}; rounds: {rounds}.*\n\n")
    }

    pub(super) fn rows(&self) -> &[Row<'c>] {
        &self.rows
    }

    pub(super) fn row(&self, shape: Shape, phase: &str, target: &str) -> Option<&Row<'c>> {
        let wanted = (shape, phase, target);
        let mut rows = self.rows.iter();
        rows.find(|row| (row.shape, row.phase, row.target) == wanted)
    }

    /// Thread counts, in the order they ran.
    pub(super) fn threads(&self) -> Vec<usize> {
        let counts = self.rows.iter().filter_map(|row| match row.shape {
            Shape::Threads(count) => Some(count),
            Shape::Processes(_) => None,
        });
        distinct(counts)
    }

    pub(super) fn phases(&self) -> Vec<&'c str> {
        distinct(self.rows.iter().map(|row| row.phase))
    }

    pub(super) fn targets(&self) -> Vec<&'c str> {
        distinct(self.rows.iter().map(|row| row.target))
    }

    /// What the engine is compared with: the last target, if it is another one.
    pub(super) fn rival(&self) -> Option<&'c str> {
        let last = self.targets().pop();
        last.filter(|last| ![ENGINE, MADE].contains(last))
    }

    /// The engine beside its rival, for a number of threads.
    pub(super) fn comparison(&self, threads: usize, goal: fn(&str) -> Option<f64>) -> String {
        let Some(rival) = self.rival() else {
            return String::new();
        };
        let mut text = format!(
            "{}:\n\n| phase | `{ENGINE}` | spread | `{rival}` | spread | ratio | goal |\n\
             |---|--:|--:|--:|--:|--:|--:|\n",
            count(threads)
        );
        let shape = Shape::Threads(threads);
        for phase in self.phases() {
            let ours = self.row(shape, phase, ENGINE);
            let (Some(ours), Some(theirs)) = (ours, self.row(shape, phase, rival)) else {
                continue;
            };
            let _ = writeln!(
                text,
                "| {phase} | {} | {:.0} % | {} | {:.0} % | {:.2} | {} |",
                rate(ours.median),
                ours.spread * 100.0,
                rate(theirs.median),
                theirs.spread * 100.0,
                ours.median / theirs.median,
                goal(phase).map_or_else(String::new, |goal| goal.to_string())
            );
        }
        text.push('\n');
        text
    }

    /// The same ratios for all numbers of threads.
    pub(super) fn comparison_chart(
        &self,
        title: String,
        goal: fn(&str) -> Option<f64>,
    ) -> Option<Chart> {
        let rival = self.rival()?;
        let threads = self.threads();
        let group = |phase: &&str| {
            let bars = threads.iter().map(|&count| {
                let shape = Shape::Threads(count);
                self.row(shape, phase, ENGINE)?.ratio
            });
            Group {
                label: (*phase).to_owned(),
                bars: bars.collect(),
                goal: goal(phase),
            }
        };
        let groups: Vec<Group> = self.phases().iter().map(group).collect();
        Some(Chart {
            title,
            axis: format!("times as fast as {rival}"),
            series: threads.iter().map(|&threads| count(threads)).collect(),
            groups: measured(groups),
        })
    }
}

/// Only groups in which anything was measured.
pub(super) fn measured(mut groups: Vec<Group>) -> Vec<Group> {
    groups.retain(|group| group.bars.iter().any(Option::is_some));
    groups
}

/// `1 thread`, `2 threads`.
pub(super) fn count(threads: usize) -> String {
    let plural = if threads == 1 { "" } else { "s" };
    format!("{threads} thread{plural}")
}
