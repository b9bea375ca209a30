//! System calls that have no safe wrapper.

#![expect(
    unsafe_code,
    reason = "close_range(2) and ioprio_set(2) have no safe wrappers"
)]

use std::io;

/// Marks every descriptor but standard input, output and error to be closed when this process
/// executes another program: what the caller's shell had open stays out of a daemon that lives
/// for weeks.
///
/// # Errors
/// Those of close_range(2); Linux before 5.11 does not know the flag.
pub(crate) fn close_all_on_exec() -> io::Result<()> {
    let flags = libc::CLOSE_RANGE_CLOEXEC.cast_signed();
    // SAFETY: no descriptor is closed in this process, so none is pulled from under its owner;
    // the flag is only looked at by execve(2).
    let result = unsafe { libc::close_range(3, libc::c_uint::MAX, flags) };
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Lets the reads and writes of this thread, and of those that it starts from now on, come after those of others: as the
/// last of those that compete, or (`idle`) only while nobody else uses the disk.
///
/// # Errors
/// Those of ioprio_set(2).
pub(crate) fn set_io_priority(idle: bool) -> io::Result<()> {
    const PROCESS: libc::c_int = 1;
    const CLASS_SHIFT: u32 = 13;
    const BEST_EFFORT: libc::c_int = 2 << CLASS_SHIFT | 7;
    const IDLE: libc::c_int = 3 << CLASS_SHIFT;
    let priority = if idle { IDLE } else { BEST_EFFORT };
    // SAFETY: three numbers go in, and one comes out; no memory is touched.
    let result = unsafe { libc::syscall(libc::SYS_ioprio_set, PROCESS, 0, priority) };
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}
