//! Blocks of objects on a disk of this machine.
//!
//! A block is a file, named by object and block. Its bytes are followed by a CRC-32C for each 64
//! KiB of them. The first error of the disk, a full one included, switches the cache off.

use lru::LruCache;
use parking_lot::{Condvar, Mutex};
use std::collections::VecDeque;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// An object, and a block of it.
pub(super) type Key = (u64, u64);

/// Bytes that have one checksum.
const CHECKED: usize = 64 << 10;
/// Blocks that wait for being written; those beyond are not kept.
const QUEUE: usize = 64;

/// The cache on disk.
#[derive(Debug)]
pub(super) struct Disk {
    dir: PathBuf,
    limit: u64,
    off: AtomicBool,
    state: Mutex<State>,
    /// There is something to write, or the cache ends.
    more: Condvar,
}

#[derive(Debug)]
struct State {
    /// Files with their lengths.
    files: LruCache<Key, u64>,
    bytes: u64,
    queue: VecDeque<(Key, Arc<[u8]>)>,
    stopped: bool,
}

impl Disk {
    /// A cache in a directory, which is made, of at most `limit` bytes. Its thread `holdfast-cache`
    /// writes.
    ///
    /// # Errors
    /// Those of the directory.
    pub(super) fn open(dir: &Path, limit: u64) -> io::Result<Arc<Self>> {
        fs::create_dir_all(dir)?;
        let mut state = State {
            files: LruCache::unbounded(),
            bytes: 0,
            queue: VecDeque::new(),
            stopped: false,
        };
        let mut found = Vec::new();
        for entry in fs::read_dir(dir)? {
            let entry = entry?;
            match key_of(&entry.file_name().to_string_lossy()) {
                Some(key) => {
                    let meta = entry.metadata()?;
                    found.push((meta.modified()?, key, meta.len()));
                }
                // What a process left half written when it was killed.
                None if entry.path().extension().is_some_and(|it| it == "new") => {
                    fs::remove_file(entry.path())?;
                }
                None => {}
            }
        }
        found.sort_unstable();
        for (_, key, len) in found {
            state.files.put(key, len);
            state.bytes += len;
        }
        let disk = Arc::new(Self {
            dir: dir.into(),
            limit,
            off: AtomicBool::new(false),
            state: Mutex::new(state),
            more: Condvar::new(),
        });
        let writer = Arc::clone(&disk);
        let thread = std::thread::Builder::new().name("holdfast-cache".into());
        thread.spawn(move || writer.write_all())?;
        Ok(disk)
    }

    /// Ends the thread.
    pub(super) fn stop(&self) {
        self.state.lock().stopped = true;
        self.more.notify_all();
    }

    /// A block, if at least `len` bytes of it are there and right.
    pub(super) fn get(&self, key: Key, len: u64) -> Option<Arc<[u8]>> {
        if self.off.load(Relaxed) {
            return None;
        }
        let known = *self.state.lock().files.get(&key)?;
        if known < len {
            return None;
        }
        let read = fs::read(self.path(key)).ok();
        let block = read.as_deref().and_then(checked);
        if block.is_none() {
            self.forget(key);
        }
        block
            .filter(|block| block.len() as u64 >= len)
            .map(Arc::from)
    }

    fn forget(&self, key: Key) {
        let mut state = self.state.lock();
        if let Some(len) = state.files.pop(&key) {
            state.bytes -= len;
        }
        drop(state);
        // It may be gone already.
        let _ = fs::remove_file(self.path(key));
    }

    /// Keeps a block, if the thread that writes is not too busy.
    pub(super) fn put(&self, key: Key, block: &Arc<[u8]>) {
        if self.off.load(Relaxed) {
            return;
        }
        let mut state = self.state.lock();
        if state.queue.len() < QUEUE {
            state.queue.push_back((key, Arc::clone(block)));
            self.more.notify_all();
        }
    }

    /// Bytes that wait in memory for being written.
    pub(super) fn queued(&self) -> u64 {
        let state = self.state.lock();
        state
            .queue
            .iter()
            .map(|(_, block)| block.len() as u64)
            .sum()
    }

    fn write_all(&self) {
        loop {
            let mut state = self.state.lock();
            let next = loop {
                if state.stopped {
                    return;
                }
                match state.queue.pop_front() {
                    Some(next) => break next,
                    None => self.more.wait(&mut state),
                }
            };
            drop(state);
            if self.write(next.0, &next.1).is_err() {
                self.off.store(true, Relaxed);
                self.state.lock().queue.clear();
                return;
            }
        }
    }

    fn write(&self, key: Key, block: &[u8]) -> io::Result<()> {
        let mut bytes = block.to_vec();
        for part in block.chunks(CHECKED) {
            bytes.extend_from_slice(&crc32c::crc32c(part).to_le_bytes());
        }
        let len = bytes.len() as u64;
        if len > self.limit {
            return Ok(());
        }
        while let Some(last) = self.to_go(len) {
            let gone = fs::remove_file(self.path(last));
            if gone
                .as_ref()
                .is_err_and(|error| error.kind() != io::ErrorKind::NotFound)
            {
                return gone;
            }
        }
        let path = self.path(key);
        let new = path.with_extension(format!("{}.new", std::process::id()));
        fs::write(&new, &bytes)?;
        fs::rename(&new, &path)?;
        let mut state = self.state.lock();
        let before = state.files.put(key, len).unwrap_or(0);
        state.bytes += len;
        state.bytes -= before;
        Ok(())
    }

    /// The least recently used block, if there is no room for `len` bytes. It is not counted any
    /// more.
    fn to_go(&self, len: u64) -> Option<Key> {
        let mut state = self.state.lock();
        if state.bytes + len <= self.limit {
            return None;
        }
        let (key, len) = state.files.pop_lru()?;
        state.bytes -= len;
        Some(key)
    }

    fn path(&self, (object, block): Key) -> PathBuf {
        self.dir.join(format!("{object:016x}-{block:x}"))
    }
}

fn key_of(name: &str) -> Option<Key> {
    let (object, block) = name.split_once('-')?;
    let number = |digits| u64::from_str_radix(digits, 16).ok();
    Some((number(object)?, number(block)?))
}

/// The bytes of a file, without their checksums, if these are right.
fn checked(file: &[u8]) -> Option<&[u8]> {
    let parts = file.len().div_ceil(CHECKED + 4);
    let (block, sums) = file.split_at_checked(file.len().checked_sub(parts * 4)?)?;
    let (sums, rest) = sums.as_chunks::<4>();
    let is_right = |(part, sum): (&[u8], &[u8; 4])| crc32c::crc32c(part).to_le_bytes() == *sum;
    let right = rest.is_empty() && block.chunks(CHECKED).zip(sums).all(is_right);
    (right && !block.is_empty()).then_some(block)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    fn wait_for(what: impl Fn() -> bool) {
        let until = Instant::now() + Duration::from_secs(20);
        while !what() {
            assert!(Instant::now() < until, "it takes too long");
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    #[test]
    fn blocks_last_and_damaged_ones_do_not_count() {
        let dir = tempfile::tempdir().unwrap();
        let block: Arc<[u8]> = (0..200_000_u32).map(|it| it as u8).collect();
        let disk = Disk::open(dir.path(), 1 << 20).unwrap();
        disk.put((7, 3), &block);
        wait_for(|| disk.get((7, 3), 200_000).is_some());
        assert_eq!(disk.get((7, 3), 1).unwrap(), block);
        assert_eq!(disk.get((7, 3), 200_001), None);
        disk.stop();
        let disk = Disk::open(dir.path(), 1 << 20).unwrap();
        assert_eq!(disk.get((7, 3), 200_000).unwrap(), block);
        let path = disk.path((7, 3));
        let mut bytes = fs::read(&path).unwrap();
        bytes[150_000] ^= 1;
        fs::write(&path, bytes).unwrap();
        assert_eq!(disk.get((7, 3), 1), None);
        assert!(!path.exists() && disk.state.lock().bytes == 0);
        disk.stop();
    }

    #[test]
    fn the_least_recently_used_make_room() {
        let dir = tempfile::tempdir().unwrap();
        let disk = Disk::open(dir.path(), 350_000).unwrap();
        let block: Arc<[u8]> = vec![5; 100_000].into();
        for key in 0..3 {
            disk.put((key, 0), &block);
            wait_for(|| disk.get((key, 0), 1).is_some());
        }
        assert!(disk.get((0, 0), 1).is_some());
        disk.put((9, 0), &block);
        wait_for(|| disk.get((9, 0), 1).is_some());
        assert!(disk.get((1, 0), 1).is_none() && disk.get((0, 0), 1).is_some());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 3);
        disk.stop();
    }

    #[test]
    fn a_disk_that_fails_is_not_asked_any_more() {
        let dir = tempfile::tempdir().unwrap();
        let disk = Disk::open(&dir.path().join("cache"), 1 << 20).unwrap();
        fs::remove_dir_all(dir.path().join("cache")).unwrap();
        disk.put((1, 1), &vec![1; 10].into());
        wait_for(|| disk.off.load(Relaxed));
        disk.put((1, 2), &vec![1; 10].into());
        assert_eq!((disk.get((1, 2), 1), disk.queued()), (None, 0));
    }
}
