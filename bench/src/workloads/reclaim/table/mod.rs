//! The tables of a run, with the goals beside what was measured.

mod floods;
mod hits;

use crate::record::Record;
use crate::tables::Tables;

/// All tables of these records.
pub(super) fn render(records: &[Record]) -> Tables {
    let mut tables = Tables::default();
    floods::render(records, &mut tables);
    hits::render(records, &mut tables);
    tables
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cells(tables: &Tables, line: &str) -> String {
        let found = tables.text.lines().find(|it| it.starts_with(line));
        let found = found.unwrap_or_else(|| panic!("no {line} in {}", tables.text));
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
        let tables = render(&records);
        let line = cells(&tables, "volume:v 64m");
        assert!(line.contains("90.0% (>= 95%) MISSED"), "{line}");
        assert!(
            line.contains("1.50x (<= 2x) 2.00 1.00x 70.0 (<= 67) MISSED"),
            "{line}"
        );
        assert!(cells(&tables, "volume:v max").contains("- 2.00 - 900.0"));
        assert_eq!(tables.missed, 2);
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
        let tables = render(&[alone, beside]);
        let line = cells(&tables, "inodes-number-3x-1/10-64m");
        let expected =
            "inodes-number-3x-1/10-64m 950 95.0% (>= 90%) 0.105 77 - 98.0% (>= 99%) MISSED";
        assert_eq!(line, expected);
        assert_eq!(tables.missed, 1);
    }
}
