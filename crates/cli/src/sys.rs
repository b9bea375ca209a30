//! System calls that have no safe wrapper.

#![expect(
    unsafe_code,
    reason = "close_range(2) and ioprio_set(2) have no safe wrappers"
)]

use std::io;

/// Sets close-on-exec on every descriptor but standard input, output and error, so that the daemon
/// does not inherit descriptors of the shell.
///
/// # Errors
/// Those of close_range(2); Linux before 5.11 does not know the flag.
pub(crate) fn close_all_on_exec() -> io::Result<()> {
    let (all, flags) = (libc::c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC);
    // By its number: musl has no function for it.
    // SAFETY: with this flag close_range(2) closes no descriptor in this process; only execve(2)
    // reads the flag.
    let result = unsafe { libc::syscall(libc::SYS_close_range, 3, all, flags) };
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Lowers the I/O priority of this thread and of threads it starts later: to the lowest best-effort
/// level or, with `idle`, to the idle class.
///
/// # Errors
/// Those of ioprio_set(2).
pub(crate) fn set_io_priority(idle: bool) -> io::Result<()> {
    const PROCESS: libc::c_int = 1;
    const CLASS_SHIFT: u32 = 13;
    const BEST_EFFORT: libc::c_int = 2 << CLASS_SHIFT | 7;
    const IDLE: libc::c_int = 3 << CLASS_SHIFT;
    let priority = if idle { IDLE } else { BEST_EFFORT };
    // SAFETY: the arguments and the result are integers; no memory is accessed.
    let result = unsafe { libc::syscall(libc::SYS_ioprio_set, PROCESS, 0, priority) };
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}
