//! Calls that make requests of a mount that is mounted as users have it, where the kernel answers
//! all it can by itself.

use crate::sys;
use anyhow::{Context, Result, bail, ensure};
use clap::ValueEnum;
use rustix::fs::{AtFlags, Mode, OFlags, StatxFlags, fgetxattr, openat, statat, statx, unlinkat};
use rustix::io::{Errno, pwrite};
use std::fmt;
use std::fs::File;
use std::hint::black_box;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes of one write.
const WRITE: usize = 1024;

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Op {
    /// statx(2) that must not believe the cache: GETATTR
    Getattr,
    /// fgetxattr(2) of an attribute that is not there: GETXATTR
    Getxattr,
    /// stat(2) of a name that is not there, each time another: LOOKUP
    Lookup,
    /// open(2) with O_CREAT and O_EXCL, close(2)
    Create,
    /// pwrite(2) of 1 KiB to the same place
    Write,
}

/// All of them, in the order they run.
pub(super) const OPS: [Op; 5] = [Op::Getattr, Op::Getxattr, Op::Lookup, Op::Create, Op::Write];

impl Op {
    /// Bytes of file data that one of it moves.
    pub(super) fn bytes(self) -> u64 {
        if self == Self::Write { WRITE as u64 } else { 0 }
    }
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = self.to_possible_value();
        f.write_str(value.as_ref().map_or("", |value| value.get_name()))
    }
}

/// A directory with a file in it, and names that were never there.
pub(super) struct Client {
    dir: File,
    file: File,
    /// The number of the next name.
    names: u64,
}

/// Numbers of names that each client has for itself: the kernel remembers those that another looked
/// up.
const NAMES_EACH: u64 = 1 << 32;
/// The first that no client has.
static NAMES: AtomicU64 = AtomicU64::new(0);

impl Client {
    /// In this directory.
    ///
    /// # Errors
    /// If it cannot be opened, or the file not made.
    pub(super) fn new(root: &Path) -> Result<Self> {
        let dir = File::open(root).with_context(|| root.display().to_string())?;
        let flags = OFlags::CREATE | OFlags::RDWR | OFlags::CLOEXEC;
        let file = openat(&dir, "file", flags, Mode::from_raw_mode(0o644)).context("file")?;
        // Relaxed: it only deals numbers out.
        let names = NAMES.fetch_add(NAMES_EACH, Ordering::Relaxed);
        Ok(Self {
            dir,
            file: file.into(),
            names,
        })
    }

    /// So many calls.
    ///
    /// # Errors
    /// The first that failed; an interruption.
    pub(super) fn batch(&mut self, op: Op, calls: u64) -> Result<()> {
        for _ in 0..calls {
            self.call(op).with_context(|| op.to_string())?;
            if sys::end_asked() {
                bail!("interrupted");
            }
        }
        Ok(())
    }

    /// Removes what the last batch left.
    ///
    /// # Errors
    /// If it cannot be removed.
    pub(super) fn clear(&mut self, op: Op, calls: u64) -> Result<()> {
        if op == Op::Create {
            for number in self.names - calls..self.names {
                unlinkat(&self.dir, name(number), AtFlags::empty()).context("unlink")?;
            }
        }
        Ok(())
    }

    fn call(&mut self, op: Op) -> Result<()> {
        match op {
            Op::Getattr => {
                let how = AtFlags::EMPTY_PATH | AtFlags::STATX_FORCE_SYNC;
                black_box(statx(&self.file, "", how, StatxFlags::BASIC_STATS)?);
            }
            Op::Getxattr => {
                let mut value = [0_u8; 16];
                let found = fgetxattr(&self.file, "user.absent", &mut value[..]);
                ensure!(
                    found == Err(Errno::NODATA),
                    "{found:?} for an attribute that is not there"
                );
            }
            Op::Lookup => {
                let name = self.fresh();
                let found = statat(&self.dir, name, AtFlags::empty()).map(drop);
                ensure!(
                    found == Err(Errno::NOENT),
                    "{found:?} for a name that is not there"
                );
            }
            Op::Create => {
                let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
                let name = self.fresh();
                drop(openat(&self.dir, name, flags, Mode::from_raw_mode(0o644))?);
            }
            Op::Write => {
                let written = pwrite(&self.file, &[b'x'; WRITE], 0)?;
                ensure!(written == WRITE, "{written} bytes instead of {WRITE}");
            }
        }
        Ok(())
    }

    fn fresh(&mut self) -> String {
        self.names += 1;
        name(self.names - 1)
    }
}

fn name(number: u64) -> String {
    format!("n{number}")
}
