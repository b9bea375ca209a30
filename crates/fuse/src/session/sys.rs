//! The system calls here that have no safe wrapper.
#![expect(
    unsafe_code,
    reason = "policies of the scheduler, and one ioctl, have no safe wrapper"
)]

use rustix::{
    io::Errno as Code,
    ioctl::{Opcode, Updater, ioctl, opcode},
};
use std::{fs, io, os::fd::AsFd};

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
    // By number, because not every C library passes it on. SAFETY: the kernel reads the structure
    // of one integer, which lives until the call returns, and changes nothing but how the thread is
    // scheduled.
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

/// Has the calling thread the default policy, so that it returns to [`Policy::Other`]?
pub(super) fn has_usual_policy() -> bool {
    let stat = fs::read_to_string("/proc/thread-self/stat").unwrap_or_default();
    // The 41st of 52 fields. The name of the thread, which may have blanks, is before it.
    stat.rsplit(' ').nth(11) == Some("0")
}

/// The processor time that a thread of this process has used, in nanoseconds; 0 after its end.
pub(super) fn cpu_time(thread: i32) -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // The number of one thread's clock, as `make_thread_cpuclock` of the kernel builds it. SAFETY:
    // the kernel writes `time`, which lives until the call returns; on an error it stays zero.
    unsafe { libc::clock_gettime((!thread << 3) | 6, &raw mut time) };
    time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs()
}

const QUERY: Opcode = opcode::read_write::<Query>(b'f', 17);
const SHARED: u64 = 0x08;
const COVERING_OR_NEXT: u64 = 0x10;
const FILE_BACKED: u64 = 0x20;

/// `struct procmap_query` of Linux 6.11.
#[repr(C)]
#[derive(Default)]
struct Query {
    size: u64,
    flags: u64,
    address: u64,
    start: u64,
    end: u64,
    vma_flags: u64,
    page_size: u64,
    offset: u64,
    inode: u64,
    device: [u32; 2],
    /// Zero: no name and no build id is requested, so the kernel writes to no address.
    sizes: [u32; 2],
    addresses: [u64; 2],
}

/// A mapping of a file in a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mapping {
    /// The inode's number in its file system.
    pub(super) inode: u64,
    /// The first address behind it.
    pub(super) end: u64,
}

/// The first shared mapping of a file that ends behind `address`, from the `maps` file of a
/// process; `None` if there is none.
///
/// # Errors
/// `ENOTTY` before Linux 6.11.
pub(super) fn shared_mapping(maps: impl AsFd, address: u64) -> Result<Option<Mapping>, Code> {
    let mut query = Query {
        size: size_of::<Query>() as u64,
        flags: SHARED | COVERING_OR_NEXT | FILE_BACKED,
        address,
        ..Query::default()
    };
    // SAFETY: `QUERY` is the ioctl that takes this structure, and the kernel leaves valid values in
    // its fields.
    let update = unsafe { Updater::<QUERY, Query>::new(&mut query) };
    // SAFETY: the kernel reads and writes `size` bytes of the structure, which is as large and
    // lives until the call returns, and nothing at `addresses`, since both `sizes` are 0.
    let asked = unsafe { ioctl(maps, update) };
    match asked {
        Ok(()) => Ok(Some(Mapping {
            inode: query.inode,
            end: query.end,
        })),
        Err(Code::NOENT) => Ok(None),
        Err(error) => Err(error),
    }
}
