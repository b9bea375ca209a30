//! Threads that do the same thing at the same time, each pinned to a processor.
//!
//! *Invariants.* All threads of a crew start a command together, when the last one has come to
//! the start line. A crew does one command at a time; a thread that panics ends the command, and
//! the crew, with an error.

use crate::process;
use anyhow::{Context, Result, ensure};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::Scope;
use std::time::{Duration, Instant};

/// Rounds of waiting for the others without giving the processor away.
const SPINS: u32 = 10_000;

/// Threads that wait for commands of type `C`. They end when the crew is dropped.
pub(crate) struct Crew<C> {
    lanes: Vec<Lane<C>>,
}

struct Lane<C> {
    orders: Sender<(C, Arc<StartLine>)>,
    laps: Receiver<Result<Lap>>,
}

/// What one thread, or (the longest time, the sum of items) a crew, did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Lap {
    pub(crate) time: Duration,
    pub(crate) items: u64,
}

/// Releases all when the last one has come.
struct StartLine {
    missing: AtomicUsize,
}

impl StartLine {
    fn wait(&self) {
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
    }
}

impl<C: Copy + Send> Crew<C> {
    /// One thread for each worker, on one processor after the other; a worker answers a command
    /// with the number of items done.
    ///
    /// # Errors
    /// If a thread cannot be started or pinned.
    pub(crate) fn hire<'scope, W>(
        scope: &'scope Scope<'scope, '_>,
        workers: impl IntoIterator<Item = W>,
    ) -> Result<Self>
    where
        W: FnMut(C) -> Result<u64> + Send + 'scope,
        C: 'scope,
    {
        let processors = process::processors()?;
        ensure!(!processors.is_empty(), "no processor to run on");
        let mut lanes = Vec::new();
        for (worker, &processor) in workers.into_iter().zip(processors.iter().cycle()) {
            let (orders, inbox) = channel();
            let (outbox, laps) = channel();
            std::thread::Builder::new()
                .name("bench".to_owned())
                .spawn_scoped(scope, move || serve(processor, worker, &inbox, &outbox))
                .context("cannot start a thread")?;
            lanes.push(Lane { orders, laps });
        }
        for lane in &lanes {
            lane.lap()?;
        }
        Ok(Self { lanes })
    }

    /// Lets all threads do this, and waits for them.
    ///
    /// # Errors
    /// The first error of a thread, in their order.
    pub(crate) fn perform(&self, command: C) -> Result<Lap> {
        let line = Arc::new(StartLine {
            missing: AtomicUsize::new(self.lanes.len()),
        });
        for lane in &self.lanes {
            lane.orders
                .send((command, Arc::clone(&line)))
                .ok()
                .context("a thread has ended")?;
        }
        // All have come to rest before any of them reports a failure.
        let laps: Vec<Result<Lap>> = self.lanes.iter().map(Lane::lap).collect();
        laps.into_iter().try_fold(Lap::default(), |all, lap| {
            let lap = lap?;
            Ok(Lap {
                time: all.time.max(lap.time),
                items: all.items + lap.items,
            })
        })
    }
}

impl<C> Lane<C> {
    fn lap(&self) -> Result<Lap> {
        self.laps.recv().context("a thread panicked")?
    }
}

fn serve<C, W: FnMut(C) -> Result<u64>>(
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
        line.wait();
        let begun = Instant::now();
        let done = worker(command);
        let time = begun.elapsed();
        lap = done.map(|items| Lap { time, items });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::bail;

    #[test]
    fn a_crew_takes_as_long_as_its_slowest_and_does_what_all_do() {
        std::thread::scope(|scope| {
            let workers = [1_u64, 30].map(|pause| {
                move |items: u64| {
                    std::thread::sleep(Duration::from_millis(pause));
                    Ok(items + pause)
                }
            });
            let crew = Crew::hire(scope, workers).expect("hired");
            let lap = crew.perform(100).expect("done");
            assert_eq!(lap.items, 231);
            assert!(lap.time >= Duration::from_millis(30), "{lap:?}");
        });
    }

    #[test]
    fn a_failure_or_a_panic_of_one_thread_is_an_error_and_hangs_nobody() {
        std::thread::scope(|scope| {
            let worker = |command: u64| match command {
                0 => Ok(1),
                _ => bail!("refused"),
            };
            let crew = Crew::hire(scope, [worker, worker]).expect("hired");
            assert_eq!(crew.perform(1).expect_err("refused").to_string(), "refused");
            assert_eq!(crew.perform(0).expect("it goes on").items, 2);
        });
        let panicked = std::panic::catch_unwind(|| {
            std::thread::scope(|scope| {
                let workers = [0, 1].map(|me| {
                    move |victim: u64| {
                        assert!(me != victim, "planted");
                        Ok(0)
                    }
                });
                let crew = Crew::hire(scope, workers).expect("hired");
                assert_eq!(
                    crew.perform(1).expect_err("one is gone").to_string(),
                    "a thread panicked"
                );
            });
        });
        assert!(panicked.is_err(), "the scope passes the panic on");
    }
}
