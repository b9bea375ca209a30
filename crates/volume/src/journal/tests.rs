//! Fixtures of the journal's tests: sample batches, and devices that record or fail.

mod codec;
mod commit;
mod crash;
mod log_buffers;
mod ring;
mod written;

use super::{Group, Journal, Mode, Position, Record, Region};
use holdfast_core::store::{Change, InodeRecord, Lsn, StoredSpace};
use holdfast_device::{
    BlockDevice, Cause, DeviceError, MemoryDevice, Operation, Result as DeviceResult,
};
use holdfast_types::{Errno, FileFlags, FileType, Ino, Time};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// A batch with its LSN and subvolume; the records as their debug text, which owns its bytes.
type Seen = (Lsn, u64, Vec<String>);

fn region(blocks: u64) -> Region {
    Region {
        start: 3,
        blocks,
        volume: 0x5eed,
    }
}

fn formatted(blocks: u64) -> Arc<Recorder> {
    let device = Arc::new(Recorder::new(MemoryDevice::new((blocks + 5) * 4096)));
    Journal::format(device.clone(), region(blocks)).expect("a region of that device");
    device.log.lock().clear();
    device
}

fn reopened(device: &Arc<Recorder>, blocks: u64, position: Position) -> (Journal, Vec<Seen>) {
    let mut replay =
        Journal::open(device.clone(), region(blocks), position).expect("a region of that device");
    let seen = all(&mut replay).expect("an undamaged journal");
    (replay.finish().expect("an undamaged journal"), seen)
}

fn fresh(blocks: u64) -> (Arc<Recorder>, Journal) {
    let device = formatted(blocks);
    let (journal, seen) = reopened(&device, blocks, Position::default());
    assert_eq!(seen, []);
    (device, journal)
}

/// Makes the batches up to `upto` durable. The leader runs `before` on its group; returns the
/// position behind it.
fn commit_with(
    journal: &Journal,
    upto: Lsn,
    before: impl FnOnce(&mut Group<'_>) -> super::Result<()>,
) -> super::Result<Option<Position>> {
    let Some(_turn) = journal.turn(upto) else {
        return Ok(None);
    };
    let mut group = journal.begin_group(Mode::Flushed)?;
    before(&mut group)?;
    group.write()?;
    group.flush()?;
    Ok(Some(group.mark()?))
}

/// Writes all batches so far, and these records.
fn write_with(journal: &Journal, records: &[Record<'_>]) -> super::Result<()> {
    if journal.can_write() {
        let mut group = journal.begin_group(Mode::Written)?;
        group.append_records(1, records)?;
        group.write()?;
        if group.flush()? {
            group.mark()?;
        }
    }
    Ok(())
}

fn write(journal: &Journal) -> super::Result<()> {
    write_with(journal, &[])
}

fn all(replay: &mut super::Replay) -> super::Result<Vec<Seen>> {
    let mut seen = Vec::new();
    while let Some(mut batch) = replay.next_batch()? {
        let mut records = Vec::new();
        while let Some(record) = batch.next()? {
            records.push(format!("{record:?}"));
        }
        seen.push((batch.lsn(), batch.subvolume(), records));
    }
    Ok(seen)
}

fn shown(batch: &[Change<'_>]) -> Vec<String> {
    let record = |change: &Change<'_>| format!("{:?}", Record::Change(change.clone()));
    batch.iter().map(record).collect()
}

fn inode(ino: u64, kind: FileType, time: i64) -> InodeRecord {
    InodeRecord {
        ino: Ino(ino),
        kind,
        perm: 0o644,
        nlink: 1,
        uid: 1000,
        gid: 1000,
        rdev: 0,
        size: 0,
        atime: Time(time),
        mtime: Time(time),
        ctime: Time(time),
        btime: Time(time),
        parent: Ino(7),
        xattrs: false,
        space: StoredSpace::UNKNOWN,
        flags: FileFlags::empty(),
        project: 0,
    }
}

/// The changes of the `index`th file created in a directory.
fn creation(index: u64, name: &[u8]) -> Vec<Change<'_>> {
    let time = 1_700_000_000_000_000_000 + (index / 1000 * 4_000_000).cast_signed();
    let mut directory = inode(7, FileType::Directory, time);
    directory.size = 4096 + 32 * index;
    directory.btime = Time(5);
    directory.atime = Time(5);
    vec![
        Change::Create {
            inode: inode(100 + index, FileType::Regular, time),
            target: None,
        },
        Change::Enter {
            dir: Ino(7),
            name,
            cookie: 30 + index,
            ino: Ino(100 + index),
            kind: FileType::Regular,
        },
        Change::Attributes { inode: directory },
    ]
}

/// A device that logs writes since its log was cleared, and fails on demand.
#[derive(Debug)]
struct Recorder {
    inner: MemoryDevice,
    log: Mutex<Vec<Event>>,
    flushes: AtomicU64,
    /// Writes and flushes that still succeed.
    left: AtomicU64,
    /// Do only flushes fail?
    fail_flush: AtomicBool,
    /// The identity of its cache; 0: unknown.
    cache: AtomicU64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Event {
    Write { offset: u64, bytes: Vec<u8> },
    Flush,
}

impl Recorder {
    fn new(inner: MemoryDevice) -> Self {
        Self {
            inner,
            log: Mutex::new(Vec::new()),
            flushes: AtomicU64::new(0),
            left: AtomicU64::new(u64::MAX),
            fail_flush: AtomicBool::new(false),
            cache: AtomicU64::new(0),
        }
    }

    /// The same, with this cache.
    fn cached(self, cache: u64) -> Self {
        self.cache.store(cache, Ordering::Relaxed);
        self
    }

    fn spend(&self, operation: Operation) -> DeviceResult<()> {
        let spent = |left: u64| left.checked_sub(1);
        let spent = self
            .left
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, spent);
        let error = || {
            let cause = Cause::Os(Errno::EIO);
            DeviceError::new(self.describe(), operation, 0, 0, cause)
        };
        spent.map(drop).map_err(|_| error())
    }
}

impl BlockDevice for Recorder {
    holdfast_device::pass_on!(inner: size, discard, resize);

    fn describe(&self) -> String {
        "recorder".to_owned()
    }

    fn alignment(&self) -> u64 {
        4096
    }

    fn cache_identity(&self) -> Option<u64> {
        Some(self.cache.load(Ordering::Relaxed)).filter(|cache| *cache != 0)
    }

    fn read(&self, offset: u64, buf: &mut [u8]) -> DeviceResult<()> {
        assert!(offset.is_multiple_of(4096) && buf.len().is_multiple_of(4096));
        self.inner.read(offset, buf)
    }

    fn write(&self, offset: u64, bytes: &[u8]) -> DeviceResult<()> {
        assert!(offset.is_multiple_of(4096) && bytes.len().is_multiple_of(4096));
        self.spend(Operation::Write)?;
        self.log.lock().push(Event::Write {
            offset,
            bytes: bytes.to_vec(),
        });
        self.inner.write(offset, bytes)
    }

    fn flush(&self) -> DeviceResult<()> {
        if self.fail_flush.load(Ordering::Relaxed) {
            let cause = Cause::Os(Errno::EIO);
            return Err(DeviceError::new(
                self.describe(),
                Operation::Flush,
                0,
                0,
                cause,
            ));
        }
        self.spend(Operation::Flush)?;
        self.log.lock().push(Event::Flush);
        self.flushes.fetch_add(1, Ordering::Relaxed);
        self.inner.flush()
    }
}
