//! The tables of a run, with the goals beside what was measured.

mod balances;
mod floods;
mod hits;

use crate::record::Record;
use crate::told::Told;

/// All tables of these records.
pub(super) fn render(records: &[Record]) -> Told {
    let mut told = Told::default();
    floods::render(records, &mut told);
    hits::render(records, &mut told);
    balances::render(records, &mut told);
    told
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn cells(told: &Told, line: &str) -> String {
        let found = told.text.lines().find(|it| it.starts_with(line));
        let found = found.unwrap_or_else(|| panic!("no {line} in {}", told.text));
        found.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_flood_is_held_against_the_one_without_a_limit_of_its_round() {
        let flood = |phase: &str, round, items, p99, budget, rss: u64| Record {
            round,
            p99_nanos: Some(p99),
            process_cpu_seconds: Some(items as f64 * 2e-6),
            budget_bytes: budget,
            rss_bytes_samples: Some(vec![rss << 20, 1]),
            part_rates: Some(vec![50.0, 100.0]),
            ..Record::sample("volume:v", phase, items, 1.0)
        };
        let budget = Some(64 << 20);
        let records = [
            flood("flood-max", 1, 100, 1000.0, None, 900),
            flood("flood-64m", 1, 90, 1500.0, budget, 70),
            flood("flood-max", 2, 1000, 1000.0, None, 900),
            flood("flood-64m", 2, 900, 1500.0, budget, 60),
        ];
        let told = render(&records);
        let line = cells(&told, "volume:v 64m");
        assert!(line.contains("90.0% (>= 95%) MISSED"), "{line}");
        assert!(
            line.contains("1.50x (<= 2x) 2.00 1.00x 70.0 (<= 67) MISSED 0"),
            "{line}"
        );
        assert!(cells(&told, "volume:v max").contains("- 2.00 - 900.0 0"));
        assert_eq!(told.missed, 2);
    }

    #[test]
    fn a_run_that_was_killed_has_no_rate_and_tells_it() {
        let killed = Record {
            kills: Some(1),
            items: 0,
            seconds: 0.0,
            ..Record::sample("xfs:x", "flood-max-group-512m", 0, 0.0)
        };
        let told = render(&[Record::sample("xfs:x", "flood-max", 10, 1.0), killed]);
        assert_eq!(
            cells(&told, "xfs:x max-group"),
            "xfs:x max-group-512m 1 - - - - - - - - 1"
        );
        assert_eq!(told.missed, 0, "it is a rival");
    }

    #[test]
    fn hits_are_told_and_the_walk_stands_beside_itself_alone() {
        let alone = Record::sample("volume:v", "inodes-number-3x-alone-64m", 1000, 1.0);
        let beside = Record {
            uses: Some(100),
            hits: Some(98),
            held: Some(77),
            ..Record::sample("volume:v", "inodes-number-3x-1/10-64m", 950, 1.0)
        };
        let pattern = Record {
            phase: "inodes-loop-105%-64m".to_owned(),
            ..beside.clone()
        };
        let told = render(&[alone, beside, pattern]);
        let line = cells(&told, "inodes-number-3x-1/10-64m");
        let expected =
            "inodes-number-3x-1/10-64m 950 95.0% (>= 90%) 0.105 77 - 98.0% (>= 99%) MISSED";
        assert_eq!(line, expected);
        let line = cells(&told, "inodes-loop-105%-64m");
        assert!(line.ends_with("77 - 98.0%"), "{line}");
        assert_eq!(told.missed, 1);
    }

    #[test]
    fn a_balance_tells_the_shares() {
        let record = Record {
            uses: Some(10),
            hits: Some(5),
            class_bytes: Some(BTreeMap::from([("content".to_owned(), 3 << 20)])),
            ..Record::sample("volume:v", "balance-mix-64m", 10, 20e-6)
        };
        let told = render(&[record]);
        assert_eq!(
            cells(&told, "balance-mix-64m"),
            "balance-mix-64m 2.00 50.0% - 3.0 -"
        );
    }
}
