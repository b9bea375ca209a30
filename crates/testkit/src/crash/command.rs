//! The command line.

use super::{Settings, run};
use clap::Parser;
use clap::builder::RangedU64ValueParser;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Tries crash states of a volume, until there were as many as --states says
///
/// Exit code 0: nothing went wrong; 1: something did; 2: the arguments make no sense.
#[derive(Parser)]
#[command(name = "crash")]
struct Arguments {
    /// Random sequences and states follow from it
    #[arg(long, value_name = "N", default_value_t = Settings::default().seed)]
    seed: u64,
    /// States to try
    #[arg(long, value_name = "N", default_value_t = Settings::default().states)]
    states: u64,
    /// Steps of a random sequence at most
    #[arg(long, value_name = "N", default_value_t = Settings::default().operations,
        value_parser = RangedU64ValueParser::<usize>::new().range(1..=100_000))]
    operations: usize,
    /// Threads
    #[arg(long, value_name = "N", default_value_t = Settings::default().threads,
        value_parser = RangedU64ValueParser::<usize>::new().range(1..=256))]
    threads: usize,
    /// After so long no new sequence is begun
    #[arg(long, value_name = "N")]
    seconds: Option<u64>,
    /// Only this sequence: brings a failure back
    #[arg(long, value_name = "N")]
    sequence: Option<u64>,
    /// Only this state of it
    #[arg(long, value_name = "N", requires = "sequence")]
    state: Option<u64>,
}

impl From<Arguments> for Settings {
    fn from(arguments: Arguments) -> Self {
        Self {
            seed: arguments.seed,
            states: arguments.states,
            every: 1,
            stride: 1,
            operations: arguments.operations,
            threads: arguments.threads,
            time: arguments.seconds.map(Duration::from_secs),
            sequence: arguments.sequence,
            state: arguments.state,
        }
    }
}

/// Runs what the command line says.
#[must_use]
pub fn main() -> ExitCode {
    let settings = Settings::from(Arguments::parse());
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
        let parse = |words: &str| {
            let words = std::iter::once("crash").chain(words.split_whitespace());
            Arguments::try_parse_from(words).map(Settings::from)
        };
        let refused = |words| parse(words).unwrap_err().to_string();
        let settings = parse("--seed 7 --states 10 --sequence 3 --state 4").unwrap();
        assert_eq!((settings.seed, settings.states), (7, 10));
        assert_eq!((settings.sequence, settings.state), (Some(3), Some(4)));
        assert!(refused("--states").contains("--states"));
        assert!(refused("--states many").contains("many"));
        assert!(refused("--stats 4").contains("--stats"));
        assert!(refused("--state 4").contains("--sequence"));
        assert!(refused("--help").contains("crash states"));
    }
}
