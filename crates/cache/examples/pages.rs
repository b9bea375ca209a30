//! What reads and writes of cached pages cost, in nanoseconds: `cargo run --release -p
//! holdfast-cache --example pages`. Each figure is the median of fifteen short runs. For comparison
//! the least that a lock can cost: one vector of bytes, without pages, behind a reader-writer lock.
//! On a busy machine give it a core: `chrt --fifo 1 taskset --cpu-list 1` (as root).

use holdfast_cache::{Account, CacheStats, Pages, Space};
use holdfast_types::Result;
use parking_lot::RwLock;
use std::hint::black_box;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Instant;

/// Room without end, so that what is measured is the pages.
struct Room;

impl Space for Room {
    fn reserve(&self, _pages: u64) -> Result<()> {
        Ok(())
    }

    fn release(&self, _pages: u64) {}
}

const PAGE: u64 = 4096;
const RUNS: usize = 15;

/// Nanoseconds for one `work`, the median of some runs.
fn nanoseconds(times: u64, mut work: impl FnMut(u64)) -> f64 {
    let mut runs: Vec<f64> = (0..RUNS)
        .map(|_| {
            let begun = Instant::now();
            (0..times).for_each(&mut work);
            begun.elapsed().as_nanos() as f64 / times as f64
        })
        .collect();
    runs.sort_by(f64::total_cmp);
    runs[RUNS / 2]
}

/// Page `n` of a walk that visits 256 pages in no order.
fn scattered(n: u64) -> u64 {
    n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56
}

struct File {
    pages: Pages,
    size: AtomicU64,
}

/// The same content in one piece.
type Plain = RwLock<Vec<u8>>;

/// Reads from `plain` as one would from a file.
fn read_plain(plain: &Plain, offset: u64, buf: &mut [u8]) {
    let bytes = plain.read();
    let bytes = &bytes[(offset as usize).min(bytes.len())..];
    let len = buf.len().min(bytes.len());
    buf[..len].copy_from_slice(&bytes[..len]);
    black_box(len);
}

/// Writes to `plain`, which grows if need be.
fn write_plain(plain: &Plain, offset: u64, data: &[u8]) {
    let mut bytes = plain.write();
    let (start, end) = (offset as usize, offset as usize + data.len());
    if bytes.len() < end {
        bytes.resize(end, 0);
    }
    bytes[start..end].copy_from_slice(data);
}

fn row(name: &str, pages: f64, plain: f64) {
    println!("{name:<34} {pages:>8.1} {plain:>8.1}");
}

fn reads(file: &File, plain: &Plain) {
    let mut buf = [0_u8; PAGE as usize];
    let mut read = |offset: u64, len: usize| {
        let size = || file.size.load(Ordering::Acquire);
        let _ = black_box(file.pages.read_with(offset, &mut buf[..len], size, || true));
    };
    let mut buf = [0_u8; PAGE as usize];
    let mut read_locked = |offset: u64, len: usize| read_plain(plain, offset, &mut buf[..len]);
    let times = 300_000;
    row(
        "read 4 KiB, one page",
        nanoseconds(times, |_| read(0, 4096)),
        nanoseconds(times, |_| read_locked(0, 4096)),
    );
    row(
        "read 4 KiB, random of 1 MiB",
        nanoseconds(times, |n| read(scattered(n) * PAGE, 4096)),
        nanoseconds(times, |n| read_locked(scattered(n) * PAGE, 4096)),
    );
    row(
        "read 1 byte, one page",
        nanoseconds(times, |_| read(5, 1)),
        nanoseconds(times, |_| read_locked(5, 1)),
    );
    row(
        "read 1 byte, random of 1 MiB",
        nanoseconds(times, |n| read(scattered(n) * PAGE, 1)),
        nanoseconds(times, |n| read_locked(scattered(n) * PAGE, 1)),
    );
    row(
        "read 4 KiB across two pages",
        nanoseconds(times, |n| read(scattered(n) * PAGE + 100, 4096)),
        nanoseconds(times, |n| read_locked(scattered(n) * PAGE + 100, 4096)),
    );
    let mut buf = vec![0_u8; 128 << 10];
    let size = || file.size.load(Ordering::Acquire);
    let new = nanoseconds(10_000, |n| {
        let _ = black_box(file.pages.read_with((n % 8) << 17, &mut buf, size, || true));
    });
    let locked = nanoseconds(10_000, |n| {
        read_plain(plain, (n % 8) << 17, &mut buf);
    });
    row("read 128 KiB of 1 MiB", new, locked);
}

fn writes(file: &File, plain: &Plain, account: Account<'_>) {
    let data = vec![7_u8; 128 << 10];
    let write = |offset: u64, len: usize| {
        let size = file.size.load(Ordering::Relaxed);
        let mut pages = file.pages.lock();
        let _ = black_box(pages.write_alone(offset, &data[..len], size, account));
    };
    let write_locked = |offset: u64, len: usize| write_plain(plain, offset, &data[..len]);
    let times = 100_000;
    row(
        "overwrite 4 KiB, one page",
        nanoseconds(times, |_| write(0, 4096)),
        nanoseconds(times, |_| write_locked(0, 4096)),
    );
    row(
        "overwrite 4 KiB, random of 1 MiB",
        nanoseconds(times, |n| write(scattered(n) * PAGE, 4096)),
        nanoseconds(times, |n| write_locked(scattered(n) * PAGE, 4096)),
    );
    row(
        "overwrite 100 bytes of 1 MiB",
        nanoseconds(times, |n| write(scattered(n) * PAGE + 50, 100)),
        nanoseconds(times, |n| write_locked(scattered(n) * PAGE + 50, 100)),
    );
    row(
        "overwrite 128 KiB of 1 MiB",
        nanoseconds(4_000, |n| write((n % 8) << 17, 128 << 10)),
        nanoseconds(4_000, |n| write_locked((n % 8) << 17, 128 << 10)),
    );
}

fn appends(account: Account<'_>) {
    for (name, len) in [
        ("append 100 bytes to 1 MiB", 100),
        ("append 4 KiB to 1 MiB", 4096),
    ] {
        let data = vec![7_u8; len];
        let (file, plain) = (Pages::new(), Plain::default());
        let new = nanoseconds(100_000, |n| {
            let offset = n * len as u64 % (1 << 20);
            let mut pages = file.lock();
            if offset < len as u64 {
                pages.clear(account);
            }
            let _ = black_box(pages.write_alone(offset, &data, offset, account));
        });
        let locked = nanoseconds(100_000, |n| {
            let offset = n * len as u64 % (1 << 20);
            if offset < len as u64 {
                *plain.write() = Vec::new();
            }
            write_plain(&plain, offset, &data);
        });
        row(name, new, locked);
        file.lock().clear(account);
    }
    let new = nanoseconds(50_000, |_| {
        let file = Pages::new();
        let mut pages = file.lock();
        let _ = black_box(pages.write_alone(0, &[7; 100], 0, account));
        pages.clear(account);
    });
    let locked = nanoseconds(50_000, |_| {
        let plain = Plain::default();
        write_plain(&plain, 0, &[7; 100]);
        drop(black_box(plain));
    });
    row("make and clear a file of 100 bytes", new, locked);
}

/// Nanoseconds for a read of 4 KiB while another thread does `other`, which both begin together.
fn beside(read: impl Fn(&mut [u8]) + Sync, other: impl Fn(&mut [u8]) + Sync) -> f64 {
    let (begun, done) = (Barrier::new(2), AtomicBool::new(false));
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut buf = [0; PAGE as usize];
            begun.wait();
            while !done.load(Ordering::Relaxed) {
                other(&mut buf);
            }
        });
        let mut buf = [0; PAGE as usize];
        begun.wait();
        let time = nanoseconds(300_000, |_| read(&mut buf));
        done.store(true, Ordering::Relaxed);
        time
    })
}

/// Two threads on the same page.
fn pairs(file: &File, plain: &Plain, account: Account<'_>) {
    let locked = AtomicU64::new(0);
    let read = |buf: &mut [u8]| {
        let size = || file.size.load(Ordering::Acquire);
        if file.pages.read_with(0, buf, size, || true).is_err() {
            locked.fetch_add(1, Ordering::Relaxed);
            black_box(file.pages.lock().read(0, buf, size()));
        }
    };
    let write = |buf: &mut [u8]| {
        let size = file.size.load(Ordering::Relaxed);
        let _ = black_box(file.pages.lock().write_alone(0, buf, size, account));
    };
    let read_plain = |buf: &mut [u8]| read_plain(plain, 0, buf);
    let write_plain = |buf: &mut [u8]| write_plain(plain, 0, buf);
    row(
        "read 4 KiB, two threads",
        beside(read, read),
        beside(read_plain, read_plain),
    );
    row(
        "read 4 KiB beside overwrites",
        beside(read, write),
        beside(read_plain, write_plain),
    );
    println!("reads that took the lock: {}", locked.into_inner());
}

/// The other way to make racing copies defined: word by word, each an atomic.
fn copies() {
    let words: Vec<AtomicU64> = (0..512).map(AtomicU64::new).collect();
    let bytes = vec![1_u8; 4096];
    let mut to_words = vec![0_u64; 512];
    let mut to_bytes = vec![0_u8; 4096];
    let atomics = nanoseconds(300_000, |_| {
        for (to, from) in to_words.iter_mut().zip(&words) {
            *to = from.load(Ordering::Relaxed);
        }
        black_box(&mut to_words);
    });
    let plain = nanoseconds(300_000, |_| {
        to_bytes.copy_from_slice(black_box(&bytes));
        black_box(&mut to_bytes);
    });
    println!("copy of 4 KiB: memcpy {plain:.1}, relaxed atomic words {atomics:.1}");
}

fn main() {
    let stats = CacheStats::new();
    let account = Account {
        space: &Room,
        stats: &stats,
    };
    let content = vec![3_u8; 1 << 20];
    let file = File {
        pages: Pages::new(),
        size: AtomicU64::new(1 << 20),
    };
    for at in [0, 1 << 19] {
        let half = &content[..1 << 19];
        file.pages.lock().write(at, half, account).expect("room");
    }
    let plain = Plain::new(content);
    println!("{:<34} {:>8} {:>8}", "nanoseconds", "pages", "plain");
    reads(&file, &plain);
    writes(&file, &plain, account);
    appends(account);
    if thread::available_parallelism().is_ok_and(|cores| cores.get() > 1) {
        pairs(&file, &plain, account);
    }
    copies();
    file.pages.lock().clear(account);
}
