//! Asking the host for much at once.
//!
//! A host that answers slowly answers many as fast as one. So a batch goes by *lanes*: threads that each ask for one after the
//! other. As long as the host answers from memory a batch stays on the thread that brings it, since to wake others takes
//! longer. Otherwise it goes by 8 lanes and, as long as twice as many bring a tenth more, by up to 128.
//!
//! Threads are started when they are needed, and end when nothing has come for a while. Nothing waits for one that is
//! stuck in the host but the caller of its batch.

use parking_lot::{Condvar, Mutex};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

const LEAST: usize = 8;
const MOST: usize = 128;
/// An answer that takes no longer came from memory.
const QUICK: Duration = Duration::from_micros(40);
/// By so much a batch may be late before its host counts as slow.
const SLACK: Duration = Duration::from_micros(200);
/// A thread ends when it had nothing to do for so long.
const IDLE: Duration = Duration::from_secs(10);
/// What a thread needs: system calls, and little around them.
const STACK: usize = 256 << 10;

type Work = dyn Fn(usize) + Send + Sync;

/// Items under way, by their places.
struct Batch {
    work: Box<Work>,
    count: usize,
    next: AtomicUsize,
    done: Mutex<usize>,
    all: Condvar,
}

/// An item that counts as done when this is dropped, also by a panic: else its batch would wait for ever.
struct Item<'b>(&'b Batch);

impl Drop for Item<'_> {
    fn drop(&mut self) {
        let mut done = self.0.done.lock();
        *done += 1;
        if *done == self.0.count {
            self.0.all.notify_all();
        }
    }
}

impl Batch {
    /// Takes items as long as there are any.
    fn help(&self) {
        loop {
            // Relaxed: what the work is made of was there before the batch, and the lock of `done` shows what came of it.
            let at = self.next.fetch_add(1, Ordering::Relaxed);
            if at >= self.count {
                return;
            }
            let _item = Item(self);
            (self.work)(at);
        }
    }

    fn wait(&self) {
        let mut done = self.done.lock();
        while *done < self.count {
            self.all.wait(&mut done);
        }
    }
}

#[derive(Default)]
struct Queue {
    waiting: VecDeque<Arc<Batch>>,
    idle: usize,
    threads: usize,
}

#[derive(Default)]
struct Pool {
    queue: Mutex<Queue>,
    come: Condvar,
}

/// How many lanes a batch gets, and what came of that.
struct Pace {
    lanes: usize,
    /// Answers a second, of the last batch with half as many lanes.
    before: f64,
    /// Did more lanes bring nothing?
    settled: bool,
}

pub(crate) struct Lanes {
    pool: Arc<Pool>,
    pace: Mutex<Pace>,
    /// Did it not answer from memory of late?
    slow: AtomicBool,
}

impl Lanes {
    pub(crate) fn new() -> Self {
        Self {
            pool: Arc::default(),
            pace: Mutex::new(Pace {
                lanes: LEAST,
                before: 0.0,
                settled: false,
            }),
            slow: AtomicBool::new(false),
        }
    }

    /// Does this to all items, and returns what came of each, in their order.
    ///
    /// # Panics
    /// If `act` does.
    pub(crate) fn map<T, R>(
        &self,
        items: Vec<T>,
        act: impl Fn(&T) -> R + Send + Sync + 'static,
    ) -> Vec<R>
    where
        T: Send + Sync + 'static,
        R: Send + 'static,
    {
        let count = items.len();
        let mut answers = Vec::with_capacity(count);
        // Relaxed, here and below: a guess.
        if count < 2 || !self.slow.load(Ordering::Relaxed) {
            let begin = Instant::now();
            for item in &items {
                answers.push(act(item));
                if begin.elapsed() > QUICK * answers.len() as u32 + SLACK {
                    self.slow.store(true, Ordering::Relaxed);
                    break;
                }
            }
        }
        let begun = answers.len();
        match count - begun {
            0 => {}
            1 => answers.extend(items.last().map(act)),
            rest => {
                let found: Arc<Vec<Mutex<Option<R>>>> =
                    Arc::new((0..rest).map(|_| Mutex::new(None)).collect());
                let put = Arc::clone(&found);
                let work = move |at: usize| {
                    let answer = act(&items[begun + at]);
                    *put[at].lock() = Some(answer);
                };
                self.run(rest, Box::new(work));
                answers.extend(found.iter().filter_map(|answer| answer.lock().take()));
                assert_eq!(answers.len(), count, "a lane panicked");
            }
        }
        answers
    }

    fn run(&self, count: usize, work: Box<Work>) {
        let lanes = self.pace.lock().lanes;
        let batch = Arc::new(Batch {
            work,
            count,
            next: AtomicUsize::new(0),
            done: Mutex::new(0),
            all: Condvar::new(),
        });
        let begin = Instant::now();
        self.pool.offer(&batch, lanes.min(count) - 1);
        batch.help();
        batch.wait();
        let took = begin.elapsed();
        self.pool.withdraw(&batch);
        if took < QUICK * count as u32 {
            self.slow.store(false, Ordering::Relaxed);
        }
        if count >= 2 * lanes {
            let rate = count as f64 / took.as_secs_f64().max(1e-9);
            self.pace.lock().note(lanes, rate);
        }
    }
}

impl Pace {
    fn note(&mut self, lanes: usize, rate: f64) {
        if lanes != self.lanes || self.settled {
            return;
        }
        if rate < self.before * 1.1 {
            self.lanes = (lanes / 2).max(LEAST);
            self.settled = true;
        } else if lanes < MOST {
            self.before = rate;
            self.lanes = lanes * 2;
        }
    }
}

impl Pool {
    /// So many threads are to help.
    fn offer(self: &Arc<Self>, batch: &Arc<Batch>, helpers: usize) {
        let mut queue = self.queue.lock();
        queue
            .waiting
            .extend((0..helpers).map(|_| Arc::clone(batch)));
        let wanted = queue.waiting.len().saturating_sub(queue.idle);
        let started = wanted.min(MOST.saturating_sub(queue.threads));
        for _ in 0..started {
            let pool = Arc::clone(self);
            let thread = std::thread::Builder::new()
                .name("holdfast-host".into())
                .stack_size(STACK);
            // Without it the others do it.
            if thread.spawn(move || pool.serve()).is_err() {
                break;
            }
            queue.threads += 1;
        }
        drop(queue);
        self.come.notify_all();
    }

    /// What is done needs no help any more.
    fn withdraw(&self, batch: &Arc<Batch>) {
        let mut queue = self.queue.lock();
        queue.waiting.retain(|waiting| !Arc::ptr_eq(waiting, batch));
    }

    fn serve(&self) {
        let mut queue = self.queue.lock();
        loop {
            if let Some(batch) = queue.waiting.pop_front() {
                drop(queue);
                batch.help();
                drop(batch);
                queue = self.queue.lock();
                continue;
            }
            queue.idle += 1;
            let waited = self.come.wait_for(&mut queue, IDLE);
            queue.idle -= 1;
            if waited.timed_out() && queue.waiting.is_empty() {
                queue.threads -= 1;
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Barrier;

    fn sleep() {
        std::thread::sleep(2 * (QUICK + SLACK));
    }

    #[test]
    fn answers_come_in_the_order_of_what_was_asked() {
        let lanes = Lanes::new();
        for count in [0, 1, 2, 3, 50, 1000] {
            for slow in [count, 0, 1, 7] {
                let items: Vec<usize> = (0..count).collect();
                let act = move |item: &usize| {
                    if *item == slow {
                        sleep();
                    }
                    item * 3
                };
                let expected: Vec<usize> = items.iter().map(|item| item * 3).collect();
                assert_eq!(lanes.map(items, act), expected);
            }
        }
    }

    #[test]
    fn a_slow_host_is_asked_by_several_threads_at_once() {
        let lanes = Lanes::new();
        let together = Arc::new(Barrier::new(LEAST));
        let act = move |item: &usize| {
            match *item {
                0 => sleep(),
                // None of them comes back before all have come.
                _ => drop(together.wait()),
            }
            *item
        };
        lanes.slow.store(false, Ordering::Relaxed);
        let items: Vec<usize> = (0..=LEAST).collect();
        assert_eq!(lanes.map(items.clone(), act), items);
    }

    #[test]
    #[should_panic(expected = "panicked")]
    fn a_panic_of_a_lane_is_the_callers() {
        let lanes = Lanes::new();
        lanes.slow.store(true, Ordering::Relaxed);
        let caller = std::thread::current().id();
        let seen = Arc::new(Barrier::new(2));
        lanes.map(vec![1, 2], move |item| {
            seen.wait();
            assert_eq!(std::thread::current().id(), caller, "item {item} panicked");
        });
    }

    #[test]
    fn lanes_become_more_as_long_as_that_brings_more() {
        let mut pace = Pace {
            lanes: LEAST,
            before: 0.0,
            settled: false,
        };
        for (rate, lanes) in [
            (100.0, 16),
            (200.0, 32),
            (390.0, 64),
            (400.0, 32),
            (9e9, 32),
        ] {
            pace.note(pace.lanes, rate);
            assert_eq!(pace.lanes, lanes);
        }
    }
}
