//! What a worker does to the directory.

use crate::budget::Opened;
use crate::chance::{Chance, mixed};
use crate::goals;
use crate::sys;
use anyhow::{Context, Result, bail, ensure};
use holdfast_core::{FileSystem, Options};
use holdfast_types::{Caller, Errno, OpenFlags};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Instant;

/// The directory.
const DIR: &[u8] = b"/names";
/// The time of creations is told of so many equal parts.
const PARTS: u64 = 10;
/// Names that are listed before they are removed: as many as the C library's buffer holds.
const RUN: usize = 1000;
/// Lookups before those that count: what all of them pass is in memory then, as it is in a file system that is in use.
const FIRST_LOOKUPS: u64 = 100;

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(super) enum Phase {
    /// Names are made.
    Create,
    /// Names are looked up in no order.
    LookUp,
    /// All are listed.
    List,
    /// The directory is brought into memory as a whole, without a limit.
    LoadWhole,
    /// It is listed from there.
    ListWhole,
    /// All are listed and removed, as by `rm -r`.
    Empty,
}

/// In the order in which they run.
pub(super) const PHASES: [Phase; 6] = [
    Phase::Create,
    Phase::LookUp,
    Phase::List,
    Phase::LoadWhole,
    Phase::ListWhole,
    Phase::Empty,
];

impl Phase {
    /// Is the directory to be in memory as a whole?
    pub(super) fn is_whole(self) -> bool {
        matches!(self, Self::LoadWhole | Self::ListWhole)
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Create => "create",
            Self::LookUp => "lookup",
            Self::List => "list",
            Self::LoadWhole => "load-whole",
            Self::ListWhole => "list-whole",
            Self::Empty => "empty",
        })
    }
}

/// One phase.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub(super) struct Job {
    pub(super) phase: Phase,
    pub(super) names: u64,
    pub(super) lookups: u64,
}

/// What a phase came to.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
pub(super) struct Met {
    /// Names that were met.
    pub(super) items: u64,
    /// Names a second in each part.
    pub(super) part_rates: Vec<f64>,
    /// Ranges that were read of the device, and how often something waited for that; of all lookups the most.
    pub(super) reads: u64,
    pub(super) waits: u64,
    pub(super) reads_max: Option<u64>,
    /// Lookups that needed more than they shall.
    pub(super) reads_over: Option<u64>,
}

/// A name of 24 bytes; neither their order nor their hashes' is that in which the files are made.
fn name(number: u64) -> Vec<u8> {
    format!("{:016x}{number:08}", mixed(number)).into_bytes()
}

fn path(number: u64) -> Vec<u8> {
    [DIR, b"/", &name(number)].concat()
}

impl Job {
    /// Opens the volume for it, or makes it.
    ///
    /// # Errors
    /// Those of the volume.
    pub(super) fn open(&self, image: &std::path::Path) -> Result<Opened> {
        let options = match self.phase.is_whole() {
            true => Options {
                whole_directory: u32::MAX,
                ..Options::default()
            },
            false => Options::default(),
        };
        if self.phase != Phase::Create {
            return Opened::open(image, options);
        }
        // An image is sparse, and a name with its inode takes less than a KiB.
        Opened::make(image, (1 << 30) + self.names * 1024, options)
    }

    /// What comes before that is not measured.
    ///
    /// # Errors
    /// The first call that failed.
    pub(super) fn prepare(&self, volume: &Opened) -> Result<()> {
        let (fs, who) = (volume.fs(), Caller::root());
        match self.phase {
            Phase::Create => Ok(fs.mkdir_at(&who, &fs.root(), DIR, 0o755).map(drop)?),
            Phase::LookUp => self.look_up(volume, (1, FIRST_LOOKUPS)).map(drop),
            Phase::ListWhole => {
                fs.stat_at(&who, &fs.root(), &path(0), true)
                    .context("stat")?;
                let listed = list(fs, &mut |_| Ok(()))?;
                ensure!(listed == self.names, "{listed} names of {}", self.names);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Does it.
    ///
    /// # Errors
    /// The first call that failed; a signal to end.
    pub(super) fn run(&self, volume: &Opened) -> Result<Met> {
        let before = volume.reads();
        let met = match self.phase {
            Phase::Create => self.create(volume.fs()),
            Phase::LookUp => self.look_up(volume, (2, self.lookups)),
            Phase::List | Phase::ListWhole => {
                let items = list(volume.fs(), &mut |_| Ok(()))?;
                Ok(Met {
                    items,
                    ..Met::default()
                })
            }
            Phase::LoadWhole => self.load(volume.fs()),
            Phase::Empty => empty(volume.fs()),
        }?;
        let expected = match self.phase {
            Phase::LookUp => self.lookups,
            _ => self.names,
        };
        ensure!(met.items == expected, "{} names of {expected}", met.items);
        let reads = volume.reads().since(before);
        Ok(Met {
            reads: reads.requests,
            waits: reads.waits,
            ..met
        })
    }

    fn create(&self, fs: &FileSystem) -> Result<Met> {
        let (who, root) = (Caller::root(), fs.root());
        let flags = OpenFlags::CREATE | OpenFlags::EXCLUSIVE | OpenFlags::WRITE_ONLY;
        let mut met = Met::default();
        for part in 0..PARTS {
            let numbers = self.names * part / PARTS..self.names * (part + 1) / PARTS;
            let (count, begun) = (numbers.end - numbers.start, Instant::now());
            for number in numbers {
                fs.open_at(&who, &root, &path(number), flags, 0o644)
                    .context("create")?;
                ensure!(!sys::end_asked(), "interrupted");
            }
            met.part_rates
                .push(count as f64 / begun.elapsed().as_secs_f64());
            met.items += count;
        }
        Ok(met)
    }

    /// So many lookups of names that are drawn from a seed.
    fn look_up(&self, volume: &Opened, (seed, count): (u64, u64)) -> Result<Met> {
        let (fs, who, root) = (volume.fs(), Caller::root(), volume.fs().root());
        let mut chance = Chance::seeded(seed);
        let (mut items, mut reads_max, mut reads_over) = (0, 0, 0);
        for _ in 0..count {
            let path = path(chance.below(self.names));
            let before = volume.reads();
            fs.stat_at(&who, &root, &path, true).context("stat")?;
            let reads = volume.reads().since(before).requests;
            reads_max = reads_max.max(reads);
            reads_over += u64::from(reads > goals::LOOKUP_READS);
            items += 1;
            ensure!(!sys::end_asked(), "interrupted");
        }
        Ok(Met {
            items,
            reads_max: Some(reads_max),
            reads_over: Some(reads_over),
            ..Met::default()
        })
    }

    /// One lookup brings all names into memory.
    fn load(&self, fs: &FileSystem) -> Result<Met> {
        let (who, root) = (Caller::root(), fs.root());
        fs.stat_at(&who, &root, &path(0), true).context("stat")?;
        let there = fs.stats().names;
        ensure!(there >= self.names, "only {there} names are in memory");
        Ok(Met {
            items: self.names,
            ..Met::default()
        })
    }
}

/// Lists the directory; `each` gets every name but `.` and `..`. How many there were.
fn list(fs: &FileSystem, each: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<u64> {
    let (who, root) = (Caller::root(), fs.root());
    let dir = fs.open_at(&who, &root, DIR, OpenFlags::DIRECTORY, 0)?;
    let (mut listed, mut after) = (0, 0);
    loop {
        // As many at a time as a call of a program gets.
        let mut run: Vec<Vec<u8>> = Vec::with_capacity(RUN);
        let before = after;
        fs.read_dir(&dir, before, &mut |entry| {
            if run.len() == RUN {
                return false;
            }
            after = entry.cookie;
            if entry.name != b"." && entry.name != b".." {
                run.push(entry.name.to_vec());
            }
            true
        })?;
        if after == before {
            return Ok(listed);
        }
        run.iter().try_for_each(|name| each(name))?;
        listed += run.len() as u64;
        if sys::end_asked() {
            bail!("interrupted");
        }
    }
}

/// Removes all names as they are listed, and then the directory.
fn empty(fs: &FileSystem) -> Result<Met> {
    let (who, root) = (Caller::root(), fs.root());
    let items = list(fs, &mut |name| {
        let path = [DIR, b"/", name].concat();
        fs.unlink_at(&who, &root, &path).context("unlink")
    })?;
    match fs.rmdir_at(&who, &root, DIR) {
        Ok(()) => Ok(Met {
            items,
            ..Met::default()
        }),
        Err(Errno::ENOTEMPTY) => bail!("names are left that were not listed"),
        Err(error) => Err(error).context("rmdir"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_phase_meets_all_names_and_the_last_leaves_none() {
        let folder = tempfile::tempdir().expect("temporary directory");
        let image = folder.path().join("image");
        for phase in PHASES {
            let job = Job {
                phase,
                names: 6000,
                lookups: 200,
            };
            let volume = job.open(&image).expect("opened");
            job.prepare(&volume).expect("ready");
            let met = job.run(&volume).expect("done");
            assert_eq!(met.reads_max.is_some(), phase == Phase::LookUp);
            assert_eq!(
                met.part_rates.len(),
                if phase == Phase::Create { 10 } else { 0 }
            );
            if phase == Phase::ListWhole {
                assert_eq!(met.reads, 0, "it is in memory");
            }
            if matches!(phase, Phase::List | Phase::LoadWhole) {
                assert!(met.reads > 0, "{phase}: nothing is in memory");
            }
            volume.close().expect("closed");
        }
        let volume = Opened::open(&image, Options::default()).expect("opened");
        let fs = volume.fs();
        let gone = fs.stat_at(&Caller::root(), &fs.root(), DIR, true);
        assert_eq!(gone.map(drop), Err(Errno::ENOENT));
        volume.close().expect("closed");
    }
}
