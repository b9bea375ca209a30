//! What floods came to, within a budget and without one.

use crate::goals;
use crate::record::Record;
use crate::summary::{distinct, median, rate};
use crate::tables::{Tables, none, percent};

/// How phases of floods begin, and the one without any limit.
const FLOOD: &str = "flood-";
const UNLIMITED: &str = "flood-max";

/// A row for each limit of each target and number of threads.
pub(super) fn render(records: &[Record], tables: &mut Tables) {
    let heading = [
        "flood",
        "threads",
        "files/s",
        "of unlimited",
        "slowest tenth",
        "p99, µs",
        "times unlimited",
        "µs of processors",
        "times unlimited",
        "MiB resident",
    ];
    let mut rows = vec![heading.map(str::to_owned).to_vec()];
    let floods = records
        .iter()
        .filter(|record| record.phase.starts_with(FLOOD));
    let keys = distinct(floods.map(|one| (one.target.as_str(), one.threads, one.phase.as_str())));
    for (target, threads, phase) in keys {
        let of = |phase: &str| Runs {
            records: records
                .iter()
                .filter(|one| {
                    (one.target.as_str(), one.threads, one.phase.as_str())
                        == (target, threads, phase)
                })
                .collect(),
        };
        let base = of(UNLIMITED);
        let base = Some(&base).filter(|_| phase != UNLIMITED);
        let name = format!("{target} {}", phase.trim_start_matches(FLOOD));
        let mut row = vec![name, threads.to_string()];
        row.extend(cells(tables, &of(phase), base));
        rows.push(row);
    }
    tables.table(
        &rows,
        "files a second, medians of the rounds; slowest tenth: of the files, beside all of them; p99: of single creations, those \
         of the first tenth left out; processors: all threads of the process, a file; resident: the most of all samples, ten a second",
    );
}

/// The runs of one limit.
struct Runs<'r> {
    records: Vec<&'r Record>,
}

impl Runs<'_> {
    /// The median of a figure.
    fn median(&self, figure: impl Fn(&Record) -> Option<f64>) -> Option<f64> {
        let figures = self.records.iter().filter_map(|one| figure(one));
        median(&mut figures.collect::<Vec<_>>())
    }

    /// The same as a multiple of that of other runs: in one round both ran close to each other,
    /// while from round to round the machine may change.
    fn times(&self, base: &Self, figure: impl Fn(&Record) -> Option<f64>) -> Option<f64> {
        self.median(|one| {
            let mut others = base.records.iter();
            let other = others.find(|other| other.round == one.round)?;
            Some(figure(one)? / figure(other)?)
        })
    }
}

/// What these runs came to, held against those without a limit.
fn cells(tables: &mut Tables, mine: &Runs<'_>, base: Option<&Runs<'_>>) -> [String; 8] {
    let files = mine.median(|one| Some(one.rate()));
    let kept = base.and_then(|base| mine.times(base, |one| Some(one.rate())));
    let slower = base.and_then(|base| mine.times(base, |one| one.p99_nanos));
    let p99 = mine.median(|one| one.p99_nanos);
    let each = |one: &Record| Some(one.process_cpu_seconds? * 1e6 / one.items as f64);
    let (cpu, cpu_times) = (
        mine.median(each),
        base.and_then(|base| mine.times(base, each)),
    );
    let times = |times: f64| format!("{times:.2}x");
    let tenth = mine.median(|one| {
        let rates = one.part_rates.as_ref()?;
        Some(rates.iter().copied().reduce(f64::min)? / one.rate())
    });
    let kept = kept.map_or_else(none, |kept| {
        tables.held_to(percent(kept), ">= 95%", kept >= goals::FLOOD_KEPT)
    });
    let slower = slower.map_or_else(none, |slower| {
        tables.held_to(times(slower), "<= 2x", slower <= goals::FLOOD_P99)
    });
    [
        files.map_or_else(none, rate),
        kept,
        tenth.map_or_else(none, percent),
        p99.map_or_else(none, |nanos| format!("{:.2}", nanos / 1e3)),
        slower,
        cpu.map_or_else(none, |micros| format!("{micros:.2}")),
        cpu_times.map_or_else(none, times),
        tables.resident(&mine.records),
    ]
}
