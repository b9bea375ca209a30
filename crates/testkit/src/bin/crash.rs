//! Runs the crash test: `crash --seed S --states N`.

fn main() -> std::process::ExitCode {
    holdfast_testkit::crash::command::main()
}
