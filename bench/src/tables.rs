//! What is printed of a run, with goals beside what was measured, and how many of them were missed.

use crate::budget::Bytes;
use crate::grid::aligned;
use crate::record::Record;
use std::fmt::Write as _;

/// Tables, and how many goals were missed in them.
#[derive(Debug, Default)]
pub(crate) struct Tables {
    pub(crate) text: String,
    pub(crate) missed: usize,
}

/// Bytes in mebibytes.
pub(crate) fn mib(bytes: f64) -> f64 {
    bytes / f64::from(1 << 20)
}

/// A part of a whole.
pub(crate) fn percent(part: f64) -> String {
    format!("{:.1}%", part * 100.0)
}

/// What stands where nothing was measured.
pub(crate) fn none() -> String {
    "-".to_owned()
}

impl Tables {
    /// A figure beside its goal.
    pub(crate) fn held_to(&mut self, figure: String, goal: &str, met: bool) -> String {
        self.missed += usize::from(!met);
        let word = if met { "" } else { " MISSED" };
        format!("{figure} ({goal}){word}")
    }

    /// A table, if it has more than its heading, with what there is to say of it.
    pub(crate) fn table(&mut self, rows: &[Vec<String>], below: &str) {
        if rows.len() > 1 {
            self.text.push_str(&aligned(rows));
            let _ = writeln!(self.text, "{below}\n");
        }
    }

    /// The most that was resident in any sample of these, beside its goal where there is a budget.
    pub(crate) fn resident(&mut self, mine: &[&Record]) -> String {
        let most = mine.iter().filter_map(|record| record.rss_bytes_max());
        let Some(most) = most.max() else {
            return none();
        };
        let figure = format!("{:.1}", mib(most as f64));
        let budget = mine.first().and_then(|record| record.budget_bytes);
        match Bytes(budget).resident_max() {
            None => figure,
            Some(limit) => {
                let goal = format!("<= {:.0}", mib(limit));
                self.held_to(figure, &goal, most as f64 <= limit)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_resident_is_held_to_the_budget_and_a_twentieth() {
        let record = |most: u64, budget| Record {
            budget_bytes: budget,
            rss_bytes_samples: Some(vec![1 << 20, most << 20]),
            ..Record::sample("volume:v", "flood", 1, 1.0)
        };
        let mut tables = Tables::default();
        let (small, large) = (record(67, Some(64 << 20)), record(68, Some(64 << 20)));
        assert_eq!(tables.resident(&[&small]), "67.0 (<= 67)");
        assert_eq!(tables.missed, 0);
        assert_eq!(tables.resident(&[&small, &large]), "68.0 (<= 67) MISSED");
        assert_eq!(tables.resident(&[&record(900, None)]), "900.0");
        assert_eq!((tables.resident(&[]), tables.missed), ("-".to_owned(), 1));
    }
}
