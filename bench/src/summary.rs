//! Records as medians over rounds, with their spread, and the ratios between them.

use crate::mode::Mode;
use crate::record::Record;

/// One target in one phase, in one shape.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Row<'r> {
    pub(crate) mode: Mode,
    pub(crate) phase: &'r str,
    pub(crate) target: &'r str,
    /// Items a second, the median over rounds.
    pub(crate) median: f64,
    /// Fastest less slowest, as a part of the median.
    pub(crate) spread: f64,
    /// The median over that of the last target in the same shape, if that one has the phase.
    pub(crate) ratio: Option<f64>,
    /// What it reaches of as many independent processes, where both ran: the median over rounds. In
    /// one round both ran right after each other, while from round to round the machine may change.
    pub(crate) scaling: Option<f64>,
}

/// By shape, then phase, then target, each in the order of its first record.
pub(crate) fn rows(records: &[Record]) -> Vec<Row<'_>> {
    let modes = distinct(records.iter().map(Record::mode));
    let phases = distinct(records.iter().map(|record| record.phase.as_str()));
    let targets = distinct(records.iter().map(|record| record.target.as_str()));
    let mut rows = Vec::new();
    for &mode in &modes {
        for &phase in &phases {
            let reference = targets
                .last()
                .and_then(|last| median(&mut rates(records, mode, phase, last)));
            for &target in &targets {
                let mut measured = rates(records, mode, phase, target);
                let Some(middle) = median(&mut measured) else {
                    continue;
                };
                rows.push(Row {
                    mode,
                    phase,
                    target,
                    median: middle,
                    spread: (measured[measured.len() - 1] - measured[0]) / middle,
                    ratio: reference.map(|reference| middle / reference),
                    scaling: scaling(records, mode, phase, target),
                });
            }
        }
    }
    rows
}

/// What threads reach of independent processes.
fn scaling(records: &[Record], mode: Mode, phase: &str, target: &str) -> Option<f64> {
    let Mode::Threads(count) = mode else {
        return None;
    };
    let alone = Mode::Processes(count);
    let ratio = |threads: &Record| {
        let of_processes =
            |other: &&Record| other.round == threads.round && is_of(other, alone, phase, target);
        let processes = records.iter().find(of_processes)?;
        Some(threads.rate() / processes.rate())
    };
    let threads = records
        .iter()
        .filter(|record| is_of(record, mode, phase, target));
    median(&mut threads.filter_map(ratio).collect::<Vec<_>>())
}

fn is_of(record: &Record, mode: Mode, phase: &str, target: &str) -> bool {
    let whose = (record.mode(), record.phase.as_str(), record.target.as_str());
    whose == (mode, phase, target)
}

fn rates(records: &[Record], mode: Mode, phase: &str, target: &str) -> Vec<f64> {
    let mine = |record: &&Record| is_of(record, mode, phase, target);
    records.iter().filter(mine).map(Record::rate).collect()
}

/// What one file, or one empty directory, takes at most.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Footprint<'r> {
    pub(crate) target: &'r str,
    /// `file` or `empty directory`.
    pub(crate) thing: &'static str,
    /// Growth of resident memory by one, the largest of all runs: what is promised is an upper
    /// bound.
    pub(crate) bytes: f64,
}

/// By target, of those that tell it.
pub(crate) fn footprints(records: &[Record]) -> Vec<Footprint<'_>> {
    type Figure = fn(&Record) -> Option<f64>;
    let things: [(&'static str, Figure); 2] = [
        ("file", |record| record.rss_bytes_per_file),
        ("empty directory", |record| record.rss_bytes_per_directory),
    ];
    let mut footprints = Vec::new();
    for target in distinct(records.iter().map(|record| record.target.as_str())) {
        for (thing, figure) in things {
            let mine = records.iter().filter(|record| record.target == target);
            if let Some(bytes) = mine.filter_map(figure).reduce(f64::max) {
                footprints.push(Footprint {
                    target,
                    thing,
                    bytes,
                });
            }
        }
    }
    footprints
}

/// What readers keep of their speed beside a writer of the same file.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Kept<'r> {
    pub(crate) target: &'r str,
    pub(crate) mode: Mode,
    /// What the writer does.
    pub(crate) disturbance: &'r str,
    /// The rate beside it over that of the same with a writer of another file, in the same round,
    /// where both took turns: the median over rounds.
    pub(crate) part: f64,
}

/// By shape, then disturbance, then target, of those that were measured both ways.
pub(crate) fn kept(records: &[Record]) -> Vec<Kept<'_>> {
    let rows = rows(records);
    let pairs = rows.iter().filter_map(|beside| {
        let disturbance = beside.phase.strip_suffix("-beside")?;
        let mine = |record: &&Record| is_of(record, beside.mode, beside.phase, beside.target);
        let parts = records.iter().filter(mine).filter_map(|record| {
            let apart = records.iter().find(|apart| {
                apart.phase.strip_suffix("-apart") == Some(disturbance)
                    && (apart.round, apart.mode()) == (record.round, record.mode())
                    && apart.target == record.target
            })?;
            Some(record.rate() / apart.rate())
        });
        Some(Kept {
            target: beside.target,
            mode: beside.mode,
            disturbance,
            part: median(&mut parts.collect::<Vec<_>>())?,
        })
    });
    pairs.collect()
}

/// What the writes of a file came to.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Written<'r> {
    pub(crate) target: &'r str,
    pub(crate) mode: Mode,
    pub(crate) phase: &'r str,
    /// Bytes a second, the median over rounds.
    pub(crate) bytes: f64,
    /// Pieces in which a file lies, if they are told.
    pub(crate) extents: Option<f64>,
    /// The time of a write among the last tenth over that among the first, each the median of its
    /// parts, where pauses do not show.
    pub(crate) slope: Option<f64>,
}

/// Of the records that tell how long they took to be durable, in the order of the rows.
pub(crate) fn written(records: &[Record]) -> Vec<Written<'_>> {
    let rows = rows(records).into_iter();
    let written = rows.filter_map(|row| {
        let mine: Vec<&Record> = records
            .iter()
            .filter(|one| {
                (one.mode(), one.phase.as_str(), one.target.as_str())
                    == (row.mode, row.phase, row.target)
                    && one.fsync_seconds.is_some()
            })
            .collect();
        let middle = |figure: &dyn Fn(&Record) -> Option<f64>| {
            median(
                &mut mine
                    .iter()
                    .filter_map(|one| figure(one))
                    .collect::<Vec<_>>(),
            )
        };
        Some(Written {
            target: row.target,
            mode: row.mode,
            phase: row.phase,
            bytes: middle(&|one| Some(one.bytes as f64 / one.seconds))?,
            extents: middle(&|one| one.extents_per_file),
            slope: middle(&|one| slope(one.write_nanos.as_deref()?)),
        })
    });
    written.collect()
}

/// The last tenth over the first.
fn slope(nanos: &[f64]) -> Option<f64> {
    let tenth = nanos.len() / 10;
    let first = median(&mut nanos.get(..tenth)?.to_vec())?;
    let last = median(&mut nanos.get(nanos.len() - tenth..)?.to_vec())?;
    Some(last / first)
}

/// Each value once, in the order of its first place.
pub(crate) fn distinct<T: PartialEq>(values: impl Iterator<Item = T>) -> Vec<T> {
    let mut seen = Vec::new();
    for value in values {
        if !seen.contains(&value) {
            seen.push(value);
        }
    }
    seen
}

/// Sorts the values; the middle one, or the mean of the two in the middle.
pub(crate) fn median(values: &mut [f64]) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let half = values.len() / 2;
    match values.len() {
        0 => None,
        odd if odd % 2 == 1 => Some(values[half]),
        _ => Some(f64::midpoint(values[half - 1], values[half])),
    }
}

/// Three digits and a unit.
pub(crate) fn rate(value: f64) -> String {
    let (scaled, unit) = match value {
        value if value >= 1e6 => (value / 1e6, " M"),
        value if value >= 1e3 => (value / 1e3, " k"),
        value => (value, ""),
    };
    let digits = match scaled {
        scaled if scaled >= 100.0 => 0,
        scaled if scaled >= 10.0 => 1,
        _ => 2,
    };
    format!("{scaled:.digits$}{unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-9
    }

    #[test]
    fn a_row_has_the_median_the_spread_and_the_ratio_to_the_last_target() {
        let records = [
            Record::sample("mem:", "stat", 100, 1.0),
            Record::sample("dir:/x", "stat", 10, 1.0),
            Record::sample("mem:", "stat", 300, 1.0),
            Record::sample("dir:/x", "stat", 30, 1.0),
            Record::sample("mem:", "stat", 400, 2.0),
            Record::sample("dir:/x", "stat", 40, 1.0),
        ];
        let rows = rows(&records);
        assert_eq!((rows[0].target, rows[1].target), ("mem:", "dir:/x"));
        assert!(
            close(rows[0].median, 200.0) && close(rows[1].median, 30.0),
            "{rows:?}"
        );
        assert!(
            close(rows[0].spread, 1.0) && close(rows[1].spread, 1.0),
            "{rows:?}"
        );
        let ratios = [rows[0].ratio, rows[1].ratio];
        assert_eq!(ratios, [Some(200.0 / 30.0), Some(1.0)]);
        assert!(rows.iter().all(|row| row.scaling.is_none()), "{rows:?}");
    }

    #[test]
    fn threads_are_judged_by_as_many_processes_of_the_same_target() {
        let record = |target, threads, processes, items| Record {
            threads,
            processes,
            ..Record::sample(target, "stat", items, 1.0)
        };
        let records = [
            record("mem:", 1, None, 60),
            record("mem:", 2, None, 90),
            record("dir:/x", 2, None, 20),
            record("mem:", 2, Some(2), 100),
            record("dir:/x", 2, Some(2), 10),
        ];
        let rows = rows(&records);
        let scaling: Vec<_> = rows.iter().map(|row| row.scaling).collect();
        assert_eq!(scaling, [None, Some(0.9), Some(2.0), None, None]);
        assert_eq!(rows[3].ratio, Some(10.0), "processes beside processes");
    }

    #[test]
    fn threads_are_held_against_the_processes_of_the_same_round() {
        let records: Vec<_> = [(1, 90, 100), (2, 45, 50), (3, 92, 100)]
            .into_iter()
            .flat_map(|(round, threads, processes)| {
                [(None, threads), (Some(2), processes)].map(|(processes, items)| Record {
                    threads: 2,
                    processes,
                    round,
                    ..Record::sample("mem:", "stat", items, 1.0)
                })
            })
            .collect();
        let rows = rows(&records);
        assert!(close(rows[0].median, 90.0) && close(rows[1].median, 100.0));
        assert!(close(rows[0].scaling.expect("both ran"), 0.9), "{rows:?}");
        let lonely = [records[0].clone(), records[3].clone()];
        assert_eq!(super::rows(&lonely)[0].scaling, None, "of no common round");
    }

    #[test]
    fn an_even_number_of_rounds_has_its_median_between_two() {
        assert!(close(median(&mut [4.0, 1.0, 3.0, 2.0]).expect("some"), 2.5));
        assert_eq!(median(&mut []), None);
    }

    #[test]
    fn rates_have_three_digits() {
        let shown: Vec<_> = [7.0, 812_345.0, 1_234_567.0, 47_500.0, 999.4]
            .map(rate)
            .into();
        assert_eq!(shown, ["7.00", "812 k", "1.23 M", "47.5 k", "999"]);
    }

    #[test]
    fn a_footprint_is_the_largest_of_the_rounds_by_target_and_thing() {
        let mut records = [10.0, 270.4, 250.0].map(|bytes| Record {
            rss_bytes_per_file: Some(bytes),
            ..Record::sample("mem:", "create", 1, 1.0)
        });
        records[0].target = "dir:/x".to_owned();
        records[0].rss_bytes_per_file = None;
        records[2].rss_bytes_per_directory = Some(300.0);
        let footprints = footprints(&records);
        let figure: Vec<_> = footprints
            .iter()
            .map(|one| (one.target, one.thing, one.bytes))
            .collect();
        let expected = [("mem:", "file", 270.4), ("mem:", "empty directory", 300.0)];
        assert_eq!(figure, expected);
    }

    #[test]
    fn what_was_written_has_the_slope_of_its_parts() {
        let record = |last: f64| Record {
            bytes: 2000,
            fsync_seconds: Some(0.1),
            extents_per_file: Some(7.0),
            write_nanos: Some((0..20).map(|at| if at < 18 { 5.0 } else { last }).collect()),
            ..Record::sample("volume:", "fill", 2, 2.0)
        };
        let records = [record(5.0), record(10.0), record(11.0)];
        let figure = written(&records);
        assert_eq!(figure.len(), 1);
        let one = &figure[0];
        assert_eq!((one.extents, one.slope), (Some(7.0), Some(2.0)));
        assert!(close(one.bytes, 1000.0), "{one:?}");
        assert_eq!(written(&[Record::sample("mem:", "stat", 1, 1.0)]), []);
    }

    #[test]
    fn what_readers_keep_is_their_speed_beside_over_that_apart() {
        let records = [
            Record::sample("mem:", "read2-1", 50, 1.0),
            Record::sample("mem:", "append-apart", 100, 1.0),
            Record::sample("mem:", "append-beside", 80, 1.0),
            Record::sample("dir:/x", "append-beside", 80, 1.0),
        ];
        let kept = super::kept(&records);
        assert_eq!(kept.len(), 1, "only what has both: {kept:?}");
        assert_eq!((kept[0].target, kept[0].disturbance), ("mem:", "append"));
        assert!(close(kept[0].part, 0.8), "{kept:?}");
        let slower = |round, apart, beside| {
            let record = |phase, items| Record {
                round,
                ..Record::sample("mem:", phase, items, 1.0)
            };
            [
                record("append-apart", apart),
                record("append-beside", beside),
            ]
        };
        // The machine was slower in one round than in the others: that is none of the writer's
        // doing.
        let rounds = [slower(1, 100, 90), slower(2, 50, 45), slower(3, 50, 44)].concat();
        assert!(close(super::kept(&rounds)[0].part, 0.9), "{rounds:?}");
    }
}
