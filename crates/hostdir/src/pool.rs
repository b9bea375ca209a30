//! Requests to the host, many at once.
//!
//! A slow host answers many requests in the time of one. A batch therefore goes to a pool of
//! [`THREADS`] threads and its caller, which each send one request after the other. While the host
//! answers from memory a batch stays on its caller: to wake a thread would take longer.
//!
//! The threads start with the first slow batch, and end when the pool is dropped. Only the caller
//! of a batch waits for a thread that is stuck in the host.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{SyncSender, channel, sync_channel};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

const THREADS: usize = 32;
/// An answer that takes no longer came from memory.
const QUICK: Duration = Duration::from_micros(40);
/// A batch on its caller that is later than this makes its host a slow one.
const SLACK: Duration = Duration::from_micros(200);
/// Most calls for help that wait. A batch that finds no room has fewer threads, or only its caller.
const WAITING: usize = 16 * THREADS;
/// A thread makes system calls and little else.
const STACK: usize = 256 << 10;

/// Takes items of one batch until none is left.
type Help = Arc<dyn Fn() + Send + Sync>;

#[derive(Default)]
pub(crate) struct Pool {
    threads: OnceLock<SyncSender<Help>>,
    /// Did the host take longer than `QUICK` for an answer in a recent batch?
    slow: AtomicBool,
}

impl Pool {
    /// Applies `act` to all items. The answers are in the order of the items.
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
        match count - answers.len() {
            0 => {}
            1 => answers.extend(items.last().map(act)),
            _ => self.share(items, act, &mut answers),
        }
        answers
    }

    /// Adds the answers that are missing, by the caller and threads of the pool.
    fn share<T, R>(
        &self,
        items: Vec<T>,
        act: impl Fn(&T) -> R + Send + Sync + 'static,
        answers: &mut Vec<R>,
    ) where
        T: Send + Sync + 'static,
        R: Send + 'static,
    {
        let rest = items.len() - answers.len();
        let next = AtomicUsize::new(answers.len());
        let (answered, arrived) = channel::<(usize, std::thread::Result<R>)>();
        let help: Help = Arc::new(move || {
            loop {
                // Relaxed: the channels order what the items and the answers hold.
                let at = next.fetch_add(1, Ordering::Relaxed);
                let Some(item) = items.get(at) else { return };
                let answer = catch_unwind(AssertUnwindSafe(|| act(item)));
                // The caller receives all answers, so its end of the channel is there.
                let _ = answered.send((at, answer));
            }
        });
        let begin = Instant::now();
        let threads = self.threads.get_or_init(start);
        for _ in 1..rest.min(THREADS) {
            if threads.try_send(Arc::clone(&help)).is_err() {
                break;
            }
        }
        help();
        let mut found: Vec<_> = arrived.iter().take(rest).collect();
        if begin.elapsed() < QUICK * rest as u32 {
            self.slow.store(false, Ordering::Relaxed);
        }
        found.sort_unstable_by_key(|(at, _)| *at);
        let found = found.into_iter();
        answers
            .extend(found.map(|(_, answer)| answer.unwrap_or_else(|panic| resume_unwind(panic))));
    }
}

/// Starts the threads. They take turns at the receiver: the one that waits holds its lock.
fn start() -> SyncSender<Help> {
    let (sender, receiver) = sync_channel::<Help>(WAITING);
    let receiver = Arc::new(Mutex::new(receiver));
    for _ in 0..THREADS {
        let receiver = Arc::clone(&receiver);
        let thread = std::thread::Builder::new()
            .name("holdfast-host".into())
            .stack_size(STACK);
        let serve = move || {
            loop {
                let help = receiver.lock().recv();
                let Ok(help) = help else { return };
                help();
            }
        };
        // Without it the other threads and the callers do the work.
        let _ = thread.spawn(serve);
    }
    sender
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
        let pool = Pool::default();
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
                assert_eq!(pool.map(items, act), expected);
            }
        }
    }

    #[test]
    fn a_slow_host_is_asked_by_several_threads_at_once() {
        let pool = Pool::default();
        let together = Arc::new(Barrier::new(THREADS));
        let act = move |item: &usize| {
            match *item {
                0 => sleep(),
                // None of them comes back before all have come.
                _ => drop(together.wait()),
            }
            *item
        };
        pool.slow.store(false, Ordering::Relaxed);
        let items: Vec<usize> = (0..=THREADS).collect();
        assert_eq!(pool.map(items.clone(), act), items);
    }

    #[test]
    #[should_panic(expected = "panicked")]
    fn a_panic_of_a_lane_is_the_callers() {
        let pool = Pool::default();
        pool.slow.store(true, Ordering::Relaxed);
        let caller = std::thread::current().id();
        let seen = Arc::new(Barrier::new(2));
        pool.map(vec![1, 2], move |item| {
            seen.wait();
            assert_eq!(std::thread::current().id(), caller, "item {item} panicked");
        });
    }
}
