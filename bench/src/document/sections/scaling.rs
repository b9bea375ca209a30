//! Threads beside independent processes.

use super::{Plots, contest};
use crate::document::figures::{count, measured};
use crate::document::plot::{Chart, Group};
use crate::goals;
use crate::report::Chapter;
use crate::shape::Shape;
use crate::summary;
use crate::workloads::{cached_read, sharded};
use anyhow::Result;
use std::fmt::Write as _;

pub(super) fn section(chapters: &[Chapter], plots: &Plots) -> Result<Option<String>> {
    let workloads = [sharded::NAME, cached_read::NAME];
    let contests = workloads.map(|name| contest(chapters, name));
    let mut text = String::new();
    for figures in contests.into_iter().flatten() {
        let judged: Vec<_> = figures
            .rows()
            .iter()
            .filter(|row| row.scaling.is_some())
            .collect();
        let Some(most) = judged.iter().map(|row| row.shape.threads()).max() else {
            continue;
        };
        let targets = summary::distinct(judged.iter().map(|row| row.target));
        let of = |phase: &str, target: &&str| {
            let row = figures.row(Shape::Threads(most), phase, target);
            row.and_then(|row| row.scaling)
        };
        let _ = write!(
            text,
            "{}What {} reach of {most} independent processes that do the same at the same time; \
             goal: {}.\n\n| phase |",
            figures.caption(),
            count(most),
            goals::SCALING
        );
        for target in &targets {
            let _ = write!(text, " `{target}` |");
        }
        let _ = writeln!(text, "\n|---|{}", "--:|".repeat(targets.len()));
        let mut groups = Vec::new();
        for phase in summary::distinct(judged.iter().map(|row| row.phase)) {
            let bars: Vec<_> = targets.iter().map(|target| of(phase, target)).collect();
            let shown = |bar: &Option<f64>| bar.map_or_else(String::new, |bar| format!("{bar:.3}"));
            let shown: Vec<String> = bars.iter().map(shown).collect();
            let _ = writeln!(text, "| {phase} | {} |", shown.join(" | "));
            groups.push(Group {
                label: phase.to_owned(),
                bars,
                goal: Some(goals::SCALING),
            });
        }
        text.push('\n');
        let workload = &figures.chapter.records[0].workload;
        let chart = Chart {
            title: format!("{}: threads beside processes", workload),
            axis: format!("{} of {most} processes", count(most)),
            series: targets.iter().map(ToString::to_string).collect(),
            groups: measured(groups),
        };
        text.push_str(&plots.draw(&format!("scaling-{workload}.svg"), &chart)?);
    }
    Ok(Some(text).filter(|text| !text.is_empty()))
}
