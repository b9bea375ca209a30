//! Listing a directory by getdents64(2).
//!
//! Runs of names are read in sequence, so a listing stays open until its end or until too many
//! others are open. A closed one is read again from the start, skipping the names before. The
//! cookie of a name is its position in the listing.

use holdfast_core::store::NameRun;
use holdfast_core::types::{FileType, Ino, Result};
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use crate::dirents::{BUFFER, one_buffer};
use crate::host::Host;
use crate::pool::Pool;

/// Most open listings.
const OPEN: usize = 32;
/// Names of a listing with a number that is compared with that of the file.
const SAMPLE: usize = 2;
/// Cookies of names begin here: those below are for `.` and `..`.
pub(crate) const FIRST_COOKIE: u64 = 3;

/// A listed name, its number on the host, and its type if known.
pub(crate) type Raw = (Box<[u8]>, u64, Option<FileType>);

/// Removes the type of each listed name with a number known
/// [elsewhere](crate::places::Places::is_elsewhere), so that the name is looked up.
pub(crate) fn check_numbers(host: &Host, dir: Ino, names: &mut [Raw]) {
    for (name, number, kind) in names {
        *kind = kind.filter(|kind| {
            let ino = host.listed(*number);
            !host.places.is_elsewhere(ino, dir, name, Some(*kind))
        });
    }
}

/// Are the numbers of a listing those of the files? Compares a sample.
///
/// # Errors
/// Those of statx(2).
pub(crate) fn is_true(host: &Host, dir: BorrowedFd<'_>, names: &[Raw]) -> Result<bool> {
    let sample = names.iter().take(SAMPLE);
    let true_numbers = sample.map(|(name, number, _)| {
        let found = host.find(dir, name)?;
        Ok(found.is_none_or(|found| found.ino == host.listed(*number)))
    });
    let true_numbers = true_numbers.collect::<Result<Vec<bool>>>()?;
    Ok(true_numbers.into_iter().all(|is_true| is_true))
}

/// A listing under way.
struct Open {
    dir: Ino,
    descriptor: Arc<OwnedFd>,
    /// Names that were read from the host, and not returned yet.
    ready: VecDeque<(Box<[u8]>, Ino, FileType)>,
    /// Are the numbers of the listing those of the files? `None`: not known yet.
    trusted: Option<bool>,
    /// The next cookie.
    next: u64,
    /// Were all names read?
    done: bool,
}

/// All listings under way, the latest last.
#[derive(Default)]
pub(crate) struct Listings(Mutex<Vec<Open>>);

impl Listings {
    /// A run of at most `max` names of a directory with cookies greater than `after`.
    ///
    /// # Errors
    /// Those of opening and reading it.
    pub(crate) fn read(
        &self,
        (host, pool): (&Arc<Host>, &Pool),
        dir: Ino,
        after: u64,
        max: usize,
        run: &mut NameRun,
    ) -> Result<()> {
        let next = after.max(FIRST_COOKIE - 1) + 1;
        let mut open = match self.take(dir, next) {
            Some(open) => open,
            None => Open::new(host, dir)?,
        };
        let mut left = max;
        while left > 0 && open.more(host, pool)? {
            while left > 0
                && let Some((name, ino, kind)) = open.ready.pop_front()
            {
                if open.next >= next {
                    run.push(&name, open.next, ino, kind);
                    left -= 1;
                }
                open.next += 1;
            }
        }
        if left == 0 {
            self.put(open);
        }
        Ok(())
    }

    /// The listing that continues there. A new one closes abandoned ones of the directory.
    fn take(&self, dir: Ino, next: u64) -> Option<Open> {
        let mut left: Vec<Open> = Vec::new();
        let taken = {
            let mut all = self.0.lock();
            match next {
                FIRST_COOKIE => {
                    left.extend(all.extract_if(.., |open| open.dir == dir));
                    None
                }
                _ => {
                    let goes_on = |open: &Open| open.dir == dir && open.next == next;
                    let at = all.iter().position(goes_on);
                    at.map(|at| all.remove(at))
                }
            }
        };
        // Without the lock: close(2) may wait for the host.
        drop(left);
        taken
    }

    fn put(&self, open: Open) {
        let closed = {
            let mut all = self.0.lock();
            let oldest = (all.len() >= OPEN).then(|| all.remove(0));
            all.push(open);
            oldest
        };
        drop(closed);
    }
}

impl Open {
    fn new(host: &Host, dir: Ino) -> Result<Self> {
        Ok(Self {
            dir,
            descriptor: Arc::new(host.open_listing(dir)?),
            ready: VecDeque::new(),
            trusted: host.of.trusts_listings(),
            next: FIRST_COOKIE,
            done: false,
        })
    }

    /// Is there another name? Reads more if needed.
    fn more(&mut self, host: &Arc<Host>, pool: &Pool) -> Result<bool> {
        let mut buffer = Vec::new();
        while self.ready.is_empty() && !self.done {
            buffer.resize(BUFFER, MaybeUninit::uninit());
            let mut raw = Vec::new();
            let more = one_buffer(self.descriptor.as_fd(), &mut buffer, &mut |listed| {
                raw.push((listed.name.into(), listed.number, listed.kind));
                true
            })?;
            self.done = !more;
            self.number(raw, host, pool)?;
        }
        Ok(!self.ready.is_empty())
    }

    /// Numbers and types of names: from the listing where it is reliable, else looked up.
    fn number(&mut self, mut raw: Vec<Raw>, host: &Arc<Host>, pool: &Pool) -> Result<()> {
        check_numbers(host, self.dir, &mut raw);
        let trusted = match self.trusted {
            Some(trusted) => trusted,
            None => {
                let trusted = is_true(host, self.descriptor.as_fd(), &raw)?;
                self.trusted = Some(trusted);
                trusted
            }
        };
        let asked: Vec<Box<[u8]>> = raw
            .iter()
            .filter(|(_, _, kind)| !trusted || kind.is_none())
            .map(|(name, _, _)| name.clone())
            .collect();
        let (at, all) = (Arc::clone(&self.descriptor), Arc::clone(host));
        let found = pool.map(asked, move |name| all.find(at.as_fd(), name));
        let mut found = found.into_iter();
        for (name, number, kind) in raw {
            match kind.filter(|_| trusted) {
                Some(kind) => self.ready.push_back((name, host.listed(number), kind)),
                None => {
                    // Otherwise it was removed already.
                    if let Some(found) = found.next().transpose()?.flatten() {
                        self.ready.push_back((name, found.ino, found.is.kind));
                    }
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::fs::File;
    use std::os::unix::fs::MetadataExt;

    #[test]
    fn a_directory_comes_in_runs_each_name_once_also_when_its_listing_was_closed() {
        let dir = tempfile::tempdir().unwrap();
        let mut expected = BTreeSet::new();
        for number in 0..1000 {
            let path = dir
                .path()
                .join(format!("a name that is not short {number}"));
            let ino = File::create(&path).unwrap().metadata().unwrap().ino();
            expected.insert((path.file_name().unwrap().as_encoded_bytes().to_vec(), ino));
        }
        let host = Arc::new(Host::open(dir.path(), 16, false).unwrap());
        let (listings, pool) = (Listings::default(), Pool::default());
        for closes in [false, true] {
            let (mut listed, mut after) = (BTreeSet::new(), 0);
            loop {
                let mut run = NameRun::default();
                let read = listings.read((&host, &pool), Ino::ROOT, after, 70, &mut run);
                read.unwrap();
                let Some(last) = run.last_cookie() else { break };
                assert!(last > after && run.len() <= 70);
                after = last;
                for entry in run.iter() {
                    assert_eq!(entry.kind, FileType::Regular);
                    assert!(listed.insert((entry.name.to_vec(), entry.ino.0)));
                }
                if closes {
                    listings.0.lock().clear();
                }
            }
            let names = |all: &BTreeSet<(Vec<u8>, u64)>| -> Vec<Vec<u8>> {
                all.iter().map(|(name, _)| name.clone()).collect()
            };
            assert_eq!(names(&listed), names(&expected));
            // Of a file system of several devices numbers are not the host's alone.
            if host.of.trusts_listings() == Some(true) {
                assert_eq!(listed, expected);
            }
        }
    }
}
