//! Recording what an operation does, instruction by instruction, while it runs on the processor.
//!
//! A [`Recorder`] runs a piece of code under the processor's trap flag and notes the registers
//! before each instruction; [`decode`] turns the notes into memory accesses afterwards. Nothing
//! is instrumented or emulated: the code is the code that users run, with the processor's own
//! clock, vector instructions, and the C library's allocator and copies.
//!
//! *What it cannot see.* What the kernel touches during a system call; prefetching; what other
//! threads do meanwhile. Masked vector accesses count with their whole width.

mod decode;
#[cfg(target_arch = "x86_64")]
mod sys;
#[cfg(not(target_arch = "x86_64"))]
#[path = "absent.rs"]
mod sys;
#[cfg(all(test, target_arch = "x86_64"))]
mod tests;

use std::hint::black_box;
use std::io;

pub(crate) use decode::{Access, Decoder, LINE_BYTES};

/// Registers before one instruction, in the kernel's order: r8 to r15, rdi, rsi, rbp, rbx, rdx,
/// rax, rcx, rsp, rip.
#[derive(Clone, Copy)]
pub(crate) struct Step {
    registers: [u64; 17],
    /// Was the allocator at work?
    pub(crate) allocating: bool,
}

impl Step {
    /// The address of the instruction.
    pub(crate) fn ip(&self) -> u64 {
        self.registers[16]
    }

    /// The stack pointer before it.
    pub(crate) fn sp(&self) -> u64 {
        self.registers[15]
    }
}

/// What one thread's recordings need; made and used on that thread.
pub(crate) struct Recorder {
    thread_base: u64,
}

/// Fewer than what a sum of a hundred numbers takes.
const TRIAL_STEPS: usize = 50;

/// The notes of one recording.
pub(crate) struct Tape {
    steps: Vec<Step>,
    /// Nothing is missing at its end.
    pub(crate) whole: bool,
    /// Where the recorded thread's thread-locals are.
    pub(crate) thread_base: u64,
}

impl Tape {
    /// An empty tape; its memory is taken at once.
    pub(crate) fn new(capacity: usize) -> Self {
        Self {
            steps: Vec::with_capacity(capacity),
            whole: true,
            thread_base: 0,
        }
    }

    /// What was noted.
    pub(crate) fn steps(&self) -> &[Step] {
        &self.steps
    }
}

impl Recorder {
    /// Prepares the calling thread.
    ///
    /// # Errors
    /// What the system answers; `Unsupported` for a processor that this is not written for, and
    /// where the trap flag has no effect (some emulated kernels take it away).
    pub(crate) fn new() -> io::Result<Self> {
        sys::install()?;
        sys::attach()?;
        let mut trial = Vec::with_capacity(TRIAL_STEPS);
        sys::record(&mut trial, || {
            black_box((0..100_u32).map(black_box).sum::<u32>());
        });
        if trial.len() < TRIAL_STEPS {
            let why = "instructions do not trap here";
            return Err(io::Error::new(io::ErrorKind::Unsupported, why));
        }
        Ok(Self {
            thread_base: sys::thread_base(),
        })
    }

    /// Runs `code`, noted on `tape`, which is overwritten.
    pub(crate) fn record(&self, tape: &mut Tape, code: impl FnOnce()) {
        tape.steps.clear();
        tape.thread_base = self.thread_base;
        tape.whole = sys::record(&mut tape.steps, code);
    }
}
