//! Reading ahead: threads `holdfast-fetch` that bring blocks which sequential readers need next.

use super::blocks::{Blocks, Wants};
use super::file::Sequence;
use parking_lot::{Condvar, Mutex};
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// The first window and the largest, in bytes.
const FIRST: u64 = 1 << 20;
const MOST: u64 = 32 << 20;
/// Bytes that one thread brings at once.
const STEP: u64 = 4 << 20;
/// Threads.
const THREADS: usize = 8;

impl Sequence {
    /// Notes a read. Returns the range that is to be read ahead. Windows double up to `most`.
    pub(super) fn note(&mut self, range: &Range<u64>, most: u64) -> Option<Range<u64>> {
        // Threads that read one after the other may arrive in another order.
        let is_near = |at: u64| at < self.asked && at + self.window >= self.next;
        if range.start != self.next && (self.window == 0 || !is_near(range.start)) {
            *self = Self {
                next: range.end,
                ..Self::default()
            };
            return None;
        }
        self.next = self.next.max(range.end);
        if range.start == 0 {
            return None;
        }
        // A half of the window is on its way while the other half is read.
        if self.window > 0 && self.asked > range.end + self.window / 2 {
            return None;
        }
        self.window = (self.window * 2).clamp(FIRST, MOST).min(most);
        let from = self.asked.max(range.end);
        let to = range.end.saturating_add(self.window);
        self.asked = self.asked.max(to);
        (from < to).then_some(from..to)
    }
}

/// The threads, and what they are to bring.
pub(super) struct Readahead {
    blocks: Arc<Blocks>,
    queue: Arc<Queue>,
}

struct Queue {
    state: Mutex<State>,
    more: Condvar,
}

#[derive(Default)]
struct State {
    wanted: VecDeque<Wants>,
    /// Bytes that are wanted or on their way.
    bytes: u64,
    threads: usize,
    waiting: usize,
    stopped: bool,
}

impl Readahead {
    pub(super) fn new(blocks: Arc<Blocks>) -> Self {
        Self {
            blocks,
            queue: Arc::new(Queue {
                state: Mutex::default(),
                more: Condvar::new(),
            }),
        }
    }

    /// The largest window: an eighth of the cache, so that blocks are read before they go.
    pub(super) fn most(&self) -> u64 {
        self.blocks.limit.load(Relaxed) / 8
    }

    /// Brings blocks, unless too much is on its way already.
    pub(super) fn ask(&self, wants: Wants) {
        let mut steps = vec![Wants::new()];
        let mut bytes = 0;
        for (key, len) in wants {
            if bytes >= STEP {
                steps.push(Wants::new());
                bytes = 0;
            }
            bytes += len;
            if let Some(step) = steps.last_mut() {
                step.insert(key, len);
            }
        }
        let mut state = self.queue.state.lock();
        for step in steps {
            let bytes: u64 = step.values().sum();
            if bytes == 0 || state.bytes + bytes > MOST.min(self.most()) {
                continue;
            }
            state.bytes += bytes;
            state.wanted.push_back(step);
            if state.waiting > 0 || state.threads >= THREADS {
                self.queue.more.notify_one();
                continue;
            }
            let (queue, blocks) = (Arc::clone(&self.queue), Arc::clone(&self.blocks));
            let name = "holdfast-fetch".to_owned();
            let thread = std::thread::Builder::new().name(name);
            // Without a thread nothing is read ahead.
            if thread.spawn(move || queue.run(&blocks)).is_ok() {
                state.threads += 1;
            }
        }
    }
}

impl Drop for Readahead {
    fn drop(&mut self) {
        self.queue.state.lock().stopped = true;
        self.queue.more.notify_all();
    }
}

impl Queue {
    fn run(&self, blocks: &Blocks) {
        loop {
            let mut state = self.state.lock();
            let step = loop {
                if state.stopped {
                    return;
                }
                if let Some(step) = state.wanted.pop_front() {
                    break step;
                }
                state.waiting += 1;
                self.more.wait(&mut state);
                state.waiting -= 1;
            };
            drop(state);
            // A reader that needs the blocks meets the error itself.
            let _ = blocks.load(&step);
            self.state.lock().bytes -= step.values().sum::<u64>();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_double_and_a_jump_resets_them() {
        let mut sequence = Sequence::default();
        let mut asked = Vec::new();
        let mut end = 0;
        for read in 0..400_u64 {
            let at = read << 18;
            let range = sequence.note(&(at..at + (1 << 18)), MOST);
            if let Some(range) = range {
                assert_eq!(range.start, if end == 0 { 2 << 18 } else { end });
                end = range.end;
                asked.push(sequence.window);
            }
            assert!(read < 2 || end > at, "read {read} finds its bytes");
        }
        assert_eq!(
            asked[..6],
            [1 << 20, 2 << 20, 4 << 20, 8 << 20, 16 << 20, 32 << 20]
        );
        assert_eq!(sequence.note(&(7..9), MOST), None);
        assert_eq!(sequence.note(&(9..11), MOST), Some(11..11 + FIRST));
    }
}
