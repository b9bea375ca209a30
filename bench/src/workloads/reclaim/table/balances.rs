//! What inodes and content cost when they are needed in turn.

use crate::grid::median_of;
use crate::record::Record;
use crate::summary::distinct;
use crate::told::{Told, mib, none, percent};

/// How its phases begin.
const BALANCE: &str = "balance-";

/// A row for each phase.
pub(super) fn render(records: &[Record], told: &mut Told) {
    let heading = [
        "balance",
        "µs an access",
        "found",
        "MiB metadata",
        "MiB content",
        "MiB resident",
    ];
    let mut rows = vec![heading.map(str::to_owned).to_vec()];
    let mine = records
        .iter()
        .filter(|record| record.phase.starts_with(BALANCE));
    for (target, phase) in distinct(mine.map(|one| (one.target.as_str(), one.phase.as_str()))) {
        let mine = |record: &&Record| record.target == target && record.phase == phase;
        let same: Vec<&Record> = records.iter().filter(mine).collect();
        let figure =
            |figure: &dyn Fn(&Record) -> Option<f64>| median_of(records, phase, target, figure);
        let class = |class: &str| {
            let bytes =
                figure(&|record| record.class_bytes.as_ref()?.get(class).map(|&it| it as f64));
            bytes.map_or_else(none, |bytes| format!("{:.1}", mib(bytes)))
        };
        let each = figure(&|record| Some(record.seconds * 1e6 / record.items as f64));
        rows.push(vec![
            phase.to_owned(),
            each.map_or_else(String::new, |micros| format!("{micros:.2}")),
            figure(&|record| record.hit_part()).map_or_else(String::new, percent),
            class("metadata"),
            class("content"),
            told.resident(&same),
        ]);
    }
    told.table(
        &rows,
        "the second half of each phase: metadata asks for attributes, data opens and reads files of 4 KiB, mix does both in turn; files \
         are drawn by a power law",
    );
}
