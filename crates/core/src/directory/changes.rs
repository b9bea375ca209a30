//! Changes of the known names, as the catalog makes them where all names are in memory.
//!
//! The caller holds the lock of the names, and has [pinned](KnownNames::hold) the entry of each
//! name of the change.

use super::partial::KnownNames;
use super::{COOKIE_END, Entry};
use crate::types::{Errno, FileType, Ino, Result};

impl KnownNames {
    /// Adds a name that is not there.
    ///
    /// # Errors
    /// `ENOSPC` when the directory cannot number more names.
    pub(super) fn enter(&mut self, name: &[u8], entry: Entry) -> Result<()> {
        let names = self.names.checked_add(1).ok_or(Errno::ENOSPC)?;
        if entry.cookie >= COOKIE_END {
            return Err(Errno::ENOSPC);
        }
        self.names = names;
        self.next_cookie = self.next_cookie.max(entry.cookie + 1);
        self.appears(name);
        self.put(name, Some(entry));
        Ok(())
    }

    /// Removes a name; returns what it led to.
    pub(super) fn leave(&mut self, name: &[u8]) -> Option<Entry> {
        let gone = self.entry(name)?;
        self.put(name, None);
        self.names = self.names.saturating_sub(1);
        self.disappears();
        Some(gone)
    }

    /// Sets the target of a name.
    pub(super) fn replace(&mut self, name: &[u8], ino: Ino, kind: FileType) {
        if let Some(Entry { cookie, .. }) = self.entry(name) {
            self.put(name, Some(Entry { cookie, ino, kind }));
        }
    }

    /// Renames an entry; returns its cookie.
    pub(super) fn rename(&mut self, from: &[u8], to: &[u8]) -> Option<u64> {
        let entry = self.entry(from)?;
        if from == to || self.entry(to).is_some() {
            return None;
        }
        self.appears(to);
        self.put(to, Some(entry));
        self.put(from, None);
        self.disappears();
        Some(entry.cookie)
    }

    /// Removes `from` and gives its target to `to`; returns the cookies of both.
    pub(super) fn rename_over(&mut self, from: &[u8], to: &[u8]) -> Option<(u64, u64)> {
        let (source, target) = (self.entry(from)?, self.entry(to)?);
        if from == to {
            return None;
        }
        let cookie = target.cookie;
        self.put(to, Some(Entry { cookie, ..source }));
        self.put(from, None);
        self.names = self.names.saturating_sub(1);
        self.disappears();
        Some((source.cookie, target.cookie))
    }

    /// Exchanges the targets of two names.
    pub(super) fn exchange(&mut self, one: &[u8], other: &[u8]) {
        if let (Some(first), Some(second)) = (self.entry(one), self.entry(other)) {
            self.replace(one, second.ino, second.kind);
            self.replace(other, first.ino, first.kind);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::directory::Known;

    fn entry(number: u64) -> Entry {
        Entry {
            cookie: number,
            ino: Ino(number + 100),
            kind: FileType::Regular,
        }
    }

    fn known(numbers: &[(&[u8], u64)]) -> KnownNames {
        let mut known = KnownNames::default();
        known.begin(10, 3, None);
        for (name, number) in numbers {
            known.enter(name, entry(*number)).unwrap();
        }
        known
    }

    #[test]
    fn names_are_counted_and_cookies_grow() {
        let mut known = known(&[(b"a", 7), (b"b", 5)]);
        assert_eq!((known.names, known.next_cookie), (12, 8));
        assert_eq!(known.leave(b"a"), Some(entry(7)));
        assert_eq!(known.leave(b"a"), None);
        assert_eq!((known.names, known.next_cookie), (11, 8));
        assert_eq!(known.look(b"a"), Known::Negative);
        assert_eq!(known.enter(b"c", entry(COOKIE_END)), Err(Errno::ENOSPC));
        known.names = u32::MAX;
        assert_eq!(known.enter(b"c", entry(9)), Err(Errno::ENOSPC));
    }

    #[test]
    fn a_renamed_entry_keeps_its_cookie_and_one_that_is_replaced_its_own() {
        let mut known = known(&[(b"a", 7), (b"b", 8)]);
        assert_eq!(known.rename(b"a", b"b"), None);
        assert_eq!(known.rename(b"a", b"c"), Some(7));
        assert_eq!(known.look(b"a"), Known::Negative);
        assert_eq!(known.look(b"c"), Known::Found(entry(7)));
        assert_eq!(known.rename_over(b"c", b"b"), Some((7, 8)));
        assert_eq!(known.look(b"c"), Known::Negative);
        let (ino, kind) = (entry(7).ino, FileType::Regular);
        let moved = Entry {
            cookie: 8,
            ino,
            kind,
        };
        assert_eq!(known.look(b"b"), Known::Found(moved));
        assert_eq!(known.names, 11);
    }

    #[test]
    fn exchanged_names_keep_their_cookies() {
        let mut known = known(&[(b"a", 7), (b"b", 8)]);
        known.exchange(b"a", b"b");
        let leads = |name: &[u8]| known.entry(name).map(|entry| (entry.cookie, entry.ino.0));
        assert_eq!([leads(b"a"), leads(b"b")], [Some((7, 108)), Some((8, 107))]);
        assert_eq!(known.names, 12);
    }
}
