//! Reads by those that keep what they read (`read_once`): what they are given is what any read
//! gives, and small files that nothing else uses stay out of memory. Over a store that can bring
//! everything back.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use holdfast_core::store::Store;
use holdfast_core::types::{Caller, Errno, OpenFlags};
use holdfast_core::{FileSystem, OpenFile, Options};
use holdfast_testkit::store::ModelStore;

/// The largest that is read past memory, and the lengths around it.
const SMALL: usize = 256 << 10;
const LENGTHS: [usize; 9] = [0, 1, 100, 4096, 4097, 50_000, SMALL, SMALL + 1, 3 * SMALL];

struct World {
    fs: FileSystem,
    caller: Caller,
}

impl World {
    fn new() -> Self {
        Self::over(Arc::new(ModelStore::new()))
    }

    fn over(store: Arc<dyn Store>) -> Self {
        Self {
            fs: FileSystem::new(store, Options::default()).unwrap(),
            caller: Caller::root(),
        }
    }

    /// A file of that length, each byte by its place; the middle of every second one is a hole.
    fn file(&self, name: &str, len: usize, hole: bool) -> OpenFile {
        let (caller, root) = (&self.caller, self.fs.root());
        let flags = OpenFlags::READ_WRITE | OpenFlags::CREATE;
        let file = self
            .fs
            .create(caller, &root, name.as_bytes(), 0o644, flags)
            .unwrap();
        let bytes: Vec<u8> = (0..len).map(|at| (at % 251) as u8 + 1).collect();
        let (first, last) = match hole {
            true => (len / 3, len - len / 3),
            false => (len, len),
        };
        self.fs.write(caller, &file, 0, &bytes[..first]).unwrap();
        self.fs
            .write(caller, &file, last as u64, &bytes[last..])
            .unwrap();
        file
    }

    fn open(&self, name: &str) -> OpenFile {
        let root = self.fs.root();
        let node = self
            .fs
            .lookup(&self.caller, &root, name.as_bytes())
            .unwrap();
        self.fs
            .open(&self.caller, &node, OpenFlags::READ_WRITE)
            .unwrap()
    }
}

#[test]
fn it_reads_what_any_read_reads() {
    let world = World::new();
    for (number, len) in LENGTHS.iter().enumerate() {
        for hole in [false, true] {
            drop(world.file(&format!("{number}{hole}"), *len, hole));
        }
    }
    for (number, len) in LENGTHS.iter().enumerate() {
        for hole in [false, true] {
            let name = format!("{number}{hole}");
            let starts = [
                0,
                1,
                len / 3,
                len / 2,
                len.saturating_sub(1),
                *len,
                len + 5000,
            ];
            for offset in starts {
                for asked in [0, 1, 5000, 128 << 10] {
                    world.fs.drop_caches().unwrap();
                    let file = world.open(&name);
                    let (mut once, mut again) = (vec![0xaa; asked], vec![0xaa; asked]);
                    let offset = offset as u64;
                    let first = world.fs.read_once(&file, offset, &mut once).unwrap();
                    let kept = world.fs.stats().pages;
                    assert!(kept == 0 || *len > SMALL, "{name}: {kept} pages");
                    let second = world.fs.read(&file, offset, &mut again).unwrap();
                    assert_eq!(first, second, "{name}: {asked} at {offset}");
                    assert!(once == again, "{name}: {asked} at {offset}");
                    // In memory now, as far as it is.
                    let third = world.fs.read_once(&file, offset, &mut once).unwrap();
                    assert!(
                        third == second && once == again,
                        "{name}: {asked} at {offset}"
                    );
                }
            }
        }
    }
}

#[test]
fn it_fails_as_any_read_fails() {
    let world = World::new();
    drop(world.file("f", 5000, false));
    world.fs.drop_caches().unwrap();
    let (caller, root) = (&world.caller, world.fs.root());
    let node = world.fs.lookup(caller, &root, b"f").unwrap();
    let written = world.fs.open(caller, &node, OpenFlags::WRITE_ONLY).unwrap();
    let (read, mut buf) = (world.open("f"), [0; 10]);
    let mut both = |file: &OpenFile, offset| {
        let once = world.fs.read_once(file, offset, &mut buf);
        assert_eq!(once, world.fs.read(file, offset, &mut buf));
        once
    };
    assert_eq!(both(&written, 0), Err(Errno::EBADF));
    assert_eq!(both(&read, u64::MAX), Err(Errno::EINVAL));
    assert_eq!(both(&read, i64::MAX as u64 - 5), Err(Errno::EINVAL));
    world.fs.revoke().unwrap();
    assert_eq!(both(&read, 0), Err(Errno::EIO));
}

#[test]
fn it_sees_what_was_written_and_not_yet_handed_over_and_moves_the_access_time() {
    let world = World::new();
    drop(world.file("f", 5000, false));
    world.fs.drop_caches().unwrap();
    let file = world.open("f");
    let before = world.fs.getattr(file.node()).atime;
    let deadline = Instant::now() + Duration::from_secs(60);
    let mut buf = [0; 6];
    // The clock of files goes on in steps.
    while world.fs.getattr(file.node()).atime == before {
        assert!(Instant::now() < deadline, "the access time stays");
        // Relatime: a read behind a change moves it.
        world.fs.drop_caches().unwrap();
        assert_eq!(world.fs.read_once(&file, 4997, &mut buf), Ok(3));
        thread::sleep(Duration::from_millis(1));
        if world.fs.getattr(file.node()).atime == before {
            world.fs.write(&world.caller, &file, 0, b"x").unwrap();
        }
    }
    world.fs.write(&world.caller, &file, 4999, b"new!").unwrap();
    assert_eq!(world.fs.read_once(&file, 4998, &mut buf), Ok(5));
    assert_eq!(&buf[1..5], b"new!");
}

#[test]
fn beside_writers_and_those_that_forget_each_read_is_of_one_moment() {
    const LEN: usize = 3 * 4096 + 77;
    let world = World::new();
    drop(world.file("f", LEN, false));
    let file = world.open("f");
    world.fs.write(&world.caller, &file, 0, &[1; LEN]).unwrap();
    let done = AtomicBool::new(false);
    let (reads, forgotten) = (AtomicU32::new(0), AtomicU32::new(0));
    // The writer goes on until both others have met it: on a fast machine they start late.
    let enough = || [&reads, &forgotten].iter().all(|n| n.load(Relaxed) >= 20);
    thread::scope(|scope| {
        scope.spawn(|| {
            let file = world.open("f");
            let deadline = Instant::now() + Duration::from_secs(60);
            for round in 0_u32.. {
                if round >= 2000 && enough() {
                    break;
                }
                assert!(Instant::now() < deadline, "{reads:?}, {forgotten:?}");
                let bytes = [(round % 200) as u8 + 1; LEN];
                let written = world.fs.write(&world.caller, &file, 0, &bytes);
                assert_eq!(written, Ok(LEN));
            }
            done.store(true, Ordering::Release);
        });
        scope.spawn(|| {
            while !done.load(Ordering::Acquire) {
                world.fs.drop_caches().unwrap();
                forgotten.fetch_add(1, Relaxed);
            }
        });
        let mut buf = vec![0; LEN + 10];
        while !done.load(Ordering::Acquire) {
            assert_eq!(world.fs.read_once(&file, 0, &mut buf), Ok(LEN));
            let first = buf[0];
            assert!(first != 0 && buf[..LEN].iter().all(|byte| *byte == first));
            reads.fetch_add(1, Relaxed);
        }
    });
}
