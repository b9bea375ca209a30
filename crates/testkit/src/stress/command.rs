//! The command line.

use super::{Base, Settings, run};
use clap::Parser;
use clap::builder::RangedU64ValueParser;
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

/// Has threads do everything at once, for a while, and compares what is left
///
/// Memory that is still allocated when no file system lives is a failure. Exit code 0: nothing went wrong;
/// 1: something did; 2: the arguments make no sense.
#[derive(Parser)]
#[command(name = "stress")]
struct Arguments {
    /// For how long
    #[arg(long, value_name = "N", conflicts_with = "seconds")]
    minutes: Option<u64>,
    /// For how long [default: 60]
    #[arg(long, value_name = "N")]
    seconds: Option<u64>,
    /// How long one round takes
    #[arg(long, value_name = "MILLISECONDS", default_value_t = 4000)]
    round: u64,
    /// Threads that work
    #[arg(long, value_name = "N", default_value_t = Settings::default().threads,
        value_parser = RangedU64ValueParser::<usize>::new().range(1..=256))]
    threads: usize,
    /// What the threads ask for follows from it
    #[arg(long, value_name = "N", default_value_t = Settings::default().seed)]
    seed: u64,
    /// What stands below
    #[arg(long, value_enum, default_value_t = Settings::default().base)]
    store: Base,
}

impl From<Arguments> for Settings {
    fn from(arguments: Arguments) -> Self {
        let minutes = arguments.minutes.map(|minutes| minutes.saturating_mul(60));
        let time = minutes.or(arguments.seconds).map(Duration::from_secs);
        Self {
            time: time.unwrap_or(Self::default().time),
            round: Duration::from_millis(arguments.round),
            threads: arguments.threads,
            seed: arguments.seed,
            base: arguments.store,
        }
    }
}

/// Runs what the command line says.
#[must_use]
pub fn main() -> ExitCode {
    let settings = Settings::from(Arguments::parse());
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
        let parse = |words: &str| {
            let words = std::iter::once("stress").chain(words.split_whitespace());
            Arguments::try_parse_from(words).map(Settings::from)
        };
        let refused = |words| parse(words).unwrap_err().to_string();
        let settings = parse("--minutes 30 --threads 8 --seed 7 --store model").unwrap();
        assert_eq!(settings.time, Duration::from_secs(1800));
        assert_eq!((settings.seed, settings.base), (7, Base::Model));
        assert_eq!(parse("--store volume").unwrap().base, Base::Volume);
        assert_eq!(parse("--seconds 0").unwrap().time, Duration::ZERO);
        assert_eq!(parse("").unwrap().time, Settings::default().time);
        assert!(refused("--store disk").contains("disk"));
        assert!(refused("--seed").contains("--seed"));
        assert!(refused("--sed 4").contains("--sed"));
        assert!(refused("--help").contains("compares what is left"));
    }
}
