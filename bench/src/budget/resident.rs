//! What is resident of this process, ten times a second.
//!
//! `statm` is read, not the rollup of the mappings: that one walks page tables under the lock that
//! page faults take, for 10 ms and more where gibibytes are resident. On a few processors its
//! counters lag behind by a few hundred KiB.

use crate::process::Process;
use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// From one sample to the next.
const TICK: Duration = Duration::from_millis(100);

/// What a watch saw.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
pub(crate) struct Seen {
    /// Bytes resident, at each sample.
    pub(crate) resident: Vec<u64>,
    /// Objects held, at each sample.
    pub(crate) held: Vec<u64>,
    /// Processor time that all threads of this process used meanwhile.
    pub(crate) cpu_seconds: f64,
}

impl Seen {
    /// The objects that were held while the later half was measured: the median.
    pub(crate) fn held(&self) -> u64 {
        let mut later = self.held[self.held.len() / 2..].to_vec();
        later.sort_unstable();
        later.get(later.len() / 2).copied().unwrap_or(0)
    }
}

/// A thread that takes samples until it is asked for them.
pub(crate) struct Watch {
    end: Sender<()>,
    thread: JoinHandle<Result<Seen>>,
}

impl Watch {
    /// Begins with a sample. `held` counts the objects that are watched as well.
    ///
    /// # Errors
    /// If the kernel does not tell what is resident, or no thread can be had.
    pub(crate) fn start(held: impl Fn() -> u64 + Send + 'static) -> Result<Self> {
        let statm = File::open("/proc/self/statm").context("/proc/self/statm")?;
        let (end, ended) = channel();
        let watch = move || {
            let mut seen = Seen::default();
            let before = Process::Own.cpu_seconds()?;
            loop {
                seen.resident.push(resident(&statm)?);
                seen.held.push(held());
                if ended.recv_timeout(TICK) != Err(RecvTimeoutError::Timeout) {
                    break;
                }
            }
            seen.cpu_seconds = Process::Own.cpu_seconds()? - before;
            // The last moment counts, too.
            seen.resident.push(resident(&statm)?);
            seen.held.push(held());
            Ok(seen)
        };
        let thread = std::thread::Builder::new().name("watch".to_owned());
        let thread = thread.spawn(watch).context("cannot start a thread")?;
        Ok(Self { end, thread })
    }

    /// Takes a last sample, and tells all.
    ///
    /// # Errors
    /// If the kernel did not tell at some time.
    pub(crate) fn end(self) -> Result<Seen> {
        drop(self.end);
        self.thread.join().ok().context("the watch panicked")?
    }
}

/// Bytes that are resident of this process.
fn resident(statm: &File) -> Result<u64> {
    let mut text = [0; 128];
    let length = statm.read_at(&mut text, 0).context("/proc/self/statm")?;
    let text = String::from_utf8_lossy(&text[..length]);
    let pages = text
        .split_whitespace()
        .nth(1)
        .and_then(|it| it.parse().ok());
    let pages: u64 = pages.with_context(|| format!("/proc/self/statm tells {text:?}"))?;
    Ok(pages * rustix::param::page_size() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_resident_for_a_while_is_seen_with_what_is_held() {
        let watch = Watch::start(|| 7).expect("started");
        let block = vec![1_u8; 64 << 20];
        std::thread::sleep(3 * TICK);
        assert_eq!(std::hint::black_box(&block).len(), 64 << 20);
        drop(block);
        let seen = watch.end().expect("told");
        assert!(seen.resident.len() >= 3, "{seen:?}");
        assert!(
            seen.resident.iter().any(|&bytes| bytes > 64 << 20),
            "{seen:?}"
        );
        assert_eq!((seen.held.len(), seen.held()), (seen.resident.len(), 7));
        assert!(seen.cpu_seconds > 0.0, "64 MiB were written: {seen:?}");
    }

    #[test]
    fn what_is_held_is_the_median_of_the_later_half() {
        let seen = Seen {
            held: vec![900, 0, 900, 5, 9, 7],
            ..Seen::default()
        };
        assert_eq!((seen.held(), Seen::default().held()), (7, 0));
    }
}
