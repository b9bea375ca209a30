//! Runs the differential tester: `differential --seed S --steps N --seeds K`.
//!
//! `--against host` pits the kernel against itself, which shows that the tester is sound.

fn main() -> std::process::ExitCode {
    holdfast_testkit::diff::command::main()
}
