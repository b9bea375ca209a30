//! The conflict audit: which operations that commute touch a cache line in common?
//!
//! Two operations that have the same outcome in either order need not wait for each other, and an
//! implementation exists in which neither writes what the other touches (A. Clements et al.,
//! *The scalable commutativity rule*, SOSP 2013). This program makes pairs of the core's calls
//! that commute, carries out one on each of two threads, and compares what they did to memory.
//!
//! *Method.* Each pair has a process of its own, with a new file system and two threads on two
//! processors. In every round both threads prepare, then one carries out its operation, then the
//! other. The first rounds are a warm-up; later ones run under the processor's trap flag, which
//! tells every instruction (`step`), and from them every access (`lines`). A line that one side
//! writes and the other touches is a conflict. Lines of the allocator count as well.
//!
//! `docs/testing.md` says how to read the result, and what this cannot see.

mod check;
mod class;
mod debug_info;
mod detail;
mod expected;
mod lines;
mod memory;
mod operation;
mod placement;
mod report;
mod results;
mod runner;
mod setup;
mod stage;
mod step;
mod store;
mod symbols;
mod table;
mod trial;
mod worker;

use anyhow::{Context, Result, bail};
use clap::Parser;
use std::path::Path;
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use expected::Expected;
use placement::{Pair, Placement};
use results::Results;
use store::StoreKind;
use symbols::Symbols;
use trial::Effort;

/// What a process that tries one pair may take.
const PATIENCE: Duration = Duration::from_secs(120);

const CONSTANTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/conflicts.expected");

/// Tells that this machine cannot do it, as the scripts of this project do.
const SKIPPED: u8 = 77;

/// Which pairs of operations that commute touch a cache line in common?
#[derive(Parser)]
#[command(name = "conflicts", bin_name = "cargo xtask conflicts")]
struct Arguments {
    /// Only these two operations, with every line they conflict in
    #[arg(long, value_name = "A,B", value_delimiter = ',', num_args = 1)]
    pair: Vec<String>,
    /// Only this placement
    #[arg(long)]
    placement: Option<Placement>,
    /// Only the classes that must be free of conflicts, and each operation beside itself
    #[arg(long)]
    quick: bool,
    /// What is below the core
    #[arg(long, value_enum, default_value_t)]
    store: StoreKind,
    /// Print the pairs and try none
    #[arg(long)]
    list: bool,
    /// Recorded rounds of each pair
    #[arg(long, default_value_t = 9)]
    repetitions: usize,
    /// Stop a pair after N recorded rounds that were all free of conflicts, and any pair once the
    /// remaining rounds cannot change the result
    #[arg(long, value_name = "N")]
    enough: Option<usize>,
    /// Pairs tried at a time [default: two for each processor]
    #[arg(long)]
    jobs: Option<usize>,
    /// Compare with the constants in audit/conflicts.expected; exit code 1 if a count has grown
    #[arg(long)]
    check: bool,
    /// Try the pair in this process, and print a report for the process that asked
    #[arg(long, hide = true)]
    one: bool,
}

fn main() -> Result<ExitCode> {
    let arguments = Arguments::parse();
    let pairs = chosen(&arguments)?;
    if arguments.list {
        for pair in &pairs {
            println!("{:<12} {}", pair.placement.word(), pair.name());
        }
        println!("{} pairs", pairs.len());
        return Ok(ExitCode::SUCCESS);
    }
    if let Err(why) = step::Recorder::new() {
        eprintln!("conflicts: skipped: {why}");
        return Ok(ExitCode::from(SKIPPED));
    }
    let effort = Effort {
        repetitions: arguments.repetitions,
        enough: arguments.enough,
    };
    if arguments.one {
        return one(&pairs, effort, arguments.store);
    }
    let jobs = arguments.jobs.unwrap_or_else(jobs);
    let expected = if arguments.check {
        Some(Expected::load(Path::new(CONSTANTS))?)
    } else {
        None
    };
    let outcomes = runner::run(&pairs, effort, arguments.store, jobs)?;
    let mut results = Results {
        trials: pairs.into_iter().zip(outcomes).collect(),
        repetitions: arguments.repetitions,
    };
    if let Some(expected) = &expected {
        check::try_again(&mut results, expected, arguments.store, |pairs| {
            runner::run(pairs, effort, arguments.store, jobs)
        })?;
    }
    let mut symbols = Symbols::default();
    if arguments.pair.is_empty() && !arguments.quick {
        print!("{}", table::document(&results, &mut symbols));
    } else {
        if !arguments.pair.is_empty() {
            print!("{}", detail::text(&results, &mut symbols));
        }
        print!("{}", table::totals(&results));
    }
    if let Some(expected) = expected {
        let store = arguments.store;
        Ok(check::compare(&results, &expected, store, &mut symbols))
    } else if results.failures().next().is_some() {
        Ok(ExitCode::FAILURE)
    } else {
        Ok(ExitCode::SUCCESS)
    }
}

/// A pair's threads wait for each other most of the time: two pairs fill a processor.
fn jobs() -> usize {
    2 * thread::available_parallelism().map_or(1, usize::from)
}

fn chosen(arguments: &Arguments) -> Result<Vec<Pair>> {
    let wanted: Vec<&str> = arguments.pair.iter().map(String::as_str).collect();
    for name in &wanted {
        operation::named(name)
            .with_context(|| format!("no operation is called `{name}`; --list shows them"))?;
    }
    let names = match wanted.as_slice() {
        [] => None,
        &[a, b] => Some([a, b]),
        _ => bail!("--pair takes two operations: A,B"),
    };
    let mut pairs = Pair::all();
    pairs.retain(|pair| {
        let [a, b] = pair.sides.map(|operation| operation.name);
        names.is_none_or(|names| names == [a, b] || names == [b, a])
            && arguments
                .placement
                .is_none_or(|only| only == pair.placement)
            && (!arguments.quick || class::is_quick(pair))
    });
    if pairs.is_empty() {
        bail!("no such pair commutes there; --list shows those that do");
    }
    Ok(pairs)
}

fn one(pairs: &[Pair], effort: Effort, store: StoreKind) -> Result<ExitCode> {
    let [pair] = pairs else {
        bail!("--one takes one pair and one placement");
    };
    // An operation that hangs must not hang the whole table.
    thread::spawn(|| {
        thread::sleep(PATIENCE);
        eprintln!("still not done after {} s", PATIENCE.as_secs());
        std::process::exit(124);
    });
    let report = trial::run(pair, effort, store)?;
    println!("{}", serde_json::to_string(&report)?);
    Ok(ExitCode::SUCCESS)
}
