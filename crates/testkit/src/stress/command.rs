//! The command line.

use super::{Base, Settings, run};
use std::process::ExitCode;
use std::time::{Duration, Instant};

impl Default for Settings {
    fn default() -> Self {
        Self {
            time: Duration::from_secs(60),
            round: Duration::from_secs(4),
            threads: 8,
            seed: 1,
            base: Base::Memory,
        }
    }
}

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
            let number = || {
                let parsed = value.parse::<u64>();
                parsed.map_err(|_| format!("{word}: not a number: {value}"))
            };
            match word.as_str() {
                "--minutes" => settings.time = Duration::from_secs(60 * number()?),
                "--seconds" => settings.time = Duration::from_secs(number()?),
                "--round" => settings.round = Duration::from_millis(number()?),
                "--threads" => settings.threads = number()?.clamp(1, 256) as usize,
                "--seed" => settings.seed = number()?,
                "--store" => {
                    settings.base = match value.as_str() {
                        "memory" => Base::Memory,
                        "model" => Base::Model,
                        "volume" => Base::Volume,
                        _ => return Err(format!("--store: memory, model or volume, not {value}")),
                    }
                }
                _ => return Err(format!("unknown argument {word}")),
            }
        }
        Ok(settings)
    }
}

const USAGE: &str = "\
usage: stress [--minutes N | --seconds N] [--threads N] [--seed N] [--round MILLISECONDS]
              [--store memory|model|volume]

Memory that is still allocated when no file system lives is a failure.";

/// Runs what the arguments say. Exit code 0: nothing went wrong; 1: something did; 2: the
/// arguments make no sense.
pub fn main(words: impl Iterator<Item = String>) -> ExitCode {
    let settings = match Settings::parse(words) {
        Ok(settings) => settings,
        Err(trouble) => {
            eprintln!("stress: {trouble}\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    let began = Instant::now();
    println!("stress: {settings:?}");
    let say = |line: &str| println!("{:7.1} s  {line}", began.elapsed().as_secs_f64());
    match run(&settings, &say) {
        Ok(summary) => {
            println!("stress: passed: {summary}");
            ExitCode::SUCCESS
        }
        Err(trouble) => {
            println!("stress: FAILED: {trouble}");
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
        let settings = parse("--minutes 30 --threads 8 --seed 7 --store model").unwrap();
        assert_eq!(settings.time, Duration::from_secs(1800));
        assert_eq!((settings.seed, settings.base), (7, Base::Model));
        assert_eq!(parse("--store volume").unwrap().base, Base::Volume);
        assert!(parse("--store disk").unwrap_err().contains("disk"));
        assert!(parse("--seed").unwrap_err().contains("value"));
        assert!(parse("--sed 4").unwrap_err().contains("--sed"));
    }
}
