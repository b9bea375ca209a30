//! What is used again and again stays in memory beside a walk over ten times as much as fits.

use holdfast_core::{FileSystem, Options, Store};
use holdfast_testkit::memory::within;
use holdfast_testkit::store::{Call, Hook, ModelStore, Wrapped};
use holdfast_types::{Caller, FileType, OpenFlags, Result};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread::sleep;
use std::time::Duration;

const MIB: u64 = 1 << 20;
/// Files of a directory of the working set, and of one that is walked.
const USED_EACH: u64 = 100;
const WALKED_EACH: u64 = 500;

/// Counts what is asked for.
#[derive(Default)]
struct Loads(AtomicU64);

impl Hook for Loads {
    fn before(&self, call: Call) -> Result<()> {
        let loads = [
            Call::LoadInodes,
            Call::Walk,
            Call::ReadNames,
            Call::ReadData,
        ];
        self.0.fetch_add(u64::from(loads.contains(&call)), Relaxed);
        Ok(())
    }
}

/// A tree of which a part is used, and the rest walked.
struct Tree {
    store: Arc<ModelStore>,
    used: u64,
    walked: u64,
    bytes: usize,
}

impl Tree {
    fn new(used: u64, walked: u64, bytes: usize) -> Self {
        let store = Arc::new(ModelStore::new());
        let fs = within(store.clone(), Options::default(), Some(u64::MAX)).unwrap();
        let (who, root) = (Caller::root(), fs.root());
        for (kind, count, each) in [("u", used, USED_EACH), ("w", walked, WALKED_EACH)] {
            for number in 0..count / each {
                let name = format!("{kind}{number}");
                let dir = fs.mkdir(&who, &root, name.as_bytes(), 0o755).unwrap();
                for file in 0..each {
                    let name = format!("{file}");
                    if bytes == 0 {
                        let kind = FileType::Regular;
                        fs.mknod(&who, &dir, name.as_bytes(), kind, 0o644, 0)
                            .unwrap();
                    } else {
                        let flags = OpenFlags::CREATE | OpenFlags::READ_WRITE;
                        let file = fs
                            .create(&who, &dir, name.as_bytes(), 0o644, flags)
                            .unwrap();
                        fs.write(&who, &file, 0, &vec![1; bytes]).unwrap();
                    }
                }
            }
        }
        drop(root);
        fs.close().unwrap();
        Self {
            store,
            used,
            walked,
            bytes,
        }
    }

    /// Looks at a file, and reads it if there is anything in it.
    fn look_at(&self, fs: &FileSystem, kind: &str, each: u64, number: u64) {
        let who = Caller::root();
        let dir = format!("{kind}{}", number / each);
        let dir = fs.lookup(&who, &fs.root(), dir.as_bytes()).unwrap();
        let name = format!("{}", number % each);
        let file = fs.lookup(&who, &dir, name.as_bytes()).unwrap();
        assert_eq!(fs.getattr(&file).size, self.bytes as u64);
        if self.bytes > 0 {
            let open = fs.open(&who, &file, OpenFlags::READ_WRITE).unwrap();
            let mut buf = vec![0; self.bytes];
            assert_eq!(fs.read(&open, 0, &mut buf), Ok(self.bytes));
        }
    }

    /// How many of 1,000 uses of the working set find it in memory, beside a walk that looks at
    /// each file `uses` times. There is one use for `pace` files of the walk.
    fn hits(&self, memory: u64, pace: u64, uses: u64) -> u64 {
        let store = Wrapped::new(Arc::clone(&self.store) as Arc<dyn Store>, Loads::default());
        let fs = within(store.clone(), Options::default(), Some(memory)).unwrap();
        let loads = || store.hook().0.load(Relaxed);
        for _ in 0..2 {
            for number in 0..self.used {
                self.look_at(&fs, "u", USED_EACH, number);
            }
            // What is used again a second later is used again, though nothing else came meanwhile.
            sleep(Duration::from_millis(2100));
        }
        let (mut asked, mut found) = (0, 0);
        for walked in 0..self.walked {
            for _ in 0..uses {
                self.look_at(&fs, "w", WALKED_EACH, walked);
            }
            if walked % pace == 0 {
                let before = loads();
                self.look_at(&fs, "u", USED_EACH, asked % self.used);
                asked += 1;
                found += u64::from(loads() == before);
            }
        }
        assert!(loads() > self.walked / 100, "the walk came from the store");
        found * 1000 / asked
    }
}

impl Tree {
    /// How many of 1,000 accesses that count found everything in memory.
    fn found(&self, memory: u64, accesses: impl Iterator<Item = (u64, bool)>) -> u64 {
        let store = Wrapped::new(Arc::clone(&self.store) as Arc<dyn Store>, Loads::default());
        let options = Options {
            statahead: false,
            ..Options::default()
        };
        let fs = within(store.clone(), options, Some(memory)).unwrap();
        let loads = || store.hook().0.load(Relaxed);
        let (mut asked, mut found) = (0, 0);
        for (number, counts) in accesses {
            let before = loads();
            self.look_at(&fs, "w", WALKED_EACH, number);
            asked += u64::from(counts);
            found += u64::from(counts && loads() == before);
        }
        found * 1000 / asked
    }
}

/// From one working set of this size to another one, each read six times, beside as many files that
/// are used once. The uses of the second one count: of 1,000 833 can find it in memory.
fn shift(size: u64) -> impl Iterator<Item = (u64, bool)> {
    let uses = (0..12).flat_map(move |read| (0..size).map(move |file| (read / 6, file)));
    uses.zip(2 * size..)
        .flat_map(move |((set, file), once)| [(set * size + file, set == 1), (once, false)])
}

#[test]
fn another_working_set_takes_the_place_of_the_last_one() {
    // About 17,000 fit.
    let tree = Tree::new(0, 14 * 8500, 0);
    for (size, goal) in [(5000, 800), (8500, 350)] {
        let found = tree.found(4 * MIB, shift(size));
        assert!(found >= goal, "{found} of 1,000 in a set of {size}");
    }
}

#[test]
fn inodes_take_what_content_leaves_and_give_it_back() {
    let tree = Tree::new(0, 14_000, 4096);
    let store = Wrapped::new(Arc::clone(&tree.store) as Arc<dyn Store>, Loads::default());
    let fs = within(store, Options::default(), Some(4 * MIB)).unwrap();
    let who = Caller::root();
    let look_at_all = || {
        for number in 0..14_000 {
            let dir = format!("w{}", number / WALKED_EACH);
            let dir = fs.lookup(&who, &fs.root(), dir.as_bytes()).unwrap();
            let name = format!("{}", number % WALKED_EACH);
            fs.lookup(&who, &dir, name.as_bytes()).unwrap();
        }
        fs.stats().inodes
    };
    // With their names they take three quarters of all.
    assert!(look_at_all() > 13_500);
    for number in 0..2000 {
        tree.look_at(&fs, "w", WALKED_EACH, number);
    }
    let stats = fs.stats();
    assert!(stats.bytes > MIB && stats.inodes < 12_000, "{stats:?}");
    assert!(look_at_all() > 7_000, "half is theirs");
}

#[test]
fn inodes_that_are_used_stay_beside_a_walk_over_ten_times_as_many_as_fit() {
    // About 9,000 fit, with their names.
    let tree = Tree::new(900, 90_000, 0);
    for (pace, uses) in [(1, 1), (10, 1), (10, 3), (50, 3)] {
        let hits = tree.hits(4 * MIB, pace, uses);
        assert!(
            hits >= 990,
            "{hits} of 1,000 at 1/{pace}, {uses} uses a file"
        );
    }
}

#[test]
fn content_that_is_used_stays_beside_a_walk_over_ten_times_as_much_as_fits() {
    // About 1,500 files fit.
    let tree = Tree::new(200, 15_000, 4096);
    // At the slowest pace there are few uses to count.
    for (pace, uses, goal) in [(1, 1, 990), (10, 3, 990), (50, 3, 980)] {
        let hits = tree.hits(8 * MIB, pace, uses);
        assert!(
            hits >= goal,
            "{hits} of 1,000 at 1/{pace}, {uses} uses a file"
        );
    }
}

/// Pages of the large file that is used, and of each that is read through once.
const LARGE: u64 = 256;
const PAGE: u64 = 4096;

/// How many of 1,000 uses of single pages of a large file find them in memory. Beside them, files
/// of ten times what fits are read from start to end, in pieces of `piece` bytes. There is one use
/// for `pace` pages of these.
fn page_hits(pace: u64, piece: usize) -> u64 {
    let store = Arc::new(ModelStore::new());
    let (who, others) = (Caller::root(), 80);
    let fs = within(store.clone(), Options::default(), Some(u64::MAX)).unwrap();
    let flags = OpenFlags::CREATE | OpenFlags::READ_WRITE;
    for number in 0..=others {
        let name = format!("{number}");
        let root = fs.root();
        let file = fs
            .create(&who, &root, name.as_bytes(), 0o644, flags)
            .unwrap();
        let bytes = vec![1; (LARGE * PAGE) as usize];
        assert_eq!(fs.write(&who, &file, 0, &bytes), Ok(bytes.len()));
    }
    fs.close().unwrap();

    let store = Wrapped::new(store as Arc<dyn Store>, Loads::default());
    let fs = within(store.clone(), Options::default(), Some(8 * MIB)).unwrap();
    let loads = || store.hook().0.load(Relaxed);
    let open = |number: u64| {
        let file = fs
            .lookup(&who, &fs.root(), format!("{number}").as_bytes())
            .unwrap();
        fs.open(&who, &file, OpenFlags::empty()).unwrap()
    };
    let used = open(0);
    let mut page = [0; PAGE as usize];
    // Here and there, and not in order.
    let mut use_one = |count: u64| {
        let offset = count * 97 % LARGE * PAGE;
        assert_eq!(fs.read(&used, offset, &mut page), Ok(page.len()));
    };
    for _ in 0..2 {
        (0..LARGE).for_each(&mut use_one);
        sleep(Duration::from_millis(2100));
    }
    let (mut asked, mut found, mut due) = (0, 0, 0);
    let mut piece = vec![0; piece];
    for number in 1..=others {
        let file = open(number);
        for at in (0..LARGE * PAGE).step_by(piece.len()) {
            assert_eq!(fs.read(&file, at, &mut piece), Ok(piece.len()));
            due += piece.len() as u64;
            while due >= pace * PAGE {
                due -= pace * PAGE;
                let before = loads();
                use_one(asked);
                asked += 1;
                found += u64::from(loads() == before);
            }
        }
    }
    assert!(loads() > others, "all of them came from the store");
    found * 1000 / asked
}

#[test]
fn pages_of_a_large_file_that_are_used_stay_beside_others_that_are_read_through() {
    std::thread::scope(|scope| {
        for (pace, piece) in [(1, 4096), (10, 4096), (10, 512), (50, 65_536)] {
            scope.spawn(move || {
                let hits = page_hits(pace, piece);
                assert!(
                    hits >= 990,
                    "{hits} of 1,000 at 1/{pace}, {piece} bytes a read"
                );
            });
        }
    });
}
