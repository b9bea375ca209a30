//! Frames, and the protocol by which a file's bytes and size are read together, under every
//! interleaving of a few threads, and every order in which their memory accesses may be seen.
//!
//! The modules are compiled here once more with loom's atomics (`frame_primitive`), and with epochs
//! that free at the first moment at which the real ones might. A frame's bytes are watched one by
//! one. A file is a map with a size; writers change the pages, then the size, under the lock.
//! Each scenario names what may be read; `LOOM_LOG=trace` with the name of one test tells the order
//! that failed.
#![expect(unsafe_code, reason = "the same interfaces as those of the real parts")]

#[path = "../../../sync/tests/model/epoch.rs"]
pub mod epoch;
#[path = "../../src/frame/mod.rs"]
pub mod frame;

mod alone;
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

/// Switches from a thread that could have gone on, in scenarios of two threads.
const PAIR: usize = 4;
/// The same for three threads.
const CROWD: usize = 2;

type Lock<'a> = FramesLock<'a, BTreeSet<u64>>;

/// A file, as far as it matters here.
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
    /// A file whose page 0 is `bytes`.
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

    /// Changes the pages, then the size. The size is relaxed: the protocol must do without help.
    fn change(&self, size: usize, change: impl FnOnce(&mut Lock<'_>)) {
        let mut pages = self.pages.lock();
        change(&mut pages);
        self.size.store(size as u64, Ordering::Relaxed);
        drop(pages);
    }

    /// Copies the first bytes of page 0, if nothing is in the way.
    fn copy(&self, len: usize) -> Option<Vec<u8>> {
        let mut bytes = vec![0; len];
        let copied = self.pages.copy_alone(0, &mut bytes, &self.size);
        copied.then_some(bytes)
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

    /// Reads what is at several numbers, once: 0 where there is nothing, else the first byte.
    fn read_all<const N: usize>(&self, numbers: [u64; N]) -> Option<[u8; N]> {
        let guard = epoch::pin();
        let snapshot = self.pages.snapshot(&guard)?;
        let read = numbers.map(|number| snapshot.get(number).map_or(0, |bytes| bytes[0]));
        snapshot.holds().then_some(read)
    }

    /// Asks once for the first gap.
    fn gap(&self) -> Option<Vec<u8>> {
        let guard = epoch::pin();
        let snapshot = self.pages.snapshot(&guard)?;
        let gap = snapshot.next_gap(0);
        snapshot.holds().then(|| vec![gap as u8])
    }

    /// Asks once for the first frame behind number 0; 0 if there is none.
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

/// Runs `scenario` in every order. It gives what one of its threads has read; over all orders
/// this must be each of `expected`, and nothing else but "try again".
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
