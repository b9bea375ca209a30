//! Running one instruction at a time: the processor's trap flag, and the signal it raises.
//!
//! With the flag set the processor traps after each instruction; the kernel makes a SIGTRAP of it,
//! clears the flag while the handler runs, and sets it again on return. The handler copies the
//! registers onto the thread's tape and does nothing else: it interrupts anything, an allocator
//! half way through an allocation included.
#![expect(unsafe_code, reason = "a signal handler, and the processor's flags")]

use std::arch::asm;
use std::cell::Cell;
use std::io;
use std::mem::MaybeUninit;
use std::ptr;

use super::Step;
use crate::memory;

/// The processor's flag that asks for a trap after each instruction.
const TRAP_FLAG: i64 = 0x100;

/// Handlers run on a stack of their own: what they touch is not the operation's.
const STACK_BYTES: usize = 1 << 16;

thread_local! {
    /// Where the handler writes; null while nothing is recorded.
    static TAPE: Cell<*mut Vec<Step>> = const { Cell::new(ptr::null_mut()) };
    /// The tape was full.
    static OVERFLOWN: Cell<bool> = const { Cell::new(false) };
}

/// Makes the process take traps as records.
pub(super) fn install() -> io::Result<()> {
    let mut action = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: all zeros is a `sigaction` with the default handler, no flags and an empty mask.
    let action = unsafe { action.assume_init_mut() };
    action.sa_sigaction = on_trap as *const () as usize;
    action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
    // SAFETY: the handler is async-signal-safe: it writes to memory set aside for it.
    let done = unsafe { libc::sigaction(libc::SIGTRAP, action, ptr::null_mut()) };
    if done == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Gives the calling thread a stack for its handlers. It is leaked: the thread may end last.
pub(super) fn attach() -> io::Result<()> {
    let stack = Box::leak(vec![0_u8; STACK_BYTES].into_boxed_slice());
    let stack = libc::stack_t {
        ss_sp: stack.as_mut_ptr().cast(),
        ss_flags: 0,
        ss_size: STACK_BYTES,
    };
    // SAFETY: the memory is leaked above, so it is the handlers' for ever.
    let done = unsafe { libc::sigaltstack(&raw const stack, ptr::null_mut()) };
    if done == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// The base of the calling thread's `fs` segment: where its thread-locals are.
pub(super) fn thread_base() -> u64 {
    let base: u64;
    // SAFETY: on x86-64 Linux the first word of the segment holds the segment's own address.
    unsafe {
        asm!("mov {}, fs:[0]", out(reg) base, options(nostack, readonly, preserves_flags));
    };
    base
}

/// Ends the recording however the recorded code is left.
struct Recording;

impl Drop for Recording {
    fn drop(&mut self) {
        // SAFETY: only the trap flag changes; the stack is as before.
        unsafe {
            asm!("pushfq", "and qword ptr [rsp], -257", "popfq");
        };
        TAPE.set(ptr::null_mut());
    }
}

/// Runs `code`, and notes on the tape each instruction before it is executed. False: the tape
/// was full, and the rest ran unseen.
#[inline(never)]
pub(super) fn record(tape: &mut Vec<Step>, code: impl FnOnce()) -> bool {
    OVERFLOWN.set(false);
    TAPE.set(tape);
    let recording = Recording;
    // SAFETY: only the trap flag changes; the stack is as before. The handler is installed, for
    // `Recorder` is made by installing it, and the tape outlives `recording`.
    unsafe {
        asm!("pushfq", "or qword ptr [rsp], 256", "popfq");
    };
    code();
    drop(recording);
    !OVERFLOWN.get()
}

extern "C" fn on_trap(_signal: i32, _info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    let tape = TAPE.get();
    if tape.is_null() {
        return;
    }
    // SAFETY: the kernel passes a context to handlers installed with SA_SIGINFO.
    let context = unsafe { &mut *context.cast::<libc::ucontext_t>() };
    // SAFETY: `record` set it to a tape that it holds exclusively until it sets it to null; this
    // thread is inside `record` and the interrupted code does not use the tape.
    let tape = unsafe { &mut *tape };
    let all = &context.uc_mcontext.gregs;
    if tape.len() == tape.capacity() {
        OVERFLOWN.set(true);
        context.uc_mcontext.gregs[libc::REG_EFL as usize] &= !TRAP_FLAG;
        return;
    }
    let mut registers = [0; 17];
    for (register, value) in registers.iter_mut().zip(all) {
        *register = value.cast_unsigned();
    }
    // Within its capacity a push does not allocate.
    tape.push(Step {
        registers,
        allocating: memory::is_allocating(),
    });
}
