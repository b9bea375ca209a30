//! Runs of names, many in one buffer.

use crate::types::{FileType, Ino};

/// One name of a listing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DirEntry<'a> {
    /// The name's bytes.
    pub name: &'a [u8],
    /// Its inode.
    pub ino: Ino,
    /// That inode's type.
    pub kind: FileType,
    /// Pass this to continue behind this entry.
    pub cookie: u64,
}

/// Some names of a directory, in cookie order.
///
/// The bytes of all names lie in one buffer: no name has an allocation of its own.
#[derive(Clone, Debug, Default)]
pub struct NameRun {
    bytes: Vec<u8>,
    entries: Vec<Place>,
}

/// A name: `end` is the end of its bytes, which begin at the `end` of the name before it.
#[derive(Clone, Copy, Debug)]
struct Place {
    end: usize,
    ino: Ino,
    kind: FileType,
    cookie: u64,
}

impl NameRun {
    /// Adds a name at the end.
    #[inline]
    pub fn push(&mut self, name: &[u8], cookie: u64, ino: Ino, kind: FileType) {
        self.bytes.extend_from_slice(name);
        self.entries.push(Place {
            end: self.bytes.len(),
            ino,
            kind,
            cookie,
        });
    }

    /// Removes all names, but keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.entries.clear();
    }

    /// Removes all names but the first `len`.
    pub fn truncate(&mut self, len: usize) {
        self.entries.truncate(len);
        self.bytes
            .truncate(self.entries.last().map_or(0, |place| place.end));
    }

    /// Number of names.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Bytes of all names.
    #[must_use]
    pub fn name_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Are there none?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The cookie of the last name.
    #[must_use]
    pub fn last_cookie(&self) -> Option<u64> {
        self.entries.last().map(|place| place.cookie)
    }

    /// The inode numbers of the names.
    pub fn inos(&self) -> impl Iterator<Item = Ino> {
        self.entries.iter().map(|place| place.ino)
    }

    /// The names in order.
    pub fn iter(&self) -> impl Iterator<Item = DirEntry<'_>> {
        let mut start = 0;
        self.entries.iter().map(move |place| {
            let name = &self.bytes[start..place.end];
            start = place.end;
            DirEntry {
                name,
                ino: place.ino,
                kind: place.kind,
                cookie: place.cookie,
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_cut_off_leaves_the_names_before_it() {
        let mut run = NameRun::default();
        for name in [&b"one"[..], b"", b"three"] {
            run.push(name, 7, Ino(1), FileType::Regular);
        }
        run.truncate(9);
        assert_eq!(run.len(), 3);
        run.truncate(1);
        run.push(b"two", 8, Ino(2), FileType::Regular);
        let names: Vec<&[u8]> = run.iter().map(|entry| entry.name).collect();
        assert_eq!(names, [&b"one"[..], b"two"]);
        run.truncate(0);
        assert!(run.is_empty());
        run.push(b"x", 9, Ino(3), FileType::Regular);
        assert_eq!(run.iter().next().map(|entry| entry.name.len()), Some(1));
    }
}
