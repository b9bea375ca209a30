//! In which order a directory's files are asked for.

use super::cold::{Cold, Directory, FILES, Name, SMALL, TREE};
use crate::chance::mixed;
use anyhow::{Context, Result};
use clap::ValueEnum;
use std::ffi::OsStr;
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

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
    /// A tree of directories of ten files each, one after the other: names, and stat of each, as
    /// `ls -lR` does it
    Walk,
}

/// All of them, in the order they run.
pub(super) const PHASES: [Phase; 7] = [
    Phase::Listing,
    Phase::ListingPlus,
    Phase::ListingNames,
    Phase::ListingNumber,
    Phase::ListingRandom,
    Phase::ListingPlain,
    Phase::Walk,
];

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = self.to_possible_value();
        f.write_str(value.as_ref().map_or("", |value| value.get_name()))
    }
}

impl Phase {
    /// Has this way of asking the attributes of each name asked for, one by one?
    pub(super) fn asks_one_by_one(self) -> bool {
        !matches!(self, Self::ListingPlus | Self::ListingPlain)
    }

    /// Does it, with all of these names there; names are asked for one by one up to `most` of them.
    /// How many files it met.
    ///
    /// # Errors
    /// The first call that failed; there is no such call.
    pub(super) fn run(self, cold: &dyn Cold, names: &[Vec<u8>], most: usize) -> Result<u64> {
        let dir = || cold.directory(Path::new(FILES));
        match self {
            Self::Listing => as_received(&mut *dir()?, most),
            Self::ListingPlus => dir()?
                .with_attributes()
                .context("there is no call for a listing with attributes")?,
            Self::ListingNames => {
                let mut sorted: Vec<&[u8]> = names.iter().map(Vec::as_slice).collect();
                sorted.sort_unstable();
                stat_all(&*dir()?, sorted, most)
            }
            Self::ListingNumber => by(&mut *dir()?, most, |(ino, _)| ino.0),
            Self::ListingRandom => by(&mut *dir()?, most, |(ino, _)| mixed(ino.0)),
            Self::ListingPlain => Ok(all(&mut *dir()?)?.len() as u64),
            Self::Walk => walk(cold, most),
        }
    }
}

/// All directories of the tree, in the order of its listing, up to so many files.
fn walk(cold: &dyn Cold, most: usize) -> Result<u64> {
    let tree = Path::new(TREE);
    let mut dirs = cold.directory(tree)?;
    let mut met = 0;
    loop {
        let left = most.saturating_sub(usize::try_from(met)?);
        let mut some = dirs.some()?;
        some.truncate(left.div_ceil(SMALL as usize));
        if some.is_empty() {
            return Ok(met);
        }
        for (_, name) in &some {
            dirs.stat(name)?;
        }
        for (_, name) in some {
            let path = tree.join(OsStr::from_bytes(&name));
            met += as_received(&mut *cold.directory(&path)?, left)?;
        }
    }
}

fn as_received(dir: &mut dyn Directory, most: usize) -> Result<u64> {
    let mut met = 0;
    while met < most {
        let some = dir.some()?;
        if some.is_empty() {
            break;
        }
        for (_, name) in some.iter().take(most - met) {
            dir.stat(name)?;
            met += 1;
        }
    }
    Ok(met as u64)
}

fn by(dir: &mut dyn Directory, most: usize, key: impl Fn(&Name) -> u64) -> Result<u64> {
    let mut all = all(dir)?;
    all.sort_by_key(key);
    stat_all(dir, all.iter().map(|(_, name)| name.as_slice()), most)
}

fn stat_all<'n>(
    dir: &dyn Directory,
    names: impl IntoIterator<Item = &'n [u8]>,
    most: usize,
) -> Result<u64> {
    let mut met = 0;
    for name in names.into_iter().take(most) {
        dir.stat(name)?;
        met += 1;
    }
    Ok(met)
}

fn all(dir: &mut dyn Directory) -> Result<Vec<Name>> {
    let mut all = Vec::new();
    loop {
        let some = dir.some()?;
        if some.is_empty() {
            return Ok(all);
        }
        all.extend(some);
    }
}
