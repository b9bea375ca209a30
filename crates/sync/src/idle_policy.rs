//! Threads that are started by a thread of the scheduler's idle policy.
//!
//! A thread inherits its policy from its creator (`SCHED_RESET_ON_FORK` covers real-time policies
//! only). Under `SCHED_IDLE` it gets next to no time while another thread wants the processor. A
//! thread may take that policy for a moment, and the threads that it spawns meanwhile must not keep
//! it.
#![expect(unsafe_code, reason = "the scheduler's policies have no safe wrapper")]

/// Calls `start`, which spawns threads, without the idle policy.
///
/// If the calling thread may not leave that policy, the whole process was meant to have it, and new
/// threads inherit it.
pub fn without_idle_policy<T>(start: impl FnOnce() -> T) -> T {
    let left = is_idle() && set(libc::SCHED_OTHER);
    let started = start();
    if left {
        set(libc::SCHED_IDLE);
    }
    started
}

fn is_idle() -> bool {
    // Under Miri there are no policies.
    if cfg!(miri) {
        return false;
    }
    // SAFETY: the call only reads, and 0 names the calling thread.
    let policy = unsafe { libc::syscall(libc::SYS_sched_getscheduler, 0) };
    policy == libc::c_long::from(libc::SCHED_IDLE)
}

fn set(policy: libc::c_int) -> bool {
    let priority: libc::c_int = 0;
    // SAFETY: the kernel reads a structure of one integer, which lives until the call returns, and
    // changes only how the calling thread is scheduled.
    let result =
        unsafe { libc::syscall(libc::SYS_sched_setscheduler, 0, policy, &raw const priority) };
    result == 0
}

#[cfg(all(test, not(miri)))]
mod tests {
    use super::*;
    use std::thread;

    #[test]
    fn a_thread_started_by_an_idle_one_is_not_idle() {
        let idle = thread::spawn(|| {
            assert!(set(libc::SCHED_IDLE), "anybody may take it");
            let inherits = thread::spawn(is_idle).join().unwrap();
            assert!(inherits, "otherwise none of this is needed");
            let child = without_idle_policy(|| thread::spawn(is_idle))
                .join()
                .unwrap();
            (child, is_idle(), set(libc::SCHED_OTHER))
        });
        let (child, parent, may_leave) = idle.join().unwrap();
        assert!(parent, "the one that starts keeps it");
        assert_eq!(child, !may_leave);
    }
}
