//! The designs that were replaced, beside the engine.

use super::{Plots, is_baseline};
use crate::document::figures::{Figures, count, measured};
use crate::document::plot::{Chart, Group};
use crate::goals::ENGINE;
use crate::report::Chapter;
use crate::shape::Shape;
use crate::summary::rate;
use crate::workloads::{sharded, sparse};
use anyhow::Result;
use std::fmt::Write as _;

pub(super) fn section(chapters: &[Chapter], plots: &Plots) -> Result<Option<String>> {
    let mut text = String::new();
    for chapter in chapters.iter().filter(|chapter| is_baseline(chapter)) {
        let figures = Figures::of(chapter);
        text.push_str(&figures.caption());
        let workload = &chapter.records[0].workload;
        let (what, title, engine) = match workload.as_str() {
            sharded::NAME => (
                "Files a second",
                "All inodes on one list, beside no list",
                ENGINE,
            ),
            sparse::NAME => (
                "Writes that get a place a second",
                "What is set aside for a file on one list, beside an index",
                "baseline:pieces-index",
            ),
            _ => (
                "Reads a second",
                "Reads that write what readers share, beside one that does not",
                ENGINE,
            ),
        };
        let _ = write!(text, "{what}, all threads together.\n\n| phase | threads |");
        for target in figures.targets() {
            let _ = write!(text, " `{target}` | spread |");
        }
        let _ = writeln!(
            text,
            "\n|---|--:|{}",
            "--:|--:|".repeat(figures.targets().len())
        );
        for phase in figures.phases() {
            for threads in figures.threads() {
                let _ = write!(text, "| {phase} | {threads} |");
                for target in figures.targets() {
                    match figures.row(Shape::Threads(threads), phase, target) {
                        None => text.push_str(" | |"),
                        Some(row) => {
                            let (median, spread) = (rate(row.median), row.spread * 100.0);
                            let _ = write!(text, " {median} | {spread:.0} % |");
                        }
                    }
                }
                text.push('\n');
            }
        }
        text.push('\n');
        let chart = growth_chart(&figures, title, engine);
        text.push_str(&plots.draw(&format!("baselines-{workload}.svg"), &chart)?);
    }
    Ok(Some(text).filter(|text| !text.is_empty()))
}

/// Each design with each number of threads, against the engine with the fewest: how much slower a
/// design is, and what more threads bring it.
fn growth_chart(figures: &Figures<'_>, title: &str, engine: &str) -> Chart {
    let threads = figures.threads();
    let fewest = threads.iter().copied().min().unwrap_or(1);
    let bars: Vec<(&str, usize)> = figures
        .targets()
        .into_iter()
        .flat_map(|target| threads.iter().map(move |&threads| (target, threads)))
        .collect();
    let group = |phase: &&str| {
        let unit = figures.row(Shape::Threads(fewest), phase, engine);
        let bar = |&(target, threads): &(&str, usize)| {
            let row = figures.row(Shape::Threads(threads), phase, target)?;
            Some(row.median / unit?.median)
        };
        Group {
            label: (*phase).to_owned(),
            bars: bars.iter().map(bar).collect(),
            goal: None,
        }
    };
    let named = |(target, threads): &(&str, usize)| format!("{target}, {}", count(*threads));
    Chart {
        title: title.to_owned(),
        axis: format!("times {engine}, {}", count(fewest)),
        series: bars.iter().map(named).collect(),
        groups: measured(figures.phases().iter().map(group).collect()),
    }
}
