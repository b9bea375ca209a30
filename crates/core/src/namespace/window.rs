//! Inodes that come along with one that is asked for by its name: see [`readahead`](crate::readahead).
//!
//! The thread that asks brings them, in one call of the store: so nothing works on after its caller, and a thread that asks for one of
//! them meanwhile loads it itself.
//!
//! *Locking.* Nothing is locked while the store is asked. The names of a directory that is not in memory as a whole are read and
//! learnt as [`Core::learn_run`] says.

use std::sync::Arc;

use holdfast_sync::epoch;

use crate::directory::{Entry, Place};
use crate::evictions::{self, Evictions};
use crate::file_system::Core;
use crate::inode::{DirectoryBody, Inode, Numbered as _, directory_names};
use crate::node::Node;
use crate::readahead::{
    Advice, BATCH, Brought, By, Demand, Millis, Order, Reach, is_hidden, place_of,
};
use crate::store::{InodeRecord, NameRun};
use crate::types::{Ino, Result};

/// Names that are looked at for each inode that is to come: many may be in memory already.
const LOOKS: usize = 4;
/// And beside that.
const LOOKS_MORE: usize = 64;
/// A sorted order may take this part of the limit.
const ORDER_PART: u64 = 4096;

/// Names in the order of a listing, of which those inodes are taken that are not in memory.
struct Picking<'c> {
    core: &'c Core,
    hidden: bool,
    len: usize,
    /// Names that may still be looked at.
    looks: usize,
    inos: Vec<Ino>,
    end: u64,
    next: Option<u64>,
}

impl<'c> Picking<'c> {
    fn behind(core: &'c Core, cookie: u64, hidden: bool, len: usize) -> Self {
        Self {
            core,
            hidden,
            len,
            looks: LOOKS * len + LOOKS_MORE,
            inos: Vec::with_capacity(len + 1),
            end: cookie,
            next: None,
        }
    }

    /// Takes the next name, unless that is `false`.
    fn take(&mut self, name: &[u8], cookie: u64, ino: Ino) -> bool {
        if self.looks == 0 {
            return false;
        }
        self.looks -= 1;
        let skips = !self.hidden && is_hidden(name);
        if !skips && !self.core.is_there(ino) {
            if self.inos.len() == self.len {
                self.next = Some(cookie);
                return false;
            }
            self.inos.push(ino);
        }
        self.end = cookie;
        true
    }

    fn brought(self) -> Brought {
        let reach = Reach::Listing {
            hidden: self.hidden,
            end: self.end,
            next: self.next,
        };
        Brought {
            inos: self.inos,
            reach,
        }
    }
}

impl Core {
    /// Is an inode of this number in memory?
    pub(crate) fn has_inode(&self, ino: Ino) -> bool {
        self.index.peek(ino.0, &epoch::pin()).is_some()
    }

    /// Loads an inode that a name leads to, and those that are likely to be asked for next.
    ///
    /// # Errors
    /// `ESTALE` if there is none (any more); what the store answers.
    #[cold]
    pub(super) fn load_named(
        &self,
        dir: &Inode,
        body: &DirectoryBody,
        name: &[u8],
        entry: Entry,
    ) -> Result<Node> {
        match self.load_window(dir, body, name, entry) {
            Some(node) => Ok(node),
            None => self.load(entry.ino, false),
        }
    }

    /// Brings an inode into memory that the store told with its name, and those that are likely to be asked for next. `evictions`: from
    /// before it was told.
    pub(super) fn load_told(
        &self,
        dir: &Inode,
        body: &DirectoryBody,
        name: &[u8],
        entry: Entry,
        (record, evictions): (&InodeRecord, &[u64; evictions::SHARDS]),
    ) {
        if self.has_inode(entry.ino) {
            return;
        }
        let alone = || {
            // If that fails, the load of this inode, which comes next, tells why.
            let taken = self.take_in(record, Evictions::of(evictions, entry.ino), false);
            taken.ok().flatten()
        };
        if let Some(node) = self.load_window(dir, body, name, entry).or_else(alone) {
            self.put(node);
        }
    }

    /// `None`: it has to be asked for alone.
    pub(crate) fn load_window(
        &self,
        dir: &Inode,
        body: &DirectoryBody,
        name: &[u8],
        entry: Entry,
    ) -> Option<Node> {
        if !self.policy.statahead() || self.coherence.as_ref().is_some_and(|it| it.holds_never()) {
            return None;
        }
        let demand = &Demand {
            dir: dir.ino(),
            name,
            cookie: entry.cookie,
            ino: entry.ino,
            names: self.names_in(dir, body),
        };
        let is_unmet = |ino: Ino| {
            let guard = epoch::pin();
            let inode = self.index.peek(ino.0, &guard)?;
            Some(inode.is_unmet())
        };
        let scans = &self.readahead.scans;
        let Advice { order, len, ticket } = scans.decide(demand, Millis::now(), &is_unmet)?;
        let most = len.min(self.room_ahead());
        let came = self.pick(dir, body, demand, order, most);
        let mut inos = came.inos.clone();
        let node = if inos.is_empty() {
            None
        } else {
            inos.push(demand.ino);
            inos.sort_unstable();
            inos.dedup();
            match self.coherence.is_some() {
                false => self.load_ahead(&inos, demand.ino),
                true => {
                    let told = self.look_up_ahead(dir, body, &inos, Some(demand.ino));
                    let told = told.is_ok_and(|told| told);
                    told.then(|| self.just_loaded(demand.ino)).flatten()
                }
            }
        };
        scans.brought(demand.dir, ticket, len, came, Millis::now());
        node
    }

    /// The inodes that are to come along with a demand load, at most so many.
    fn pick(
        &self,
        dir: &Inode,
        body: &DirectoryBody,
        demand: &Demand<'_>,
        order: Order,
        most: usize,
    ) -> Brought {
        match order {
            Order::Listing { hidden } => self.pick_behind(dir, body, demand.cookie, hidden, most),
            Order::All => {
                let reach = Reach::All;
                let all = self.pick_behind(dir, body, 0, true, most);
                Brought { reach, ..all }
            }
            Order::Sorted(order, at) => self.pick_sorted(order, at, most),
            Order::Sort(by, first, loads) => {
                let order = self.sorted(dir, body, by);
                let place = order.and_then(|order| {
                    let at = place_of(&order, first, demand.ino, loads)?;
                    Some((order, at))
                });
                match place {
                    Some((order, at)) => self.pick_sorted(order, at, most),
                    None => Brought {
                        inos: Vec::new(),
                        reach: Reach::Nothing,
                    },
                }
            }
        }
    }

    fn pick_sorted(&self, order: Arc<[Ino]>, at: usize, most: usize) -> Brought {
        let looks = LOOKS * most + LOOKS_MORE;
        let mut inos = Vec::with_capacity(most);
        let mut next = at;
        for ino in order.iter().skip(at).take(looks) {
            if inos.len() == most {
                break;
            }
            next += 1;
            if !self.is_there(*ino) {
                inos.push(*ino);
            }
        }
        Brought {
            inos,
            reach: Reach::Sorted(order, next),
        }
    }

    fn pick_behind(
        &self,
        dir: &Inode,
        body: &DirectoryBody,
        after: u64,
        hidden: bool,
        most: usize,
    ) -> Brought {
        let place = body.names.place();
        let most = match place {
            Place::Whole | Place::Dated => most,
            // What is learnt of them shall still be there when it is asked for.
            Place::Partial => most.min(self.known_max() / 4),
            Place::Unloaded => 0,
        };
        let mut picking = Picking::behind(self, after, hidden, most);
        match place {
            Place::Whole | Place::Dated => {
                let guard = epoch::pin();
                let mut names = body.names.after(after, &guard);
                names.all(|(name, entry)| picking.take(name, entry.cookie, entry.ino));
            }
            Place::Partial if most > 0 => self.pick_from_store(dir, body, &mut picking),
            Place::Partial | Place::Unloaded => {}
        }
        picking.brought()
    }

    fn pick_from_store(&self, dir: &Inode, body: &DirectoryBody, picking: &mut Picking<'_>) {
        let mut run = NameRun::default();
        loop {
            run.clear();
            // One more: a demand for it, the next one, need not ask for its name.
            let max = (picking.len - picking.inos.len()).min(BATCH) + 1;
            if (self.learn_run(dir, body, picking.end, max, &mut run)).is_err() {
                // A lookup of one of these names tells why.
                return;
            }
            let goes_on = run
                .iter()
                .all(|entry| picking.take(entry.name, entry.cookie, entry.ino));
            if !goes_on || run.len() < max {
                return;
            }
        }
    }

    /// Names of a directory; of one that others change those that were read.
    fn names_in(&self, dir: &Inode, body: &DirectoryBody) -> u64 {
        match self.coherence.is_some() {
            true => body.names.in_catalog().into(),
            false => directory_names(dir.size()),
        }
    }

    /// The inodes of a directory in this order, if it is in memory as a whole, or can be.
    fn sorted(&self, dir: &Inode, body: &DirectoryBody, by: By) -> Option<Arc<[Ino]>> {
        let names = self.names_in(dir, body);
        if names > self.reclaim.limit() / ORDER_PART / size_of::<Ino>() as u64 {
            return None;
        }
        self.make_whole(dir, body).ok().filter(|whole| *whole)?;
        let guard = epoch::pin();
        let all = body.names.after(0, &guard);
        Some(match by {
            By::Number => {
                let mut inos: Vec<Ino> = all.map(|(_, entry)| entry.ino).collect();
                inos.sort_unstable();
                inos.into()
            }
            By::Name => {
                let mut all: Vec<(&[u8], Ino)> =
                    all.map(|(name, entry)| (name, entry.ino)).collect();
                all.sort_unstable();
                all.into_iter().map(|(_, ino)| ino).collect()
            }
        })
    }
}
