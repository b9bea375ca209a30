//! The table of a run, with the goals beside what was measured.

use crate::goals;
use crate::grid::{aligned, median_of, phases};
use crate::record::Record;
use crate::summary::rate;
use crate::told::{Told, none, percent};

/// A row for each phase of each target.
pub(super) fn render(records: &[Record], labels: &[String]) -> Told {
    let mut told = Told::default();
    let heading = [
        "",
        "names/s",
        "slowest tenth/s",
        "µs of processors",
        "reads a name",
        "most reads",
        "MiB resident",
    ];
    let mut rows = vec![heading.map(str::to_owned).to_vec()];
    for label in labels {
        for phase in phases(records) {
            rows.push(row(&mut told, records, label, phase));
        }
    }
    let table = aligned(&rows);
    told.text.push_str(&table);
    told.text.push_str(
        "names a second, medians of the rounds; processors: all threads of the process, a name; reads: ranges that were read of the device, the most of any lookup and round; \
         resident: the most of all samples, ten a second; list-whole: the same listing with all names in memory, without a budget\n",
    );
    told
}

fn row(told: &mut Told, records: &[Record], label: &str, phase: &str) -> Vec<String> {
    let mine = |record: &&Record| record.target == label && record.phase == phase;
    let figure = |phase: &str, figure: &dyn Fn(&Record) -> Option<f64>| {
        median_of(records, phase, label, figure)
    };
    let speed = figure(phase, &|record| Some(record.rate()));
    let shown = speed.map_or_else(none, rate);
    let whole = figure("list-whole", &|record| Some(record.rate()));
    let speed = match (phase, speed, whole) {
        ("create", Some(speed), _) => {
            let goal = format!(">= {}", rate(goals::NAMES_MADE));
            told.held_to(shown, &goal, speed >= goals::NAMES_MADE)
        }
        ("list", Some(speed), Some(whole)) => {
            let goal = format!(">= {}, 80% of whole", rate(goals::LISTED * whole));
            told.held_to(shown, &goal, speed >= goals::LISTED * whole)
        }
        _ => shown,
    };
    let slowest = figure(phase, &|record| {
        record.part_rates.as_ref()?.iter().copied().reduce(f64::min)
    });
    let reads = figure(phase, &|record| {
        Some(record.device_reads? as f64 / record.items as f64)
    });
    let most = records
        .iter()
        .filter(mine)
        .filter_map(|record| record.device_reads_max)
        .max();
    let most = most.map_or_else(none, |most| {
        let goal = format!("<= {}", goals::LOOKUP_READS);
        let over = figure(phase, &|record| {
            Some(record.device_reads_over? as f64 / record.items as f64)
        });
        let over = over.filter(|&over| over > 0.0);
        let over = over.map_or_else(String::new, |over| format!(", {} need more", percent(over)));
        let goal = format!("{goal}{over}");
        told.held_to(most.to_string(), &goal, most <= goals::LOOKUP_READS)
    });
    let same: Vec<&Record> = records.iter().filter(mine).collect();
    let resident = told.resident(&same);
    let name = format!("{label} {phase}");
    let slowest = slowest.map_or_else(none, rate);
    let reads = reads.map_or_else(none, |reads| format!("{reads:.3}"));
    let cpu = figure(phase, &|record| {
        Some(record.process_cpu_seconds? * 1e6 / record.items as f64)
    });
    let cpu = cpu.map_or_else(none, |micros| format!("{micros:.2}"));
    vec![name, speed, slowest, cpu, reads, most, resident]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goals_stand_beside_what_was_measured() {
        let record = |phase: &str, items, reads_max| Record {
            device_reads: Some(items * 2),
            device_reads_max: reads_max,
            device_reads_over: reads_max.map(|_| 1),
            process_cpu_seconds: Some(items as f64 / 1e6),
            budget_bytes: (phase != "list-whole").then_some(64 << 20),
            rss_bytes_samples: Some(vec![60 << 20, 66 << 20]),
            ..Record::sample("volume:v", phase, items, 1.0)
        };
        let records = [
            record("create", 99_000, None),
            record("lookup", 100, Some(4)),
            record("list", 900, None),
            record("list-whole", 1000, None),
        ];
        let told = render(&records, &["volume:v".to_owned()]);
        let line = |number: usize| {
            let line = told.text.lines().nth(number).expect("a line");
            line.split_whitespace().collect::<Vec<_>>().join(" ")
        };
        assert_eq!(
            line(1),
            "volume:v create 99.0 k (>= 100 k) MISSED - 1.00 2.000 - 66.0 (<= 67)"
        );
        assert_eq!(
            line(2),
            "volume:v lookup 100 - 1.00 2.000 4 (<= 3, 1.0% need more) MISSED 66.0 (<= 67)"
        );
        assert_eq!(
            line(3),
            "volume:v list 900 (>= 800, 80% of whole) - 1.00 2.000 - 66.0 (<= 67)"
        );
        assert_eq!(line(4), "volume:v list-whole 1.00 k - 1.00 2.000 - 66.0");
        assert_eq!(told.missed, 2);
    }
}
