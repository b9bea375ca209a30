//! Where the names of a locked directory are, and what becomes known of them singly.

use holdfast_sync::catalog::{CatalogWriter, Claim};

use super::filter::Filter;
use super::names::Right;
use super::{Entry, Known, Loaded, Names, Place};
use crate::store::NameRun;

impl Names<'_> {
    /// Where the names are. All are locked.
    pub(crate) fn place(&self) -> Place {
        self.dir.place()
    }

    /// Takes in all names that the store holds: readers see them at once. All are locked.
    pub(crate) fn complete(&mut self, loaded: Loaded) {
        let (Right::Whole(writer) | Right::Partial(writer, _)) = &mut self.right else {
            return;
        };
        writer.adopt(loaded.names);
        // Fewer came than were expected.
        writer.shrink();
        self.dir.state.set(Place::Whole);
        if let Some(partial) = self.dir.partial.get() {
            partial.lock().begin(0, 0, None);
        }
        exchange(&mut self.right, Right::Whole);
    }

    /// All names that the store told are there. `dated`: for a time. All are locked.
    pub(crate) fn become_whole(&mut self, dated: bool) {
        let place = if dated { Place::Dated } else { Place::Whole };
        if self.dir.place() != place {
            self.dir.state.set(place);
        }
    }

    /// From now on the names are not in memory as a whole. There are so many, all with cookies below this one. All are
    /// locked.
    pub(crate) fn become_partial(&mut self, names: u32, next_cookie: u64) {
        let dir = self.dir;
        let partial = dir.partial.get_or_init(Box::default);
        let filter = self.filter();
        partial.lock().begin(names, next_cookie, filter);
        dir.state.set(Place::Partial);
        exchange(&mut self.right, |writer| Right::Partial(writer, partial));
        self.clear();
    }

    /// Lets go of the names without removing them. If a store has them (`stored`), they can be loaded again; else nobody
    /// will look into the directory. All are locked.
    pub(crate) fn forget(&mut self, stored: bool) {
        if stored {
            self.dir.state.set(Place::Unloaded);
            if let Some(partial) = self.dir.partial.get() {
                partial.lock().begin(0, 0, None);
            }
        }
        self.clear();
        exchange(&mut self.right, Right::Whole);
    }

    /// A filter of the names that are in the catalog, if any are.
    fn filter(&self) -> Option<Filter> {
        let Right::Whole(writer) = &self.right else {
            return None;
        };
        if writer.is_empty() {
            return None;
        }
        let mut filter = Filter::new(u64::from(writer.len()));
        writer.after(0).for_each(|item| filter.add(item.key()));
        filter.reaches(None);
        Some(filter)
    }

    fn clear(&mut self) {
        if let Right::Whole(writer) | Right::Partial(writer, _) = &mut self.right {
            writer.clear();
        }
    }

    /// Begins to be a change of names that are not in memory as a whole: what was read of them in the store before is out
    /// of date.
    pub(crate) fn begin_change(&mut self) {
        if let Right::Partial(_, partial) = &self.right {
            partial.lock().changes += 1;
        }
    }

    /// How many [changes](Self::begin_change) began so far.
    pub(crate) fn changes(&self) -> u64 {
        match &self.right {
            Right::Partial(_, partial) => partial.lock().changes,
            _ => 0,
        }
    }

    /// What is known of a name; if anything is, it stays while as much is done as one operation does.
    pub(crate) fn hold(&mut self, name: &[u8]) -> Known {
        match &self.right {
            Right::Partial(_, partial) => partial.lock().hold(name),
            _ => self.get(name).into(),
        }
    }

    /// The store was asked for a name, and says so. `room`: names that may be kept of this directory.
    pub(crate) fn learn(&mut self, name: &[u8], entry: Option<Entry>, room: usize) {
        if let Right::Partial(_, partial) = &self.right {
            let mut known = partial.lock();
            known.set_room(room);
            known.asked += 1;
            known.put(name, entry);
        }
    }

    /// The store was asked for these names in a run. `room`: names that may be kept of this directory.
    pub(crate) fn learn_all(&mut self, run: &NameRun, room: usize) {
        if let Right::Partial(_, partial) = &self.right {
            let mut known = partial.lock();
            known.set_room(room);
            known.asked += run.len() as u64;
            for entry in run.iter() {
                let found = Entry {
                    cookie: entry.cookie,
                    ino: entry.ino,
                    kind: entry.kind,
                };
                known.put(entry.name, Some(found));
            }
        }
    }

    /// The cookie behind which the store is to be asked for names, because one was [learnt](Self::learn) to be
    /// absent that could have been known to be.
    pub(crate) fn filter_misses(&mut self) -> Option<u64> {
        match &self.right {
            Right::Partial(_, partial) => partial.lock().filter_misses(),
            _ => None,
        }
    }

    /// These are the names behind [that cookie](Self::filter_misses).
    pub(crate) fn fill_filter(&mut self, run: &NameRun) {
        if let Right::Partial(_, partial) = &self.right {
            partial.lock().fill_filter(run);
        }
    }

    /// For how many names the store was asked since they are not in memory as a whole.
    pub(crate) fn asked(&self) -> u64 {
        match &self.right {
            Right::Partial(_, partial) => partial.lock().asked,
            _ => 0,
        }
    }

    /// By how much the names that are known singly became more since this was asked last.
    pub(crate) fn recount(&mut self) -> i64 {
        self.dir.partial.get().map_or(0, |partial| {
            let mut known = partial.lock();
            let held = known.held() as i64;
            held - std::mem::replace(&mut known.counted, held)
        })
    }

    /// Of so many names that came to a directory, those that are counted one by one: names that are known singly are
    /// [counted](Self::recount) otherwise.
    pub(crate) fn counts(&self, names: i64) -> i64 {
        match &self.right {
            Right::Partial(..) => 0,
            Right::Whole(_) | Right::Claim(_) => names,
        }
    }
}

/// Another right by the same lock.
fn exchange<'d>(right: &mut Right<'d>, other: impl FnOnce(CatalogWriter<'d>) -> Right<'d>) {
    let old = std::mem::replace(right, Right::Claim(Claim::nothing()));
    *right = match old {
        Right::Whole(writer) | Right::Partial(writer, _) => other(writer),
        claim @ Right::Claim(_) => claim,
    };
}
