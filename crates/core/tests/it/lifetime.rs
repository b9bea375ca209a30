//! The lifetime of inodes, content and space.

use holdfast_core::types::{
    Caller, Errno, Fallocate, FileType, Ino, OpenFlags, RenameFlags, SetAttr, XattrSet,
};
use holdfast_core::{FileSystem, Memory, MemoryLimits, Options};
use holdfast_testkit::store::{ModelStore, Noted, Record, Recorded, RecordingStore};
use std::sync::Arc;

const PAGE: u64 = 4096;

fn limited(pages: u64, inodes: u64) -> FileSystem {
    let limits = MemoryLimits {
        // Names take some, too.
        bytes: Some(pages * PAGE + 1000),
        inodes: Some(inodes),
    };
    FileSystem::memory(limits, Options::default())
}

fn used(fs: &FileSystem) -> (u64, u64) {
    let stat = fs.statfs().unwrap();
    (stat.blocks - stat.blocks_free, stat.files - stat.files_free)
}

/// The number of batches, and the one that freed this inode.
fn evictions(record: &RecordingStore, ino: Ino) -> (usize, Option<usize>) {
    let events = record.hook().events();
    let batches = events.iter().filter_map(|event| match event {
        Recorded::Batch(batch) => Some(batch),
        _ => None,
    });
    let evictions = |batch: &Vec<Noted>| batch.contains(&Noted::Free(ino));
    let batches: Vec<bool> = batches.map(evictions).collect();
    (
        batches.len(),
        batches.iter().position(|evictions| *evictions),
    )
}

#[test]
fn nearly_all_space_is_allocated_at_once_and_comes_back() {
    let fs = limited(10_000, 10);
    let (who, root, before) = (Caller::root(), fs.root(), used(&fs));
    let file = fs.create(&who, &root, b"a", 0o600, OpenFlags::READ_WRITE);
    let file = file.unwrap();
    fs.fallocate(&who, &file, Fallocate::empty(), 0, 9_900 * PAGE)
        .unwrap();
    fs.unlink(&who, &root, b"a").unwrap();
    drop(file);
    assert_eq!(used(&fs), before);
}

#[test]
fn a_shutdown_tells_the_store_once_of_files_without_names_that_are_open() {
    let store = RecordingStore::new(Arc::new(ModelStore::new()), Record::default());
    // A memory budget of its own: a thread that scans the shared one would hold a reference a
    // moment longer.
    let memory = Memory::separate(u64::MAX);
    let fs = FileSystem::within(store.clone(), Options::default(), memory).unwrap();
    let (who, root) = (Caller::root(), fs.root());
    let file = fs.create(&who, &root, b"a", 0o600, OpenFlags::READ_WRITE);
    let file = file.unwrap();
    let ino = file.node().ino();
    fs.unlink(&who, &root, b"a").unwrap();
    drop(root);
    store.hook().clear();
    let shutdown = fs.shut_down().expect("the only handle");
    assert_eq!(evictions(&store, ino), (1, Some(0)));
    assert_eq!(shutdown.help(), 2);
    drop(shutdown);
    drop(file);
    assert_eq!(evictions(&store, ino), (1, Some(0)), "and not again");
}

#[test]
fn a_store_hears_in_one_batch_of_the_last_name_and_of_the_end_of_what_nobody_uses() {
    let store = RecordingStore::new(Arc::new(ModelStore::new()), Record::default());
    let fs = FileSystem::new(store.clone(), Options::default()).unwrap();
    let (who, root) = (Caller::root(), fs.root());
    let flags = OpenFlags::READ_WRITE;
    for open in [false, true] {
        let file = fs.create(&who, &root, b"a", 0o600, flags).unwrap();
        fs.write(&who, &file, 0, &[7; 5000]).unwrap();
        let ino = file.node().ino();
        let held = open.then_some(file);
        fs.link(&who, &fs.node(ino).unwrap(), &root, b"b").unwrap();
        fs.unlink(&who, &root, b"b").unwrap();
        store.hook().clear();
        fs.unlink(&who, &root, b"a").unwrap();
        assert_eq!(evictions(&store, ino), (1, (!open).then_some(0)));
        // The batch begins with attributes that have no link.
        let batch = store.hook().events().into_iter().next();
        let Some(Recorded::Batch(batch)) = batch else {
            panic!("no batch");
        };
        let last = &batch[0];
        assert!(
            matches!(last, Noted::Attributes(inode) if (inode.ino, inode.nlink) == (ino, 0)),
            "{last:?}"
        );
        drop(held);
        assert_eq!(evictions(&store, ino).1, Some(usize::from(open)));
        assert_eq!(fs.node(ino).unwrap_err(), Errno::ESTALE);
    }
    fs.mkdir(&who, &root, b"d", 0o700).unwrap();
    let ino = fs.lookup(&who, &root, b"d").unwrap().ino();
    store.hook().clear();
    fs.rmdir(&who, &root, b"d").unwrap();
    assert_eq!(evictions(&store, ino), (1, Some(0)));
}

#[test]
fn a_kernel_that_forgets_too_much_frees_nothing_that_is_used() {
    let fs = limited(10, 10);
    let (who, root) = (Caller::root(), fs.root());
    let node = fs
        .mknod(&who, &root, b"p", FileType::Fifo, 0o600, 0)
        .unwrap();
    let ino = node.into_raw();
    fs.unlink(&who, &root, b"p").unwrap();
    assert!(fs.node(ino).is_ok(), "the kernel still holds it");
    fs.forget(ino, 1);
    assert_eq!(fs.node(ino), Err(Errno::ESTALE));
    fs.forget(ino, 1);
    fs.forget(Ino(u64::MAX), 5);
    fs.forget(Ino::ROOT, 1000);
    assert_eq!(fs.root().ino(), Ino::ROOT);
    assert_eq!(used(&fs), (0, 1));
}

#[test]
fn an_unnamed_file_gets_a_name_or_goes() {
    let fs = limited(10, 10);
    let (who, root) = (Caller::root(), fs.root());
    let flags = OpenFlags::READ_WRITE;
    let file = fs.tmpfile(&who, &root, 0o600, flags).unwrap();
    fs.write(&who, &file, 0, b"kept").unwrap();
    fs.link(&who, file.node(), &root, b"named").unwrap();
    drop(file);
    assert_eq!(
        fs.getattr(&fs.lookup(&who, &root, b"named").unwrap()).size,
        4
    );
    let file = fs
        .tmpfile(&who, &root, 0o600, flags | OpenFlags::EXCLUSIVE)
        .unwrap();
    assert_eq!(
        fs.link(&who, file.node(), &root, b"never"),
        Err(Errno::ENOENT)
    );
    drop(file);
    assert_eq!(used(&fs), (1, 2));
}

#[test]
fn an_inode_has_only_so_many_names() {
    let options = Options {
        link_max: 3,
        ..Options::default()
    };
    let fs = FileSystem::memory(MemoryLimits::default(), options);
    let (who, root) = (Caller::root(), fs.root());
    let node = fs
        .mknod(&who, &root, b"1", FileType::Regular, 0o600, 0)
        .unwrap();
    fs.link(&who, &node, &root, b"2").unwrap();
    fs.link(&who, &node, &root, b"3").unwrap();
    assert_eq!(fs.link(&who, &node, &root, b"4"), Err(Errno::EMLINK));
    fs.mkdir(&who, &root, b"d", 0o755).unwrap();
    assert_eq!(fs.mkdir(&who, &root, b"e", 0o755), Err(Errno::EMLINK));
    assert_eq!((fs.getattr(&node).nlink, fs.getattr(&root).nlink), (3, 3));
    fs.rmdir(&who, &root, b"d").unwrap();
    fs.unlink(&who, &root, b"1").unwrap();
    fs.link(&who, &node, &root, b"4").unwrap();
}

#[test]
fn privileges_go_where_they_are_lent() {
    let fs = limited(10, 10);
    let (who, root) = (Caller::root(), fs.root());
    let mode = |perm: u16| {
        let name = format!("{perm:o}").into_bytes();
        let node = fs
            .mknod(&who, &root, &name, FileType::Regular, perm, 0)
            .unwrap();
        fs.drop_privileges(&node).unwrap();
        fs.getattr(&node).perm
    };
    assert_eq!(mode(0o6755), 0o755);
    assert_eq!(
        mode(0o6745),
        0o2745,
        "set-group-id without execution is no privilege"
    );
    assert_eq!(mode(0o1644), 0o1644);
}

#[test]
fn file_capabilities_go_with_the_content_they_were_given_to() {
    let fs = limited(10, 10);
    let (who, root) = (Caller::root(), fs.root());
    let file = fs
        .create(&who, &root, b"f", 0o6755, OpenFlags::READ_WRITE)
        .unwrap();
    let node = file.node();
    let name = b"security.capability";
    let give = || {
        fs.setxattr(&who, node, name, b"any", XattrSet::Any)
            .unwrap()
    };
    give();
    assert_eq!(fs.read(&file, 0, &mut [0; 9]), Ok(0));
    assert!(fs.getxattr(&who, node, name).is_ok());
    fs.write(&who, &file, 0, b"new").unwrap();
    assert_eq!(fs.getxattr(&who, node, name), Err(Errno::ENODATA));
    assert_eq!(
        fs.getattr(node).perm,
        0o6755,
        "the superuser keeps set-id bits"
    );
    give();
    fs.setattr(
        &who,
        node,
        &SetAttr {
            size: Some(0),
            ..SetAttr::default()
        },
        None,
    )
    .unwrap();
    assert_eq!(fs.getxattr(&who, node, name), Err(Errno::ENODATA));
}

#[test]
fn threads_in_one_directory_leave_nothing_behind() {
    let fs = limited(1000, 1000);
    std::thread::scope(|scope| {
        let fs = &fs;
        let threads: Vec<_> = (0..8)
            .map(|thread| scope.spawn(move || churn(fs, thread)))
            .collect();
        // Joined one by one: the sanitizers do not see the end of a scope.
        for thread in threads {
            thread.join().unwrap();
        }
    });
    let stats = fs.stats();
    assert_eq!(
        (stats.inodes, stats.names, stats.pages, stats.open_files),
        (1, 0, 0, 0)
    );
    assert_eq!(used(&fs), (0, 1));
}

/// Creates, renames, replaces, links and removes names that threads contend for.
fn churn(fs: &FileSystem, thread: u32) {
    let (who, root) = (Caller::root(), fs.root());
    let name = |number: u32| format!("n{}", number % 13).into_bytes();
    for step in 0..3000_u32 {
        let mix = step.wrapping_mul(2_654_435_761).wrapping_add(thread * 97) >> 7;
        let (a, b) = (name(mix), name(mix / 13));
        match mix % 5 {
            0 | 1 => {
                if let Ok(file) = fs.create(&who, &root, &a, 0o600, OpenFlags::READ_WRITE) {
                    fs.write(&who, &file, 0, &[1; 10]).unwrap();
                }
            }
            2 => {
                let _ = fs.rename(&who, &root, &a, &root, &b, RenameFlags::empty());
            }
            3 => {
                if let Ok(node) = fs.lookup(&who, &root, &a) {
                    let _ = fs.link(&who, &node, &root, &b);
                }
            }
            _ => {
                let _ = fs.unlink(&who, &root, &a);
            }
        }
    }
    for number in 0..13 {
        let _ = fs.unlink(&who, &root, &name(number));
    }
}
