//! The engine beside its rival: small files, and cached reads.

use super::{Plots, contest};
use crate::document::figures::count;
use crate::goals;
use crate::report::Chapter;
use crate::summary;
use crate::workloads::{cached_read, sharded};
use anyhow::Result;
use std::fmt::Write as _;

pub(super) fn files(chapters: &[Chapter], plots: &Plots) -> Result<Option<String>> {
    let Some(figures) = contest(chapters, sharded::NAME) else {
        return Ok(None);
    };
    let mut text = figures.caption();
    text.push_str("Files a second, all threads together. ");
    for threads in figures.threads() {
        text.push_str(&figures.comparison(threads, goals::ratio));
    }
    let title = "Many small files".to_owned();
    if let Some(chart) = figures.comparison_chart(title, goals::ratio) {
        text.push_str(&plots.draw("sharded.svg", &chart)?);
    }
    Ok(Some(text))
}

pub(super) fn reads(chapters: &[Chapter], plots: &Plots) -> Result<Option<String>> {
    let Some(figures) = contest(chapters, cached_read::NAME) else {
        return Ok(None);
    };
    let mut text = figures.caption();
    text.push_str("Reads a second, all threads together. ");
    for threads in figures.threads() {
        text.push_str(&figures.comparison(threads, goals::ratio));
    }
    let title = "Reads of one cached file".to_owned();
    if let Some(chart) = figures.comparison_chart(title, goals::ratio) {
        text.push_str(&plots.draw("cached-read.svg", &chart)?);
    }
    let kept = summary::kept(&figures.chapter.records);
    if !kept.is_empty() {
        let _ = write!(
            text,
            "What readers keep of their speed while one more thread writes the same file, beside \
             its writing another one; goal: {:.0} %.\n\n| writer | readers | target | kept |\n\
             |---|---|---|--:|\n",
            goals::KEPT * 100.0
        );
        for kept in kept {
            let _ = writeln!(
                text,
                "| {} | {} | `{}` | {:.1} % |",
                kept.disturbance,
                count(kept.shape.threads()),
                kept.target,
                kept.part * 100.0
            );
        }
        text.push('\n');
    }
    Ok(Some(text))
}
