//! The helper process of [`Kicker`](super::Kicker).
//!
//! It is a copy of this process with a single thread. In it any lock of the C library or of the
//! allocator may be held forever, so it only makes system calls. A small process copies itself for
//! each nudge, so that one that is not answered delays no other.
#![expect(unsafe_code, reason = "a process is copied")]

use rustix::{
    net::{AddressFamily, SendFlags, SocketFlags, SocketType, send, socketpair},
    process::chdir,
    stdio::{dup2_stdin, stdin},
    thread::{CpuSet, sched_setaffinity},
};
use std::{
    ffi::{CStr, CString},
    io, mem,
    os::{fd::OwnedFd, unix::ffi::OsStrExt},
    path::Path,
};

/// The process that asks.
pub(super) struct Helper {
    /// Its requests; it ends when this is closed.
    socket: Option<OwnedFd>,
    pid: libc::pid_t,
}

impl Helper {
    /// Starts it for the mount at `dir`, of this device number.
    pub(super) fn start(device: u32, dir: &Path) -> io::Result<Self> {
        let dir = CString::new(dir.as_os_str().as_bytes())?;
        let (kind, flags) = (SocketType::SEQPACKET, SocketFlags::CLOEXEC);
        let (ours, theirs) = socketpair(AddressFamily::UNIX, kind, flags, None)?;
        // Its end sends no signal, so that a program that waits for its own children does not meet
        // it.
        match copy_process(0) {
            -1 => Err(io::Error::last_os_error()),
            0 => serve(&theirs, device, &dir),
            pid => Ok(Self {
                socket: Some(ours),
                pid: pid as libc::pid_t,
            }),
        }
    }

    /// Has it send a STATFS from processor `qid`.
    pub(super) fn ask(&self, qid: u16) -> io::Result<()> {
        let Some(socket) = &self.socket else {
            return Ok(());
        };
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        send(socket, &qid.to_le_bytes(), flags)?;
        Ok(())
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        self.socket = None;
        // SAFETY: no status is asked for, and the number is of a child that is waited for here
        // alone.
        unsafe { libc::waitpid(self.pid, std::ptr::null_mut(), libc::__WALL) };
    }
}

/// Copies this process with this thread alone; returns -1, 0 in the copy, or its number. `signal`
/// is sent at its end.
fn copy_process(signal: libc::c_int) -> libc::c_long {
    // SAFETY: without flags the copy shares no memory with this process and goes on on a copy of
    // the same stack. Callers call nothing in it but what makes system calls, and never return from
    // it.
    unsafe { libc::syscall(libc::SYS_clone, libc::c_long::from(signal), 0, 0, 0, 0) }
}

/// The helper: serves requests until the socket is closed.
fn serve(socket: &OwnedFd, device: u32, dir: &CStr) -> ! {
    keep_only(socket);
    // It must hold no directory, ignore signals but SIGKILL, and leave no zombies.
    let _ = chdir(c"/");
    // SAFETY: all bits clear is a set of signals.
    let mut all: libc::sigset_t = unsafe { mem::zeroed() };
    // SAFETY: the set is borrowed exclusively.
    unsafe { libc::sigfillset(&raw mut all) };
    // SAFETY: the set lives as long as the call, and the old one is not asked for.
    unsafe { libc::sigprocmask(libc::SIG_SETMASK, &raw const all, std::ptr::null_mut()) };
    // SAFETY: no handler of ours is given.
    unsafe { libc::signal(libc::SIGCHLD, libc::SIG_IGN) };
    let mut qid = [0u8; 2];
    loop {
        if rustix::io::read(stdin(), &mut qid[..]) != Ok(qid.len()) {
            leave();
        }
        match copy_process(libc::SIGCHLD) {
            0 => {
                ask(u16::from_le_bytes(qid), device, dir);
                leave();
            }
            // No more processes: this one sends it, and waits.
            -1 => ask(u16::from_le_bytes(qid), device, dir),
            _ => {}
        }
    }
}

/// Ends this process at once.
fn leave() -> ! {
    // SAFETY: nothing of the process is used any more, which shares nothing with another.
    unsafe { libc::_exit(0) }
}

/// Leaves `socket` open, as descriptor 0, and no other.
fn keep_only(socket: &OwnedFd) {
    if dup2_stdin(socket).is_err() {
        leave();
    }
    // SAFETY: descriptors of the copy are its own; no object in it that owns one is used again.
    let closed = unsafe { libc::syscall(libc::SYS_close_range, 1, libc::c_uint::MAX, 0) };
    if closed != 0 {
        // A connection that it held open would hang the callers of a killed daemon.
        leave();
    }
}

/// Sends a STATFS from processor `qid`. Its result does not matter.
fn ask(qid: u16, device: u32, dir: &CStr) {
    let mut set = CpuSet::new();
    if usize::from(qid) < CpuSet::MAX_CPU {
        set.set(qid.into());
    }
    // A processor that is offline sends no requests either.
    if sched_setaffinity(None, &set).is_ok() {
        ask_space(device, dir);
    }
}

/// By the device's number, without a path and so without keeping the mount busy.
#[cfg(target_arch = "x86_64")]
fn ask_space(device: u32, _: &CStr) {
    /// The kernel's `struct ustat` has 32 bytes.
    const ROOM: usize = 8;
    let mut answer = [0u64; ROOM];
    // SAFETY: ustat(2) writes 32 bytes to the address, where 64 are borrowed exclusively.
    unsafe {
        libc::syscall(
            libc::SYS_ustat,
            libc::c_ulong::from(device),
            answer.as_mut_ptr(),
        )
    };
}

/// The same by path, where ustat(2) does not exist.
#[cfg(not(target_arch = "x86_64"))]
fn ask_space(_: u32, dir: &CStr) {
    let _ = rustix::fs::statfs(dir);
}
