//! What is wrong with nodes.

use super::finding::{Branch, Finding};
use super::sink::Sink;
use crate::tree;

/// Passes on what a walk over a tree found.
pub(super) fn tell(sink: &Sink, branch: Branch, finding: tree::Finding) {
    sink.put(Finding::Node {
        branch,
        block: finding.node.block,
        level: finding.level,
        defect: finding.defect,
    });
}
