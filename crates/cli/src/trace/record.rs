//! A record of reclaim, as the daemon sends it and as it is printed.

use holdfast::engine::shrinkers;
use serde::{Deserialize, Serialize};
use std::fmt::{self, Display};

/// Characters of a thread's name, at most.
const NAME_MAX: usize = 32;

/// The fields of `--json` are an interface: fields may be added, never renamed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Record {
    /// Number of the record, counted over all records of the daemon.
    pub(crate) sequence: u64,
    pub(crate) thread: String,
    pub(crate) tid: u32,
    pub(crate) processor: u32,
    pub(crate) time_us: u64,
    pub(crate) shrinker: String,
    /// The shrinker's number in the daemon.
    pub(crate) number: u32,
    #[serde(flatten)]
    pub(crate) step: Step,
}

/// The begin or the end of a pass.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event")]
pub(crate) enum Step {
    #[serde(rename = "mm_shrink_slab_start")]
    Start {
        deferred: u64,
        flags: String,
        pages_scanned: u64,
        lru_pages: u64,
        items: u64,
        delta: u64,
        total_scan: u64,
    },
    #[serde(rename = "mm_shrink_slab_end")]
    End {
        deferred: u64,
        new_deferred: u64,
        total_scan: u64,
        freed: u64,
    },
}

/// The next records of a daemon.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Traced {
    /// The daemon's process.
    pub(crate) pid: u32,
    pub(crate) records: Vec<Record>,
    /// The number of records dropped before these.
    pub(crate) missed: u64,
    /// The number of the next record.
    pub(crate) next: u64,
}

impl From<shrinkers::Records> for Traced {
    fn from(read: shrinkers::Records) -> Self {
        Self {
            pid: std::process::id(),
            records: read.records.into_iter().map(Record::from).collect(),
            missed: read.missed,
            next: read.next,
        }
    }
}

impl From<shrinkers::Record> for Record {
    fn from(record: shrinkers::Record) -> Self {
        let name = record.thread.chars().take(NAME_MAX);
        let plain = |each: char| if each.is_ascii_graphic() { each } else { '_' };
        Self {
            sequence: record.sequence,
            thread: name.map(plain).collect(),
            tid: record.tid,
            processor: record.processor,
            time_us: u64::try_from(record.time.as_micros()).unwrap_or(u64::MAX),
            shrinker: record.shrinker.to_owned(),
            number: record.number,
            step: record.step.into(),
        }
    }
}

impl From<shrinkers::Step> for Step {
    fn from(step: shrinkers::Step) -> Self {
        match step {
            shrinkers::Step::Start {
                deferred,
                context,
                pressure,
                items,
                delta,
                total,
            } => Self::Start {
                deferred,
                flags: context.flags().to_owned(),
                pages_scanned: pressure.scanned,
                lru_pages: pressure.lru,
                items,
                delta,
                total_scan: total,
            },
            shrinkers::Step::End {
                deferred,
                owed,
                total,
                freed,
            } => Self::End {
                deferred,
                new_deferred: owed,
                total_scan: total,
                freed,
            },
        }
    }
}

/// The format of Linux' trace points of the same name, before 4.16.
impl Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            thread,
            tid,
            processor,
            time_us,
            shrinker,
            number,
            ..
        } = self;
        let (seconds, micros) = (time_us / 1_000_000, time_us % 1_000_000);
        write!(f, "{thread}-{tid} [{processor:03}] {seconds}.{micros:06}: ")?;
        match &self.step {
            Step::Start {
                deferred,
                flags,
                pages_scanned,
                lru_pages,
                items,
                delta,
                total_scan,
            } => write!(
                f,
                "mm_shrink_slab_start: {shrinker} {number:#x}: nid: 0 objects to shrink {deferred} gfp_flags {flags} \
                 pgs_scanned {pages_scanned} lru_pgs {lru_pages} cache items {items} delta {delta} total_scan {total_scan}"
            ),
            Step::End {
                deferred,
                new_deferred,
                total_scan,
                freed,
            } => write!(
                f,
                "mm_shrink_slab_end: {shrinker} {number:#x}: nid: 0 unused scan count {deferred} new scan count \
                 {new_deferred} total_scan {total_scan} last shrinker return val {freed}"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast::engine::shrinkers::{Context, Pressure};
    use std::time::Duration;

    fn record(step: shrinkers::Step) -> shrinkers::Record {
        shrinkers::Record {
            sequence: 9,
            thread: "reclaim".to_owned(),
            tid: 712,
            processor: 1,
            time: Duration::from_micros(8_123_456_789),
            shrinker: "metadata",
            number: 1,
            step,
        }
    }

    const START: shrinkers::Step = shrinkers::Step::Start {
        deferred: 882_936,
        context: Context::Anywhere,
        pressure: Pressure {
            scanned: 32,
            lru: 6236,
        },
        items: 2_416_122,
        delta: 24_792,
        total: 907_728,
    };
    const END: shrinkers::Step = shrinkers::Step::End {
        deferred: 882_936,
        owed: 464,
        total: 464,
        freed: 874_354,
    };

    #[test]
    fn records_are_printed_as_the_source_prints_them() {
        let lines = [START, END].map(|step| Record::from(record(step)).to_string());
        assert_eq!(
            lines[0],
            "reclaim-712 [001] 8123.456789: mm_shrink_slab_start: metadata 0x1: nid: 0 objects to shrink 882936 \
             gfp_flags GFP_KERNEL pgs_scanned 32 lru_pgs 6236 cache items 2416122 delta 24792 total_scan 907728"
        );
        assert_eq!(
            lines[1],
            "reclaim-712 [001] 8123.456789: mm_shrink_slab_end: metadata 0x1: nid: 0 unused scan count 882936 \
             new scan count 464 total_scan 464 last shrinker return val 874354"
        );
        assert_eq!(lines[1].split_ascii_whitespace().nth(22), Some("874354"));
    }

    #[test]
    fn records_come_through_the_control_channel_as_they_were_and_are_one_line_each() {
        let traced = Traced::from(shrinkers::Records {
            records: vec![record(START), record(END)],
            missed: 3,
            next: 11,
        });
        let text = serde_json::to_string(&traced).unwrap();
        assert_eq!(serde_json::from_str::<Traced>(&text).unwrap(), traced);
        let end = serde_json::to_value(&traced.records[1]).unwrap();
        assert_eq!(end["event"], "mm_shrink_slab_end");
        assert_eq!(
            (&end["freed"], &end["shrinker"]),
            (&874_354.into(), &"metadata".into())
        );
        let strange = shrinkers::Record {
            thread: "two words\n".repeat(20),
            ..record(END)
        };
        let line = Record::from(strange).to_string();
        assert_eq!(line.split_ascii_whitespace().nth(22), Some("874354"));
        assert!(line.starts_with("two_words_two_words_") && !line.contains('\n'));
    }
}
