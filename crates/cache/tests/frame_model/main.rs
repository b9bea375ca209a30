//! Frames, and the protocol that reads a file's bytes and size together. Runs every interleaving of
//! a few threads, and every order in which their memory accesses may become visible.
//! visible.
//!
//! The modules are compiled here once more with loom's atomics (`frame_primitive`). The epochs free
//! at the first moment at which the real ones might. A frame's bytes are watched one by one. A file
//! is a map with a size; writers change the pages, then the size, under the lock. Each scenario
//! lists what may be read. `LOOM_LOG=trace` with the name of one test prints the order that failed.
#![expect(unsafe_code, reason = "the same interfaces as those of the real parts")]

#[path = "../../../sync/tests/model/epoch.rs"]
pub mod epoch;
#[path = "../../src/frame/mod.rs"]
pub mod frame;

mod appends;
mod broken;
mod frame_primitive;
mod gates;
mod shapes;
mod shares;
mod writes;

use frame::{Frame, Frames, FramesLock};
use frame_primitive::memory;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU64, Ordering};
use std::collections::BTreeSet;
use std::sync::Mutex;

/// Preemptions in scenarios of two threads.
const PAIR: usize = 4;
/// Preemptions in scenarios of three threads.
const CROWD: usize = 2;

type Lock<'a> = FramesLock<'a, BTreeSet<u64>>;

/// A file, as far as the protocol needs it.
struct File {
    pages: Frames<BTreeSet<u64>>,
    size: AtomicU64,
}

fn frame(bytes: &[u8]) -> Frame {
    let mut frame = Frame::with_capacity(bytes.len());
    frame.push(bytes);
    frame
}

impl File {
    /// A file with `bytes` as page 0.
    fn of(bytes: &[u8]) -> Self {
        let file = Self {
            pages: Frames::new(),
            size: AtomicU64::new(bytes.len() as u64),
        };
        if !bytes.is_empty() {
            file.pages.lock().put(0, frame(bytes));
        }
        file
    }

    /// Changes the pages, then the size. The size is relaxed: the protocol must suffice.
    fn change(&self, size: usize, change: impl FnOnce(&mut Lock<'_>)) {
        let mut pages = self.pages.lock();
        change(&mut pages);
        self.size.store(size as u64, Ordering::Relaxed);
        drop(pages);
    }

    /// Reads page 0 up to the size, as `Pages::read_with` does, once.
    fn read(&self) -> Option<Vec<u8>> {
        let guard = epoch::pin();
        let snapshot = self.pages.snapshot(&guard)?;
        let bytes = snapshot.get(0).unwrap_or_default();
        let size = self.size.load(Ordering::Relaxed) as usize;
        if !snapshot.holds() {
            return None;
        }
        let mut read = bytes[..bytes.len().min(size)].to_vec();
        read.resize(size, 0);
        Some(read)
    }

    /// Reads the frames of several numbers once: the first byte, or 0 where there is none.
    fn read_all<const N: usize>(&self, numbers: [u64; N]) -> Option<[u8; N]> {
        let guard = epoch::pin();
        let snapshot = self.pages.snapshot(&guard)?;
        let read = numbers.map(|number| snapshot.get(number).map_or(0, |bytes| bytes[0]));
        snapshot.holds().then_some(read)
    }

    /// Searches once for the first gap.
    fn gap(&self) -> Option<Vec<u8>> {
        let guard = epoch::pin();
        let snapshot = self.pages.snapshot(&guard)?;
        let gap = snapshot.next_gap(0);
        snapshot.holds().then(|| vec![gap as u8])
    }

    /// Searches once for the first frame after number 0; 0 if there is none.
    fn data(&self) -> Option<Vec<u8>> {
        let guard = epoch::pin();
        let snapshot = self.pages.snapshot(&guard)?;
        let data = snapshot.next_frame(1).unwrap_or(0);
        snapshot.holds().then(|| vec![data as u8])
    }
}

/// What readers have read, in all executions.
#[derive(Default)]
struct Seen(Mutex<BTreeSet<Option<Vec<u8>>>>);

impl Seen {
    fn add(&self, read: Option<Vec<u8>>) {
        self.0.lock().expect("no panic").insert(read);
    }
}

/// Runs `scenario` in every order. It returns what one of its threads has read. Over all orders
/// that must be each of `expected`, and nothing else except "try again".
fn model(
    preemptions: usize,
    start: &'static [u8],
    expected: &[&[u8]],
    scenario: impl Fn(&Arc<File>) -> Option<Vec<u8>> + Send + Sync + 'static,
) {
    let seen = std::sync::Arc::new(Seen::default());
    let also = std::sync::Arc::clone(&seen);
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(move || {
        let file = Arc::new(File::of(start));
        also.add(scenario(&file));
        drop(file);
        assert_eq!(memory::left(), 0, "leaked");
    });
    let seen = seen.0.lock().expect("no panic");
    let read: Vec<&[u8]> = seen.iter().flatten().map(Vec::as_slice).collect();
    let mut expected = expected.to_vec();
    expected.sort_unstable();
    assert_eq!(read, expected);
}

/// Runs `other` in a thread of its own.
fn spawn<R: 'static>(
    file: &Arc<File>,
    other: impl FnOnce(&File) -> R + 'static,
) -> loom::thread::JoinHandle<R> {
    let file = Arc::clone(file);
    loom::thread::spawn(move || other(&file))
}

/// What `read` returns while `writer` runs in a thread of its own.
fn beside<R>(
    file: &Arc<File>,
    writer: impl FnOnce(&File) + 'static,
    read: impl FnOnce(&File) -> R,
) -> R {
    let writer = spawn(file, writer);
    let read = read(file);
    writer.join().unwrap();
    read
}
