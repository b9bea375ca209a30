//! Reads beside writers for as long as it takes until a ticker tells them the time, and after.

use holdfast_core::types::{Caller, OpenFlags};
use holdfast_core::{FileSystem, MemoryLimits, OpenFile, Options};
use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// With nothing else running it is there after 32 ms; on a busy machine perhaps never.
const LONG: Duration = Duration::from_secs(3);

/// It gives up after 64 ms.
const GONE: Duration = Duration::from_secs(60);

fn is_there() -> bool {
    let tasks = fs::read_dir("/proc/self/task").unwrap();
    tasks
        .filter_map(|task| fs::read_to_string(task.ok()?.path().join("comm")).ok())
        .any(|name| name.trim() == "holdfast-ticker")
}

fn written() -> (FileSystem, OpenFile) {
    let fs = FileSystem::memory(MemoryLimits::default(), Options::default());
    let (who, root) = (Caller::root(), fs.root());
    let flags = OpenFlags::CREATE | OpenFlags::READ_WRITE;
    let file = fs.create(&who, &root, b"f", 0o644, flags).unwrap();
    fs.write(&who, &file, 0, &[1; 3 * 4096]).unwrap();
    (fs, file)
}

#[test]
fn access_times_move_on_beside_writers_of_two_file_systems() {
    let both = [written(), written()];
    let times = |(fs, file): &(FileSystem, OpenFile)| {
        let attr = fs.getattr(file.node());
        (attr.atime, attr.mtime)
    };
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        for (fs, file) in &both {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    fs.write(&Caller::root(), file, 4096, &[2; 4096]).unwrap();
                }
            });
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    assert_eq!(fs.read(file, 0, &mut [0]), Ok(1));
                }
            });
        }
        let begun = Instant::now();
        while begun.elapsed() < LONG && !is_there() {
            thread::sleep(Duration::from_millis(5));
        }
        for each in &both {
            let (before, begun) = (times(each), Instant::now());
            while times(each).0 <= before.1 {
                assert!(begun.elapsed() < GONE, "it is read, and does not look so");
                thread::sleep(Duration::from_millis(1));
            }
        }
        is_over.store(true, Ordering::Relaxed);
    });
    thread::sleep(Duration::from_millis(100));
    for each in &both {
        // Whatever the ticker tells, a thread believes it for so many reads only.
        (0..64).for_each(|_| assert_eq!(each.0.read(&each.1, 0, &mut [0]), Ok(1)));
        let (atime, mtime) = times(each);
        assert!(atime > mtime);
    }
    let begun = Instant::now();
    while is_there() {
        assert!(begun.elapsed() < GONE, "nobody wants it any more");
        thread::sleep(Duration::from_millis(1));
    }
}
