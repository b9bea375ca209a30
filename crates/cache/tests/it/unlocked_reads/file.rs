use holdfast_cache::{Account, CacheStats, MAX_SIZE, Pages, PagesLock, SpacePool};
use holdfast_sync::epoch;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

const PAGE: u64 = 4096;

/// A file as an owner keeps it: pages, and a size that changes after them and under their lock.
pub(crate) struct File {
    pub(crate) pages: Pages,
    pub(crate) size: AtomicU64,
    /// Are there absent pages?
    partial: AtomicBool,
    /// The bytes of absent pages: all pages that were ever forgotten, as they were then.
    elsewhere: Mutex<BTreeMap<u64, Vec<u8>>>,
    pool: SpacePool,
    stats: CacheStats,
    /// Reads without the lock, and reads that took it in the end.
    pub(crate) fast: AtomicU64,
    pub(crate) locked: AtomicU64,
}

impl File {
    pub(crate) fn new() -> Self {
        Self {
            pages: Pages::new(),
            size: AtomicU64::new(0),
            partial: AtomicBool::new(false),
            elsewhere: Mutex::default(),
            pool: SpacePool::new(None),
            stats: CacheStats::new(),
            fast: AtomicU64::new(0),
            locked: AtomicU64::new(0),
        }
    }

    pub(crate) fn account(&self) -> Account<'_> {
        Account {
            space: &self.pool,
            stats: &self.stats,
        }
    }

    pub(crate) fn size(&self) -> u64 {
        self.size.load(Ordering::Acquire)
    }

    /// Does what write(2) does, with one store if possible.
    pub(crate) fn write(&self, offset: u64, data: &[u8]) {
        let mut pages = self.pages.lock();
        if self.partial.load(Ordering::Acquire) {
            self.populate(&mut pages);
        }
        let written = pages.write_alone(offset, data, self.size(), self.account());
        assert_eq!(written, Ok(data.len()));
        self.grow(offset + data.len() as u64);
        pages.has_size(self.size());
        drop(pages);
    }

    fn grow(&self, size: u64) {
        self.size.store(self.size().max(size), Ordering::Release);
    }

    /// Changes pages, then the size, under one lock.
    pub(crate) fn change(&self, size: u64, change: impl FnOnce(&mut PagesLock<'_>, Account<'_>)) {
        let mut pages = self.pages.lock();
        change(&mut pages, self.account());
        self.size.store(size, Ordering::Release);
        pages.has_size(size);
        drop(pages);
    }

    pub(crate) fn truncate(&self, size: u64) {
        self.change(size, |pages, account| pages.truncate(size, account));
    }

    /// Does what read(2) does.
    pub(crate) fn read(&self, offset: u64, buf: &mut [u8]) -> usize {
        let whole = || !self.partial.load(Ordering::Acquire);
        if let Ok(read) = self.pages.read_with(offset, buf, || self.size(), whole) {
            self.fast.fetch_add(1, Ordering::Relaxed);
            return read;
        }
        self.locked.fetch_add(1, Ordering::Relaxed);
        let mut pages = self.pages.lock();
        self.populate(&mut pages);
        pages.read(offset, buf, self.size())
    }

    /// Forgets these pages.
    pub(crate) fn forget(&self, range: Range<u64>) {
        let mut pages = self.pages.lock();
        for page in range.clone() {
            if pages.seek_data(page * PAGE, MAX_SIZE) == Some(page * PAGE)
                && pages.next_unloaded(page..page + 1).is_none()
            {
                let mut data = vec![0; PAGE as usize];
                let _ = pages.read(page * PAGE, &mut data, MAX_SIZE);
                self.elsewhere.lock().unwrap().insert(page, data);
            }
        }
        pages.begin();
        self.partial.store(true, Ordering::Release);
        pages.forget(range, self.account());
        pages.has_size(self.size());
    }

    /// Fills all absent pages.
    fn populate(&self, pages: &mut PagesLock<'_>) {
        let everything = 0..MAX_SIZE / PAGE;
        while let Some(unloaded) = pages.next_unloaded(everything.clone()) {
            let data = self.elsewhere.lock().unwrap()[&unloaded.start].clone();
            pages
                .populate(unloaded.start * PAGE, &data, self.account())
                .expect("it has its space");
        }
        pages.begin();
        self.partial.store(false, Ordering::Release);
        pages.has_size(self.size());
    }

    /// Runs `writer` for that many rounds, with two threads in `reader` all the while.
    pub(crate) fn race(
        &self,
        rounds: u64,
        mut writer: impl FnMut(u64) + Send,
        reader: impl Fn() + Sync,
    ) {
        let done = AtomicBool::new(false);
        thread::scope(|scope| {
            let readers = [(); 2].map(|()| {
                scope.spawn(|| {
                    // Also when an assertion of theirs ends the writer's wait below.
                    let _done = SetOnDrop(&done);
                    while !done.load(Ordering::Relaxed) {
                        reader();
                    }
                })
            });
            {
                let _done = SetOnDrop(&done);
                let mut round = 0;
                while round < rounds || self.fast.load(Ordering::Relaxed) < 100 {
                    if done.load(Ordering::Relaxed) {
                        break;
                    }
                    writer(round);
                    round += 1;
                }
            }
            // Joined one by one: the sanitizers do not see the end of a scope.
            for thread in readers {
                thread.join().unwrap();
            }
        });
        assert!(self.fast.load(Ordering::Relaxed) >= 100);
    }
}

struct SetOnDrop<'a>(&'a AtomicBool);

impl Drop for SetOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Drop for File {
    fn drop(&mut self) {
        if thread::panicking() {
            return self.pages.abandon();
        }
        self.pages.lock().clear(self.account());
        let left = (self.pool.used(), self.stats.pages(), self.stats.bytes());
        assert_eq!(left, (0, 0, 0));
        // Garbage must not wait for an ended thread, for the sake of leak detectors.
        epoch::synchronize();
    }
}

/// The bytes of generation `round`: one byte, never 0, repeated.
pub(crate) fn generation(round: u64) -> u8 {
    (round % 255) as u8 + 1
}

/// The one byte that `bytes` consist of.
pub(crate) fn only_byte(bytes: &[u8]) -> u8 {
    let first = bytes[0];
    let other = bytes.iter().position(|byte| *byte != first);
    assert_eq!(
        other,
        None,
        "torn: {first} and {}",
        bytes[other.unwrap_or(0)]
    );
    first
}
