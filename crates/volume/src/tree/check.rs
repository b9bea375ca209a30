//! Walks a whole tree and reports its defects.
//!
//! Nodes are read from the device, even if they are cached. Damage ends the walk only below the
//! damaged part: an unreadable block of records costs that block, a node the nodes below it.
//!
//! *Invariants.* A node is entered only if its first key is the one beside its pointer, and its
//! keys lie in the range that its parent gives it. Ranges of one level do not overlap, so no node
//! is entered twice on a level, and levels descend: the walk ends for any content of the nodes.

use super::cache::{NodeCache, NodeSource};
use super::error::{Defect, Error};
use super::lookup::Tree;
use super::node::Node;
use super::pointer::{LEVEL_MAX, Pointer};
use super::record::Record;
use super::run::Run;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, ScopedJoinHandle};

/// A defect of a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The node with the defect.
    pub node: Pointer,
    /// The level of that node.
    pub level: u8,
    /// What is wrong.
    pub defect: Defect,
}

/// The visitor of a check. Each part of a tree gets its own.
pub trait Inspect<R: Record>: Send {
    /// Called for each defect.
    fn finding(&mut self, finding: Finding);

    /// Called for each pointer to a node, sound or not; twice for two pointers to it.
    fn node(&mut self, _node: Pointer, _level: u8) {}

    /// Called for each record, in order of keys within the part.
    fn record(&mut self, _key: R::Key, _value: R::Value<'_>) {}
}

/// A node still to be visited.
#[derive(Clone, Copy, Debug)]
struct Place<K> {
    node: Pointer,
    level: u8,
    /// Its first key; `None` for the root, which has no key beside a pointer.
    first: Option<K>,
    /// Its keys lie below this one.
    end: Option<K>,
    /// The latest generation that can have written it: its parent's.
    newest: u64,
}

struct Walk<'c, R: Record, S, I> {
    cache: &'c NodeCache<S>,
    inspect: I,
    records: u64,
    findings: u64,
    record: std::marker::PhantomData<R>,
}

/// Parts of a tree per thread: enough to even out their weights.
const PARTS_A_JOB: usize = 8;

impl<R: Record, S: NodeSource> Tree<'_, R, S> {
    /// Walks the tree on `jobs` threads. `newest` is the superblock's generation. `inspect` makes
    /// the visitors of the parts, which are returned in order of keys.
    pub fn check<I: Inspect<R>>(
        &self,
        newest: u64,
        jobs: usize,
        inspect: impl Fn() -> I + Sync,
    ) -> Vec<I> {
        let walk = || Walk {
            cache: self.cache,
            inspect: inspect(),
            records: 0,
            findings: 0,
            record: std::marker::PhantomData,
        };
        let mut top = walk();
        let Some(root) = self.root else {
            return vec![top.inspect];
        };
        let place = Place {
            node: root.node,
            level: root.level,
            first: None,
            end: None,
            newest,
        };
        if root.level > LEVEL_MAX {
            top.find(&place, Defect::Pointer);
            return vec![top.inspect];
        }
        let wanted = if jobs > 1 { jobs * PARTS_A_JOB } else { 1 };
        let mut places = vec![place];
        while places.len() < wanted && places.iter().any(|place| place.level > 0) {
            places = places
                .iter()
                .flat_map(|place| top.expand_interior(place))
                .collect();
        }
        let parts: Vec<&[Place<R::Key>]> = places
            .chunks(places.len().div_ceil(wanted).max(1))
            .collect();
        let walked = in_parallel(jobs, &parts, |part| {
            let mut walk = walk();
            walk.below(part);
            walk
        });
        let found: u64 = walked.iter().map(|walk| walk.records).sum();
        if top.findings == 0
            && walked.iter().all(|walk| walk.findings == 0)
            && found != root.records
        {
            top.find(
                &place,
                Defect::Count {
                    expected: root.records,
                    found,
                },
            );
        }
        let parts = walked.into_iter().map(|walk| walk.inspect);
        std::iter::once(top.inspect).chain(parts).collect()
    }
}

/// Calls `work` for every part on `jobs` threads; the results are in order of the parts.
fn in_parallel<P: Sync, T: Send>(
    jobs: usize,
    parts: &[P],
    work: impl Fn(&P) -> T + Sync,
) -> Vec<T> {
    if jobs <= 1 || parts.len() <= 1 {
        return parts.iter().map(work).collect();
    }
    let next = AtomicUsize::new(0);
    let mut done: Vec<(usize, T)> = thread::scope(|scope| {
        let threads: Vec<_> = (0..jobs.min(parts.len()))
            .map(|_| {
                scope.spawn(|| {
                    let mut done = Vec::new();
                    // Relaxed: only which thread takes which part; the join orders the results.
                    while let index = next.fetch_add(1, Ordering::Relaxed)
                        && let Some(part) = parts.get(index)
                    {
                        done.push((index, work(part)));
                    }
                    done
                })
            })
            .collect();
        let join = |thread: ScopedJoinHandle<'_, _>| {
            thread.join().unwrap_or_else(|panic| resume_unwind(panic))
        };
        threads.into_iter().flat_map(join).collect()
    });
    done.sort_by_key(|(index, _)| *index);
    done.into_iter().map(|(_, result)| result).collect()
}

impl<R: Record, S: NodeSource, I: Inspect<R>> Walk<'_, R, S, I> {
    fn find(&mut self, place: &Place<R::Key>, defect: Defect) {
        self.findings += 1;
        let Place { node, level, .. } = *place;
        self.inspect.finding(Finding {
            node,
            level,
            defect,
        });
    }

    /// Visits everything below `places`, which are in order.
    fn below(&mut self, places: &[Place<R::Key>]) {
        let mut waiting: Vec<_> = places.iter().rev().copied().collect();
        while let Some(place) = waiting.pop() {
            if place.level == 0 {
                self.leaf(&place);
            } else {
                waiting.extend(self.expand(&place).into_iter().rev());
            }
        }
    }

    /// The children of an interior node, or the place itself for a leaf.
    fn expand_interior(&mut self, place: &Place<R::Key>) -> Vec<Place<R::Key>> {
        if place.level == 0 {
            vec![*place]
        } else {
            self.expand(place)
        }
    }

    /// Reads a node and checks the properties of all nodes.
    fn load(&mut self, place: &Place<R::Key>) -> Option<Node> {
        self.inspect.node(place.node, place.level);
        if place.node.generation > place.newest {
            let (found, newest) = (place.node.generation, place.newest);
            self.find(place, Defect::Future { found, newest });
        }
        match self.cache.load_anew::<R>(place.node, place.level) {
            Ok(node) => {
                if node.bytes().iter().skip(node.used()).any(|&byte| byte != 0) {
                    self.find(place, Defect::Padding);
                }
                Some(node)
            }
            Err(Error::Corrupt { defect, .. }) => {
                self.find(place, defect);
                None
            }
            Err(Error::Device { errno, .. }) => {
                self.find(place, Defect::Unreadable { errno });
                None
            }
            Err(Error::NoSpace | Error::Unsorted | Error::Unstorable) => None,
        }
    }

    /// The sound children of an interior node.
    fn expand(&mut self, place: &Place<R::Key>) -> Vec<Place<R::Key>> {
        let Some(node) = self.load(place) else {
            return Vec::new();
        };
        let mut children: Vec<Place<R::Key>> = Vec::with_capacity(node.count());
        for index in 0..node.count() {
            let Some((key, pointer)) = node.child::<R::Key>(index) else {
                self.find(place, Defect::Pointer);
                continue;
            };
            let begins = index > 0 || place.first.is_none_or(|first| first == key);
            if !begins || place.end.is_some_and(|end| key >= end) {
                self.find(place, Defect::Range);
                return Vec::new();
            }
            if let Some(before) = children.last_mut() {
                if before.first >= Some(key) {
                    self.find(place, Defect::Order);
                    return Vec::new();
                }
                before.end = Some(key);
            }
            children.push(Place {
                node: pointer,
                level: place.level - 1,
                first: Some(key),
                end: place.end,
                newest: node.pointer().generation,
            });
        }
        children
    }

    fn leaf(&mut self, place: &Place<R::Key>) {
        let Some(node) = self.load(place) else {
            return;
        };
        let first = node.run_key::<R>(0);
        if place.first.is_some() && first.is_some() && first != place.first {
            self.find(place, Defect::Range);
            return;
        }
        let (runs, count) = (node.runs(), node.count());
        let mut run = Run::<R>::new(node);
        let (mut seen, mut last, mut sound) = (0, None, true);
        for index in 0..runs {
            run.rewind(index);
            match self.run(place, &mut run, index + 1, &mut last) {
                Ok(records) => seen += records,
                Err(defect) => {
                    self.find(place, defect);
                    sound = false;
                }
            }
        }
        if sound && seen != count {
            self.find(place, Defect::Layout);
        }
    }

    /// Reads one block of records, up to where the run would open block `next`.
    fn run(
        &mut self,
        place: &Place<R::Key>,
        run: &mut Run<R>,
        next: usize,
        last: &mut Option<R::Key>,
    ) -> Result<usize, Defect> {
        let mut seen = 0;
        while run.stays_before(next) {
            let record = run.next().map_err(|error| match error {
                Error::Corrupt { defect, .. } => defect,
                _ => Defect::Record,
            })?;
            let Some((key, value)) = record else {
                break;
            };
            if last.is_some_and(|last| key <= last) {
                return Err(Defect::Order);
            }
            let below = place.first.is_some_and(|first| key < first);
            if below || place.end.is_some_and(|end| key >= end) {
                return Err(Defect::Range);
            }
            *last = Some(key);
            seen += 1;
            self.records += 1;
            self.inspect.record(key, value);
        }
        Ok(seen)
    }
}
