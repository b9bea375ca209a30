//! Frames that are known to be inside: read without the size and without the version.

use super::{CROWD, PAIR, epoch, frame, frame_primitive::memory};
use crate::frame::Frames;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU64, Ordering};
use std::collections::BTreeSet;

/// A file with a size in frames.
struct File {
    frames: Frames<BTreeSet<u64>>,
    size: AtomicU64,
}

type Lock<'a> = crate::frame::FramesLock<'a, BTreeSet<u64>>;

impl File {
    /// Changes frames, then the size, and declares it. The size is relaxed: the gate must suffice.
    fn change(&self, size: u64, change: impl FnOnce(&mut Lock<'_>)) {
        let mut frames = self.frames.lock();
        change(&mut frames);
        self.size.store(size, Ordering::Relaxed);
        frames.inside(size);
        drop(frames);
    }

    /// The first byte of a frame that is inside, 0 for a hole. `None` if it is not known to be
    /// inside.
    fn read(&self, number: u64) -> Option<u8> {
        let guard = epoch::pin();
        let found = self.frames.find_inside(number, &guard)?;
        Some(found.map_or(0, |bytes| bytes[0]))
    }

    /// The first byte of a frame that is inside. `None` for a hole, or if it is not known
    /// to be inside.
    fn copy(&self, number: u64) -> Option<u8> {
        let guard = epoch::pin();
        Some(self.frames.find_inside(number, &guard)??[0])
    }
}

/// Runs `writer` beside `reader`, for a file of two frames `a` and `b`. Over all orders, the reader
/// returns each of `expected`, and nothing else except "not known".
fn model<S: Ord + std::fmt::Debug + Send + 'static>(
    preemptions: usize,
    writer: fn(&File),
    reader: impl Fn(&File) -> Option<S> + Send + Sync + 'static,
    expected: impl IntoIterator<Item = S>,
) {
    let seen = std::sync::Arc::new(std::sync::Mutex::new(BTreeSet::new()));
    let also = std::sync::Arc::clone(&seen);
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(move || {
        let file = Arc::new(File {
            frames: Frames::new(),
            size: AtomicU64::new(0),
        });
        file.change(2, |frames| {
            frames.put(0, frame(b"a"));
            frames.put(1, frame(b"b"));
        });
        let other = Arc::clone(&file);
        let other = loom::thread::spawn(move || writer(&other));
        if let Some(read) = reader(&file) {
            also.lock().expect("no panic").insert(read);
        }
        other.join().expect("no panic");
        drop(file);
        assert_eq!(memory::left(), 0, "leaked");
    });
    let seen = std::mem::take(&mut *seen.lock().expect("no panic"));
    assert_eq!(seen, expected.into_iter().collect());
}

#[test]
fn two_reads_beside_a_change_of_both_frames_see_it_in_order() {
    let change = |file: &File| {
        file.change(2, |frames| {
            frames.begin();
            frames.put(0, frame(b"c"));
            frames.put(1, frame(b"d"));
        });
    };
    let before_and_after = [(b'a', b'b'), (b'a', b'd'), (b'c', b'd')];
    model(
        PAIR,
        change,
        |file| Some((file.read(0)?, file.read(1)?)),
        before_and_after,
    );
    let turned = [(b'b', b'a'), (b'b', b'c'), (b'd', b'c')];
    model(
        PAIR,
        change,
        |file| Some((file.read(1)?, file.read(0)?)),
        turned,
    );
}

#[test]
fn copies_beside_a_cut_and_a_new_end_are_of_frames_that_were_inside() {
    model(
        CROWD,
        |file| {
            file.change(0, |frames| frames.remove(0..9));
            file.change(2, |frames| {
                frames.put(1, frame(b"d"));
                frames.put(0, frame(b"c"));
            });
        },
        |file| Some((file.copy(0)?, file.copy(1)?)),
        [(b'a', b'b'), (b'a', b'd'), (b'c', b'd')],
    );
}

#[test]
fn a_frame_that_is_changed_twice_in_one_change_is_not_seen_in_between() {
    model(
        PAIR,
        |file| {
            file.change(2, |frames| {
                frames.begin();
                frames.put(0, frame(b"x"));
                frames.put(0, frame(b"c"));
            });
        },
        |file| file.read(0),
        [b'a', b'c'],
    );
}

#[test]
fn a_frame_behind_the_end_is_not_seen_before_the_size_says_so() {
    let appended = |file: &File| file.change(3, |frames| frames.put(2, frame(b"c")));
    let reader = |file: &File| {
        let read = file.read(2)?;
        // Relaxed: the gate orders it.
        Some((read, file.size.load(Ordering::Relaxed)))
    };
    model(PAIR, appended, reader, [(b'c', 3)]);
}

#[test]
fn what_is_cut_off_and_written_anew_is_not_seen_before_its_time() {
    model(
        CROWD,
        |file| {
            file.change(0, |frames| frames.remove(0..9));
            file.change(2, |frames| {
                frames.put(1, frame(b"d"));
                frames.put(0, frame(b"c"));
            });
        },
        |file| file.read(1),
        [b'b', b'd'],
    );
}

#[test]
fn a_tree_that_grows_changes_nothing_for_readers_of_what_was_there() {
    model(
        PAIR,
        |file| {
            file.change(9, |frames| frames.put(8, frame(b"c")));
            file.change(9, |frames| {
                frames.begin();
                frames.put(0, frame(b"x"));
                frames.put(0, frame(b"d"));
            });
        },
        |file| file.read(0),
        [b'a', b'd'],
    );
}

#[test]
fn a_change_of_one_frame_leaves_the_others_known() {
    let sure = |file: &File| Some(file.read(1));
    let overwritten = |file: &File| file.change(2, |frames| frames.put(0, frame(b"c")));
    model(PAIR, overwritten, sure, [Some(b'b')]);
}
