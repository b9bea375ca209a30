//! `holdfast fsck pg://...`.

use super::{end, open, refusal};
use crate::message::Result;
use crate::output::Output;
use holdfast::types::Result as Answer;
use holdfast_cluster::Tree;
use holdfast_cluster::address::Address;
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;

#[derive(Serialize)]
struct Summary {
    clean: bool,
    findings: Vec<String>,
    /// What is left after a repair.
    #[serde(skip_serializing_if = "Option::is_none")]
    left: Option<Vec<String>>,
}

/// What is asked of a check.
pub(crate) struct Check<'a> {
    pub(crate) repairs: bool,
    /// Is each object read?
    pub(crate) content: bool,
    /// The findings that are printed.
    pub(crate) findings: usize,
    pub(crate) output: &'a Output,
}

/// What a check found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Clean,
    Repaired,
    Damaged,
}

/// Checks, and prints what it found.
pub(crate) fn run(address: &Address, arguments: &Check<'_>) -> Result<State> {
    let tree = open(address)?;
    let checked = check(&tree, arguments.repairs, arguments.content);
    end(&tree);
    let summary = checked.map_err(|error| refusal(address, error))?;
    let mut text = String::new();
    for finding in summary.findings.iter().take(arguments.findings) {
        text.push_str(&format!("{finding}\n"));
    }
    let more = summary.findings.len().saturating_sub(arguments.findings);
    if more > 0 {
        text.push_str(&format!("and {more} more findings\n"));
    }
    for finding in summary.left.iter().flatten() {
        text.push_str(&format!("left: {finding}\n"));
    }
    let state = match (summary.clean, &summary.left) {
        (true, None) => "clean",
        (true, Some(_)) => "repaired",
        (false, Some(_)) => "DAMAGED, and this cannot be repaired",
        (false, None) => "DAMAGED, and left as it is (--repair repairs counts and lists)",
    };
    text.push_str(&format!("{address}: {state}\n"));
    arguments.output.print(&summary, text)?;
    Ok(match (summary.clean, summary.findings.is_empty()) {
        (true, true) => State::Clean,
        (true, false) => State::Repaired,
        (false, _) => State::Damaged,
    })
}

fn check(tree: &Tree, repairs: bool, content: bool) -> Answer<Summary> {
    let mut findings = tree.meta.check(repairs)?;
    let mut left = match repairs && !findings.is_empty() {
        true => Some(tree.meta.check(false)?),
        false => None,
    };
    if content {
        // `indicatif` hides it where standard error is no terminal.
        let bar = ProgressBar::new_spinner();
        if let Ok(style) = ProgressStyle::with_template("{spinner} {bytes} read") {
            bar.set_style(style);
        }
        let mut bytes = Vec::new();
        tree.check_content(&mut |finding| bytes.push(finding), &mut |read| {
            bar.inc(read)
        })?;
        bar.finish_and_clear();
        if let Some(left) = &mut left {
            left.extend(bytes.iter().cloned());
        }
        findings.extend(bytes);
    }
    Ok(Summary {
        clean: left.as_ref().unwrap_or(&findings).is_empty(),
        findings,
        left,
    })
}
