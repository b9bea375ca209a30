//! The right to change the names of a directory, or some of them.

use holdfast_sync::catalog::{CatalogWriter, Claim, Removed};
use holdfast_sync::epoch;
use std::sync::OnceLock;

use super::partial::Partial;
use super::{Directory, Entry, FIRST_COOKIE, refused};
use crate::inode::{Object, directory_size};
use crate::numbers::Numbers;
use crate::trails;
use crate::types::{FileType, Ino, Result, Time};

/// A thread deals a cookie of each 32, at least one for each 67 ms.
const TICK_SHIFT: u32 = 26;
const STEP_SHIFT: u32 = 5;
/// After 26 days cookies only count. So they stay below 2^31 for 33 million names that one thread makes in a directory:
/// programs with offsets of 32 bits cannot list what has greater ones.
const CLOCK_END: u64 = 1 << 30;

/// Where the clock of cookies begins, in nanoseconds: when it is first asked.
static CLOCK_START: OnceLock<i64> = OnceLock::new();

/// The names of a directory, or some of them, locked for changes.
pub(crate) struct Names<'d> {
    pub(super) dir: &'d Directory,
    pub(super) right: Right<'d>,
}

/// What was locked.
pub(super) enum Right<'d> {
    Whole(CatalogWriter<'d>),
    /// All names, which are not in the catalog.
    Partial(CatalogWriter<'d>, &'d Partial),
    Claim(Claim<'d>),
}

/// Does the same by either right, or something else where the names are not in the catalog.
macro_rules! either {
    ($names:expr, $right:ident => $change:expr, $known:ident => $else:expr) => {
        match &mut $names.right {
            Right::Whole($right) => $change,
            Right::Claim($right) => $change,
            Right::Partial(_, partial) => {
                let mut $known = partial.lock();
                $else
            }
        }
    };
}

impl<'d> Names<'d> {
    /// Locks one or two names for changes, which stores do not hear of: nothing puts them in order.
    /// (In place: see [`Claim`].)
    #[inline]
    pub(crate) fn claim(&mut self, name: &'d [u8], other: Option<&'d [u8]>) {
        if let Right::Claim(claim) = &mut self.right {
            claim.take(&self.dir.catalog, name, other);
        }
    }

    /// Says that this name is [claimed](Self::claim) next, after something else.
    #[inline]
    pub(crate) fn announce(&mut self, name: &'d [u8]) {
        if let Right::Claim(claim) = &mut self.right {
            claim.announce(&self.dir.catalog, name);
        }
    }

    /// Number of names, `.` and `..` not counted. Exact if all are locked.
    pub(crate) fn len(&self) -> u32 {
        match &self.right {
            Right::Whole(writer) => writer.len(),
            Right::Partial(_, partial) => partial.lock().names,
            Right::Claim(_) => self.dir.catalog.len(&epoch::pin()),
        }
    }

    /// Are there none?
    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What the name leads to.
    pub(crate) fn get(&self, name: &[u8]) -> Option<Entry> {
        match &self.right {
            Right::Whole(writer) => writer.get(name),
            Right::Partial(_, partial) => return partial.lock().entry(name),
            Right::Claim(claim) => claim.get(name),
        }
        .map(Entry::of)
    }

    /// As [`get`](Self::get), for a name that is made next unless it is there.
    #[inline]
    pub(crate) fn seek(&mut self, name: &'d [u8]) -> Option<Entry> {
        match &mut self.right {
            Right::Whole(writer) => writer.seek(name),
            Right::Partial(_, partial) => return partial.lock().entry(name),
            Right::Claim(claim) => claim.get(name),
        }
        .map(Entry::of)
    }

    /// Is there this name?
    #[inline]
    pub(crate) fn has(&self, name: &[u8]) -> bool {
        match &self.right {
            Right::Whole(writer) => writer.get(name).is_some(),
            Right::Partial(_, partial) => partial.lock().entry(name).is_some(),
            Right::Claim(claim) => claim.has(name),
        }
    }

    /// As [`get`](Self::get), for a name that is about to be removed.
    #[inline]
    pub(crate) fn seek_to_remove(&mut self, name: &'d [u8]) -> Option<Entry> {
        let item = match &mut self.right {
            Right::Whole(writer) => writer.seek(name),
            Right::Partial(_, partial) => return partial.lock().entry(name),
            Right::Claim(claim) => claim.get(name),
        }?;
        let catalog = &self.dir.catalog;
        trails::with(catalog, |trail| {
            catalog.foresee(item, trail, &epoch::pin());
        });
        Some(Entry::of(item))
    }

    /// The names change now, or just did: `names` more, and `subdirs` more directories. `inode` is
    /// the directory.
    pub(crate) fn changed(&mut self, inode: &Object, names: i32, subdirs: i32, now: Time) {
        if let Right::Claim(claim) = &mut self.right
            && claim.note(now.0, i64::from(subdirs))
        {
            return;
        }
        let mut meta = inode.write();
        meta.modified(now);
        meta.size = directory_size(self.len().saturating_add_signed(names));
        meta.nlink = meta.nlink.saturating_add_signed(subdirs);
    }

    /// Is it time to [tidy](Directory::tidy) the directory, once this is dropped?
    pub(crate) fn is_wasteful(&self) -> bool {
        matches!(&self.right, Right::Claim(claim) if claim.is_wasteful())
    }

    /// Was the directory removed?
    pub(crate) fn is_dead(&self) -> bool {
        self.dir.is_dead()
    }

    /// The directory, which is empty, was removed.
    pub(crate) fn bury(&mut self) {
        debug_assert!(matches!(self.right, Right::Partial(..)) || self.is_empty());
        self.dir.state.bury();
    }

    /// A number for a new inode, near those of others in this directory if all its names are locked.
    pub(crate) fn next_number(&mut self, numbers: &Numbers) -> Ino {
        match &self.right {
            Right::Whole(_) | Right::Partial(..) => numbers.deal_from(&self.dir.chunk),
            Right::Claim(_) => numbers.deal(),
        }
    }

    /// A cookie for a new name, which is made now.
    pub(crate) fn next_cookie(&self, now: Time) -> u64 {
        let next = match &self.right {
            Right::Whole(writer) => writer.last_order() + 1,
            Right::Partial(_, partial) => partial.lock().next_cookie,
            Right::Claim(claim) => claim.next_order(|| by_the_clock(now)),
        };
        next.max(FIRST_COOKIE)
    }

    /// Adds a name that is not there, with the [next cookie](Self::next_cookie).
    ///
    /// # Errors
    /// `ENOSPC` when the directory cannot number more names.
    pub(crate) fn insert(
        &mut self,
        name: &[u8],
        cookie: u64,
        ino: Ino,
        kind: FileType,
    ) -> Result<()> {
        either!(self,
            right => right.insert(name, cookie, ino.0, kind.dirent_type()).map_err(refused),
            known => known.enter(name, Entry { cookie, ino, kind })
        )
    }

    /// Removes a name; returns what it led to.
    pub(crate) fn remove(&mut self, name: &[u8]) -> Option<Entry> {
        let gone: Removed = either!(self,
            right => right.remove(name),
            known => return known.leave(name)
        )?;
        Some(Entry::new(gone.order, gone.value, gone.tag))
    }

    /// Lets a name lead to another inode; cookie and position stay.
    pub(crate) fn replace(&mut self, name: &[u8], ino: Ino, kind: FileType) {
        either!(self,
            right => { right.replace(name, ino.0, kind.dirent_type()); },
            known => known.replace(name, ino, kind)
        );
    }

    /// Gives an entry another name that is not there; position and cookie stay, so that a listing
    /// under way never meets the file twice. Returns the cookie, 0 without such an entry.
    pub(crate) fn rename(&mut self, from: &[u8], to: &[u8]) -> u64 {
        either!(self, right => right.rename(from, to), known => known.rename(from, to)).unwrap_or(0)
    }

    /// Removes `from` and lets `to` lead where it did, at once for readers. Returns the cookies of
    /// both, if both are there.
    pub(crate) fn rename_over(&mut self, from: &[u8], to: &[u8]) -> Option<(u64, u64)> {
        let (moved, replaced) = either!(self,
            right => right.rename_over(from, to),
            known => return known.rename_over(from, to)
        )?;
        Some((moved.order, replaced.order))
    }

    /// Lets two names lead where the other did, at once for readers.
    pub(crate) fn exchange(&mut self, one: &[u8], other: &[u8]) {
        either!(self,
            right => { right.exchange(one, other); },
            known => known.exchange(one, other)
        );
    }
}

/// The least cookie that a thread deals at this time.
fn by_the_clock(now: Time) -> u64 {
    let start = *CLOCK_START.get_or_init(|| now.0);
    cookies_after(now.0.saturating_sub(start))
}

/// The least cookie that a thread deals so many nanoseconds after the start.
fn cookies_after(nanos: i64) -> u64 {
    let nanos = u64::try_from(nanos).unwrap_or(0);
    ((nanos >> TICK_SHIFT) << STEP_SHIFT).min(CLOCK_END)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_of_cookies_goes_on_and_stops_before_offsets_of_32_bits_end() {
        let second = 1_000_000_000;
        assert!(cookies_after(second) > cookies_after(0));
        assert!(cookies_after(1000 * second) > cookies_after(second));
        assert_eq!(cookies_after(60 * 60 * 24 * 365 * second), CLOCK_END);
        assert_eq!(cookies_after(-second), 0, "a clock that was set back");
    }
}
