//! Inodes that are only what quotas need of them, under all operations, while quotas go on and off.

use super::*;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering::SeqCst};
use std::thread;

/// The mark's bit; the others must stay as they are.
const COUNTED: u8 = 0b100;
const OTHERS: u8 = 0b1001;

struct Inode {
    /// Uses, unless it is dying.
    uses: Mutex<Option<u32>>,
    /// Content lock, and pages.
    content: Mutex<u64>,
    /// Attribute lock, and owner.
    owner: Mutex<Owner>,
    marks: AtomicU8,
}

impl Inode {
    fn mark(&self) -> Mark<'_> {
        Mark::new(&self.marks, COUNTED)
    }
}

/// A counted use.
struct Use(Arc<Inode>);

impl Drop for Use {
    fn drop(&mut self) {
        let mut uses = self.0.uses.lock();
        *uses = uses.map(|uses| uses - 1);
    }
}

/// An index of inodes, and the operations on them.
struct Tree {
    slots: Vec<Mutex<Option<Arc<Inode>>>>,
    quotas: Quotas,
}

/// Lets others run in between, now and then.
fn pause(numbers: &mut Numbers) {
    if numbers.below(4) == 0 {
        thread::yield_now();
    }
}

fn someone(numbers: &mut Numbers) -> Owner {
    owner(numbers.below(3) as u32, numbers.below(2) as u32)
}

impl Tree {
    fn new() -> Self {
        Self {
            slots: (0..24).map(|_| Mutex::default()).collect(),
            quotas: Quotas::new(),
        }
    }

    fn exists(&self, slot: usize) -> Option<Arc<Inode>> {
        self.slots[slot].lock().clone()
    }

    fn live(&self, slot: usize) -> Option<Use> {
        let inode = self.exists(slot)?;
        let mut uses = inode.uses.lock();
        *uses = Some((*uses)? + 1);
        drop(uses);
        Some(Use(inode))
    }

    fn create(&self, slot: usize, numbers: &mut Numbers) {
        let owner = someone(numbers);
        let inode = Inode {
            uses: Mutex::new(Some(0)),
            content: Mutex::new(0),
            owner: Mutex::new(owner),
            marks: AtomicU8::new(OTHERS),
        };
        let guard = epoch::pin();
        let enrolled = self
            .quotas
            .enroll(&guard, inode.mark(), owner, Check::Limits);
        if enrolled.is_err() {
            return;
        }
        pause(numbers);
        let mut slot = self.slots[slot].lock();
        if slot.is_some() {
            self.quotas.detach(inode.mark(), owner, 0);
        } else {
            *slot = Some(Arc::new(inode));
        }
    }

    fn write(&self, inode: &Inode, numbers: &mut Numbers) {
        let mut pages = inode.content.lock();
        let owner = || *inode.owner.lock();
        let more = numbers.below(9);
        let grown = self.quotas.grow(inode.mark(), more, Check::Limits, owner);
        if grown.is_ok() {
            pause(numbers);
            let placed = numbers.below(more + 1);
            *pages += placed;
            pause(numbers);
            self.quotas.shrink(inode.mark(), more - placed, owner);
        }
    }

    fn truncate(&self, inode: &Inode, numbers: &mut Numbers) {
        let mut pages = inode.content.lock();
        let less = numbers.below(*pages + 1);
        *pages -= less;
        pause(numbers);
        self.quotas
            .shrink(inode.mark(), less, || *inode.owner.lock());
    }

    fn chown(&self, inode: &Inode, numbers: &mut Numbers) {
        let pages = inode.content.lock();
        pause(numbers);
        let mut owner = inode.owner.lock();
        let new = someone(numbers);
        let moved = self
            .quotas
            .change_owner(inode.mark(), *owner, new, *pages, Check::Limits);
        pause(numbers);
        if moved.is_ok() {
            *owner = new;
        }
    }

    fn evict(&self, slot: usize, numbers: &mut Numbers) {
        let Some(inode) = self.exists(slot) else {
            return;
        };
        {
            let mut uses = inode.uses.lock();
            if *uses != Some(0) {
                return;
            }
            *uses = None;
        }
        pause(numbers);
        let owner = *inode.owner.lock();
        let mut pages = inode.content.lock();
        if numbers.below(2) == 0 {
            let gone = std::mem::take(&mut *pages);
            self.quotas.shrink(inode.mark(), gone, || owner);
            pause(numbers);
        }
        self.quotas.detach(inode.mark(), owner, *pages);
        pause(numbers);
        self.quotas.shrink(inode.mark(), *pages, || owner);
        *self.slots[slot].lock() = None;
        assert_eq!(inode.marks.load(SeqCst) & !COUNTED, OTHERS);
    }

    fn operate(&self, seed: u64, rounds: u32) {
        let mut numbers = Numbers(seed);
        for _ in 0..rounds {
            let slot = numbers.below(self.slots.len() as u64) as usize;
            match (numbers.below(10), self.live(slot)) {
                (0..3, used) => {
                    drop(used);
                    self.evict(slot, &mut numbers);
                }
                (_, None) => self.create(slot, &mut numbers),
                (3..6, Some(used)) => self.write(&used.0, &mut numbers),
                (6..8, Some(used)) => self.truncate(&used.0, &mut numbers),
                (_, Some(used)) => self.chown(&used.0, &mut numbers),
            }
        }
    }

    fn switch_on(&self) {
        let walk = || {
            for slot in 0..self.slots.len() {
                if let Some(used) = self.live(slot) {
                    let pages = used.0.content.lock();
                    let owner = used.0.owner.lock();
                    self.quotas.attach(used.0.mark(), *owner, *pages);
                }
            }
        };
        self.quotas.switch_on(true, || Ok(()), walk).unwrap();
    }

    fn switch_off(&self) {
        self.quotas.switch_off(|| {
            for slot in 0..self.slots.len() {
                if let Some(inode) = self.exists(slot) {
                    inode.mark().clear();
                }
            }
        });
    }

    /// Goes off and on, in the end on, and sets limits that operations meet.
    fn switch(&self, numbers: &mut Numbers, done: &AtomicBool) {
        while !done.load(SeqCst) {
            self.switch_off();
            for _ in 0..numbers.below(5) {
                thread::yield_now();
            }
            self.switch_on();
            let (id, limits) = (numbers.below(3) as u32, numbers.below(40));
            self.quotas
                .set_limits(QuotaKind::User, id, &hard(limits, limits))
                .unwrap();
            for _ in 0..numbers.below(5) {
                thread::yield_now();
            }
        }
    }

    /// What the inodes say that each user and group has.
    fn truth(&self) -> BTreeMap<(QuotaKind, u32), (u64, u64)> {
        let mut truth = BTreeMap::new();
        for inode in (0..self.slots.len()).filter_map(|slot| self.exists(slot)) {
            let (owner, pages) = (*inode.owner.lock(), *inode.content.lock());
            for kind in [QuotaKind::User, QuotaKind::Group] {
                let sum: &mut (u64, u64) = truth.entry((kind, owner.id(kind))).or_default();
                *sum = (sum.0 + pages, sum.1 + 1);
            }
            assert_ne!(inode.marks.load(SeqCst) & COUNTED, 0, "not attached");
        }
        truth
    }
}

#[test]
fn usage_is_the_truth_however_quotas_went_on_and_off() {
    let tree = Tree::new();
    let mut numbers = Numbers(7);
    tree.switch_on();
    for round in 0..40 {
        let done = AtomicBool::new(false);
        thread::scope(|scope| {
            let workers: Vec<_> = (0..3)
                .map(|worker| {
                    let tree = &tree;
                    scope.spawn(move || tree.operate(round * 3 + worker, 1000))
                })
                .collect();
            scope.spawn(|| tree.switch(&mut numbers, &done));
            let ended: Vec<_> = workers.into_iter().map(|worker| worker.join()).collect();
            done.store(true, SeqCst);
            assert!(ended.iter().all(|end| end.is_ok()), "a worker failed");
        });
        let told: BTreeMap<_, _> = tree
            .quotas
            .report()
            .iter()
            .map(|record| ((record.kind, record.id), record.usage))
            .filter(|(_, usage)| *usage != QuotaUsage::default())
            .map(|(who, usage)| (who, (usage.bytes / 4096, usage.inodes)))
            .collect();
        assert_eq!(told, tree.truth(), "after round {round}");
        assert!(!told.is_empty());
    }
}

#[test]
fn switching_on_counts_what_is_there_and_switching_off_forgets_it() {
    let (tree, mut numbers) = (Tree::new(), Numbers(1));
    for slot in 0..10 {
        tree.create(slot, &mut numbers);
        let inode = tree.live(slot).unwrap();
        tree.write(&inode.0, &mut numbers);
    }
    let attached = || {
        let inodes = (0..10).map(|slot| tree.exists(slot).unwrap());
        inodes
            .filter(|inode| inode.marks.load(SeqCst) == OTHERS | COUNTED)
            .count()
    };
    assert_eq!(attached(), 0);
    tree.switch_on();
    assert_eq!(attached(), 10);
    let counted: u64 = tree.truth().values().map(|(_, inodes)| inodes).sum();
    assert_eq!(counted, 20, "each for its user and its group");
    tree.switch_off();
    assert_eq!((attached(), tree.quotas.report().len()), (0, 0));
}
