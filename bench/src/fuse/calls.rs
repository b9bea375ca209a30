//! Calls that make requests of a mount, in batches.
//!
//! Each thread works in a directory of its own. What a batch needs (files to remove) is made
//! before it, and what it leaves is removed after it, both outside the measured time. The names
//! are those that the null file system understands: `n…` to be made, others that are there.

use crate::sys;
use anyhow::{Context, Result, bail, ensure};
use clap::ValueEnum;
use rustix::fs::{AtFlags, Mode, OFlags, fstat, mkdirat, openat, statat, unlinkat};
use rustix::io::{Errno, pread};
use std::ffi::{CStr, CString};
use std::fmt;
use std::fs::File;
use std::hint::black_box;
use std::io::Write;

const PAGE: usize = 4096;

/// Pages of the file that is read.
const DATA_PAGES: usize = 256;

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Op {
    /// stat(2) by name: LOOKUP and GETATTR
    Stat,
    /// fstat(2): GETATTR
    Getattr,
    /// open(2) with O_CREAT and O_EXCL, close(2)
    Create,
    /// unlink(2)
    Unlink,
    /// pread(2) of 4 KiB, O_DIRECT
    Read4k,
}

/// All of them, in the order they run.
pub(crate) const OPS: [Op; 5] = [Op::Stat, Op::Getattr, Op::Create, Op::Unlink, Op::Read4k];

impl Op {
    /// Does a batch need something made before it?
    pub(crate) fn prepares(self) -> bool {
        self == Self::Unlink
    }

    /// Does a batch leave something to be removed?
    pub(crate) fn leaves(self) -> bool {
        self == Self::Create
    }

    /// Bytes of file data that one of it moves.
    pub(crate) fn bytes(self) -> u64 {
        match self {
            Self::Read4k => PAGE as u64,
            Self::Stat | Self::Getattr | Self::Create | Self::Unlink => 0,
        }
    }
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Stat => "stat",
            Self::Getattr => "getattr",
            Self::Create => "create",
            Self::Unlink => "unlink",
            Self::Read4k => "read4k",
        })
    }
}

/// A command to all threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Make what a batch of it needs.
    Prepare(Op),
    /// Do a batch.
    Batch(Op),
    /// Remove what the batch left.
    Clear(Op),
}

/// Direct reads want whole pages.
#[repr(align(4096))]
struct Page([u8; PAGE]);

/// One thread's files and names.
pub(crate) struct Client {
    dir: File,
    data: File,
    /// There from the start.
    standing: Vec<CString>,
    /// Made before a batch that removes them.
    freeing: Vec<CString>,
    /// Made by a batch.
    fresh: Vec<CString>,
    page: Box<Page>,
}

impl Client {
    /// Sets up a directory for thread `index` below `root`, for batches of `batch` calls.
    ///
    /// # Errors
    /// If it cannot be made.
    pub(crate) fn new(root: &File, index: usize, batch: usize) -> Result<Self> {
        let name = format!("d{index}");
        let made = mkdirat(root, &name, Mode::from_raw_mode(0o755));
        unless(made, Errno::EXIST).with_context(|| format!("cannot make {name}"))?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let dir = File::from(openat(root, &name, flags, Mode::empty())?);
        let names = |letter| {
            let name = |file| CString::new(format!("{letter}{file:07}"));
            (0..batch).map(name).collect::<Result<Vec<_>, _>>()
        };
        let client = Self {
            data: data_file(&dir)?,
            dir,
            standing: names('s')?,
            freeing: names('u')?,
            fresh: names('n')?,
            page: Box::new(Page([0; PAGE])),
        };
        client.make_all(&client.standing)?;
        Ok(client)
    }

    /// Does a step; gives the number of calls.
    ///
    /// # Errors
    /// The first call that failed.
    pub(crate) fn step(&mut self, step: Step) -> Result<u64> {
        match step {
            Step::Prepare(op) if op.prepares() => self.make_all(&self.freeing),
            Step::Clear(op) if op.leaves() => each(&self.fresh, |name| {
                unless(unlinkat(&self.dir, name, AtFlags::empty()), Errno::NOENT)
            }),
            Step::Prepare(_) | Step::Clear(_) => Ok(0),
            Step::Batch(op) => self.batch(op).with_context(|| op.to_string()),
        }
    }

    fn batch(&mut self, op: Op) -> Result<u64> {
        let dir = &self.dir;
        match op {
            Op::Stat => each(&self.standing, |name| {
                black_box(statat(dir, name, AtFlags::empty())?);
                Ok(())
            }),
            Op::Getattr => each(&self.standing, |_| {
                black_box(fstat(&self.data)?);
                Ok(())
            }),
            Op::Create => each(&self.fresh, |name| self.make(name)),
            Op::Unlink => each(&self.freeing, |name| unlinkat(dir, name, AtFlags::empty())),
            Op::Read4k => self.read(),
        }
    }

    fn read(&mut self) -> Result<u64> {
        let page = &mut self.page.0;
        for index in 0..self.standing.len() {
            let offset = (index % DATA_PAGES * PAGE) as u64;
            let bytes = pread(&self.data, &mut *page, offset)?;
            ensure!(bytes == PAGE, "{bytes} bytes instead of a page at {offset}");
            if sys::end_asked() {
                bail!("interrupted");
            }
        }
        Ok(self.standing.len() as u64)
    }

    fn make_all(&self, names: &[CString]) -> Result<u64> {
        each(names, |name| unless(self.make(name), Errno::EXIST))
    }

    fn make(&self, name: &CStr) -> rustix::io::Result<()> {
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
        openat(&self.dir, name, flags, Mode::from_raw_mode(0o644)).map(drop)
    }
}

fn data_file(dir: &File) -> Result<File> {
    let flags = OFlags::CREATE | OFlags::WRONLY | OFlags::CLOEXEC;
    let mut file = File::from(openat(dir, c"file", flags, Mode::from_raw_mode(0o644))?);
    file.write_all(&vec![b'x'; DATA_PAGES * PAGE])?;
    let flags = OFlags::RDONLY | OFlags::DIRECT | OFlags::CLOEXEC;
    let opened = openat(dir, c"file", flags, Mode::empty());
    Ok(opened.context("cannot open a file with O_DIRECT")?.into())
}

/// An expected error is none.
fn unless(result: rustix::io::Result<()>, expected: Errno) -> rustix::io::Result<()> {
    match result {
        Err(error) if error == expected => Ok(()),
        other => other,
    }
}

#[inline]
fn each(names: &[CString], mut call: impl FnMut(&CStr) -> rustix::io::Result<()>) -> Result<u64> {
    for name in names {
        call(name).with_context(|| name.to_string_lossy().into_owned())?;
        if sys::end_asked() {
            bail!("interrupted");
        }
    }
    Ok(names.len() as u64)
}
