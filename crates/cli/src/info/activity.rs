//! A volume's journal and device, as rows of the table.

use super::report::{Transfers, VolumeUse, Work};
use super::units::{bytes, number, span};

/// Rows of the table of a mount.
pub(super) fn volume_rows(volume: &VolumeUse) -> [(&'static str, String); 3] {
    let journal = format!(
        "{} of {}, {}, {}",
        bytes(volume.journal_used_bytes),
        bytes(volume.journal_capacity_bytes),
        done(&volume.commits, "commit"),
        done(&volume.checkpoints, "checkpoint")
    );
    let moved = |transfers: &Transfers, what: &str| {
        let times = each(transfers.nanoseconds, transfers.count);
        format!(
            "{} {what} by {}{times}",
            bytes(transfers.bytes),
            number(transfers.count)
        )
    };
    let Transfers {
        count, nanoseconds, ..
    } = volume.device_flushes;
    let device = format!(
        "{}, {}, {} flush{}{}",
        moved(&volume.device_reads, "read"),
        moved(&volume.device_writes, "written"),
        number(count),
        if count == 1 { "" } else { "es" },
        each(nanoseconds, count)
    );
    let waits = &volume.writer_waits;
    let writers = format!(
        "{} waiting, {} so far",
        number(waits.under_way),
        done(waits, "wait")
    );
    [
        ("journal", journal),
        ("device", device),
        ("writers", writers),
    ]
}

fn done(work: &Work, what: &str) -> String {
    let s = if work.count == 1 { "" } else { "s" };
    let times = each(work.nanoseconds, work.count);
    format!("{} {what}{s}{times}", number(work.count))
}

/// The mean time of one.
fn each(nanoseconds: u64, count: u64) -> String {
    match nanoseconds.checked_div(count) {
        Some(only) if count == 1 => format!(" ({})", span(only)),
        Some(mean) => format!(" ({} each)", span(mean)),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_told_with_the_time_that_it_took() {
        let volume = VolumeUse {
            journal_used_bytes: 12 << 10,
            journal_capacity_bytes: 56 << 20,
            commits: Work {
                count: 12,
                nanoseconds: 37_200_000,
                under_way: 0,
            },
            device_writes: Transfers {
                count: 3,
                bytes: 1 << 20,
                nanoseconds: 900,
            },
            device_flushes: Transfers {
                count: 1,
                bytes: 0,
                nanoseconds: 1_500_000_000,
            },
            ..VolumeUse::default()
        };
        let [journal, device, writers] = volume_rows(&volume);
        let commits = "12.0 KiB of 56.0 MiB, 12 commits (3.1 ms each), 0 checkpoints";
        assert_eq!(journal, ("journal", commits.to_owned()));
        let transfers = "0 B read by 0, 1.0 MiB written by 3 (300 ns each), 1 flush (1.5 s)";
        assert_eq!(device, ("device", transfers.to_owned()));
        assert_eq!(writers, ("writers", "0 waiting, 0 waits so far".to_owned()));
    }
}
