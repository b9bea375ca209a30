//! Memory for the content of files: it has a limit, and what goes comes back as it was.

use holdfast_core::budget::Class;
use holdfast_core::shrinkers::within_store;
use holdfast_core::{FileSystem, Observer, OpenFile, Options};
use holdfast_testkit::memory::within;
use holdfast_testkit::store::{
    Call, Fault, Faults, FaultyStore, ModelStore, Record, RecordingStore,
};
use holdfast_types::{Caller, Errno, Ino, OpenFlags};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

const PAGE: u64 = 4096;
const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

fn limited(store: Arc<dyn holdfast_core::Store>, memory: u64) -> FileSystem {
    within(store, Options::default(), Some(memory)).unwrap()
}

fn create(fs: &FileSystem, name: &str) -> OpenFile {
    let flags = OpenFlags::CREATE | OpenFlags::READ_WRITE;
    let (who, root) = (Caller::root(), fs.root());
    fs.create(&who, &root, name.as_bytes(), 0o644, flags)
        .unwrap()
}

/// A page of its own.
fn page(file: u64, number: u64) -> Vec<u8> {
    let word = (file << 40 | number).wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    word.to_le_bytes().repeat(PAGE as usize / 8)
}

fn assert_reads(fs: &FileSystem, file: &OpenFile, offset: u64, expected: &[u8]) {
    let mut buf = vec![0; expected.len()];
    assert_eq!(fs.read(file, offset, &mut buf), Ok(buf.len()));
    assert!(buf == expected, "content differs at {offset}");
}

#[test]
fn content_stays_within_its_limit_and_comes_back() {
    const LIMIT: u64 = 2 * MIB;
    let fs = limited(Arc::new(ModelStore::new()), LIMIT);
    let who = Caller::root();
    let (small, large) = (200, 2500);
    // Not counted are what the last look found too little to be worth it, and a look is due only
    // after so many bytes.
    let check = |fs: &FileSystem| assert!(fs.stats().bytes <= LIMIT + LIMIT / 16);
    let big = create(&fs, "big");
    for number in 0..large {
        let data = page(0, number);
        assert_eq!(fs.write(&who, &big, number * PAGE, &data), Ok(data.len()));
        check(&fs);
    }
    let files: Vec<OpenFile> = (1..=small)
        .map(|file| {
            let open = create(&fs, &format!("small {file}"));
            for number in 0..9 {
                fs.write(&who, &open, number * PAGE, &page(file, number))
                    .unwrap();
            }
            check(&fs);
            open
        })
        .collect();
    for (file, open) in (1..).zip(&files) {
        for number in 0..9 {
            assert_reads(&fs, open, number * PAGE, &page(file, number));
        }
        assert_eq!(fs.getattr(open.node()).blocks, 9 * 8, "space is as it was");
        check(&fs);
    }
    for step in 0..large {
        let number = step * 1009 % large;
        assert_reads(&fs, &big, number * PAGE, &page(0, number));
        check(&fs);
    }
    assert_eq!(fs.getattr(big.node()).blocks, large * 8);
    // All of it at once does not fit, and goes past memory.
    let all: Vec<u8> = (0..large).flat_map(|number| page(0, number)).collect();
    assert_reads(&fs, &big, 0, &all);
    check(&fs);
    fs.drop_caches().unwrap();
    assert_eq!(fs.stats().pages, 0, "open files keep no pages");
    assert_reads(&fs, &big, 5, &all[5..70_000]);
}

#[test]
fn a_read_asks_for_little_and_one_in_order_for_more() {
    let store = RecordingStore::new(Arc::new(ModelStore::new()), Record::default());
    let fs = limited(store.clone(), 64 * MIB);
    let who = Caller::root();
    let file = create(&fs, "f");
    let pages = 2048;
    for number in 0..pages {
        fs.write(&who, &file, number * PAGE, &page(1, number))
            .unwrap();
    }
    let away = || {
        fs.drop_caches().unwrap();
        assert_eq!(fs.stats().pages, 0);
        store.hook().clear();
    };
    away();
    for number in 0..pages {
        assert_reads(&fs, &file, number * PAGE, &page(1, number));
    }
    let calls = store.hook().count(Call::ReadData);
    assert!(calls <= 16, "{calls} reads for 8 MiB in order");
    away();
    for step in 1..100 {
        let number = step * 997 % pages;
        assert_reads(&fs, &file, number * PAGE + 100, &page(1, number)[100..200]);
    }
    let held = fs.stats().pages;
    assert!(held <= 100, "99 reads in no order brought {held} pages");
}

#[test]
fn bytes_that_cannot_be_read_are_an_error_and_nothing_is_lost() {
    let store = FaultyStore::new(Arc::new(ModelStore::new()), Faults::default());
    let fs = limited(store.clone(), 64 * MIB);
    let who = Caller::root();
    for (name, pages) in [("small", 10), ("large", 1000)] {
        let file = create(&fs, name);
        for number in 0..pages {
            fs.write(&who, &file, number * PAGE, &page(1, number))
                .unwrap();
        }
        fs.drop_caches().unwrap();
        store.hook().plan(Fault {
            call: Some(Call::ReadData),
            after: 0,
            times: Some(3),
            error: Errno::EIO,
        });
        let mut buf = [0; 100];
        assert_eq!(fs.read(&file, 5 * PAGE, &mut buf), Err(Errno::EIO));
        // A part of a page cannot be written before the page is there; a whole one can.
        assert_eq!(fs.write(&who, &file, 5 * PAGE + 1, b"x"), Err(Errno::EIO));
        assert_eq!(
            fs.copy_file_range(&who, &file, 0, &file, 8 * PAGE, 10),
            Err(Errno::EIO)
        );
        for number in 0..pages {
            assert_reads(&fs, &file, number * PAGE, &page(1, number));
        }
    }
}

#[test]
fn sectors_of_pages_that_are_away_are_written_without_bringing_them() {
    let store = RecordingStore::new(Arc::new(ModelStore::new()), Record::default());
    let fs = limited(store.clone(), 64 * MIB);
    let who = Caller::root();
    let file = create(&fs, "f");
    let mut model: Vec<u8> = (0..400).flat_map(|number| page(1, number)).collect();
    fs.write(&who, &file, 0, &model).unwrap();
    let mut write = |offset: u64, len: usize| {
        fs.drop_caches().unwrap();
        store.hook().clear();
        let data = vec![offset as u8 | 1; len];
        let version = fs.getattr(file.node());
        assert_eq!(fs.write(&who, &file, offset, &data), Ok(len));
        let now = fs.getattr(file.node());
        assert_eq!((now.size, now.blocks), (version.size, version.blocks));
        assert!(now.mtime >= version.mtime);
        model[offset as usize..offset as usize + len].copy_from_slice(&data);
        let brought = (store.hook().count(Call::ReadData), fs.stats().pages);
        assert_reads(&fs, &file, 0, &model);
        brought
    };
    for (offset, len) in [(0, 512), (9 * PAGE + 1024, 3072), (399 * PAGE + 3584, 512)] {
        assert_eq!(write(offset, len), (0, 0), "{len} at {offset}");
    }
    for (offset, len) in [(1, 512), (512, 511), (PAGE - 512, 1024)] {
        let (reads, pages) = write(offset, len);
        assert!(reads > 0 && pages > 0, "{len} at {offset}");
    }
    assert_eq!(write(5 * PAGE, 4096), (0, 1), "a page as a whole is there");
}

#[test]
fn what_is_written_past_memory_is_not_seen_before_what_was_written_in_it() {
    const PAGES: u64 = 100;
    const ROUNDS: u64 = 30_000;
    let fs = limited(Arc::new(ModelStore::new()), 64 * MIB);
    let (file, who) = (create(&fs, "f"), Caller::root());
    for number in 0..PAGES {
        fs.write(&who, &file, number * PAGE, &[0; PAGE as usize])
            .unwrap();
    }
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut seen = 0;
            while !done.load(Ordering::Acquire) {
                let mut both = [0; 2 * PAGE as usize];
                fs.read(&file, 10 * PAGE, &mut both).unwrap();
                let word = |at: usize| u64::from_le_bytes(both[at..at + 8].try_into().unwrap());
                let (first, second) = (word(0), word(PAGE as usize + 512));
                assert!(first == second || first == second + 1, "{first}, {second}");
                seen = seen.max(second);
            }
            seen
        });
        for round in 1..=ROUNDS {
            if round % 3 == 0 {
                fs.drop_caches().unwrap();
            }
            let sector = round.to_le_bytes().repeat(64);
            // The first is in memory, if it was read; the second may be away.
            fs.write(&who, &file, 10 * PAGE, &sector.repeat(8)).unwrap();
            fs.write(&who, &file, 11 * PAGE + 512, &sector).unwrap();
        }
        done.store(true, Ordering::Release);
        assert!(reader.join().unwrap() <= ROUNDS);
    });
    let mut last = [0; 512];
    fs.read(&file, 11 * PAGE + 512, &mut last).unwrap();
    assert_eq!(last[..8], ROUNDS.to_le_bytes());
}

#[test]
fn inodes_and_names_stay_within_the_limit_and_come_back() {
    const LIMIT: u64 = 4 * MIB;
    let fs = limited(Arc::new(ModelStore::new()), LIMIT);
    let (who, root) = (Caller::root(), fs.root());
    let held = || {
        let stats = fs.stats();
        // As estimated by the library; directories have a second chance.
        let bytes = stats.inodes * 136 + stats.names * 64;
        assert!(bytes <= LIMIT + LIMIT / 4, "{stats:?}");
        stats.inodes
    };
    let mut most = 0;
    for dir in 0..60 {
        let dir = fs
            .mkdir(&who, &root, format!("d{dir}").as_bytes(), 0o755)
            .unwrap();
        for file in 0..1000 {
            fs.mknod(
                &who,
                &dir,
                format!("f{file}").as_bytes(),
                holdfast_types::FileType::Regular,
                0o644,
                0,
            )
            .unwrap();
            most = most.max(held());
        }
    }
    assert!((10_000..30_000).contains(&most), "{most} of 60,000");
    for dir in (0..60).rev() {
        let dir = fs
            .lookup(&who, &root, format!("d{dir}").as_bytes())
            .unwrap();
        assert_eq!(fs.getattr(&dir).nlink, 2);
        for file in 0..1000 {
            fs.lookup(&who, &dir, format!("f{file}").as_bytes())
                .unwrap();
            held();
        }
    }
    // What is in use stays.
    let used: Vec<_> = (0..60)
        .map(|dir| {
            fs.lookup(&who, &root, format!("d{dir}").as_bytes())
                .unwrap()
        })
        .collect();
    for dir in &used {
        fs.lookup(&who, dir, b"f7").unwrap();
    }
    assert!(used.iter().all(|dir| fs.getattr(dir).nlink == 2));
}

/// A kernel: it holds what it looked up until it is asked for it.
#[derive(Default)]
struct Kernel {
    asked: Mutex<Vec<Ino>>,
}

impl Observer for Kernel {
    fn inode_changed(&self, _: Ino, _: bool) {}
    fn entry_changed(&self, _: Ino, _: &[u8]) {}
    fn is_to_forget(&self, inodes: &[Ino]) {
        self.asked.lock().unwrap().extend(inodes);
    }
}

/// Files that a kernel has looked up, and holds.
fn held_files(fs: &FileSystem, count: u64) -> Vec<Ino> {
    held_files_called(fs, "f", count)
}

fn held_files_called(fs: &FileSystem, first: &str, count: u64) -> Vec<Ino> {
    let (who, root) = (Caller::root(), fs.root());
    let make = |file| {
        let name = format!("{first}{file}");
        let kind = holdfast_types::FileType::Regular;
        let node = fs.mknod(&who, &root, name.as_bytes(), kind, 0o644, 0);
        node.unwrap().into_raw()
    };
    (0..count).map(make).collect()
}

#[test]
fn what_an_observer_holds_goes_as_other_inodes_do_and_nothing_is_asked_back() {
    let fs = limited(Arc::new(ModelStore::new()), 4 * MIB);
    let kernel = Arc::new(Kernel::default());
    fs.set_observer(Some(kernel.clone()));
    let held = held_files(&fs, 40_000);
    let stats = fs.stats();
    // All of it, at 136 bytes each.
    assert!(stats.inodes < 32_000, "{stats:?}");
    assert_eq!(stats.inodes + stats.inodes_away, 40_001);
    assert!(kernel.asked.lock().unwrap().is_empty());
    for (number, ino) in held.iter().enumerate() {
        let node = fs.lookup(&Caller::root(), &fs.root(), format!("f{number}").as_bytes());
        assert_eq!(node.unwrap().ino(), *ino, "file {number}");
    }
    assert!(fs.stats().inodes < 32_000);
    held.iter().for_each(|ino| fs.forget(*ino, 1));
    assert_eq!(fs.stats().inodes_away, 0);
    fs.each_known_by_number(|ino, _| panic!("{ino:?} is held"));
    fs.set_observer(None);
}

#[test]
fn what_takes_too_much_to_remember_is_asked_back_and_less_often_while_little_comes() {
    let fs = limited(Arc::new(ModelStore::new()), 64 * KIB);
    let kernel = Arc::new(Kernel::default());
    fs.set_observer(Some(kernel.clone()));
    let held = held_files(&fs, 40_000);
    let asked = std::mem::take(&mut *kernel.asked.lock().unwrap());
    assert!(asked.len() > 16_000, "{} asked back", asked.len());
    let mut distinct = asked.clone();
    distinct.sort_unstable();
    distinct.dedup();
    assert!(2 * distinct.len() > asked.len().min(40_000), "in turn");
    for ino in &distinct {
        fs.forget(*ino, 1);
    }
    let away = fs.stats().inodes_away;
    assert!(away <= (held.len() - distinct.len()) as u64, "{away}");
    fs.set_observer(None);
}

#[test]
fn a_memory_of_nothing_lets_most_go_that_is_not_used() {
    let fs = limited(Arc::new(ModelStore::new()), 0);
    let held = held_files(&fs, 2_000);
    assert!(fs.stats().inodes < 100, "{:?}", fs.stats());
    let used: Vec<_> = held
        .iter()
        .step_by(100)
        .map(|ino| fs.node(*ino).unwrap())
        .collect();
    held.iter()
        .for_each(|ino| assert_eq!(fs.getattr(&fs.node(*ino).unwrap()).nlink, 1));
    let inodes = fs.stats().inodes;
    assert!(
        (20..600).contains(&inodes),
        "{inodes} with {} in use",
        used.len()
    );
}

#[test]
fn a_thread_within_the_store_lets_nothing_go_and_owes_it_and_the_next_operation_repays() {
    let fs = limited(Arc::new(ModelStore::new()), 4 * MIB);
    let deferred = || {
        let memory = fs.memory_in_use().unwrap();
        let totals = memory.shrinkers().totals();
        (totals["metadata"].deferred, totals["content"].deferred)
    };
    let guard = within_store();
    let held = held_files(&fs, 20_000);
    for number in 0..20 {
        let file = create(&fs, &format!("large {number}"));
        fs.write(&Caller::root(), &file, 0, &vec![1; 300 << 10])
            .unwrap();
    }
    let (stats, owed) = (fs.stats(), deferred());
    assert!(stats.inodes > held.len() as u64, "{stats:?}");
    assert!(stats.bytes > 6_000_000, "{stats:?}");
    assert!(owed.0 > 100 && owed.1 > 100, "{owed:?}");
    assert!(owed.0 <= 2 * stats.inodes && owed.1 <= 2 * stats.pages);
    drop(guard);
    let file = create(&fs, "one more");
    fs.write(&Caller::root(), &file, 0, &vec![1; MIB as usize])
        .unwrap();
    held_files_called(&fs, "g", 5_000);
    let now = fs.stats();
    assert!(
        now.inodes * 136 + now.names * 64 <= 2 * MIB + MIB / 2,
        "{now:?}"
    );
    assert!(now.bytes <= 3 * MIB, "{now:?}");
}

#[test]
fn names_count_for_as_much_as_they_are_long() {
    for (length, least, most) in [(8, 60, 80), (200, 220, 320)] {
        let fs = limited(Arc::new(ModelStore::new()), 64 * MIB);
        for number in 0..3000 {
            create(&fs, &format!("{number:0length$}"));
        }
        let memory = fs.memory_in_use().unwrap();
        memory.look();
        let counted = memory.seen().usage.of(Class::Names) / fs.stats().names;
        assert!((least..most).contains(&counted), "{length}: {counted}");
    }
}
