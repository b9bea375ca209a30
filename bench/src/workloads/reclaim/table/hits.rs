//! What was found in memory.

use crate::goals;
use crate::grid::{median_of, phases};
use crate::record::Record;
use crate::summary::{distinct, median, rate};
use crate::tables::{Tables, none, percent};

/// How phases of a walk end that nothing is used beside, and those that show what fits; what is
/// behind it is the budget.
const ALONE: &str = "-alone-";
const FIT: &str = "-fit-";

/// What was found in memory of the uses that count.
pub(super) fn render(records: &[Record], tables: &mut Tables) {
    let is_mine = |record: &&Record| {
        record.uses.is_some() || record.phase.contains(ALONE) || record.phase.contains(FIT)
    };
    let mine: Vec<Record> = records.iter().filter(is_mine).cloned().collect();
    let heading: Vec<String> = [
        "uses",
        "objects/s",
        "of alone",
        "uses/walked",
        "held",
        "MiB resident",
        "engine",
    ]
    .map(str::to_owned)
    .to_vec();
    let mut rows = vec![heading];
    let targets = distinct(mine.iter().map(|record| record.target.as_str()));
    for target in &targets {
        for phase in phases(&mine) {
            let prefix = match targets.len() {
                1 => String::new(),
                _ => format!("{target} "),
            };
            if let Some(mut row) = row(tables, &mine, target, phase) {
                row[0].insert_str(0, &prefix);
                rows.push(row);
            }
        }
    }
    tables.table(
        &rows,
        "objects/s: that are walked; engine: the part of the uses that found everything in memory, \
         medians of the rounds; uses/walked: the pace that was reached",
    );
}

/// What was measured of one phase.
fn row(tables: &mut Tables, records: &[Record], target: &str, phase: &str) -> Option<Vec<String>> {
    let mine = |record: &&Record| record.target == target && record.phase == phase;
    let same: Vec<&Record> = records.iter().filter(mine).collect();
    let figure =
        |figure: &dyn Fn(&Record) -> Option<f64>| median_of(records, phase, target, figure);
    let speed = figure(&|record| Some(record.rate()))?;
    let beside = is_beside(phase);
    let part = figure(&|record| record.hit_part());
    let engine = part.map_or_else(none, |part| match beside {
        true => tables.held_to(percent(part), ">= 99%", part >= goals::HITS),
        false => percent(part),
    });
    let kept = kept(records, &same).map_or_else(none, |kept| {
        tables.held_to(percent(kept), ">= 90%", kept >= goals::WALK_KEPT)
    });
    let pace = figure(&|record| Some(record.uses? as f64 / record.items as f64));
    let pace = pace.filter(|_| beside);
    let held = figure(&|record| Some(record.held? as f64));
    Some(vec![
        phase.to_owned(),
        rate(speed),
        kept,
        pace.map_or_else(none, |pace| format!("{pace:.3}")),
        held.map_or_else(none, |held| format!("{held:.0}")),
        tables.resident(&same),
        engine,
    ])
}

/// Is it a phase in which something is used beside a walk?
fn is_beside(phase: &str) -> bool {
    phase.contains("x-1/")
}

/// What a walk keeps of its speed alone: the median over rounds.
fn kept(records: &[Record], beside: &[&Record]) -> Option<f64> {
    let parts = beside.iter().filter_map(|one| {
        let (walk, pace) = one.phase.split_once("x-1/")?;
        let (_, memory) = pace.split_once('-')?;
        let alone = format!("{walk}x{ALONE}{memory}");
        let alone = records.iter().find(|other| {
            other.phase == alone && other.target == one.target && other.round == one.round
        })?;
        Some(one.rate() / alone.rate())
    });
    median(&mut parts.collect::<Vec<_>>())
}
