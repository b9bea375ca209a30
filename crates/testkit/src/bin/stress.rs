//! Runs the stress test: `stress --minutes N --threads 8 --seed S --store memory|model`.

fn main() -> std::process::ExitCode {
    holdfast_testkit::stress::command::main(std::env::args().skip(1))
}
