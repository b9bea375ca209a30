//! The four records of Linux' shrinkers that the arithmetic of reclaim was taken from, beside what the engine's comes to.

use crate::grid::aligned;
use anyhow::{Result, ensure};
use holdfast_core::shrinkers::{Pressure, share_of};

/// What a pass of Linux 4.9 recorded (J. Bacik's and D. Chinner's exchange of October 2016).
struct Recorded {
    /// Pages that were scanned, of so many.
    pressure: (u64, u64),
    items: u64,
    deferred: u64,
    /// Objects that the pressure added, and all to be looked at.
    delta: u64,
    total: u64,
    /// What happened then.
    then: &'static str,
}

const RECORDS: [Recorded; 4] = [
    Recorded {
        pressure: (32, 6236),
        items: 2_416_122,
        deferred: 882_936,
        delta: 24_792,
        total: 907_728,
        then: "886 batches, 464 left",
    },
    Recorded {
        pressure: (32, 6697),
        items: 2_236_078,
        deferred: 64_064,
        delta: 21_365,
        total: 85_429,
        then: "not allowed there, all deferred",
    },
    Recorded {
        pressure: (203, 251_067),
        items: 1_787_431,
        deferred: 1_006,
        delta: 2_890,
        total: 3_896,
        then: "",
    },
    Recorded {
        pressure: (1585, 249_194),
        items: 1_784_345,
        deferred: 459,
        delta: 22_698,
        total: 23_157,
        then: "",
    },
];

/// Of the shrinkers that were recorded.
const SEEKS: u32 = 2;
const BATCH: u64 = 1024;

/// The records as a table.
///
/// # Errors
/// If the engine comes to anything else.
pub(super) fn table() -> Result<String> {
    let heading = [
        "scanned/lru",
        "items",
        "deferred",
        "delta",
        "ours",
        "total",
        "ours",
        "then",
    ];
    let mut rows = vec![heading.map(str::to_owned).to_vec()];
    let mut wrong = 0;
    for record in &RECORDS {
        let (scanned, lru) = record.pressure;
        let pressure = Pressure { scanned, lru };
        let (delta, total) = share_of(record.deferred, pressure, (SEEKS, BATCH), record.items);
        wrong += u32::from((delta, total) != (record.delta, record.total));
        rows.push(vec![
            format!("{scanned}/{lru}"),
            record.items.to_string(),
            record.deferred.to_string(),
            record.delta.to_string(),
            delta.to_string(),
            record.total.to_string(),
            total.to_string(),
            record.then.to_owned(),
        ]);
    }
    let table = aligned(&rows);
    ensure!(
        wrong == 0,
        "{wrong} of the source's records come out differently:\n{table}"
    );
    Ok(table)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_engine_comes_to_what_was_recorded() {
        let table = table().expect("to the digit");
        assert_eq!(table.lines().count(), 5);
        let second: Vec<&str> = table
            .lines()
            .nth(2)
            .expect("a line")
            .split_whitespace()
            .collect();
        assert_eq!(
            second[..7],
            [
                "32/6697", "2236078", "64064", "21365", "21365", "85429", "85429"
            ]
        );
    }
}
