//! Reading several directories at once, with their inodes.
//!
//! First each is opened and listed, then all their names are looked up: two batches for the
//! [pool](crate::pool), regardless of the number of directories.

use holdfast_core::store::{InodeRecord, NameRun, WholeDirectory};
use holdfast_core::types::{Ino, Result};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Instant;

use crate::attributes::File;
use crate::dirents;
use crate::host::Host;
use crate::host::lookup::Found;
use crate::identity::{Identity, is_settled_since, time};
use crate::listing::{self, FIRST_COOKIE, Raw};
use crate::pool::Pool;

/// Most names of a single directory that is read with its inodes. Those of a larger one are looked
/// up while it is listed: on a slow host the first would expire before the last is there.
pub(crate) const INODES: usize = 1024;

/// A directory that was opened and listed.
struct Opened {
    dir: Ino,
    descriptor: Arc<OwnedFd>,
    record: InodeRecord,
    names: Vec<Raw>,
    /// Are the numbers of its listing those of the files?
    trusted: bool,
}

/// The inode of a name. Its place is not stored before the directory is returned: the core would
/// not drop an inode that it never had.
struct Inode {
    is: Identity,
    record: InodeRecord,
    /// Would a later change of its extended attributes show in its record?
    is_settled: bool,
}

/// As [`Shared::read_directories`](holdfast_core::store::Shared::read_directories) says.
pub(crate) fn read(
    (host, pool): (&Arc<Host>, &Pool),
    dirs: &[Ino],
    most: usize,
    (inodes, xattrs): (bool, bool),
) -> Vec<Option<WholeDirectory>> {
    let own = Arc::clone(host);
    let opened = pool.map(dirs.to_vec(), move |dir| {
        // A request for it alone reports the error.
        open(&own, *dir, most, (inodes, xattrs)).ok().flatten()
    });
    let mut asked = Vec::new();
    for opened in opened.iter().flatten() {
        let names = opened.names.iter().filter(|raw| opened.asks(raw, inodes));
        asked.extend(
            names.map(|(name, _, _)| (opened.dir, Arc::clone(&opened.descriptor), name.clone())),
        );
    }
    let own = Arc::clone(host);
    // Without `inodes` only its number and type are needed, and the core does not get it.
    let xattrs = xattrs && inodes;
    let inodes_found = pool.map(asked, move |(dir, at, name)| {
        ask(&own, (at.as_fd(), *dir), name, xattrs)
    });
    let mut inodes_found = inodes_found.into_iter();
    let whole = opened.into_iter().map(|opened| {
        let opened = opened?;
        // This also consumes the answers of a directory that is left out.
        let of_each = opened
            .names
            .iter()
            .map(|raw| {
                opened
                    .asks(raw, inodes)
                    .then(|| inodes_found.next())
                    .flatten()
            })
            .collect();
        opened.whole(host, of_each, inodes)
    });
    whole.collect()
}

/// `None`: there is no such name any more.
fn ask(
    host: &Host,
    (at, dir): (BorrowedFd<'_>, Ino),
    name: &[u8],
    xattrs: bool,
) -> Result<Option<Inode>> {
    let Some(Found { stat, is, ino }) = host.find(at, name)? else {
        return Ok(None);
    };
    // Computed before the call.
    let (mtime, ctime) = (time(stat.stx_mtime), time(stat.stx_ctime));
    let is_settled = is_settled_since(mtime, ctime, Instant::now());
    let record = host.record(ino, dir, &stat, xattrs, || File::named(at, name))?;
    Ok(Some(Inode {
        is,
        record,
        is_settled,
    }))
}

/// `None`: it has more than `most` names.
fn open(
    host: &Host,
    dir: Ino,
    most: usize,
    (inodes, xattrs): (bool, bool),
) -> Result<Option<Opened>> {
    let descriptor = host.open_listing(dir)?;
    let stat = host.stat(descriptor.as_fd())?;
    let named = || File::named(descriptor.as_fd(), b".");
    let place = host.places.get(dir);
    // Opening it checked its place, except that of the root.
    let parent = place.as_ref().map_or(dir, |place| place.parent);
    if place.is_some_and(|place| place.is != Identity::of(&stat)) {
        return Ok(None);
    }
    let record = host.record(dir, parent, &stat, xattrs, named)?;
    let mut names: Vec<Raw> = Vec::new();
    dirents::each(descriptor.as_fd(), &mut |listed| {
        names.push((listed.name.into(), listed.number, listed.kind));
        names.len() <= most
    })?;
    if names.len() > most {
        return Ok(None);
    }
    listing::check_numbers(host, dir, &mut names);
    let trusted = match inodes {
        // All are looked up.
        true => false,
        false => match host.of.trusts_listings() {
            Some(trusted) => trusted,
            None => listing::is_true(host, descriptor.as_fd(), &names)?,
        },
    };
    Ok(Some(Opened {
        dir,
        record,
        descriptor: Arc::new(descriptor),
        names,
        trusted,
    }))
}

impl Opened {
    /// Is a name looked up?
    fn asks(&self, (_, _, kind): &Raw, inodes: bool) -> bool {
        inodes || !self.trusted || kind.is_none()
    }

    /// `None`: a lookup failed, and the listing does not have the type.
    fn whole(
        self,
        host: &Host,
        inodes_found: Vec<Option<Result<Option<Inode>>>>,
        inodes: bool,
    ) -> Option<WholeDirectory> {
        let mut names = NameRun::default();
        let mut found = Vec::new();
        for ((cookie, (name, number, kind)), inodes_found) in
            (FIRST_COOKIE..).zip(self.names).zip(inodes_found)
        {
            match (inodes_found, kind) {
                (None, Some(kind)) => names.push(&name, cookie, host.listed(number), kind),
                (Some(Ok(Some(inodes_found))), _) => {
                    names.push(
                        &name,
                        cookie,
                        inodes_found.record.ino,
                        inodes_found.record.kind,
                    );
                    found.push((name, inodes_found));
                }
                // It was removed already.
                (Some(Ok(None)), _) => {}
                (Some(Err(_)) | None, _) => return None,
            }
        }
        let known = found.into_iter().filter(|_| inodes);
        let inodes = known.map(|(name, inodes_found)| {
            let record = inodes_found.record;
            host.places
                .note(record.ino, self.dir, &name, inodes_found.is);
            if inodes_found.is_settled {
                host.places
                    .note_xattrs(record.ino, record.ctime, record.xattrs);
            }
            record
        });
        Some(WholeDirectory {
            inodes: inodes.collect(),
            record: self.record,
            names,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::fs;
    use std::path::Path;

    /// Notes the place of a name of the root, as a lookup does.
    fn known(host: &Host, name: &str) -> Ino {
        let inodes_found = host.tell(host.root(), Ino::ROOT, name.as_bytes(), true);
        inodes_found.unwrap().expect("it is there").ino
    }

    fn fill(dir: &Path, files: usize) {
        fs::create_dir(dir).unwrap();
        for file in 0..files {
            fs::write(dir.join(format!("{file}")), vec![1; file]).unwrap();
        }
    }

    #[test]
    fn what_is_not_told_is_not_known() {
        let root = tempfile::tempdir().unwrap();
        fill(&root.path().join("dir"), 3);
        let host = Arc::new(Host::open(root.path(), 16, false).unwrap());
        let dir = known(&host, "dir");
        let before = host.places.bytes();
        let opened = open(&host, dir, 20, (true, true)).unwrap().unwrap();
        let fails = opened.names.iter().enumerate().map(|(at, (name, _, _))| {
            let descriptor = opened.descriptor.as_fd();
            Some(match at {
                2 => Err(holdfast_core::types::Errno::EIO),
                _ => ask(&host, (descriptor, dir), name, true),
            })
        });
        let fails = fails.collect();
        assert!(opened.whole(&host, fails, true).is_none());
        assert_eq!(host.places.bytes(), before);
    }

    #[test]
    fn each_is_told_as_if_it_had_been_asked_for_alone() {
        let root = tempfile::tempdir().unwrap();
        for files in [0, 3, 20, 21] {
            fill(&root.path().join(format!("{files}")), files);
        }
        fill(&root.path().join("gone"), 1);
        let host = Arc::new(Host::open(root.path(), 16, false).unwrap());
        let names = ["0", "gone", "21", "3", "20"];
        let dirs = names.map(|name| known(&host, name));
        fs::remove_dir_all(root.path().join("gone")).unwrap();
        let pool = Pool::default();
        for inodes in [false, true] {
            let whole = read((&host, &pool), &dirs, 20, (inodes, true));
            let counts: Vec<_> = whole
                .iter()
                .map(|it| it.as_ref().map(|it| it.names.len()))
                .collect();
            assert_eq!(counts, [Some(0), None, None, Some(3), Some(20)]);
            for (dir, whole) in dirs.iter().zip(&whole) {
                let Some(whole) = whole else { continue };
                assert_eq!((whole.record.ino, whole.record.parent), (*dir, Ino::ROOT));
                let inodes_found: BTreeSet<_> = whole
                    .names
                    .iter()
                    .map(|entry| (entry.name.to_vec(), entry.ino))
                    .collect();
                let opened = host.opened(*dir).unwrap();
                let expected: BTreeSet<_> = (0..inodes_found.len())
                    .map(|file| {
                        let name = format!("{file}").into_bytes();
                        let found = host.find(opened.get(&host), &name).unwrap();
                        (name, found.expect("it is there").ino)
                    })
                    .collect();
                assert_eq!(inodes_found, expected);
                let inos: BTreeSet<Ino> = whole.inodes.iter().map(|it| it.ino).collect();
                assert_eq!(inos.len(), if inodes { inodes_found.len() } else { 0 });
                for record in &whole.inodes {
                    assert_eq!(record.parent, *dir);
                    assert!(host.places.get(record.ino).is_some(), "it can be reached");
                }
            }
        }
    }
}
