//! Reading trees into memory ahead of their use.

use std::path::{Path, PathBuf};

use holdfast::types::FileType;
use holdfast::{Dir, DirEntry, ReadDir};

use crate::failure::{About as _, Failure, Result};
use crate::objects::Place;
use crate::types::HF_WARM_CONTENT;

/// The inodes of so many names are loaded in one call.
const BATCH: u64 = 1 << 16;
/// Bytes of a file that are read in one call.
const CHUNK: usize = 1 << 20;

pub(crate) fn prefetch(place: &Place, path: &Path, cursor: &mut u64, names: u64) -> Result<usize> {
    let dir = place.dir.open_dir(path).about(&path.display())?;
    let names = if names == 0 { BATCH } else { names };
    let done = dir.prefetch(cursor, names).about(&path.display())?;
    Ok(done as usize)
}

/// Reads the attributes of all below a directory and, with `HF_WARM_CONTENT`, the content of files.
/// Returns the number of names. What cannot be read is skipped, and is an error at the end.
pub(crate) fn warm(place: &Place, path: &Path, flags: u32) -> Result<usize> {
    if flags & !HF_WARM_CONTENT != 0 {
        return Err(Failure::unknown_flags(flags, "0 or HF_WARM_CONTENT"));
    }
    let top = place.dir.open_dir(path).about(&path.display())?;
    // The directories from the first one down to the present one.
    let mut levels = vec![Level::enter(top, path.to_owned())?];
    let mut chunk = vec![0; if flags == 0 { 0 } else { CHUNK }];
    let (mut names, mut failed, mut first) = (0, 0, None);
    while let Some(level) = levels.last_mut() {
        let Some(entry) = level.entries.next() else {
            levels.pop();
            continue;
        };
        names += 1;
        let entry = entry.about(&level.path.display());
        match entry.and_then(|entry| level.visit(&entry, &mut chunk)) {
            Ok(below) => levels.extend(below),
            Err(failure) => {
                failed += 1;
                first.get_or_insert(failure);
            }
        }
    }
    match first {
        None => Ok(names),
        Some(Failure { errno, reason }) => {
            let reason = format!("{failed} names could not be read; the first: {reason}");
            Err(Failure::new(errno, reason))
        }
    }
}

/// A directory that is being read.
struct Level {
    dir: Dir,
    path: PathBuf,
    entries: ReadDir,
}

impl Level {
    fn enter(dir: Dir, path: PathBuf) -> Result<Self> {
        let entries = dir.read_dir(".").about(&path.display())?;
        Ok(Self { dir, path, entries })
    }

    /// Reads the content of a file into nothing; returns a directory, to be read next.
    fn visit(&self, entry: &DirEntry, chunk: &mut [u8]) -> Result<Option<Self>> {
        let name = entry.file_name_ref();
        let path = self.path.join(name);
        entry.metadata().about(&path.display())?;
        match entry.file_type().about(&path.display())?.into() {
            FileType::Directory => {
                let dir = self.dir.open_dir(name).about(&path.display())?;
                Self::enter(dir, path).map(Some)
            }
            FileType::Regular if !chunk.is_empty() => {
                let file = self.dir.open(name).about(&path.display())?;
                let mut offset = 0;
                loop {
                    match file.read_at(chunk, offset).about(&path.display())? {
                        0 => return Ok(None),
                        more => offset += more as u64,
                    }
                }
            }
            _ => Ok(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use holdfast::types::Errno;
    use holdfast::{Caller, Permissions};
    use zerocopy::FromZeros;

    use super::*;
    use crate::open::{close, create_volume, open_volume};
    use std::sync::Arc;

    #[test]
    fn a_warm_tree_is_in_memory() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("data.hf");
        let made = create_volume(&path, FromZeros::new_zeroed()).unwrap();
        made.dir.create_dir_all("/a/b").unwrap();
        for number in 0..300 {
            made.dir
                .write(format!("/a/b/{number}"), vec![7; 9000])
                .unwrap();
        }
        close(&Arc::new(made)).unwrap();

        let place = open_volume(&path, FromZeros::new_zeroed()).unwrap();
        let before = place.shared.fs.stats();
        assert!(before.inodes < 10, "{before:?}");
        assert_eq!(warm(&place, Path::new("/"), 0).unwrap(), 302);
        let inodes = place.shared.fs.stats();
        assert!(inodes.inodes >= 303, "{inodes:?}");
        assert!(inodes.pages < 300, "{inodes:?}");
        assert_eq!(warm(&place, Path::new("a"), HF_WARM_CONTENT).unwrap(), 301);
        let pages = place.shared.fs.stats().pages;
        assert!(pages >= 900, "{pages}");
        close(&Arc::new(place)).unwrap();
    }

    #[test]
    fn what_cannot_be_read_is_an_error_after_the_others_were_read() {
        let place = crate::open::memory(FromZeros::new_zeroed()).unwrap();
        place.dir.create_dir_all("/closed/below").unwrap();
        place.dir.create_dir_all("/open/below").unwrap();
        place
            .dir
            .set_permissions("/closed", Permissions::from_mode(0))
            .unwrap();
        let user = crate::open::as_caller(&place, Caller::user(1815, 1815));
        let failure = warm(&user, Path::new("/"), 0).unwrap_err();
        assert_eq!(failure.errno, Errno::EACCES);
        assert!(failure.reason.contains("1 names"), "{failure:?}");
        assert!(failure.reason.contains("/closed"), "{failure:?}");
    }
}
