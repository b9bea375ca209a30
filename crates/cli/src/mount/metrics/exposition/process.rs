//! Metrics of the daemon's process, under the names that Prometheus' own clients use.

use super::writer::{GAUGE, Writer};
use rustix::process::{Resource, getrlimit};
use std::fs;

/// What is read of `/proc/self/stat`.
#[derive(Debug, PartialEq)]
struct Stat {
    cpu_ticks: u64,
    start_ticks: u64,
    virtual_bytes: u64,
    resident_pages: u64,
}

impl Stat {
    /// The name of the process may have spaces and parentheses.
    fn parse(text: &str) -> Option<Self> {
        let (_, rest) = text.rsplit_once(')')?;
        let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
        // Numbered as in proc(5), where the state is the third.
        let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
        Some(Self {
            cpu_ticks: field(14)? + field(15)?,
            start_ticks: field(22)?,
            virtual_bytes: field(23)?,
            resident_pages: field(24)?,
        })
    }
}

/// What cannot be read is left out.
pub(super) fn process(to: &mut Writer) {
    let of_ticks = |ticks: u64| ticks as f64 / rustix::param::clock_ticks_per_second() as f64;
    let stat = fs::read_to_string("/proc/self/stat").ok();
    if let Some(stat) = stat.as_deref().and_then(Stat::parse) {
        let help = "Processor time of the daemon";
        to.counter("process_cpu_seconds", help, of_ticks(stat.cpu_ticks));
        for (name, help, value) in [
            (
                "process_resident_memory_bytes",
                "Resident memory of the daemon",
                stat.resident_pages * rustix::param::page_size() as u64,
            ),
            (
                "process_virtual_memory_bytes",
                "Address space of the daemon",
                stat.virtual_bytes,
            ),
        ] {
            to.gauge(name, help, value);
        }
        if let Some(boot) = boot_seconds() {
            let start = boot as f64 + of_ticks(stat.start_ticks);
            let help = "When the daemon was started, in seconds since 1970";
            to.family(GAUGE, "process_start_time_seconds", help, [([], start)]);
        }
    }
    if let Ok(descriptors) = fs::read_dir("/proc/self/fd") {
        // Less the one that reads the folder.
        let open = (descriptors.count() as u64).saturating_sub(1);
        to.gauge("process_open_fds", "Open file descriptors", open);
    }
    if let Some(most) = getrlimit(Resource::Nofile).current {
        to.gauge("process_max_fds", "Most file descriptors", most);
    }
}

/// When the machine was started, in seconds since 1970.
fn boot_seconds() -> Option<u64> {
    let stat = fs::read_to_string("/proc/stat").ok()?;
    let line = stat.lines().find_map(|line| line.strip_prefix("btime "));
    line?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mount::metrics::accept::Format;
    use crate::mount::metrics::tests::openmetrics;
    use std::time::{SystemTime, UNIX_EPOCH};

    #[test]
    fn the_name_of_a_process_does_not_shift_the_fields() {
        let rest = "S 1 2 3 0 -1 4 5 6 7 8 100 20 0 0 20 0 9 0 777 4096 3 18446744073709551615";
        let stat = Stat {
            cpu_ticks: 120,
            start_ticks: 777,
            virtual_bytes: 4096,
            resident_pages: 3,
        };
        for name in ["holdfast", "a) S 1 (b"] {
            assert_eq!(
                Stat::parse(&format!("42 ({name}) {rest}")).as_ref(),
                Some(&stat)
            );
        }
        assert_eq!(Stat::parse("42 (x) S 1 2"), None);
        assert_eq!(Stat::parse(""), None);
    }

    #[test]
    fn numbers_are_those_of_this_process() {
        let mut to = Writer::new(Format::OpenMetrics);
        process(&mut to);
        let families = openmetrics::parse(&to.end()).unwrap();
        let value = |name: &str| families[name].value(&[]).unwrap();
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        let age = now.as_secs_f64() - value("process_start_time_seconds");
        assert!((-2.0..3600.0).contains(&age), "{age}");
        assert!(value("process_resident_memory_bytes") > 4096.0);
        assert!(value("process_virtual_memory_bytes") >= value("process_resident_memory_bytes"));
        assert!(value("process_open_fds") >= 3.0);
        assert!(value("process_max_fds") >= value("process_open_fds"));
        assert!(families["process_cpu_seconds"].kind == "counter");
    }
}
