//! The short way against the way of all changes.

use std::sync::Arc;

use holdfast_core::store::{Behind as _, NameRun, Store as _, StoredSpace};
use holdfast_device::{BlockDevice, MemoryDevice};
use holdfast_types::{FileFlags, FileType, Ino, Time};
use proptest::prelude::*;

use super::*;
use crate::store::{FormatOptions, OpenOptions, VolumeStore, format};

/// What comes: in one of some directories, of a kind, with so many numbers left out before it.
pub(in crate::store) type Coming = (u64, usize, u64);

pub(in crate::store) const DIRS: u64 = 3;
pub(in crate::store) const KINDS: [FileType; 4] = [
    FileType::Regular,
    FileType::Directory,
    FileType::Fifo,
    FileType::CharDevice,
];

pub(in crate::store) fn record(ino: Ino, kind: FileType, parent: Ino, time: i64) -> InodeRecord {
    InodeRecord {
        ino,
        kind,
        perm: 0o644,
        nlink: 1 + u32::from(kind.is_dir()),
        uid: 7,
        gid: 8,
        rdev: u64::from(kind.is_device()),
        size: 0,
        atime: Time(time),
        mtime: Time(time),
        ctime: Time(time),
        btime: Time(time),
        parent,
        xattrs: false,
        space: StoredSpace::UNKNOWN,
        flags: FileFlags::empty(),
        project: 0,
    }
}

pub(in crate::store) fn store() -> (Arc<dyn BlockDevice>, VolumeStore) {
    let device: Arc<dyn BlockDevice> = Arc::new(MemoryDevice::new(256 << 20));
    format(&device, &FormatOptions::default()).unwrap();
    let store = open(&device);
    (device, store)
}

pub(in crate::store) fn open(device: &Arc<dyn BlockDevice>) -> VolumeStore {
    let never = OpenOptions {
        commit_every: None,
        ..OpenOptions::default()
    };
    VolumeStore::open(Arc::clone(device), &never).unwrap()
}

/// The directories in which something comes, and their first attributes.
pub(in crate::store) fn dirs(first: u64) -> Vec<InodeRecord> {
    let dir = |number| record(Ino(first + number), FileType::Directory, Ino::ROOT, 1);
    (0..DIRS).map(dir).collect()
}

/// Lets all of that come.
pub(in crate::store) fn bear_all(
    coming: &[Coming],
    first: u64,
    mut bear: impl FnMut(&[Change<'_>]),
) -> Vec<Ino> {
    let mut dirs = dirs(first);
    for dir in &dirs {
        bear(&[Change::Create {
            inode: dir.clone(),
            target: None,
        }]);
    }
    let mut last = first + DIRS;
    let mut inos: Vec<Ino> = dirs.iter().map(|dir| dir.ino).collect();
    for (time, (dir, kind, gap)) in (2_i64..).zip(coming) {
        let (dir, kind) = (&mut dirs[*dir as usize], KINDS[*kind]);
        last += gap + 1;
        let ino = Ino(last);
        dir.size += 1;
        dir.nlink += u32::from(kind.is_dir());
        (dir.mtime, dir.ctime) = (Time(time), Time(time));
        // Two threads have dealt them.
        let cookie = time.cast_unsigned() ^ 1;
        bear(&[
            Change::Create {
                inode: record(ino, kind, dir.ino, time),
                target: None,
            },
            Change::Enter {
                dir: dir.ino,
                name: format!("name {time}").as_bytes(),
                cookie,
                ino,
                kind,
            },
            Change::Attributes { inode: dir.clone() },
        ]);
        inos.push(ino);
    }
    inos
}

/// All that can be asked of the store.
pub(in crate::store) type Seen = (
    Vec<InodeRecord>,
    Vec<Vec<(Vec<u8>, u64, Option<InodeRecord>)>>,
    Vec<u64>,
    (Ino, u64),
);

pub(in crate::store) fn seen(store: &VolumeStore, inos: &[Ino], first: u64) -> Seen {
    let mut inodes = Vec::new();
    store.load_inodes(inos, &mut inodes).unwrap();
    let (mut names, mut cookies) = (Vec::new(), Vec::new());
    for dir in dirs(first) {
        let mut run = NameRun::default();
        store.read_names(dir.ino, 0, usize::MAX, &mut run).unwrap();
        let named = run.iter().map(|entry| {
            let mut found = Vec::new();
            store.load_inodes(&[entry.ino], &mut found).unwrap();
            (entry.name.to_vec(), entry.cookie, found.pop())
        });
        names.push(named.collect());
        cookies.push(store.end_cookie(dir.ino).unwrap());
    }
    let used = store.space().unwrap().inodes_used;
    (inodes, names, cookies, (store.last_ino().unwrap(), used))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn a_birth_leaves_what_its_changes_leave_one_by_one(
        coming in prop::collection::vec((0..DIRS, 0..KINDS.len(), 0_u64..90), 0..300),
        first in 2_u64..200,
    ) {
        let ((fast_device, fast), (slow_device, slow)) = (store(), store());
        let mut births = 0;
        let inos = bear_all(&coming, first, |batch| {
            births += usize::from(Birth::of(batch).is_some());
            fast.change(batch).unwrap();
        });
        prop_assert_eq!(births, coming.len());
        bear_all(&coming, first, |batch| {
            slow.inner.apply(batch, None, Growth::of(batch), 0).unwrap();
        });
        let growth = |store: &VolumeStore| store.inner.gate.pass().active.growth();
        prop_assert_eq!(growth(&fast), growth(&slow));
        let before = seen(&fast, &inos, first);
        prop_assert_eq!(&before, &seen(&slow, &inos, first));
        prop_assert_eq!(before.0.len(), inos.len());
        // The journal alone has it.
        fast.commit(None).unwrap();
        slow.commit(None).unwrap();
        fast.inner.end("it crashed");
        slow.inner.end("it crashed");
        drop((fast, slow));
        for device in [fast_device, slow_device] {
            let mut after = seen(&open(&device), &inos, first);
            // Numbers that may have been dealt before the crash are passed over.
            prop_assert!(after.3.0 >= before.3.0);
            after.3.0 = before.3.0;
            prop_assert_eq!(&before, &after);
        }
    }
}

#[test]
fn other_batches_are_none() {
    let dir = record(Ino(2), FileType::Directory, Ino::ROOT, 1);
    let inode = record(Ino(3), FileType::Symlink, Ino(2), 1);
    let enter = Change::Enter {
        dir: dir.ino,
        name: b"name",
        cookie: 3,
        ino: inode.ino,
        kind: inode.kind,
    };
    let create = |target| Change::Create {
        inode: inode.clone(),
        target,
    };
    let after = Change::Attributes { inode: dir };
    let batch = [create(None), enter.clone(), after.clone()];
    assert!(Birth::of(&batch).is_some());
    assert!(Birth::of(&batch[..2]).is_none(), "an unknown directory");
    let link = [create(Some(b"target")), enter.clone(), after];
    assert!(Birth::of(&link).is_none());
    let elsewhere = Change::Attributes {
        inode: inode.clone(),
    };
    assert!(Birth::of(&[create(None), enter, elsewhere]).is_none());
}
