//! Asking the host for much at once.
//!
//! A host that answers slowly answers many as fast as one. So a batch goes by *lanes*: threads that each ask for one after the
//! other. As long as the host answers from memory a batch stays on the thread that brings it, since to wake others takes
//! longer. Otherwise it goes by 8 lanes, and by up to 128 as long as an answer takes no longer with twice as many: how long it takes says that
//! however many are asked for at once.
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

/// Twice as many lanes are too many if an answer takes so many times as long then: a host that does one thing after the other takes twice as long.
const TOO_LONG: f64 = 1.7;
/// So many times the answers of a trial come with fewer lanes then, before it is tried again: something else may have been slow.
const HOLD: u32 = 16;
/// Answers of each lane that a trial counts, and those before that it does not: threads begin.
const COUNTED: usize = 4;
const UNCOUNTED: usize = 2;

/// Items under way, by their places.
struct Batch {
    work: Box<Work>,
    count: usize,
    next: AtomicUsize,
    pace: Arc<Pace>,
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
    /// Takes items as long as there are any. More lanes join if that is of use.
    fn help(self: &Arc<Self>, pool: &Arc<Pool>) {
        loop {
            // Relaxed: what the work is made of was there before the batch, and the lock of `done` shows what came of it.
            let at = self.next.fetch_add(1, Ordering::Relaxed);
            if at >= self.count {
                return;
            }
            let more = {
                let _item = Item(self);
                let begin = Instant::now();
                (self.work)(at);
                self.pace.answered(begin.elapsed())
            };
            let left = self.count.saturating_sub(at);
            if more > 0 {
                pool.offer(self, more.min(left));
            }
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

/// How many lanes a batch gets, and how long answers take with as many.
struct Pace {
    lanes: AtomicUsize,
    trial: Mutex<Trial>,
}

/// What is known since the number of lanes changed.
#[derive(Default)]
struct Trial {
    answers: usize,
    /// Of those that count.
    spent: Duration,
    /// How long an answer took with half as many lanes.
    with_half: Option<Duration>,
    /// Trials until more lanes are tried.
    hold: u32,
}

pub(crate) struct Lanes {
    pool: Arc<Pool>,
    pace: Arc<Pace>,
    /// Did it not answer from memory of late?
    slow: AtomicBool,
}

impl Lanes {
    pub(crate) fn new() -> Self {
        Self {
            pool: Arc::default(),
            pace: Arc::new(Pace::new()),
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
        let lanes = self.pace.lanes();
        let batch = Arc::new(Batch {
            work,
            count,
            next: AtomicUsize::new(0),
            pace: Arc::clone(&self.pace),
            done: Mutex::new(0),
            all: Condvar::new(),
        });
        let begin = Instant::now();
        self.pool.offer(&batch, lanes.min(count) - 1);
        batch.help(&self.pool);
        batch.wait();
        let took = begin.elapsed();
        self.pool.withdraw(&batch);
        if took < QUICK * count as u32 {
            self.slow.store(false, Ordering::Relaxed);
        }
    }
}

impl Pace {
    fn new() -> Self {
        Self {
            lanes: AtomicUsize::new(LEAST),
            trial: Mutex::default(),
        }
    }

    fn lanes(&self) -> usize {
        self.lanes.load(Ordering::Relaxed)
    }

    /// An answer took so long. So many more lanes may join.
    fn answered(&self, took: Duration) -> usize {
        let mut trial = self.trial.lock();
        let lanes = self.lanes();
        trial.answers += 1;
        if trial.answers > UNCOUNTED * lanes {
            trial.spent += took;
        }
        if trial.answers < (UNCOUNTED + COUNTED) * lanes {
            return 0;
        }
        let each = trial.spent / (COUNTED * lanes) as u32;
        let (with_half, hold) = (trial.with_half, trial.hold);
        *trial = Trial::default();
        let now = match with_half {
            _ if hold > 0 => {
                trial.hold = hold - 1;
                lanes
            }
            Some(half) if each.as_secs_f64() > half.as_secs_f64() * TOO_LONG => {
                trial.hold = HOLD;
                lanes / 2
            }
            _ if lanes < MOST => {
                trial.with_half = Some(each);
                lanes * 2
            }
            _ => lanes,
        };
        self.lanes.store(now, Ordering::Relaxed);
        now.saturating_sub(lanes)
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

    fn serve(self: &Arc<Self>) {
        let mut queue = self.queue.lock();
        loop {
            if let Some(batch) = queue.waiting.pop_front() {
                drop(queue);
                batch.help(self);
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
    fn lanes_become_more_as_long_as_answers_take_no_longer_and_it_is_tried_again() {
        let pace = Pace::new();
        let trial = |millis: &dyn Fn(usize) -> u64| {
            let lanes = pace.lanes();
            let mut more = 0;
            for answer in 0..(UNCOUNTED + COUNTED) * lanes {
                // Those do not count.
                let took = if answer < UNCOUNTED * lanes {
                    1000
                } else {
                    millis(lanes)
                };
                more += pace.answered(Duration::from_millis(took));
            }
            assert_eq!(more, pace.lanes().saturating_sub(lanes));
            pace.lanes()
        };
        let told = [10, 11, 16, 20].map(|it| trial(&|_| it));
        assert_eq!(told, [16, 32, 64, 128]);
        assert_eq!(trial(&|_| 40), 64, "twice as long");
        for _ in 0..HOLD {
            assert_eq!(trial(&|_| 1), 64);
        }
        let told = [20, 21, 500].map(|it| trial(&|_| it));
        assert_eq!(told, [128, 128, 128]);
        // A host that does one thing after the other.
        let serial = Pace::new();
        let mut most = 0;
        for _ in 0..100_000 {
            serial.answered(Duration::from_millis(serial.lanes() as u64));
            most += u32::from(serial.lanes() > LEAST);
        }
        assert!(
            most < 15_000,
            "{most} of 100,000 answers of too many at once"
        );
    }
}
