//! L8: references by number, in inodes and beside them, equal a kernel's lookups minus its forgets,
//! whatever is evicted.
//!
//! The model is a kernel: it counts the references it got and dropped, and knows the names. A file
//! exists while it has a name or the kernel references it.

use holdfast_core::types::{Caller, Errno, FileType, Ino, RenameFlags};
use holdfast_core::{Bulkstat, FileSystem, Options, Visit};
use holdfast_testkit::memory::within;
use holdfast_testkit::store::ModelStore;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

#[derive(Clone, Copy, Debug)]
enum Op {
    Create(u8),
    LookUp(u8),
    Link(u8, u8),
    Rename(u8, u8),
    Unlink(u8),
    /// The index among the referenced inodes, and the count.
    Forget(u8, u8),
    /// A request of a kernel that references it, by its index.
    Use(u8),
    DropCaches,
    /// A scan, which loads inodes for a moment.
    Scan,
}

fn op() -> impl Strategy<Value = Op> {
    let name = || 0..6_u8;
    prop_oneof![
        3 => name().prop_map(Op::Create),
        6 => name().prop_map(Op::LookUp),
        1 => (name(), name()).prop_map(|(from, to)| Op::Link(from, to)),
        1 => (name(), name()).prop_map(|(from, to)| Op::Rename(from, to)),
        2 => name().prop_map(Op::Unlink),
        4 => (any::<u8>(), 1..4_u8).prop_map(|(which, count)| Op::Forget(which, count)),
        3 => any::<u8>().prop_map(Op::Use),
        3 => Just(Op::DropCaches),
        1 => Just(Op::Scan),
    ]
}

/// The state of a kernel.
#[derive(Default)]
struct Kernel {
    names: BTreeMap<u8, Ino>,
    held: BTreeMap<Ino, u64>,
}

impl Kernel {
    fn which(&self, place: u8) -> Option<Ino> {
        let place = usize::from(place).checked_rem(self.held.len())?;
        self.held.keys().nth(place).copied()
    }

    fn has_name(&self, ino: Ino) -> bool {
        self.names.values().any(|named| *named == ino)
    }

    fn is_there(&self, ino: Ino) -> bool {
        self.has_name(ino) || self.held.contains_key(&ino)
    }
}

fn text(name: u8) -> Vec<u8> {
    format!("f{name}").into_bytes()
}

fn step(fs: &FileSystem, kernel: &mut Kernel, op: Op) -> Option<Ino> {
    let (who, root) = (Caller::root(), fs.root());
    match op {
        Op::Create(name) => {
            let made = fs.mknod(&who, &root, &text(name), FileType::Regular, 0o644, 0);
            let Entry::Vacant(place) = kernel.names.entry(name) else {
                assert_eq!(made.err(), Some(Errno::EEXIST));
                return None;
            };
            let ino = *place.insert(made.unwrap().into_raw());
            *kernel.held.entry(ino).or_default() += 1;
        }
        Op::LookUp(name) => match (fs.lookup(&who, &root, &text(name)), kernel.names.get(&name)) {
            (Ok(node), Some(ino)) => {
                assert_eq!(node.into_raw(), *ino);
                *kernel.held.entry(*ino).or_default() += 1;
            }
            (Err(Errno::ENOENT), None) => {}
            (found, expected) => panic!("{found:?} for {expected:?}"),
        },
        Op::Link(from, to) => {
            if let Some(ino) = kernel.names.get(&from).copied()
                && !kernel.names.contains_key(&to)
            {
                let node = fs.node(ino).unwrap();
                fs.link(&who, &node, &root, &text(to)).unwrap();
                kernel.names.insert(to, ino);
            }
        }
        Op::Rename(from, to) => {
            if let Some(ino) = kernel.names.get(&from).copied()
                && kernel.names.get(&to) != Some(&ino)
            {
                let flags = RenameFlags::empty();
                fs.rename(&who, &root, &text(from), &root, &text(to), flags)
                    .unwrap();
                kernel.names.remove(&from);
                return kernel.names.insert(to, ino);
            }
        }
        Op::Unlink(name) => {
            let unlinked = fs.unlink(&who, &root, &text(name));
            let gone = kernel.names.remove(&name);
            assert_eq!(unlinked.is_ok(), gone.is_some());
            return gone;
        }
        Op::Forget(which, count) => {
            let ino = kernel.which(which)?;
            fs.forget(ino, u64::from(count));
            let held = kernel.held.get_mut(&ino)?;
            *held = held.saturating_sub(u64::from(count));
            if *held == 0 {
                kernel.held.remove(&ino);
            }
            return Some(ino);
        }
        Op::Use(which) => {
            let ino = kernel.which(which)?;
            let named = kernel.names.values().filter(|named| **named == ino);
            let node = fs.node(ino).expect("it is held");
            assert_eq!(fs.getattr(&node).nlink as usize, named.count());
        }
        Op::DropCaches => drop(fs.drop_caches().unwrap()),
        Op::Scan => {
            let mut scan = Bulkstat::new();
            fs.bulkstat(&mut scan, |_, _| Ok(Visit::Continue)).unwrap();
        }
    }
    None
}

fn held_by(fs: &FileSystem) -> BTreeMap<Ino, u64> {
    let mut held = BTreeMap::new();
    fs.each_known_by_number(|ino, uses| {
        assert!(held.insert(ino, uses).is_none_or(|before| before == uses));
    });
    held
}

fn agree(fs: &FileSystem, kernel: &Kernel, lost: Option<Ino>) {
    assert_eq!(held_by(fs), kernel.held, "L8");
    if let Some(ino) = lost {
        let found = fs.node(ino).map(|node| node.ino());
        assert_eq!(found.is_ok(), kernel.is_there(ino), "{ino:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    /// L8. The seed of a failing case is printed, and kept beside this file.
    #[test]
    fn uses_by_number_are_lookups_less_forgets_of_a_model_kernel(
        little in any::<bool>(),
        ops in prop::collection::vec(op(), 1..120),
    ) {
        let memory = if little { 0 } else { u64::MAX };
        let fs = within(Arc::new(ModelStore::new()), Options::default(), Some(memory)).unwrap();
        let mut kernel = Kernel::default();
        for op in ops {
            let lost = step(&fs, &mut kernel, op);
            agree(&fs, &kernel, lost);
        }
        let held: Vec<Ino> = kernel.held.keys().copied().collect();
        fs.drop_caches().unwrap();
        fs.forget_all();
        kernel.held.clear();
        held.iter().for_each(|ino| agree(&fs, &kernel, Some(*ino)));
    }
}

#[test]
fn a_kernel_gives_back_what_it_holds_of_a_file_system_that_was_revoked() {
    let fs = within(Arc::new(ModelStore::new()), Options::default(), Some(0)).unwrap();
    let mut kernel = Kernel::default();
    for name in 0..6 {
        step(&fs, &mut kernel, Op::Create(name));
    }
    step(&fs, &mut kernel, Op::Unlink(3));
    fs.revoke().unwrap();
    // It has no name and stays for the kernel; all others are evicted.
    assert_eq!(fs.stats().inodes, 2);
    assert_eq!(held_by(&fs), kernel.held);
    kernel.held.keys().for_each(|ino| fs.forget(*ino, 1));
    assert_eq!((fs.stats().inodes, held_by(&fs).len()), (1, 0));
}
