//! The command line.

use super::{Settings, run};
use std::process::ExitCode;
use std::time::{Duration, Instant};

impl Settings {
    /// Reads `--name value` pairs.
    ///
    /// # Errors
    /// A sentence about the argument that is wrong.
    pub fn parse(mut words: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut settings = Self::default();
        while let Some(word) = words.next() {
            let value = words
                .next()
                .ok_or_else(|| format!("{word} needs a value"))?;
            let number = value
                .parse::<u64>()
                .map_err(|_| format!("{word}: not a number: {value}"))?;
            match word.as_str() {
                "--seed" => settings.seed = number,
                "--states" => settings.states = number,
                "--operations" => settings.operations = number.clamp(1, 100_000) as usize,
                "--threads" => settings.threads = number.clamp(1, 256) as usize,
                "--seconds" => settings.time = Some(Duration::from_secs(number)),
                "--sequence" => settings.sequence = Some(number),
                "--state" => settings.state = Some(number),
                _ => return Err(format!("unknown argument {word}")),
            }
        }
        Ok(settings)
    }
}

const USAGE: &str = "\
usage: crash [--seed N] [--states N] [--operations N] [--threads N] [--seconds N]
             [--sequence N [--state N]]

Tries crash states of a volume until there were as many as --states says. --operations: steps of
a random sequence at most. --sequence and --state bring a failure back.";

/// Runs what the arguments say. Exit code 0: nothing went wrong; 1: something did; 2: the
/// arguments make no sense.
pub fn main(words: impl Iterator<Item = String>) -> ExitCode {
    let settings = match Settings::parse(words) {
        Ok(settings) => settings,
        Err(trouble) => {
            eprintln!("crash: {trouble}\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    let began = Instant::now();
    println!("crash: {settings:?}");
    let say = |line: &str| println!("FAILED: {line}");
    match run(&settings, &say) {
        Ok(summary) => {
            println!("crash: {summary}; {:.1} s", began.elapsed().as_secs_f64());
            ExitCode::from(u8::from(summary.failed > 0))
        }
        Err(trouble) => {
            println!("crash: FAILED: {trouble}");
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
        let settings = parse("--seed 7 --states 10 --sequence 3 --state 4").unwrap();
        assert_eq!((settings.seed, settings.states), (7, 10));
        assert_eq!((settings.sequence, settings.state), (Some(3), Some(4)));
        assert!(parse("--states").unwrap_err().contains("value"));
        assert!(parse("--states many").unwrap_err().contains("many"));
        assert!(parse("--stats 4").unwrap_err().contains("--stats"));
    }
}
