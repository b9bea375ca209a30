//! The place of the names of a locked directory, and its known names.

use super::filter::Filter;
use super::{Entry, Known, Loaded, Names, Residency};
use crate::store::NameRun;

impl Names<'_> {
    /// The place of the names.
    pub(crate) fn place(&self) -> Residency {
        self.dir.place()
    }

    /// Installs all names, loaded from the store; readers see them from now on.
    pub(crate) fn complete(&mut self, loaded: Loaded) {
        self.writer.adopt(loaded.names);
        // Fewer names may have arrived than memory was reserved for.
        self.writer.shrink();
        self.dir.state.set(Residency::Whole);
        if let Some(partial) = self.dir.partial.get() {
            partial.lock().begin(0, 0, None);
        }
        self.partial = None;
    }

    /// Marks the catalog as holding all names of the store. `dated`: only until they have to be
    /// revalidated.
    pub(crate) fn become_whole(&mut self, dated: bool) {
        let place = if dated {
            Residency::Dated
        } else {
            Residency::Whole
        };
        if self.dir.place() != place {
            self.dir.state.set(place);
        }
    }

    /// Drops the catalog: the names are no longer in memory as a whole. There are `names`, with
    /// cookies below `next_cookie`.
    pub(crate) fn become_partial(&mut self, names: u32, next_cookie: u64) {
        let dir = self.dir;
        let partial = dir.partial.get_or_init(Box::default);
        let filter = self.filter();
        partial.lock().begin(names, next_cookie, filter);
        dir.state.set(Residency::Partial);
        self.partial = Some(partial);
        self.writer.clear();
    }

    /// Drops the names from memory. `stored`: the store has them, and they can be loaded again.
    /// Otherwise the directory is never used again.
    pub(crate) fn forget(&mut self, stored: bool) {
        if stored {
            self.dir.state.set(Residency::Unloaded);
            if let Some(partial) = self.dir.partial.get() {
                partial.lock().begin(0, 0, None);
            }
        }
        self.writer.clear();
        self.partial = None;
    }

    /// A filter of the names in the catalog, unless that is empty.
    fn filter(&self) -> Option<Filter> {
        if self.writer.is_empty() {
            return None;
        }
        let mut filter = Filter::new(u64::from(self.writer.len()));
        self.writer.after(0).for_each(|item| filter.add(item.key()));
        filter.reaches(None);
        Some(filter)
    }

    /// Counts a change of names that are not all in memory: a concurrent read of the store is stale
    /// from now on.
    pub(crate) fn begin_change(&mut self) {
        if let Some(partial) = self.partial {
            partial.lock().changes += 1;
        }
    }

    /// Number of [changes](Self::begin_change) begun so far.
    pub(crate) fn changes(&self) -> u64 {
        match self.partial {
            Some(partial) => partial.lock().changes,
            None => 0,
        }
    }

    /// Looks up a name; a known entry stays for the rest of the operation.
    pub(crate) fn hold(&mut self, name: &[u8]) -> Known {
        match self.partial {
            Some(partial) => partial.lock().hold(name),
            None => self.get(name).into(),
        }
    }

    /// Records the store's answer for a name. `room`: names that may be kept of this directory.
    pub(crate) fn learn(&mut self, name: &[u8], entry: Option<Entry>, room: usize) {
        if let Some(partial) = self.partial {
            let mut known = partial.lock();
            known.set_room(room);
            known.asked += 1;
            known.put(name, entry);
        }
    }

    /// Records a run of names read from the store. `room`: names that may be kept of this
    /// directory.
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

    /// After a [recorded](Self::learn) absence: the cookie behind which the filter lacks names, to
    /// be read from the store.
    pub(crate) fn filter_misses(&mut self) -> Option<u64> {
        match self.partial {
            Some(partial) => partial.lock().filter_misses(),
            None => None,
        }
    }

    /// Adds the names behind [that cookie](Self::filter_misses) to the filter.
    pub(crate) fn fill_filter(&mut self, run: &NameRun) {
        if let Some(partial) = self.partial {
            partial.lock().fill_filter(run);
        }
    }

    /// Number of names that the store was asked for since the directory became partial.
    pub(crate) fn asked(&self) -> u64 {
        match self.partial {
            Some(partial) => partial.lock().asked,
            None => 0,
        }
    }

    /// Growth of the known names since the last call, for the memory budget.
    pub(crate) fn recount(&mut self) -> i64 {
        self.dir.partial.get().map_or(0, |partial| {
            let mut known = partial.lock();
            let held = known.held() as i64;
            held - std::mem::replace(&mut known.counted, held)
        })
    }

    /// The part of `names` new names that the caller has to count: none if they are known names,
    /// which [`recount`](Self::recount) reports.
    pub(crate) fn counts(&self, names: i64) -> i64 {
        match self.partial {
            Some(_) => 0,
            None => names,
        }
    }
}
