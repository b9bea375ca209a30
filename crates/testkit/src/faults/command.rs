//! The command line.

use super::{Settings, run};
use clap::Parser;
use clap::builder::RangedU64ValueParser;
use std::process::ExitCode;
use std::time::Instant;

/// Has calls of devices fail beside each other, until so many have as --faults says
///
/// Exit code 0: nothing went wrong; 1: something did; 2: the arguments make no sense.
#[derive(Parser)]
#[command(name = "faults")]
struct Arguments {
    /// Operations and faults follow from it
    #[arg(long, value_name = "N", default_value_t = Settings::default().seed)]
    seed: u64,
    /// Threads beside each other
    #[arg(long, value_name = "N", default_value_t = Settings::default().threads,
        value_parser = RangedU64ValueParser::<usize>::new().range(1..=64))]
    threads: usize,
    /// Faults wanted
    #[arg(long, value_name = "N", default_value_t = Settings::default().faults)]
    faults: u64,
    /// Only this round. Operations and faults are the same each time, the order of the threads is the host's
    #[arg(long, value_name = "N")]
    round: Option<u64>,
    /// How often to make it
    #[arg(long, value_name = "N", default_value_t = 1, requires = "round")]
    times: u64,
}

impl From<Arguments> for Settings {
    fn from(arguments: Arguments) -> Self {
        Self {
            seed: arguments.seed,
            threads: arguments.threads,
            faults: arguments.faults,
            round: arguments.round.map(|round| (round, arguments.times)),
        }
    }
}

/// Runs what the command line says.
#[must_use]
pub fn main() -> ExitCode {
    let settings = Settings::from(Arguments::parse());
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
        let parse = |words: &str| {
            let words = std::iter::once("faults").chain(words.split_whitespace());
            Arguments::try_parse_from(words).map(Settings::from)
        };
        let refused = |words| parse(words).unwrap_err().to_string();
        let settings = parse("--seed 7 --threads 4 --faults 10").unwrap();
        assert_eq!((settings.seed, settings.threads), (7, 4));
        assert_eq!((settings.faults, settings.round), (10, None));
        let settings = parse("--times 9 --round 3").unwrap();
        assert_eq!(settings.round, Some((3, 9)));
        assert!(refused("--faults").contains("--faults"));
        assert!(refused("--faults many").contains("many"));
        assert!(refused("--threads 65").contains("1..=64"));
        assert!(refused("--fault 4").contains("--fault"));
        assert!(refused("--help").contains("beside each other"));
    }
}
