//! The command line.

use super::{Settings, run};
use std::process::ExitCode;
use std::time::Instant;

const USAGE: &str = "\
usage: full [--seed N] [--operations N]

Does random operations on file systems that are full. A failure names the seed that brings it back.";

fn parse(mut words: impl Iterator<Item = String>) -> Result<Settings, String> {
    let mut settings = Settings::default();
    while let Some(word) = words.next() {
        let value = words
            .next()
            .ok_or_else(|| format!("{word} needs a value"))?;
        let number = value
            .parse()
            .map_err(|_| format!("{word}: not a number: {value}"))?;
        match word.as_str() {
            "--seed" => settings.seed = number,
            "--operations" => settings.operations = number,
            _ => return Err(format!("unknown argument {word}")),
        }
    }
    Ok(settings)
}

/// Runs what the arguments say. Exit code 0: nothing went wrong; 1: something did; 2: the arguments make no
/// sense.
pub fn main(words: impl Iterator<Item = String>) -> ExitCode {
    let settings = match parse(words) {
        Ok(settings) => settings,
        Err(trouble) => {
            eprintln!("full: {trouble}\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    let began = Instant::now();
    println!("full: {settings:?}");
    match run(&settings, &|line| println!("{line}")) {
        Ok(summary) => {
            let seconds = began.elapsed().as_secs_f64();
            println!("full: {summary}; no failure; {seconds:.1} s");
            ExitCode::SUCCESS
        }
        Err(failure) => {
            println!("FAILED: {failure}");
            ExitCode::from(1)
        }
    }
}
