//! A fence on every thread of the process without membarrier(2): a thread that visits every processor.
//!
//! A processor that switches from one thread to another makes what the first one did before seen by all, and what others did
//! before the switch seen by the thread that it runs next. So when a thread of ours has run on each processor in turn, every
//! other thread has been through such a switch since the call, or did not run at all; and where the visitor came to the
//! processor of a thread, it sees what that thread did there. It takes a switch for each processor, some tens of microseconds each:
//! the slower way, where the kernel refuses the other.

use crate::idle_policy::without_idle_policy;
use rustix::thread::{CpuSet, Pid, sched_getaffinity, sched_getcpu, sched_setaffinity};
use std::{fs, thread};

/// Visits every processor on which a thread of this process may run; `false`: it cannot visit them all, or not be sure of it.
pub(super) fn visit_processors() -> bool {
    // A thread of its own: it needs no place to go back to.
    let thread = thread::Builder::new().name("holdfast-barrier".to_owned());
    let visitor = without_idle_policy(|| thread.spawn(|| visit().is_some()));
    visitor.is_ok_and(|visitor| visitor.join().unwrap_or(false))
}

fn visit() -> Option<()> {
    let mut visited = CpuSet::new();
    for processor in 0..CpuSet::MAX_CPU {
        let mut only = CpuSet::new();
        only.set(processor);
        // There is none of this number, or this process may not run there.
        if sched_setaffinity(None, &only).is_err() {
            continue;
        }
        if sched_getcpu() != processor {
            return None;
        }
        visited.set(processor);
    }
    // A thread in a control group of its own may run where this one may not.
    for task in fs::read_dir("/proc/self/task").ok()? {
        let id = task.ok()?.file_name().to_str()?.parse().ok()?;
        let Ok(allowed) = sched_getaffinity(Pid::from_raw(id)) else {
            // It has ended.
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
