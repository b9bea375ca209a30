//! Changes a directory below its mount and looks at it through that: `coherence --source DIR
//! --mount DIR --changes N`.

fn main() -> std::process::ExitCode {
    holdfast_testkit::coherence::command::main()
}
