//! Polling the report of a mount.

use super::rates::Rates;
use crate::info::{self, report::Report};
use crate::message::Result;
use crate::target::is_mounted;
use holdfast_fuse::serve::INFO_XATTR;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The result of a poll.
#[derive(Debug)]
pub(super) enum Polled {
    /// The activity since the poll before.
    Rates(Box<Rates>),
    /// The mount has ended, for this reason.
    Ended(&'static str),
}

/// Polls the daemon of a mount. The mount is not busy between two polls.
#[derive(Debug)]
pub(super) struct Poller {
    pub(super) root: PathBuf,
    pub(super) interval: Duration,
    last: (Report, Instant),
}

impl Poller {
    /// Starts polling the mount at this root; takes the first report now.
    ///
    /// # Errors
    /// If the daemon does not answer.
    pub(super) fn begin(root: PathBuf, interval: Duration) -> Result<Self> {
        let last = look(&root)?;
        Ok(Self {
            root,
            interval,
            last,
        })
    }

    /// The last report, with rates of zero.
    pub(super) fn now(&self) -> Rates {
        Rates::between(&self.last.0, &self.last.0, Duration::ZERO)
    }

    /// Waits for the interval, and polls.
    ///
    /// # Errors
    /// If the mount exists, but its daemon does not answer.
    pub(super) fn poll_next(&mut self) -> Result<Polled> {
        let (before, begun) = (&self.last.0, self.last.1);
        sleep((begun + self.interval).saturating_duration_since(Instant::now()));
        let (report, now) = match look(&self.root) {
            Ok(polled) => polled,
            Err(_) if !is_mounted(&self.root)? => return Ok(Polled::Ended("was unmounted")),
            Err(failure) => return Err(failure),
        };
        if report.pid != before.pid {
            return Ok(Polled::Ended(
                "was unmounted, and something else is mounted there",
            ));
        }
        let rates = Rates::between(before, &report, now - begun);
        self.last = (report, now);
        Ok(Polled::Rates(Box::new(rates)))
    }
}

fn look(root: &Path) -> Result<(Report, Instant)> {
    let text = info::read(root, INFO_XATTR)?;
    let now = Instant::now();
    Ok((serde_json::from_str(&text)?, now))
}
