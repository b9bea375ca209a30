//! Where the names of a locked directory are, and what becomes known of them singly.

use super::filter::Filter;
use super::{Entry, Known, Loaded, Names, Place};
use crate::store::NameRun;

impl Names<'_> {
    /// Where the names are. All are locked.
    pub(crate) fn place(&self) -> Place {
        self.dir.place()
    }

    /// Takes in all names that the store holds: readers see them at once. All are locked.
    pub(crate) fn complete(&mut self, loaded: Loaded) {
        self.writer.adopt(loaded.names);
        // Fewer came than were expected.
        self.writer.shrink();
        self.dir.state.set(Place::Whole);
        if let Some(partial) = self.dir.partial.get() {
            partial.lock().begin(0, 0, None);
        }
        self.partial = None;
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
        self.partial = Some(partial);
        self.writer.clear();
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
        self.writer.clear();
        self.partial = None;
    }

    /// A filter of the names that are in the catalog, if any are.
    fn filter(&self) -> Option<Filter> {
        if self.writer.is_empty() {
            return None;
        }
        let mut filter = Filter::new(u64::from(self.writer.len()));
        self.writer.after(0).for_each(|item| filter.add(item.key()));
        filter.reaches(None);
        Some(filter)
    }

    /// Begins to be a change of names that are not in memory as a whole: what was read of them in the store before is out
    /// of date.
    pub(crate) fn begin_change(&mut self) {
        if let Some(partial) = self.partial {
            partial.lock().changes += 1;
        }
    }

    /// How many [changes](Self::begin_change) began so far.
    pub(crate) fn changes(&self) -> u64 {
        match self.partial {
            Some(partial) => partial.lock().changes,
            None => 0,
        }
    }

    /// What is known of a name; if anything is, it stays while as much is done as one operation does.
    pub(crate) fn hold(&mut self, name: &[u8]) -> Known {
        match self.partial {
            Some(partial) => partial.lock().hold(name),
            None => self.get(name).into(),
        }
    }

    /// The store was asked for a name, and says so. `room`: names that may be kept of this directory.
    pub(crate) fn learn(&mut self, name: &[u8], entry: Option<Entry>, room: usize) {
        if let Some(partial) = self.partial {
            let mut known = partial.lock();
            known.set_room(room);
            known.asked += 1;
            known.put(name, entry);
        }
    }

    /// The store was asked for these names in a run. `room`: names that may be kept of this directory.
    pub(crate) fn learn_all(&mut self, run: &NameRun, room: usize) {
        if let Some(partial) = self.partial {
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
        match self.partial {
            Some(partial) => partial.lock().filter_misses(),
            None => None,
        }
    }

    /// These are the names behind [that cookie](Self::filter_misses).
    pub(crate) fn fill_filter(&mut self, run: &NameRun) {
        if let Some(partial) = self.partial {
            partial.lock().fill_filter(run);
        }
    }

    /// For how many names the store was asked since they are not in memory as a whole.
    pub(crate) fn asked(&self) -> u64 {
        match self.partial {
            Some(partial) => partial.lock().asked,
            None => 0,
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
        match self.partial {
            Some(_) => 0,
            None => names,
        }
    }
}
