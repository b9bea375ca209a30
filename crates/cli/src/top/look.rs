//! Looks at a mount, one after the other.

use super::rates::Rates;
use crate::info::{self, report::Report};
use crate::message::Result;
use crate::target::is_mounted;
use holdfast_fuse::serve::INFO_XATTR;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// What a look found.
#[derive(Debug)]
pub(super) enum Looked {
    /// What was done since the one before.
    Rates(Box<Rates>),
    /// The mount has ended, and how.
    Ended(&'static str),
}

/// Asks the daemon of a mount again and again. Between two questions the mount is not in use.
#[derive(Debug)]
pub(super) struct Looks {
    root: PathBuf,
    interval: Duration,
    last: (Report, Instant),
}

impl Looks {
    /// Of the mount at this root, so far apart. The first look is taken now.
    ///
    /// # Errors
    /// What keeps the daemon from answering.
    pub(super) fn begin(root: PathBuf, interval: Duration) -> Result<Self> {
        let last = look(&root)?;
        Ok(Self {
            root,
            interval,
            last,
        })
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    pub(super) fn interval(&self) -> Duration {
        self.interval
    }

    /// What there is to see at the last look: no time has passed.
    pub(super) fn now(&self) -> Rates {
        Rates::between(&self.last.0, &self.last.0, Duration::ZERO)
    }

    /// Waits until it is time, and looks.
    ///
    /// # Errors
    /// The mount is there, and its daemon does not answer.
    pub(super) fn look_again(&mut self) -> Result<Looked> {
        let (before, begun) = (&self.last.0, self.last.1);
        sleep((begun + self.interval).saturating_duration_since(Instant::now()));
        let (report, now) = match look(&self.root) {
            Ok(looked) => looked,
            Err(_) if !is_mounted(&self.root)? => return Ok(Looked::Ended("was unmounted")),
            Err(failure) => return Err(failure),
        };
        if report.pid != before.pid {
            return Ok(Looked::Ended(
                "was unmounted, and something else is mounted there",
            ));
        }
        let rates = Rates::between(before, &report, now - begun);
        self.last = (report, now);
        Ok(Looked::Rates(Box::new(rates)))
    }
}

fn look(root: &Path) -> Result<(Report, Instant)> {
    let text = info::read(root, INFO_XATTR)?;
    let now = Instant::now();
    Ok((serde_json::from_str(&text)?, now))
}
