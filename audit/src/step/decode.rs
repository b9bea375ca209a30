//! From registers to memory accesses.

use iced_x86::{
    FlowControl, InstructionInfoFactory, InstructionInfoOptions, MemorySize, OpAccess, Register,
    UsedMemory,
};
use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::rc::Rc;

use super::{Step, Tape};

/// The longest instruction.
const INSTRUCTION_BYTES: usize = 15;

/// One access to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Access {
    /// Its first byte.
    pub(crate) address: u64,
    /// Its length in bytes, at least 1.
    pub(crate) size: u64,
    /// Does it write, or may it? A compare-and-swap that fails took the line all the same.
    pub(crate) write: bool,
    /// Was the allocator at work?
    pub(crate) allocating: bool,
}

impl Access {
    /// The numbers of the cache lines that it touches; two if it straddles.
    pub(crate) fn lines(&self) -> std::ops::RangeInclusive<u64> {
        self.address / LINE_BYTES..=(self.address + (self.size - 1)) / LINE_BYTES
    }
}

/// A cache line.
pub(crate) const LINE_BYTES: u64 = 64;

/// What an instruction does to the stack of calls.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Flow {
    /// Returns to this address.
    Call(u64),
    Return,
    SystemCall,
    Other,
}

/// What an instruction touches, whatever the registers are.
struct Decoded {
    memory: Vec<(UsedMemory, u64, bool)>,
    flow: Flow,
    /// Repeated while the counter is not zero; each round traps.
    repeated: bool,
}

/// Decodes the instructions of this process.
pub(crate) struct Decoder {
    memory: File,
    decoded: HashMap<u64, Rc<Decoded>>,
    info: InstructionInfoFactory,
}

impl Decoder {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self {
            memory: File::open("/proc/self/mem")?,
            decoded: HashMap::new(),
            info: InstructionInfoFactory::new(),
        })
    }

    /// Hands every access on the tape to `visit`, with the calls it happened in: the addresses
    /// to return to, outermost first. Returns the number of system calls on the tape.
    ///
    /// # Errors
    /// When code cannot be read or decoded.
    pub(crate) fn walk(
        &mut self,
        tape: &Tape,
        mut visit: impl FnMut(&Step, Access, &[u64]),
    ) -> io::Result<u64> {
        let mut calls = Vec::new();
        let mut system_calls = 0;
        for step in tape.steps() {
            let decoded = self.decoded(step.ip())?;
            if !decoded.repeated || step.register(Register::RCX, 0) != Some(0) {
                for (memory, size, write) in &decoded.memory {
                    let value = |register, _, _| step.register(register, tape.thread_base);
                    let address = memory
                        .virtual_address(0, value)
                        .ok_or_else(|| unknown(step.ip()))?;
                    let access = Access {
                        address,
                        size: *size,
                        write: *write,
                        allocating: step.allocating,
                    };
                    visit(step, access, &calls);
                }
            }
            match decoded.flow {
                Flow::Call(back) => calls.push(back),
                Flow::Return => {
                    calls.pop();
                }
                Flow::SystemCall => system_calls += 1,
                Flow::Other => {}
            }
        }
        Ok(system_calls)
    }

    fn decoded(&mut self, ip: u64) -> io::Result<Rc<Decoded>> {
        if let Some(known) = self.decoded.get(&ip) {
            return Ok(Rc::clone(known));
        }
        let mut code = [0; INSTRUCTION_BYTES];
        let len = self.memory.read_at(&mut code, ip)?;
        let mut decoder = iced_x86::Decoder::with_ip(64, &code[..len], ip, 0);
        let instruction = decoder.decode();
        if instruction.is_invalid() {
            return Err(unknown(ip));
        }
        let info = self
            .info
            .info_options(&instruction, InstructionInfoOptions::NO_REGISTER_USAGE);
        let memory = info.used_memory().iter().filter_map(|memory| {
            let write = match memory.access() {
                OpAccess::Read | OpAccess::CondRead => false,
                OpAccess::None | OpAccess::NoMemAccess => return None,
                _ => true,
            };
            Some((*memory, bytes(memory.memory_size()), write))
        });
        let flow = match instruction.flow_control() {
            FlowControl::Call if instruction.is_syscall() => Flow::SystemCall,
            FlowControl::Call | FlowControl::IndirectCall => Flow::Call(instruction.next_ip()),
            FlowControl::Return => Flow::Return,
            _ => Flow::Other,
        };
        let decoded = Rc::new(Decoded {
            memory: memory.collect(),
            flow,
            repeated: instruction.is_string_instruction()
                && (instruction.has_rep_prefix() || instruction.has_repne_prefix()),
        });
        self.decoded.insert(ip, Rc::clone(&decoded));
        Ok(decoded)
    }
}

trait SystemCall {
    fn is_syscall(&self) -> bool;
}

impl SystemCall for iced_x86::Instruction {
    fn is_syscall(&self) -> bool {
        self.mnemonic() == iced_x86::Mnemonic::Syscall
    }
}

/// Sizes that the decoder does not tell are those of whole-state saves: 64 at least.
fn bytes(size: MemorySize) -> u64 {
    match size.size() {
        0 => LINE_BYTES,
        known => known as u64,
    }
}

fn unknown(ip: u64) -> io::Error {
    io::Error::other(format!("an instruction at {ip:#x} that cannot be decoded"))
}

impl Step {
    /// The value of a general register, or the base of a segment; none for other registers.
    fn register(&self, register: Register, thread_base: u64) -> Option<u64> {
        let index = match register.full_register() {
            Register::R8 => 0,
            Register::R9 => 1,
            Register::R10 => 2,
            Register::R11 => 3,
            Register::R12 => 4,
            Register::R13 => 5,
            Register::R14 => 6,
            Register::R15 => 7,
            Register::RDI => 8,
            Register::RSI => 9,
            Register::RBP => 10,
            Register::RBX => 11,
            Register::RDX => 12,
            Register::RAX => 13,
            Register::RCX => 14,
            Register::RSP => 15,
            Register::RIP => return Some(self.ip()),
            Register::FS => return Some(thread_base),
            Register::DS | Register::ES | Register::SS | Register::CS => return Some(0),
            _ => return None,
        };
        let value = self.registers[index];
        Some(match register.size() {
            4 => value & 0xffff_ffff,
            2 => value & 0xffff,
            _ => value,
        })
    }
}
