//! The system call here that has no safe wrapper.
#![expect(unsafe_code, reason = "policies of the scheduler have no safe wrapper")]

use std::io;

/// A policy of the scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Policy {
    /// `SCHED_OTHER`.
    Other,
    /// `SCHED_IDLE`.
    Idle,
}

/// Gives a thread of this process a policy; 0: the calling thread.
pub(super) fn set_policy(thread: i32, policy: Policy) -> io::Result<()> {
    let policy = match policy {
        Policy::Other => libc::SCHED_OTHER,
        Policy::Idle => libc::SCHED_IDLE,
    };
    let priority: libc::c_int = 0;
    // By number, because not every C library passes it on.
    // SAFETY: the kernel reads the structure of one integer, which lives until the call returns, and
    // changes nothing but how the thread is scheduled.
    let done = unsafe {
        libc::syscall(
            libc::SYS_sched_setscheduler,
            thread,
            policy,
            &raw const priority,
        )
    };
    if done == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Is the calling thread scheduled as threads mostly are, so that [`Policy::Other`] is what it goes
/// back to?
pub(super) fn has_usual_policy() -> bool {
    // SAFETY: the call only reads, and 0 names the calling thread.
    let policy = unsafe { libc::syscall(libc::SYS_sched_getscheduler, 0) };
    policy == libc::c_long::from(libc::SCHED_OTHER)
}
