//! The short way against the way of all changes.

use std::sync::Arc;

use holdfast_core::store::{Behind as _, Store as _};
use holdfast_device::BlockDevice;
use holdfast_types::{Ino, Time};
use proptest::prelude::*;

use super::*;
use crate::BLOCK;
use crate::store::VolumeStore;
use crate::store::apply::create::tests::{
    Coming, DIRS, KINDS, bear_all, dirs, open, record, seen, store,
};

/// How many bytes a file gets: none, so few that they lie beside its attributes, or more.
const LENGTHS: [usize; 3] = [0, 20, BLOCK + 1];

/// What happens between births and deaths.
#[derive(Clone, Copy, Debug)]
enum Between {
    Nothing,
    Checkpoint,
    /// Then nothing of it is in memory.
    Reopening,
}

/// What is there, in the order in which it goes.
type Going = (usize, InodeRecord, InodeRecord, Vec<u8>, u64);

/// A volume with all of that, and what goes of it.
struct Side {
    device: Arc<dyn BlockDevice>,
    store: VolumeStore,
    inos: Vec<Ino>,
}

impl Side {
    /// `again`: these files, by their places, get bytes once more before they go.
    fn new(
        (coming, first): (&[Coming], u64),
        lengths: &[usize],
        between: Between,
        again: &[usize],
    ) -> (Self, Vec<Going>) {
        let (device, mut store) = store();
        let mut going = Vec::new();
        let mut batches = 0;
        let inos = bear_all(coming, first, |batch| {
            store.change(batch).unwrap();
            if let [
                Change::Create { inode, .. },
                Change::Enter { name, cookie, .. },
                Change::Attributes { inode: dir },
            ] = batch
            {
                let number = (dir.ino.0 - first) as usize;
                let mut inode = inode.clone();
                write(&store, &mut inode, lengths[batches]);
                going.push((number, inode, dir.clone(), name.to_vec(), *cookie));
                batches += 1;
            }
        });
        match between {
            Between::Nothing => {}
            Between::Checkpoint => store.inner.checkpoint().unwrap(),
            Between::Reopening => {
                store.inner.checkpoint().unwrap();
                drop(store);
                store = open(&device);
            }
        }
        for place in again {
            let len = going.len().max(1);
            if let Some((_, inode, ..)) = going.get_mut(place % len) {
                write(&store, inode, LENGTHS[place % 3]);
            }
        }
        let side = Self {
            device,
            store,
            inos,
        };
        (side, going)
    }
}

fn write(store: &VolumeStore, inode: &mut InodeRecord, len: usize) {
    if inode.kind != FileType::Regular || len == 0 {
        return;
    }
    inode.size = inode.size.max(len as u64);
    let write = Change::Write {
        ino: inode.ino,
        offset: 0,
        data: &vec![7; len],
    };
    let after = Change::Attributes {
        inode: inode.clone(),
    };
    store.change(&[after, write]).unwrap();
}

/// Lets what is there go.
fn end_all(going: &[Going], first: u64, mut end: impl FnMut(&[Change<'_>])) {
    let mut dirs = dirs(first);
    for (number, _, after, ..) in going {
        // As the last name has left it.
        if after.ctime > dirs[*number].ctime {
            dirs[*number] = after.clone();
        }
    }
    for (time, (number, inode, _, name, cookie)) in (1000_i64..).zip(going) {
        let dir = &mut dirs[*number];
        dir.size -= 1;
        dir.nlink -= u32::from(inode.kind.is_dir());
        (dir.mtime, dir.ctime) = (Time(time), Time(time));
        let (ino, mut last) = (inode.ino, inode.clone());
        (last.nlink, last.ctime) = (0, Time(time));
        end(&[
            Change::Attributes { inode: last },
            Change::Leave {
                dir: dir.ino,
                name,
                cookie: *cookie,
            },
            Change::Attributes { inode: dir.clone() },
            Change::Free { ino },
        ]);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn a_death_leaves_what_its_changes_leave_one_by_one(
        coming in prop::collection::vec((0..DIRS, 0..KINDS.len(), 0_u64..90), 0..200),
        first in 2_u64..200,
        lengths in prop::collection::vec(prop::sample::select(&LENGTHS), 200),
        between in prop::sample::select(&[Between::Nothing, Between::Checkpoint, Between::Reopening]),
        again in prop::collection::vec(0_usize..200, 0..20),
        order in prop::collection::vec(any::<u32>(), 200),
        stay in 0_usize..4,
    ) {
        let side = || Side::new((&coming, first), &lengths, between, &again);
        let ((fast, going), (slow, also)) = (side(), side());
        prop_assert_eq!(&going, &also);
        let mut going: Vec<_> = order.iter().zip(going).collect();
        going.sort_by_key(|(place, _)| **place);
        let mut going: Vec<Going> = going.into_iter().map(|(_, going)| going).collect();
        // Some stay.
        let all = going.len();
        let going = going.split_off(all.min(stay));
        let mut deaths = 0;
        end_all(&going, first, |batch| {
            deaths += usize::from(Death::of(batch).is_some());
            fast.store.change(batch).unwrap();
        });
        prop_assert_eq!(deaths, going.len());
        end_all(&going, first, |batch| {
            let growth = Growth::of(without_last_attributes(batch).1);
            slow.store.inner.apply(batch, None, growth, 0).unwrap();
        });
        let growth = |store: &VolumeStore| store.inner.gate.pass().active.growth();
        prop_assert_eq!(growth(&fast.store), growth(&slow.store));
        let seen_of = |side: &Side| seen(&side.store, &side.inos, first);
        let before = seen_of(&fast);
        prop_assert_eq!(&before, &seen_of(&slow));
        // The journal alone has it; and the space of what went is free.
        let mut used = Vec::new();
        for Side { device, store, inos } in [fast, slow] {
            store.commit(None).unwrap();
            let before_it = store.space().unwrap().pages_used;
            store.inner.end("it crashed");
            drop(store);
            let store = open(&device);
            let mut after = seen(&store, &inos, first);
            // Numbers that may have been dealt before the crash are passed over.
            prop_assert!(after.3.0 >= before.3.0);
            after.3.0 = before.3.0;
            prop_assert_eq!(&before, &after);
            store.inner.checkpoint().unwrap();
            store.inner.checkpoint().unwrap();
            used.push((before_it, store.space().unwrap().pages_used));
        }
        prop_assert_eq!(used[0], used[1]);
    }
}

#[test]
fn other_batches_are_none() {
    let dir = record(Ino(2), FileType::Directory, Ino::ROOT, 1);
    let inode = record(Ino(3), FileType::Regular, Ino(2), 1);
    let attributes = |inode: &InodeRecord| Change::Attributes {
        inode: inode.clone(),
    };
    let leave = Change::Leave {
        dir: dir.ino,
        name: b"name",
        cookie: 3,
    };
    let free = |ino| Change::Free { ino };
    let (last, after) = (attributes(&inode), attributes(&dir));
    let end = [last.clone(), leave.clone(), after.clone(), free(inode.ino)];
    assert!(Death::of(&end).is_some());
    assert!(Death::of(&end[..3]).is_none(), "it is still in use");
    assert!(Death::of(&end[1..]).is_none(), "nobody says what ends");
    let other = [last.clone(), leave.clone(), after, free(dir.ino)];
    assert!(Death::of(&other).is_none());
    let elsewhere = [last.clone(), leave, last, free(inode.ino)];
    assert!(Death::of(&elsewhere).is_none());
}
