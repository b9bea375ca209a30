//! Runs the fullness test: `full --seed S --operations N`.

fn main() -> std::process::ExitCode {
    holdfast_testkit::full::command::main()
}
