//! A fence on every thread of the process without membarrier(2): a thread that runs on every
//! processor in turn.
//!
//! A context switch makes what the outgoing thread did visible to all, and what others did before
//! visible to the incoming thread. After the visitor has run on every processor, each other thread
//! has been through a switch since the call, or did not run at all. And when the visitor ran on a
//! thread's processor, it saw what that thread had done there. A visit costs one switch for each
//! processor, some tens of microseconds each.

use crate::idle_policy::without_idle_policy;
use rustix::thread::{CpuSet, Pid, sched_getaffinity, sched_getcpu, sched_setaffinity};
use std::{fs, thread};

/// Visits every processor on which a thread of this process may run. `false`: it could not, or
/// cannot be sure.
pub(super) fn visit_processors() -> bool {
    // A thread of its own, so that no affinity has to be restored.
    let thread = thread::Builder::new().name("holdfast-barrier".to_owned());
    let visitor = without_idle_policy(|| thread.spawn(|| visit().is_some()));
    visitor.is_ok_and(|visitor| visitor.join().unwrap_or(false))
}

fn visit() -> Option<()> {
    let mut visited = CpuSet::new();
    for processor in 0..CpuSet::MAX_CPU {
        let mut only = CpuSet::new();
        only.set(processor);
        // The processor does not exist, or this process may not run there.
        if sched_setaffinity(None, &only).is_err() {
            continue;
        }
        if sched_getcpu() != processor {
            return None;
        }
        visited.set(processor);
    }
    // A thread in another control group may run where this one may not.
    for task in fs::read_dir("/proc/self/task").ok()? {
        let id = task.ok()?.file_name().to_str()?.parse().ok()?;
        let Ok(allowed) = sched_getaffinity(Pid::from_raw(id)) else {
            // The thread has ended.
            continue;
        };
        let is_visited = |processor| !allowed.is_set(processor) || visited.is_set(processor);
        if !(0..CpuSet::MAX_CPU).all(is_visited) {
            return None;
        }
    }
    Some(())
}

#[cfg(test)]
mod tests {
    #[test]
    #[cfg_attr(miri, ignore = "there are no processors to be visited")]
    fn the_processors_of_this_machine_are_visited() {
        assert!(super::visit_processors());
    }
}
