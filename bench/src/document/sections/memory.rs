//! What inodes take in memory, and how fast all of them are met.

use super::{Plots, is_baseline};
use crate::document::figures::{Figures, count};
use crate::goals::{self, ENGINE};
use crate::report::Chapter;
use crate::shape::Shape;
use crate::summary::{self, rate};
use anyhow::Result;
use std::fmt::Write as _;

/// What the end of all inodes in memory takes.
fn letting_go(chapter: &Chapter) -> String {
    let ends = summary::letting_go(&chapter.records);
    if ends.is_empty() {
        return String::new();
    }
    let mut text = "Letting go of a million clean inodes of each thread, in seconds: those that \
                    can be loaded again (`drop-caches`), or all, with their file system \
                    (`unmount`). `made:` is the engine over a store that computes its files.\n\n\
                    | phase | target | | seconds | spread | goal |\n|---|---|---|--:|--:|--:|\n"
        .to_owned();
    for end in ends {
        let _ = writeln!(
            text,
            "| {} | `{}` | {} | {:.3} | {:.0} % | {} |",
            end.phase,
            end.target,
            count(end.shape.threads()),
            end.seconds,
            end.spread * 100.0,
            goals::LET_GO
        );
    }
    text
}

/// The run with the most files of a thread.
pub(super) fn section(chapters: &[Chapter], _: &Plots) -> Result<Option<String>> {
    let tells = |chapter: &&Chapter| {
        !is_baseline(chapter) && !summary::footprints(&chapter.records).is_empty()
    };
    let files = |chapter: &&Chapter| {
        let records = chapter.records.iter();
        let each = records.filter(|record| record.phase == "create");
        each.map(|record| record.items / record.threads.max(1) as u64)
            .max()
    };
    let Some(chapter) = chapters.iter().filter(tells).max_by_key(files) else {
        return Ok(None);
    };
    let figures = Figures::of(chapter);
    let mut text = figures.caption();
    text.push_str("| resident memory, the largest of all rounds | bytes | goal |\n|---|--:|--:|\n");
    for footprint in summary::footprints(&chapter.records) {
        let _ = writeln!(
            text,
            "| each {} of `{}` | {:.0} | {} |",
            footprint.thing,
            footprint.target,
            footprint.bytes,
            goals::bytes(footprint.thing).map_or_else(String::new, |goal| goal.to_string())
        );
    }
    text.push('\n');
    for threads in figures.threads() {
        let row = figures.row(Shape::Threads(threads), "iterate", ENGINE);
        if let Some(row) = row {
            let _ = writeln!(
                text,
                "Iterating over all inodes in memory, {}: {} a second and thread (goal: {}), \
                 spread {:.0} %.\n",
                count(threads),
                rate(row.median / threads as f64),
                rate(goals::ITERATED),
                row.spread * 100.0
            );
        }
    }
    text.push_str(&letting_go(chapter));
    Ok(Some(text))
}
