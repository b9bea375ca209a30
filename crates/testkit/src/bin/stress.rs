//! Runs the stress test: `stress --minutes N --threads 8 --seed S --store memory|model|volume`.

#[cfg(feature = "mimalloc")]
use holdfast_allocator::Allocator;
use holdfast_testkit::stress::{command, sys::Counting};

/// That of the `holdfast` command, counted. Sanitizers watch the system's.
#[cfg(feature = "mimalloc")]
#[global_allocator]
static ALLOCATOR: Counting<Allocator> = Counting(Allocator);

#[cfg(not(feature = "mimalloc"))]
#[global_allocator]
static ALLOCATOR: Counting<std::alloc::System> = Counting(std::alloc::System);

fn main() -> std::process::ExitCode {
    command::main()
}
