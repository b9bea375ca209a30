//! What the system tells of a process: processor time, resident memory; and on which processor a
//! thread runs.

use anyhow::{Context, Result};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use rustix::time::{ClockId, clock_gettime};
use std::fs;
use std::time::Duration;

/// Of the accounting clock, as programs see it (`USER_HZ`).
const TICKS_A_SECOND: f64 = 100.0;

/// A process: its memory and processor time can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Process {
    /// This one.
    Own,
    /// Another one, by its id.
    Other(u32),
}

impl Process {
    fn folder(self) -> String {
        match self {
            Self::Own => "/proc/self".to_owned(),
            Self::Other(id) => format!("/proc/{id}"),
        }
    }

    /// Processor time used so far by all its threads, in seconds.
    ///
    /// # Errors
    /// If the process is gone.
    pub(crate) fn cpu_seconds(self) -> Result<f64> {
        let Self::Other(_) = self else {
            return Ok(clock_time(ClockId::ProcessCPUTime).as_secs_f64());
        };
        // Ticks in `stat` are too coarse for a phase of milliseconds; the scheduler's own count
        // is in nanoseconds, but of one thread each.
        let tasks = format!("{}/task", self.folder());
        let mut nanos = 0;
        for task in fs::read_dir(&tasks).with_context(|| tasks.clone())? {
            let path = task?.path().join("schedstat");
            // A thread may end between the listing and the reading.
            let text = fs::read_to_string(path).unwrap_or_default();
            nanos += first_number(&text).unwrap_or(0);
        }
        Ok(nanos as f64 / 1e9)
    }

    /// Processor time of this process's children that have ended and been waited for, and of
    /// theirs, in seconds.
    ///
    /// # Errors
    /// If the system does not tell.
    pub(crate) fn children_cpu_seconds() -> Result<f64> {
        let stat = fs::read_to_string("/proc/self/stat").context("/proc/self/stat")?;
        // The name may hold anything; `cutime` and `cstime` are the 14th and 15th field behind it.
        let ticks = stat.rsplit_once(')').and_then(|(_, fields)| {
            let mut fields = fields.split_whitespace().skip(13);
            let (user, system) = (fields.next()?, fields.next()?);
            Some(user.parse::<u64>().ok()? + system.parse::<u64>().ok()?)
        });
        let ticks = ticks.context("/proc/self/stat tells no time of children")?;
        Ok(ticks as f64 / TICKS_A_SECOND)
    }

    /// Resident memory in bytes.
    ///
    /// # Errors
    /// If the process is gone.
    pub(crate) fn rss_bytes(self) -> Result<u64> {
        // The rollup counts pages; `statm` sums counters that may lag behind by megabytes.
        let path = format!("{}/smaps_rollup", self.folder());
        let text = fs::read_to_string(&path).with_context(|| path.clone())?;
        let line = text.lines().find_map(|line| line.strip_prefix("Rss:"));
        let kilobytes = line.and_then(first_number);
        Ok(kilobytes.with_context(|| format!("{path} tells no Rss"))? * 1024)
    }
}

/// A clock that all processes share and that is never set.
pub(crate) fn monotonic() -> Duration {
    clock_time(ClockId::Monotonic)
}

/// Processor time of the calling thread.
pub(crate) fn thread_cpu() -> Duration {
    clock_time(ClockId::ThreadCPUTime)
}

fn clock_time(clock: ClockId) -> Duration {
    // Neither clock ever shows a time before its start.
    Duration::try_from(clock_gettime(clock)).unwrap_or_default()
}

fn first_number(text: &str) -> Option<u64> {
    text.split_whitespace().next()?.parse().ok()
}

/// The processors this process may use.
///
/// # Errors
/// What sched_getaffinity(2) says.
pub(crate) fn processors() -> Result<Vec<usize>> {
    let set = sched_getaffinity(None).context("sched_getaffinity")?;
    Ok((0..CpuSet::MAX_CPU)
        .filter(|&cpu| set.is_set(cpu))
        .collect())
}

/// Keeps the calling thread on one processor.
///
/// # Errors
/// What sched_setaffinity(2) says.
pub(crate) fn pin(processor: usize) -> Result<()> {
    let mut set = CpuSet::new();
    set.set(processor);
    sched_setaffinity(None, &set).with_context(|| format!("cannot pin to processor {processor}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_tells_the_same_of_itself_by_both_ways() {
        let me = Process::Other(std::process::id());
        let spun = std::time::Instant::now();
        while spun.elapsed().as_millis() < 30 {
            std::hint::spin_loop();
        }
        let (own, other) = (Process::Own.cpu_seconds(), me.cpu_seconds());
        let (own, other) = (own.expect("clock"), other.expect("schedstat"));
        assert!(own > 0.02 && other > 0.0, "{own} {other}");
        assert!(me.rss_bytes().expect("rollup") > 100 << 10);
    }

    #[test]
    fn memory_in_use_shows_as_resident() {
        let block = vec![1_u8; 64 << 20];
        // Other tests take memory beside this one, and give it back.
        let resident = Process::Own.rss_bytes().expect("rollup");
        assert!(resident >= 64 << 20, "{resident}");
        assert_eq!(std::hint::black_box(&block).len(), 64 << 20);
    }

    #[test]
    fn a_pinned_thread_runs_where_it_was_put() {
        let last = *processors()
            .expect("affinity")
            .last()
            .expect("one at least");
        std::thread::spawn(move || {
            pin(last).expect("allowed");
            assert_eq!(rustix::thread::sched_getcpu(), last);
        })
        .join()
        .expect("thread");
    }
}
