//! One thread: what it writes, how long each part of the writes took, and what it finds afterwards.

use super::SLICES;
use super::pattern::{Pattern, WRITE};
use super::phase::{Figure, Phase, Step};
use super::task::Amounts;
use crate::pool::Work;
use crate::process::monotonic;
use crate::sys;
use crate::targets::{Io, OpenHow, Session};
use anyhow::{Context, Result, bail, ensure};
use holdfast_types::Errno;
use std::ffi::CString;
use std::time::Duration;

/// Bytes of a small file.
pub(super) const SMALL: usize = 2048;
/// Writes that are read back.
const CHECKED: u64 = 500;

/// One thread's session, and its file.
pub(super) struct Writer<S: Io> {
    index: usize,
    session: S,
    amounts: Amounts,
    file: Option<S::File>,
    pattern: Option<Pattern>,
    /// Picoseconds of one write of each part.
    slices: Vec<u64>,
    syncing: Duration,
}

impl<S: Io + Session> Writer<S> {
    pub(super) fn new(index: usize, session: S, amounts: Amounts) -> Self {
        Self {
            index,
            session,
            amounts,
            file: None,
            pattern: None,
            slices: Vec::new(),
            syncing: Duration::ZERO,
        }
    }

    /// Does a step; gives the number of writes, of what it checked, or what was asked.
    pub(super) fn step(&mut self, step: Step) -> Result<Work> {
        let done = match step {
            Step::Prepare(phase) => self.prepare(phase).context("prepare")?,
            Step::Run(Phase::SmallFiles) => self.write_small()?,
            Step::Run(_) => self.write()?,
            Step::Check(phase) => self.check(phase).context("check")?,
            Step::Tell(figure) => self.tell(figure)?,
        };
        Ok(Work::from(done))
    }

    fn prepare(&mut self, phase: Phase) -> Result<u64> {
        if phase == Phase::SmallFiles {
            self.session.make_dir(&self.folder()?)?;
            return Ok(0);
        }
        let path = CString::new(format!("/file-{}", self.index))?;
        self.file = Some(self.session.open_file(&path, OpenHow::Make)?);
        let writes = self.amounts.writes(phase);
        self.pattern = Some(Pattern::new(phase, writes, 1 + self.index as u64));
        Ok(0)
    }

    fn folder(&self) -> Result<CString> {
        Ok(CString::new(format!("/small-{}", self.index))?)
    }

    fn write(&mut self) -> Result<u64> {
        let (Some(file), Some(pattern)) = (&self.file, &self.pattern) else {
            bail!("nothing is prepared");
        };
        let count = pattern.len();
        let part = count.div_ceil(SLICES as u64).max(1);
        let mut data = [b'x'; WRITE];
        self.slices.clear();
        for from in (0..count).step_by(part as usize) {
            let begun = monotonic();
            let to = count.min(from + part);
            for number in from..to {
                let offset = pattern.offset(number);
                data[..8].copy_from_slice(&offset.to_le_bytes());
                let put = self.session.write_at(file, offset, &data);
                ensure!(put.with_context(|| format!("write at {offset}"))? == WRITE);
            }
            let took = monotonic().saturating_sub(begun).as_nanos() as u64;
            self.slices.push(took * 1000 / (to - from));
            if sys::end_asked() {
                bail!("interrupted");
            }
        }
        let begun = monotonic();
        self.session.fsync(file).context("fsync")?;
        self.syncing = monotonic().saturating_sub(begun);
        Ok(count)
    }

    fn write_small(&mut self) -> Result<u64> {
        let folder = self.folder()?.into_string()?;
        let data = [b'x'; SMALL];
        for number in 0..self.amounts.small {
            let path = CString::new(format!("{folder}/{number}"))?;
            let file = self.session.open_file(&path, OpenHow::Make)?;
            ensure!(self.session.write_at(&file, 0, &data)? == SMALL);
            if sys::end_asked() {
                bail!("interrupted");
            }
        }
        let begun = monotonic();
        self.session.sync().context("sync")?;
        self.syncing = monotonic().saturating_sub(begun);
        Ok(self.amounts.small)
    }

    /// Reads some of it back.
    fn check(&mut self, phase: Phase) -> Result<u64> {
        if phase == Phase::SmallFiles {
            let met = self.session.walk(&self.folder()?)?;
            ensure!(met == self.amounts.small, "{met} files");
            return Ok(met);
        }
        let (Some(file), Some(pattern)) = (&self.file, &self.pattern) else {
            bail!("nothing was written");
        };
        let count = pattern.len();
        let mut data = [0; WRITE];
        for number in (0..count).step_by((count / CHECKED).max(1) as usize) {
            let offset = pattern.offset(number);
            match self.session.read_at(file, offset, &mut data) {
                Err(Errno::EOPNOTSUPP) => return Ok(0),
                read => ensure!(read? == WRITE, "a short read at {offset}"),
            }
            let mut expected = [b'x'; WRITE];
            expected[..8].copy_from_slice(&offset.to_le_bytes());
            ensure!(data == expected, "other bytes at {offset}");
        }
        Ok(count)
    }

    fn tell(&mut self, figure: Figure) -> Result<u64> {
        Ok(match figure {
            Figure::Slice(part) => self.slices.get(part).copied().unwrap_or(0),
            Figure::Sync => self.syncing.as_nanos() as u64,
            Figure::Extents => match &self.file {
                Some(file) => self.session.extents(file).context("extents")?.unwrap_or(0),
                None => 0,
            },
        })
    }
}
