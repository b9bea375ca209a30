//! The command line.

use super::{Settings, run};
use std::process::ExitCode;
use std::time::Instant;

impl Settings {
    /// Reads `--name value` pairs.
    ///
    /// # Errors
    /// A sentence about the argument that is wrong.
    pub fn parse(mut words: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut settings = Self::default();
        let (mut round, mut times) = (None, 1);
        while let Some(word) = words.next() {
            let value = words
                .next()
                .ok_or_else(|| format!("{word} needs a value"))?;
            let number = value
                .parse::<u64>()
                .map_err(|_| format!("{word}: not a number: {value}"))?;
            match word.as_str() {
                "--seed" => settings.seed = number,
                "--threads" => settings.threads = number.clamp(1, 64) as usize,
                "--faults" => settings.faults = number,
                "--round" => round = Some(number),
                "--times" => times = number,
                _ => return Err(format!("unknown argument {word}")),
            }
        }
        settings.round = round.map(|round| (round, times));
        Ok(settings)
    }
}

const USAGE: &str = "\
usage: faults [--seed N] [--threads N] [--faults N]
       faults [--seed N] [--threads N] --round N [--times N]

Makes rounds until as many calls of devices have failed as --faults says. --round makes one of them, as often as
--times says: operations and faults are the same each time, the order of the threads is the host's.";

/// Runs what the arguments say. Exit code 0: nothing went wrong; 1: something did; 2: the
/// arguments make no sense.
pub fn main(words: impl Iterator<Item = String>) -> ExitCode {
    let settings = match Settings::parse(words) {
        Ok(settings) => settings,
        Err(trouble) => {
            eprintln!("faults: {trouble}\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    let began = Instant::now();
    println!("faults: {settings:?}");
    match run(&settings, &|line| println!("FAILED: {line}")) {
        Ok(summary) => {
            println!("faults: {summary}; {:.1} s", began.elapsed().as_secs_f64());
            ExitCode::from(u8::from(summary.wrong > 0))
        }
        Err(trouble) => {
            println!("faults: FAILED: {trouble}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_read_or_named() {
        let parse = |words: &str| Settings::parse(words.split_whitespace().map(String::from));
        let settings = parse("--seed 7 --threads 4 --faults 10").unwrap();
        assert_eq!((settings.seed, settings.threads), (7, 4));
        assert_eq!((settings.faults, settings.round), (10, None));
        let settings = parse("--times 9 --round 3").unwrap();
        assert_eq!(settings.round, Some((3, 9)));
        assert!(parse("--faults").unwrap_err().contains("value"));
        assert!(parse("--faults many").unwrap_err().contains("many"));
        assert!(parse("--fault 4").unwrap_err().contains("--fault"));
    }
}
