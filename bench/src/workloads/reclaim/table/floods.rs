//! What floods came to, within a budget and without one.

use crate::goals;
use crate::record::Record;
use crate::summary::{distinct, median, rate};
use crate::told::{Told, none, percent};

/// How phases of floods begin, and the one without any limit.
const FLOOD: &str = "flood-";
const UNLIMITED: &str = "flood-max";

/// A row for each limit of each target and number of threads.
pub(super) fn render(records: &[Record], told: &mut Told) {
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
        "killed",
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
        row.extend(cells(told, &of(phase), base));
        rows.push(row);
    }
    told.table(
        &rows,
        "files a second, medians of the rounds; slowest tenth: of the files, beside all of them; p99: of single creations, those \
         of the first tenth left out; processors: all threads of the process, a file; resident: the most of all samples, ten a second (a file system of the kernel keeps its \
         memory elsewhere)",
    );
}

/// The runs of one limit.
struct Runs<'r> {
    records: Vec<&'r Record>,
}

impl Runs<'_> {
    /// The median of a figure. A run that was killed has none.
    fn median(&self, figure: impl Fn(&Record) -> Option<f64>) -> Option<f64> {
        let alive = self.records.iter().filter(|record| record.items > 0);
        median(&mut alive.filter_map(|one| figure(one)).collect::<Vec<_>>())
    }

    /// The same as a multiple of that of other runs: in one round both ran close to each other, while from round to round
    /// the machine may change.
    fn times(&self, base: &Self, figure: impl Fn(&Record) -> Option<f64>) -> Option<f64> {
        self.median(|one| {
            let mut others = base.records.iter();
            let other = others.find(|other| other.round == one.round)?;
            Some(figure(one)? / figure(other)?)
        })
    }
}

/// What these runs came to, held against those without a limit.
fn cells(told: &mut Told, mine: &Runs<'_>, base: Option<&Runs<'_>>) -> [String; 9] {
    let ours = mine.records.iter().any(|one| one.budget_bytes.is_some());
    let kills: u64 = mine.records.iter().filter_map(|one| one.kills).sum();
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
    let kept = kept.map_or_else(none, |kept| match ours {
        true => told.held_to(percent(kept), ">= 95%", kept >= goals::FLOOD_KEPT),
        false => percent(kept),
    });
    let slower = slower.map_or_else(none, |slower| match ours {
        true => told.held_to(format!("{slower:.2}x"), "<= 2x", slower <= goals::FLOOD_P99),
        false => format!("{slower:.2}x"),
    });
    // A run that was killed tells no budget; a rival has none.
    let is_volume = mine
        .records
        .iter()
        .any(|one| one.target.starts_with("volume:"));
    let killed = match (is_volume, kills) {
        (true, 1..) => told.held_to(kills.to_string(), "0", false),
        (_, kills) => kills.to_string(),
    };
    [
        files.map_or_else(none, rate),
        kept,
        tenth.map_or_else(none, percent),
        p99.map_or_else(none, |nanos| format!("{:.2}", nanos / 1e3)),
        slower,
        cpu.map_or_else(none, |micros| format!("{micros:.2}")),
        cpu_times.map_or_else(none, times),
        told.resident(&mine.records),
        killed,
    ]
}
