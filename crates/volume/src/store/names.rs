//! What changed of one directory's names since the last checkpoint.
//!
//! *Invariants.* A place (cookie) has an entry here if the name that it had below changed or if it is
//! new. Every name that is here or went has its place in `by_name`.

use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;
use std::sync::Arc;

use foldhash::fast::RandomState;
use holdfast_core::store::EntryRecord;
use holdfast_types::{FileType, Ino};

/// What a place of a directory holds now, and held below.
#[derive(Clone, Debug)]
pub(super) struct Place {
    /// The name that the layers below have here, which went.
    pub(super) before: Option<Arc<[u8]>>,
    /// The name that is here now.
    pub(super) now: Option<Name>,
}

impl Place {
    /// What is here now, as the core knows it.
    pub(super) fn entry(&self, cookie: u64) -> Option<EntryRecord> {
        let name = self.now.as_ref()?;
        Some(EntryRecord {
            name: (&*name.bytes).into(),
            cookie,
            ino: name.ino,
            kind: name.kind,
        })
    }
}

/// A name and what it leads to.
#[derive(Clone, Debug)]
pub(super) struct Name {
    pub(super) bytes: Arc<[u8]>,
    pub(super) ino: Ino,
    pub(super) kind: FileType,
}

/// The changes.
#[derive(Clone, Debug, Default)]
pub(super) struct Names {
    by_cookie: BTreeMap<u64, Place>,
    by_name: HashMap<Arc<[u8]>, Option<u64>, RandomState>,
}

impl Names {
    /// A name appears.
    pub(super) fn enter(&mut self, bytes: &[u8], cookie: u64, ino: Ino, kind: FileType) {
        let bytes: Arc<[u8]> = bytes.into();
        let name = Name {
            bytes: Arc::clone(&bytes),
            ino,
            kind,
        };
        self.by_cookie
            .entry(cookie)
            .or_insert(Place {
                before: None,
                now: None,
            })
            .now = Some(name);
        self.by_name.insert(bytes, Some(cookie));
    }

    /// A name disappears.
    pub(super) fn leave(&mut self, bytes: &[u8], cookie: u64) {
        match self.by_cookie.get_mut(&cookie) {
            None => {
                let bytes: Arc<[u8]> = bytes.into();
                let place = Place {
                    before: Some(Arc::clone(&bytes)),
                    now: None,
                };
                self.by_cookie.insert(cookie, place);
                self.by_name.insert(bytes, None);
            }
            Some(place) => {
                place.now = None;
                if place.before.is_none() {
                    self.by_cookie.remove(&cookie);
                }
                // It may be below at another place, which went, too: the lookup must not get there.
                self.by_name.insert(bytes.into(), None);
            }
        }
    }

    /// Where a name is: `None`, nothing is known of it here; `Some(None)`, it went.
    pub(super) fn find(&self, bytes: &[u8]) -> Option<Option<(u64, &Name)>> {
        let cookie = *self.by_name.get(bytes)?;
        Some(cookie.and_then(|cookie| {
            let name = self.by_cookie.get(&cookie)?.now.as_ref()?;
            Some((cookie, name))
        }))
    }

    /// The places behind a cookie, in order.
    pub(super) fn after(&self, cookie: u64) -> impl Iterator<Item = (u64, &Place)> {
        self.by_cookie
            .range((Bound::Excluded(cookie), Bound::Unbounded))
            .map(|(cookie, place)| (*cookie, place))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIND: FileType = FileType::Regular;

    fn at(names: &Names, bytes: &[u8]) -> Option<Option<u64>> {
        names
            .find(bytes)
            .map(|found| found.map(|(cookie, _)| cookie))
    }

    #[test]
    fn what_came_and_went_leaves_nothing_to_fold() {
        let mut names = Names::default();
        names.enter(b"a", 5, Ino(9), KIND);
        assert_eq!(at(&names, b"a"), Some(Some(5)));
        names.leave(b"a", 5);
        assert_eq!(at(&names, b"a"), Some(None));
        assert_eq!(names.after(0).count(), 0);
    }

    #[test]
    fn a_name_from_below_that_went_is_remembered_through_a_rename() {
        let mut names = Names::default();
        names.leave(b"old", 5);
        names.enter(b"new", 5, Ino(9), KIND);
        names.leave(b"new", 5);
        names.enter(b"newer", 5, Ino(9), KIND);
        let (cookie, place) = names.after(0).next().unwrap();
        assert_eq!(cookie, 5);
        assert_eq!(place.before.as_deref(), Some(&b"old"[..]));
        assert_eq!(place.now.as_ref().unwrap().bytes[..], b"newer"[..]);
        assert_eq!(at(&names, b"old"), Some(None));
        assert_eq!(at(&names, b"new"), Some(None));
        assert_eq!(at(&names, b"other"), None);
    }

    #[test]
    fn replacing_a_name_below_by_one_at_a_new_place_keeps_both_places() {
        let mut names = Names::default();
        names.leave(b"a", 5);
        names.enter(b"a", 9, Ino(9), KIND);
        assert_eq!(at(&names, b"a"), Some(Some(9)));
        assert_eq!(names.after(0).count(), 2);
        names.leave(b"a", 9);
        assert_eq!(at(&names, b"a"), Some(None));
        assert_eq!(names.after(5).count(), 0);
    }
}
