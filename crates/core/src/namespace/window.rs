//! Inodes that are read ahead with one that is looked up by its name: see
//! [`readahead`](crate::readahead).
//!
//! The looking-up thread loads them in the same call of the store. So no work outlives its caller,
//! and a concurrent lookup of one of them loads it by itself.
//!
//! *Locking.* No lock is held while the store is read. The names of a partial directory are read
//! and recorded as in [`learn_run`].

use crate::inodes::find::has_inode;
use std::sync::Arc;

use holdfast_sync::epoch;

use crate::core::Core;
use crate::directory::{Entry, Residency};
use crate::evictions::{self, Evictions};
use crate::inode::{DirectoryBody, Inode, Numbered as _, directory_names};
use crate::inodes::free::put_node;
use crate::load::{just_loaded, load_inode, load_with_prefetch, take_in};
use crate::namespace::load::{known_max, learn_run, make_whole};
use crate::node::Node;
use crate::readahead::{
    Advice, BATCH, Brought, By, Demand, Millis, Order, Reach, is_hidden, place_of,
};
use crate::reclaim::usage::prefetch_room;
use crate::shared::by_name::prefetch_names;
use crate::shared::is_in_memory;
use crate::store::{InodeRecord, NameRun};
use crate::types::{Ino, Result};

/// Names visited per inode to be loaded: many may be in memory already.
const LOOKS: usize = 4;
/// Added to `LOOKS` times the number of inodes.
const LOOKS_MORE: usize = 64;
/// 1/`ORDER_PART` of the memory limit is available to a sorted order.
const ORDER_PART: u64 = 4096;

/// Selects inodes that are not in memory, in the order of a listing.
struct Picking<'c> {
    core: &'c Core,
    hidden: bool,
    len: usize,
    /// Names that may still be visited.
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

    /// Visits the next name; `false` ends the selection before it.
    fn take(&mut self, name: &[u8], cookie: u64, ino: Ino) -> bool {
        if self.looks == 0 {
            return false;
        }
        self.looks -= 1;
        let skips = !self.hidden && is_hidden(name);
        if !skips && !is_in_memory(self.core, ino) {
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

/// Loads the inode of a name, and reads ahead those that are likely to be looked up next.
///
/// # Errors
/// `ESTALE` if the inode does not exist; the store's.
#[cold]
pub(super) fn load_named(
    core: &Core,
    dir: &Inode,
    body: &DirectoryBody,
    name: &[u8],
    entry: Entry,
) -> Result<Node> {
    match load_window(core, dir, body, name, entry) {
        Some(node) => Ok(node),
        None => load_inode(core, entry.ino, false),
    }
}

/// Instantiates the inode of a record that the store returned with its name, and reads ahead.
/// `evictions`: a snapshot from before the read.
pub(super) fn load_record(
    core: &Core,
    dir: &Inode,
    body: &DirectoryBody,
    name: &[u8],
    entry: Entry,
    (record, evictions): (&InodeRecord, &[u64; evictions::SHARDS]),
) {
    hop!();
    if has_inode(core, entry.ino) {
        return;
    }
    let alone = || {
        // An error is dropped: the load of this inode, which follows, returns it.
        let taken = take_in(core, record, Evictions::of(evictions, entry.ino), false);
        taken.ok().flatten().map(|(node, _)| node)
    };
    if let Some(node) = load_window(core, dir, body, name, entry).or_else(alone) {
        put_node(core, node);
    }
}

/// Loads an inode together with others; `None`: it has to be loaded by itself.
pub(crate) fn load_window(
    core: &Core,
    dir: &Inode,
    body: &DirectoryBody,
    name: &[u8],
    entry: Entry,
) -> Option<Node> {
    if !core.policy.statahead() || core.coherence.as_ref().is_some_and(|it| it.holds_never()) {
        return None;
    }
    let demand = &Demand {
        dir: dir.ino(),
        name,
        cookie: entry.cookie,
        ino: entry.ino,
        names: names_in(core, dir, body),
    };
    let is_unused_readahead = |ino: Ino| {
        let guard = epoch::pin();
        let inode = core.index.peek(ino.0, &guard)?;
        Some(inode.is_unused_readahead())
    };
    let scans = &core.readahead.scans;
    let Advice { order, len, ticket } =
        scans.decide(demand, Millis::now(), &is_unused_readahead)?;
    let most = len.min(prefetch_room(core));
    let came = pick(core, dir, body, demand, order, most);
    let mut inos = came.inos.clone();
    let node = if inos.is_empty() {
        None
    } else {
        inos.push(demand.ino);
        inos.sort_unstable();
        inos.dedup();
        match core.coherence.is_some() {
            false => load_with_prefetch(core, &inos, demand.ino),
            true => {
                let found = prefetch_names(core, dir, body, &inos, Some(demand.ino));
                let found = found.is_ok_and(|found| found);
                found.then(|| just_loaded(core, demand.ino)).flatten()
            }
        }
    };
    scans.brought(demand.dir, ticket, len, came, Millis::now());
    node
}

/// At most `most` inodes to read ahead with a demand load.
fn pick(
    core: &Core,
    dir: &Inode,
    body: &DirectoryBody,
    demand: &Demand<'_>,
    order: Order,
    most: usize,
) -> Brought {
    match order {
        Order::Listing { hidden } => pick_behind(core, dir, body, demand.cookie, hidden, most),
        Order::All => {
            let reach = Reach::All;
            let all = pick_behind(core, dir, body, 0, true, most);
            Brought { reach, ..all }
        }
        Order::Sorted(order, at) => pick_sorted(core, order, at, most),
        Order::Sort(by, first, loads) => {
            let order = sorted_order(core, dir, body, by);
            let place = order.and_then(|order| {
                let at = place_of(&order, first, demand.ino, loads)?;
                Some((order, at))
            });
            match place {
                Some((order, at)) => pick_sorted(core, order, at, most),
                None => Brought {
                    inos: Vec::new(),
                    reach: Reach::Nothing,
                },
            }
        }
    }
}

fn pick_sorted(core: &Core, order: Arc<[Ino]>, at: usize, most: usize) -> Brought {
    let looks = LOOKS * most + LOOKS_MORE;
    let mut inos = Vec::with_capacity(most);
    let mut next = at;
    for ino in order.iter().skip(at).take(looks) {
        if inos.len() == most {
            break;
        }
        next += 1;
        if !is_in_memory(core, *ino) {
            inos.push(*ino);
        }
    }
    Brought {
        inos,
        reach: Reach::Sorted(order, next),
    }
}

fn pick_behind(
    core: &Core,
    dir: &Inode,
    body: &DirectoryBody,
    after: u64,
    hidden: bool,
    most: usize,
) -> Brought {
    let place = body.names.place();
    let most = match place {
        Residency::Whole | Residency::Dated => most,
        // Limited, so that the recorded names are still known when they are looked up.
        Residency::Partial => most.min(known_max(core) / 4),
        Residency::Unloaded => 0,
    };
    let mut picking = Picking::behind(core, after, hidden, most);
    match place {
        Residency::Whole | Residency::Dated => {
            let guard = epoch::pin();
            let mut names = body.names.after(after, &guard);
            names.all(|(name, entry)| picking.take(name, entry.cookie, entry.ino));
        }
        Residency::Partial if most > 0 => pick_from_store(core, dir, body, &mut picking),
        Residency::Partial | Residency::Unloaded => {}
    }
    picking.brought()
}

fn pick_from_store(core: &Core, dir: &Inode, body: &DirectoryBody, picking: &mut Picking<'_>) {
    let mut run = NameRun::default();
    loop {
        run.clear();
        // One more than needed: the next demand then finds its name known.
        let max = (picking.len - picking.inos.len()).min(BATCH) + 1;
        if (learn_run(core, dir, body, picking.end, max, &mut run)).is_err() {
            // A lookup of one of these names returns the error.
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

/// The number of names of a directory; where others change it, of those that were read.
fn names_in(core: &Core, dir: &Inode, body: &DirectoryBody) -> u64 {
    match core.coherence.is_some() {
        true => body.names.cached().into(),
        false => directory_names(dir.size()),
    }
}

/// The inodes of a directory in this order, if it is whole or fits as a whole.
fn sorted_order(core: &Core, dir: &Inode, body: &DirectoryBody, by: By) -> Option<Arc<[Ino]>> {
    let names = names_in(core, dir, body);
    if names > core.reclaim.limit() / ORDER_PART / size_of::<Ino>() as u64 {
        return None;
    }
    make_whole(core, dir, body).ok().filter(|whole| *whole)?;
    let guard = epoch::pin();
    let all = body.names.after(0, &guard);
    Some(match by {
        By::Number => {
            let mut inos: Vec<Ino> = all.map(|(_, entry)| entry.ino).collect();
            inos.sort_unstable();
            inos.into()
        }
        By::Name => {
            let mut all: Vec<(&[u8], Ino)> = all.map(|(name, entry)| (name, entry.ino)).collect();
            all.sort_unstable();
            all.into_iter().map(|(_, ino)| ino).collect()
        }
    })
}
