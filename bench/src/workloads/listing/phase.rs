//! In which order a directory's files are asked for.

use super::volume::Cold;
use crate::chance::mixed;
use anyhow::{Result, ensure};
use clap::ValueEnum;
use holdfast_core::{FileSystem, OpenFile};
use holdfast_types::{Caller, Ino};
use std::fmt;
use std::hint::black_box;

/// Names of one call: getdents(2) of the C library's buffer brings about so many.
const CALL: usize = 1000;

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Phase {
    /// Names, and stat of each in the order received, as `ls -l` does it
    Listing,
    /// Names with attributes
    ListingPlus,
    /// Stat of each by name, in alphabetical order, without a listing, as `git status` does it
    ListingNames,
    /// All names first, then stat of each by number, as `find -size` and `du` do it
    ListingNumber,
    /// All names first, then stat of each in no order
    ListingRandom,
    /// Names alone
    ListingPlain,
}

/// All of them, in the order they run.
pub(super) const PHASES: [Phase; 6] = [
    Phase::Listing,
    Phase::ListingPlus,
    Phase::ListingNames,
    Phase::ListingNumber,
    Phase::ListingRandom,
    Phase::ListingPlain,
];

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = self.to_possible_value();
        f.write_str(value.as_ref().map_or("", |value| value.get_name()))
    }
}

impl Phase {
    /// Does it, with all of these names there, and in some order. How many files it met.
    ///
    /// # Errors
    /// The first call that failed.
    pub(super) fn run(self, cold: &Cold, names: &[Vec<u8>]) -> Result<u64> {
        let who = Caller::root();
        let dir = cold.dir(&who)?;
        let walk = Walk {
            fs: cold.fs(),
            who: &who,
            dir: &dir,
        };
        match self {
            Self::Listing => walk.as_received(),
            Self::ListingPlus => walk.with_attributes(),
            Self::ListingNames => walk.stat_all(names),
            Self::ListingNumber => walk.all_by(|ino, _| ino.0),
            Self::ListingRandom => walk.all_by(|ino, _| mixed(ino.0)),
            Self::ListingPlain => Ok(walk.all()?.len() as u64),
        }
    }
}

type Name = (Ino, Vec<u8>);

/// A thread's way through an open directory.
struct Walk<'w> {
    fs: &'w FileSystem,
    who: &'w Caller,
    dir: &'w OpenFile,
}

impl Walk<'_> {
    fn as_received(&self) -> Result<u64> {
        let (mut after, mut met) = (0, 0);
        loop {
            let (some, last) = self.some(after)?;
            if last == after {
                return Ok(met);
            }
            for (_, name) in &some {
                self.stat(name)?;
            }
            met += some.len() as u64;
            after = last;
        }
    }

    fn with_attributes(&self) -> Result<u64> {
        let mut met = 0;
        let mut failed = Ok(());
        self.fs.read_dir_plus(self.dir, 0, &mut |entry, attr| {
            met += u64::from(!is_dot(entry.name));
            failed = attr.map(|attr| {
                black_box(attr);
            });
            failed.is_ok()
        })?;
        failed?;
        Ok(met)
    }

    fn all_by(&self, key: impl Fn(Ino, &[u8]) -> u64) -> Result<u64> {
        let mut all = self.all()?;
        all.sort_by_key(|(ino, name)| key(*ino, name));
        for (_, name) in &all {
            self.stat(name)?;
        }
        Ok(all.len() as u64)
    }

    fn stat_all(&self, names: &[Vec<u8>]) -> Result<u64> {
        let mut sorted: Vec<&[u8]> = names.iter().map(Vec::as_slice).collect();
        sorted.sort_unstable();
        for name in &sorted {
            self.stat(name)?;
        }
        Ok(sorted.len() as u64)
    }

    fn all(&self) -> Result<Vec<Name>> {
        let (mut all, mut after) = (Vec::new(), 0);
        loop {
            let (some, last) = self.some(after)?;
            if last == after {
                return Ok(all);
            }
            all.extend(some);
            after = last;
        }
    }

    /// The names of one call, and the cookie of the last.
    fn some(&self, after: u64) -> Result<(Vec<Name>, u64)> {
        let mut some: Vec<Name> = Vec::new();
        let mut last = after;
        self.fs.read_dir(self.dir, after, &mut |entry| {
            if some.len() == CALL {
                return false;
            }
            last = entry.cookie;
            if !is_dot(entry.name) {
                some.push((entry.ino, entry.name.to_vec()));
            }
            true
        })?;
        Ok((some, last))
    }

    fn stat(&self, name: &[u8]) -> Result<()> {
        let node = self.fs.lookup(self.who, self.dir.node(), name)?;
        let attr = black_box(self.fs.getattr(&node));
        ensure!(attr.size > 0, "an empty file");
        Ok(())
    }
}

fn is_dot(name: &[u8]) -> bool {
    matches!(name, b"." | b"..")
}
