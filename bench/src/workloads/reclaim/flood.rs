//! One thread's part of a flood: empty files without end, in directories of its own.

use super::latencies::Latencies;
use crate::sys;
use crate::targets::Session;
use crate::targets::names::{self, FILE};
use crate::workloads::sharded::NumberedPath;
use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};
use std::ffi::CString;
use std::time::Instant;

/// The time is told of so many equal parts.
pub(super) const PARTS: u64 = 10;

/// How much each thread makes.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub(super) struct Flood {
    /// Files, a multiple of [`PARTS`].
    pub(super) files: u64,
    /// Of which so many are in one directory.
    pub(super) per_dir: u64,
}

/// How long it took.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
pub(super) struct Timed {
    /// Nanoseconds of each part, in their order.
    pub(super) parts: Vec<f64>,
    /// Of single creations, but for those of the first part: until then the budget is not reached.
    pub(super) latencies: Latencies,
}

impl Flood {
    /// Makes the files of one thread.
    ///
    /// # Errors
    /// The first call that failed; a signal to end.
    pub(super) fn run<S: Session>(&self, thread: usize, session: &mut S) -> Result<Timed> {
        let top = CString::new(format!("/{}", names::top(thread)))?;
        session.make_dir(&top).context("mkdir")?;
        let mut timed = Timed {
            parts: Vec::with_capacity(PARTS as usize),
            latencies: Latencies::ready(),
        };
        let each = self.files / PARTS;
        let mut path = NumberedPath::new("", 0);
        let mut last = Instant::now();
        let mut begun = last;
        for number in 0..self.files {
            if number % self.per_dir == 0 {
                path = self.next_folder(thread, number, session)?;
                last = Instant::now();
            }
            if let Err(error) = session.create(path.as_c_str()) {
                bail!("create {}: {error}", path.as_c_str().to_string_lossy());
            }
            path.count_up();
            let now = Instant::now();
            if number >= each {
                let nanos = (now - last).as_nanos();
                timed
                    .latencies
                    .note(u64::try_from(nanos).unwrap_or(u64::MAX));
            }
            last = now;
            if (number + 1) % each == 0 {
                timed.parts.push((now - begun).as_nanos() as f64);
                begun = now;
                if sys::end_asked() {
                    bail!("interrupted");
                }
            }
        }
        Ok(timed)
    }

    /// Makes the directory that this file begins; the path of the file.
    fn next_folder<S: Session>(
        &self,
        thread: usize,
        number: u64,
        session: &mut S,
    ) -> Result<NumberedPath> {
        let folder = usize::try_from(number / self.per_dir)?;
        let folder = format!("/{}/{}", names::top(thread), names::folder(folder));
        let path = CString::new(folder.clone())?;
        session
            .make_dir(&path)
            .with_context(|| format!("mkdir {folder}"))?;
        Ok(NumberedPath::new(
            &format!("{folder}/{FILE}"),
            usize::try_from(number)?,
        ))
    }
}

impl Timed {
    /// All of these, which ran at the same time.
    pub(super) fn together(all: &[Self]) -> Self {
        let mut sum = Self::default();
        for one in all {
            sum.latencies.merge(&one.latencies);
        }
        let mean = |part: usize| {
            let each = all.iter().filter_map(|one| one.parts.get(part));
            each.sum::<f64>() / all.len() as f64
        };
        sum.parts = (0..PARTS as usize).map(mean).collect();
        sum
    }
}
