//! The one system call that has no safe wrapper.

#![expect(unsafe_code, reason = "close_range(2) has no safe wrapper")]

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
