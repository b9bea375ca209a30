//! Threads that do the same thing at the same time, each pinned to a processor.
//!
//! *Invariants.* All threads of a pool start a command together: when the last one has reached the
//! start line, and not before the moment that was set for it. A pool does one command at a time. A
//! thread that panics ends the command, and the pool, with an error.

use crate::process;
use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::Scope;
use std::time::Duration;

/// Rounds of waiting for the others without giving the processor away.
const SPINS: u32 = 10_000;

/// Threads that wait for commands of type `C`. They end when the pool is dropped.
pub(crate) struct Pool<C> {
    members: Vec<Member<C>>,
}

struct Member<C> {
    orders: Sender<(C, Arc<StartLine>)>,
    laps: Receiver<Result<Lap>>,
}

/// What a worker did in one command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Work {
    /// What the phase is about.
    pub(crate) items: u64,
    /// What was done beside that, to disturb it.
    pub(crate) aside: u64,
}

/// What one thread did, or several together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Lap {
    /// From the start to the end of the slowest.
    pub(crate) time: Duration,
    /// Processor time of them all.
    pub(crate) cpu: Duration,
    /// Of them all.
    pub(crate) work: Work,
}

impl Lap {
    /// Both, which ran at the same time.
    pub(crate) fn beside(self, other: Self) -> Self {
        Self {
            time: self.time.max(other.time),
            cpu: self.cpu + other.cpu,
            work: Work {
                items: self.work.items + other.work.items,
                aside: self.work.aside + other.work.aside,
            },
        }
    }

    /// Both, one after the other.
    pub(crate) fn then(self, next: Self) -> Self {
        Self {
            time: self.time + next.time,
            ..self.beside(next)
        }
    }
}

impl From<u64> for Work {
    fn from(items: u64) -> Self {
        Self { items, aside: 0 }
    }
}

/// Releases all when the last one has come, but not before the moment on the monotonic clock.
struct StartLine {
    missing: AtomicUsize,
    moment: Duration,
    /// When the last one came, in nanoseconds of that clock.
    complete: AtomicU64,
}

impl StartLine {
    /// Waits, and returns when all could begin. A thread that leaves later loses that time.
    fn wait(&self) -> Duration {
        let now = u64::try_from(process::monotonic().as_nanos()).unwrap_or(u64::MAX);
        self.complete.fetch_max(now, Ordering::Relaxed);
        self.missing.fetch_sub(1, Ordering::AcqRel);
        let mut spins = 0;
        while self.missing.load(Ordering::Acquire) != 0 {
            spins += 1;
            if spins < SPINS {
                std::hint::spin_loop();
            } else {
                std::thread::yield_now();
            }
        }
        while process::monotonic() < self.moment {
            std::hint::spin_loop();
        }
        let complete = Duration::from_nanos(self.complete.load(Ordering::Relaxed));
        complete.max(self.moment)
    }
}

impl<C: Copy + Send> Pool<C> {
    /// One thread for each worker, on one processor after the other, from the `first` one on; a
    /// worker answers a command with what it did.
    ///
    /// # Errors
    /// If a thread cannot be started or pinned.
    pub(crate) fn hire<'scope, W>(
        scope: &'scope Scope<'scope, '_>,
        first: usize,
        workers: impl IntoIterator<Item = W>,
    ) -> Result<Self>
    where
        W: FnMut(C) -> Result<Work> + Send + 'scope,
        C: 'scope,
    {
        let processors = process::processors()?;
        ensure!(!processors.is_empty(), "no processor to run on");
        let mut members = Vec::new();
        let places = processors.iter().cycle().skip(first % processors.len());
        for (worker, &processor) in workers.into_iter().zip(places) {
            let (orders, inbox) = channel();
            let (outbox, laps) = channel();
            std::thread::Builder::new()
                .name("bench".to_owned())
                .spawn_scoped(scope, move || serve(processor, worker, &inbox, &outbox))
                .context("cannot start a thread")?;
            members.push(Member { orders, laps });
        }
        for member in &members {
            member.lap()?;
        }
        Ok(Self { members })
    }

    /// Lets all threads do this, and waits for them.
    ///
    /// # Errors
    /// The first error of a thread, in their order.
    pub(crate) fn perform(&self, command: C) -> Result<Lap> {
        self.perform_at(command, Duration::ZERO)
    }

    /// Lets all threads do this from a moment on the monotonic clock on, and waits for them.
    ///
    /// # Errors
    /// The first error of a thread, in their order.
    pub(crate) fn perform_at(&self, command: C, moment: Duration) -> Result<Lap> {
        let line = Arc::new(StartLine {
            missing: AtomicUsize::new(self.members.len()),
            moment,
            complete: AtomicU64::new(0),
        });
        for member in &self.members {
            member
                .orders
                .send((command, Arc::clone(&line)))
                .ok()
                .context("a thread has ended")?;
        }
        // All have come to rest before any of them reports a failure.
        let laps: Vec<Result<Lap>> = self.members.iter().map(Member::lap).collect();
        laps.into_iter()
            .try_fold(Lap::default(), |all, lap| Ok(all.beside(lap?)))
    }
}

impl<C> Member<C> {
    fn lap(&self) -> Result<Lap> {
        self.laps.recv().context("a thread panicked")?
    }
}

fn serve<C, W: FnMut(C) -> Result<Work>>(
    processor: usize,
    mut worker: W,
    inbox: &Receiver<(C, Arc<StartLine>)>,
    outbox: &Sender<Result<Lap>>,
) {
    // The first lap says that the thread is in its place.
    let mut lap = process::pin(processor).map(|()| Lap::default());
    while outbox.send(lap).is_ok()
        && let Ok((command, line)) = inbox.recv()
    {
        let begun = line.wait();
        let cpu_before = process::thread_cpu();
        let done = worker(command);
        let time = process::monotonic().saturating_sub(begun);
        let cpu = process::thread_cpu().saturating_sub(cpu_before);
        lap = done.map(|work| Lap { time, cpu, work });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::bail;

    #[test]
    fn a_pool_takes_as_long_as_its_slowest_and_does_what_all_do() {
        std::thread::scope(|scope| {
            let workers = [1_u64, 30].map(|pause| {
                move |items: u64| {
                    std::thread::sleep(Duration::from_millis(pause));
                    let aside = 2;
                    let items = items + pause;
                    Ok(Work { items, aside })
                }
            });
            let pool = Pool::hire(scope, 0, workers).expect("hired");
            let lap = pool.perform(100).expect("done");
            assert_eq!((lap.work.items, lap.work.aside), (231, 4));
            assert!(lap.time >= Duration::from_millis(30), "{lap:?}");
            assert!(lap.cpu < lap.time, "they slept: {lap:?}");
        });
    }

    #[test]
    fn nobody_starts_before_the_moment_and_what_the_wait_takes_is_not_counted() {
        std::thread::scope(|scope| {
            let nanos = || u64::try_from(process::monotonic().as_nanos());
            let worker = move |()| Ok(Work::from(nanos()?));
            let pool = Pool::hire(scope, 7, [worker]).expect("hired, wherever that is");
            let moment = process::monotonic() + Duration::from_millis(20);
            let lap = pool.perform_at((), moment).expect("done");
            let begun = Duration::from_nanos(lap.work.items);
            assert!(begun >= moment, "{begun:?} {moment:?}");
            let passed = process::monotonic() - moment;
            assert!(lap.time <= passed, "{lap:?} {passed:?}");
        });
    }

    #[test]
    fn a_failure_or_a_panic_of_one_thread_is_an_error_and_hangs_nobody() {
        std::thread::scope(|scope| {
            let worker = |command: u64| match command {
                0 => Ok(Work::from(1)),
                _ => bail!("refused"),
            };
            let pool = Pool::hire(scope, 0, [worker, worker]).expect("hired");
            assert_eq!(pool.perform(1).expect_err("refused").to_string(), "refused");
            assert_eq!(pool.perform(0).expect("it goes on").work.items, 2);
        });
        let panicked = std::panic::catch_unwind(|| {
            std::thread::scope(|scope| {
                let workers = [0, 1].map(|me| {
                    move |victim: u64| {
                        assert!(me != victim, "planted");
                        Ok(Work::default())
                    }
                });
                let pool = Pool::hire(scope, 0, workers).expect("hired");
                assert_eq!(
                    pool.perform(1).expect_err("one is gone").to_string(),
                    "a thread panicked"
                );
            });
        });
        assert!(panicked.is_err(), "the scope passes the panic on");
    }
}
