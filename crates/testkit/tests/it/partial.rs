//! Directories that are not in memory as a whole.

use holdfast_core::{FileSystem, Node, Options};
use holdfast_testkit::memory::{partial, within};
use holdfast_testkit::store::{Call, Hook, ModelStore, Wrapped};
use holdfast_types::{Caller, Errno, FileType, Ino, OpenFlags, RenameFlags, Result};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// Names of the directory of these tests: more than an eighth of the little memory has room for.
const NAMES: u64 = 3000;
const LITTLE: u64 = 1 << 20;

/// Counts what the store is asked for.
#[derive(Default)]
struct Asked {
    lookups: AtomicU64,
    runs: AtomicU64,
    loads: AtomicU64,
}

impl Hook for Asked {
    fn before(&self, call: Call) -> Result<()> {
        match call {
            Call::LookUp => self.lookups.fetch_add(1, Relaxed),
            Call::ReadNames => self.runs.fetch_add(1, Relaxed),
            Call::LoadInodes => self.loads.fetch_add(1, Relaxed),
            _ => 0,
        };
        Ok(())
    }
}

fn name(number: u64) -> Vec<u8> {
    format!("name-{number}").into_bytes()
}

fn make(fs: &FileSystem, dir: &Node, name: &[u8]) -> Result<Node> {
    fs.mknod(&Caller::root(), dir, name, FileType::Regular, 0o644, 0)
}

fn find(fs: &FileSystem, dir: &Node, name: &[u8]) -> Result<Ino> {
    fs.lookup(&Caller::root(), dir, name).map(|node| node.ino())
}

/// All names but the dots, with their cookies.
fn list(fs: &FileSystem, dir: &Node) -> Vec<(Vec<u8>, u64)> {
    let open = fs.open(&Caller::root(), dir, OpenFlags::DIRECTORY).unwrap();
    let mut names = Vec::new();
    fs.read_dir(&open, 2, &mut |entry| {
        names.push((entry.name.to_vec(), entry.cookie));
        true
    })
    .unwrap();
    names
}

struct Scene {
    store: Arc<ModelStore>,
    asked: Arc<Wrapped<Asked>>,
    inos: Vec<Ino>,
    listed: Vec<(Vec<u8>, u64)>,
}

impl Scene {
    /// A store with a directory of many names.
    fn new() -> Self {
        let store = Arc::new(ModelStore::new());
        let fs = within(store.clone(), Options::default(), Some(u64::MAX)).unwrap();
        let dir = fs
            .mkdir(&Caller::root(), &fs.root(), b"dir", 0o755)
            .unwrap();
        let made = (0..NAMES).map(|number| make(&fs, &dir, &name(number)).unwrap().ino());
        let inos = made.collect();
        // The greatest cookie belongs to no name.
        make(&fs, &dir, b"last").unwrap();
        fs.unlink(&Caller::root(), &dir, b"last").unwrap();
        let listed = list(&fs, &dir);
        drop(dir);
        fs.close().unwrap();
        Self {
            asked: Wrapped::new(store.clone(), Asked::default()),
            store,
            inos,
            listed,
        }
    }

    /// Names do not come along with those that are asked for.
    fn open(&self, whole_directory: u32, memory: u64) -> (FileSystem, Node) {
        self.open_with(whole_directory, memory, false)
    }

    fn open_with(&self, whole_directory: u32, memory: u64, statahead: bool) -> (FileSystem, Node) {
        let options = Options {
            whole_directory,
            statahead,
            ..Options::default()
        };
        let fs = within(self.asked.clone(), options, Some(memory)).unwrap();
        let dir = fs.lookup(&Caller::root(), &fs.root(), b"dir").unwrap();
        self.asked.hook().lookups.store(0, Relaxed);
        self.asked.hook().runs.store(0, Relaxed);
        self.asked.hook().loads.store(0, Relaxed);
        (fs, dir)
    }

    fn lookups(&self) -> u64 {
        self.asked.hook().lookups.load(Relaxed)
    }
}

#[test]
fn names_are_asked_for_one_by_one_and_remembered_whether_they_are_there_or_not() {
    let scene = Scene::new();
    let (fs, dir) = scene.open(16, LITTLE);
    for round in 0..3 {
        assert_eq!(find(&fs, &dir, &name(7)), Ok(scene.inos[7]), "{round}");
        assert_eq!(find(&fs, &dir, b"none"), Err(Errno::ENOENT));
        assert_eq!(scene.lookups(), 2);
    }
    let loads = scene.asked.hook().loads.load(Relaxed);
    assert_eq!(loads, 0, "a name comes with its inode");
    assert!(fs.stats().names < 100, "{} names", fs.stats().names);
    make(&fs, &dir, b"none").unwrap();
    assert!(find(&fs, &dir, b"none").is_ok());
    fs.unlink(&Caller::root(), &dir, &name(7)).unwrap();
    assert_eq!(find(&fs, &dir, &name(7)), Err(Errno::ENOENT));
    assert_eq!(scene.lookups(), 2);
    let mut expected = scene.listed.clone();
    expected.retain(|(listed, _)| *listed != name(7));
    let listed = list(&fs, &dir);
    assert_eq!(listed[..listed.len() - 1], expected);
    let (new, cookie) = listed.last().unwrap();
    let last = scene.listed.last().unwrap().1;
    assert!(new == b"none" && *cookie > last + 1, "a cookie came back");
    assert_eq!(scene.store.contradictions(), [""; 0]);
}

#[test]
fn a_directory_that_is_used_much_and_fits_comes_as_a_whole() {
    let scene = Scene::new();
    let (fs, dir) = scene.open(16, u64::MAX);
    for number in 0..NAMES {
        let found = find(&fs, &dir, &name(number));
        assert_eq!(found, Ok(scene.inos[number as usize]));
    }
    assert_eq!(find(&fs, &dir, b"none"), Err(Errno::ENOENT));
    let most = NAMES / 16 + 1;
    assert!(scene.lookups() <= most, "{} lookups", scene.lookups());
    assert_eq!(fs.stats().names, NAMES + 1);
    assert_eq!(list(&fs, &dir), scene.listed);
    assert_eq!(scene.store.contradictions(), [""; 0]);
}

#[test]
fn a_directory_whose_names_come_in_runs_comes_as_a_whole_too() {
    let scene = Scene::new();
    let (fs, dir) = scene.open_with(10, u64::MAX, true);
    for (name, _) in &scene.listed {
        find(&fs, &dir, name).unwrap();
    }
    let asked = scene.lookups();
    assert!(asked < NAMES / 16, "{asked} names were asked for");
    assert_eq!(find(&fs, &dir, b"never"), Err(Errno::ENOENT));
    assert_eq!(scene.lookups(), asked, "it is there as a whole");
}

#[test]
fn a_directory_that_outgrows_memory_is_no_longer_there_as_a_whole() {
    let store = Arc::new(ModelStore::new());
    let options = Options {
        whole_directory: 16,
        ..Options::default()
    };
    let fs = within(store.clone(), options, Some(LITTLE)).unwrap();
    let who = Caller::root();
    let dir = fs.mkdir(&who, &fs.root(), b"dir", 0o755).unwrap();
    let before = fs.getattr(&dir).size;
    for number in 0..NAMES {
        make(&fs, &dir, &name(number)).unwrap();
        assert_eq!(
            make(&fs, &dir, &name(number / 2)).map(drop),
            Err(Errno::EEXIST)
        );
    }
    assert!(fs.stats().names < NAMES / 2, "{} names", fs.stats().names);
    let each = (fs.getattr(&dir).size - before) / NAMES;
    let fresh = fs.mkdir(&who, &fs.root(), b"fresh", 0o755).unwrap();
    make(&fs, &fresh, b"one").unwrap();
    assert_eq!(fs.getattr(&fresh).size - before, each);
    // Emptied as by rm -r, one of four by a rename over another.
    assert_eq!(fs.rmdir(&who, &fs.root(), b"dir"), Err(Errno::ENOTEMPTY));
    for (number, (listed, _)) in list(&fs, &dir).into_iter().enumerate() {
        assert_eq!(listed, name(number as u64));
        match number % 4 {
            0 => {
                let over = name(number as u64 + 1);
                let flags = RenameFlags::empty();
                fs.rename(&who, &dir, &listed, &dir, &over, flags).unwrap();
            }
            _ => fs.unlink(&who, &dir, &listed).unwrap(),
        }
    }
    assert_eq!(list(&fs, &dir), []);
    assert_eq!(fs.getattr(&dir).size, before);
    fs.rmdir(&who, &fs.root(), b"dir").unwrap();
    assert_eq!(make(&fs, &dir, b"late").map(drop), Err(Errno::ENOENT));
    drop(dir);
    drop(fresh);
    fs.drop_caches().unwrap();
    assert_eq!(fs.stats().names, 1, "the root has one");
    assert_eq!(store.contradictions(), [""; 0]);
}

#[test]
fn a_directory_in_use_makes_way_for_what_cannot() {
    let options = Options {
        whole_directory: 16,
        ..Options::default()
    };
    let fs = within(Arc::new(ModelStore::new()), options, Some(1 << 20)).unwrap();
    let who = Caller::root();
    let dirs = [b"one", b"two"].map(|name| fs.mkdir(&who, &fs.root(), name, 0o755).unwrap());
    let mut used = Vec::new();
    for dir in &dirs {
        used.extend((0..NAMES).map(|number| make(&fs, dir, &name(number)).unwrap()));
    }
    // Inodes alone take nearly all that there is.
    let names = fs.stats().names;
    assert!(names < NAMES + NAMES / 2, "{names} names are in memory");
    for (number, node) in (0..NAMES).zip(&used) {
        assert_eq!(find(&fs, &dirs[0], &name(number)), Ok(node.ino()));
    }
}

/// Looks at names that are there all the time, that never are, and at one that moves to and fro.
fn read(fs: &FileSystem, dir: &Node, scene: &Scene, round: u64) {
    let who = Caller::root();
    let number = round * 37 % NAMES;
    let path = [b"dir/", &name(number)[..]].concat();
    let attr = fs.stat_at(&who, &fs.root(), &path, true).unwrap();
    assert_eq!(attr.ino, scene.inos[number as usize]);
    assert_eq!(find(fs, dir, &name(number)), Ok(attr.ino));
    let absent = [b"dir/none-", &name(number % 50)[..]].concat();
    let absent = fs.stat_at(&who, &fs.root(), &absent, true);
    assert_eq!(absent.map(drop), Err(Errno::ENOENT));
    if round.is_multiple_of(64) {
        let listed = list(fs, dir);
        let stay = listed.iter().filter(|(name, _)| name.starts_with(b"name-"));
        assert_eq!(stay.count() as u64, NAMES);
    }
}

#[test]
fn who_reads_without_locks_misses_nothing_while_names_leave_memory_and_come_back() {
    let scene = Scene::new();
    let (fs, dir) = scene.open(16, u64::MAX);
    let (who, done) = (Caller::root(), AtomicBool::new(false));
    let whole = fs.options();
    std::thread::scope(|scope| {
        for reader in 0..2 {
            let (fs, dir, scene, done) = (&fs, &dir, &scene, &done);
            scope.spawn(move || {
                let mut round = reader * 1000;
                while !done.load(Relaxed) {
                    read(fs, dir, scene, round);
                    round += 1;
                }
            });
        }
        for round in 0..60 {
            // Partial with the next change, and whole again once enough was asked for.
            fs.set_options(partial(whole));
            make(&fs, &dir, b"to").unwrap();
            let flags = RenameFlags::empty();
            fs.rename(&who, &dir, b"to", &dir, b"fro", flags).unwrap();
            fs.set_options(whole);
            for number in 0..NAMES / 16 + 2 {
                let number = (round * 211 + number) % NAMES;
                assert!(find(&fs, &dir, &name(number)).is_ok());
            }
            fs.unlink(&who, &dir, b"fro").unwrap();
        }
        done.store(true, Relaxed);
    });
    assert!(scene.lookups() > 60, "it was never partial");
    assert_eq!(list(&fs, &dir), scene.listed);
    assert_eq!(scene.store.contradictions(), [""; 0]);
}
