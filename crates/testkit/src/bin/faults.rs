//! Runs the test of faults beside each other: `faults --threads 8 --seed S --faults N`.

fn main() -> std::process::ExitCode {
    holdfast_testkit::faults::command::main()
}
