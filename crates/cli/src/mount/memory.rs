//! The memory budget of the daemon of a volume or a directory, and the size of its request buffers.

use super::options::Plan;
use crate::source::Source;
use holdfast::engine::{
    Memory,
    budget::{AMPLE, ReclaimThread},
};
use std::{io, num::NonZero, thread};

/// Request buffers may take this fraction of the budget.
const BUFFERS_PART: u64 = 16;
/// The largest write with a large and with a small budget. A buffer has room for one.
const WRITE_MAX: u32 = 1 << 20;
const WRITE_MIN: u32 = 256 << 10;
/// The least budget for large writes.
const LARGE_WRITES: u64 = 256 << 20;
/// Least and most threads of one processor's queue.
const THREADS: (u64, u64) = (4, 128);

/// The limits of request buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Buffers {
    /// The largest write in bytes.
    pub(super) write_max: u32,
    /// Threads of one processor's queue, at most, each with a buffer.
    pub(super) threads_max: usize,
}

/// Sets and returns the memory budget of this process. `mem:` has none, since its content cannot be
/// evicted.
fn budget(source: &Source, plan: &Plan) -> Option<u64> {
    if *source == Source::Memory {
        return None;
    }
    let memory = Memory::of_process();
    memory.set(plan.core.memory);
    Some(memory.budget())
}

/// With a small budget, disables transparent huge pages for this process and its children: a huge
/// page is resident as a whole for a few bytes.
pub(super) fn prepare(source: &Source, plan: &Plan) {
    if budget(source, plan).is_some_and(|budget| budget < AMPLE) {
        // A failure only costs memory.
        let _ = rustix::thread::disable_transparent_huge_pages(true);
    }
}

/// Starts the thread that keeps the process within its budget.
pub(super) fn keep(source: &Source, plan: &Plan) -> io::Result<Option<ReclaimThread>> {
    let Some(budget) = budget(source, plan) else {
        return Ok(None);
    };
    if budget < AMPLE {
        holdfast_allocator::return_at_once();
    }
    Memory::of_process()
        .follow(holdfast_allocator::trim)
        .map(Some)
}

/// The buffers for a mount with this plan.
pub(super) fn buffers(source: &Source, plan: &Plan) -> Buffers {
    let processors = thread::available_parallelism().map_or(1, NonZero::get) as u64;
    within(budget(source, plan).unwrap_or(u64::MAX), processors)
}

fn within(budget: u64, processors: u64) -> Buffers {
    let write_max = match budget {
        LARGE_WRITES.. => WRITE_MAX,
        _ => WRITE_MIN,
    };
    let threads = budget / BUFFERS_PART / u64::from(write_max) / processors;
    Buffers {
        write_max,
        threads_max: threads.clamp(THREADS.0, THREADS.1) as usize,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn buffers_take_a_sixteenth_of_the_memory() {
        let small = within(64 * MIB, 2);
        assert_eq!((small.write_max, small.threads_max), (WRITE_MIN, 8));
        let all = |it: Buffers| u64::from(it.write_max) * it.threads_max as u64;
        assert_eq!(2 * all(within(2048 * MIB, 2)), 128 * MIB);
        let many = within(u64::MAX, 64);
        assert_eq!((many.write_max, many.threads_max), (WRITE_MAX, 128));
        assert_eq!(
            within(0, 64).threads_max,
            4,
            "some can always wait for a device"
        );
    }

    #[test]
    fn what_is_in_memory_alone_has_no_budget() {
        let plan = Plan::default();
        assert_eq!(budget(&Source::Memory, &plan), None);
    }
}
