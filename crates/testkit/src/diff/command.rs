//! The command line of the tester, and what its test calls.

use crate::diff::cast::cast;
use crate::diff::host::{AtimeRule, HostTarget};
use crate::diff::library::LibraryTarget;
use crate::diff::remote::Remote;
use crate::diff::run::{Plan, Script, Sides, Summary, generated, on_own_thread};
use crate::diff::shrink::shrink;
use clap::{Parser, ValueEnum};
use holdfast_types::Result;
use std::path::PathBuf;
use std::process::ExitCode;
use std::str::FromStr;
use std::time::{Duration, Instant};

/// What stands on the library's side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Against {
    /// The kernel again.
    Host,
    /// The library, over its memory store.
    Library,
    /// A fresh directory inside this one: of any file system, a mount of ours say. It is left
    /// behind.
    Directory(PathBuf),
}

impl FromStr for Against {
    type Err = String;

    fn from_str(value: &str) -> std::result::Result<Self, String> {
        match value {
            "host" => Ok(Self::Host),
            "library" => Ok(Self::Library),
            _ => match value.strip_prefix("dir:") {
                Some(path) => Ok(Self::Directory(path.into())),
                None => Err("it is library, host or dir:PATH".to_owned()),
            },
        }
    }
}

/// How the other side's files are opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Opens {
    /// By the file system.
    #[default]
    Served,
    /// By the kernel itself (a mount with `opens=local`).
    Local,
}

/// Does random operations on the library and on the host's tmpfs, and compares each answer
///
/// Exit code 0: no difference, or skipped; 1: there was one; 2: the arguments make no sense.
#[derive(Clone, Debug, Parser)]
#[command(name = "differential")]
pub struct Arguments {
    /// First seed
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Number of seeds
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seeds: u64,
    /// Steps for each seed
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    pub steps: usize,
    /// How access times are kept; without this it goes by the seed
    #[arg(long, value_enum)]
    pub atime: Option<AtimeRule>,
    /// What to compare the kernel with: library, host (the kernel again) or dir:PATH
    #[arg(long, value_name = "WHAT", default_value = "library")]
    pub against: Against,
    /// How the other side's files are opened
    #[arg(long, value_enum, default_value_t)]
    pub opens: Opens,
    /// How long to shrink a sequence that fails
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    pub shrink: u64,
    /// Go on with the next seed after one that failed
    #[arg(long)]
    pub go_on: bool,
    /// Collect differences between errors, and go on
    #[arg(long)]
    pub collect: bool,
}

impl Default for Arguments {
    fn default() -> Self {
        Self::parse_from(["differential"])
    }
}

impl Arguments {
    /// The plan for one seed.
    #[must_use]
    pub fn plan(&self, seed: u64) -> Plan {
        let rules = [
            AtimeRule::Strict,
            AtimeRule::Relative,
            AtimeRule::Strict,
            AtimeRule::Never,
        ];
        let atime = self.atime.unwrap_or(rules[(seed % 4) as usize]);
        let cpus = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        Plan {
            cast: cast(),
            atime,
            opens_local: self.opens == Opens::Local,
            seed,
            steps: self.steps,
            between_snapshots: 1000,
            collect: self.collect,
            cpu: Some(seed as usize % cpus),
        }
    }
}

/// Makes the two sides for a plan, on the calling thread.
///
/// # Errors
/// Those of making a target.
pub fn sides(plan: &Plan, against: &Against) -> Result<Sides> {
    let library: Box<dyn crate::diff::target::Target> = match against {
        Against::Host => {
            let (cast, atime) = (plan.cast.clone(), plan.atime);
            Box::new(Remote::spawn(move || HostTarget::enter(&cast, atime))?)
        }
        Against::Directory(path) => {
            let (cast, path) = (plan.cast.clone(), path.clone());
            Box::new(Remote::spawn(move || {
                HostTarget::enter_new_directory(&path, &cast)
            })?)
        }
        Against::Library => Box::new(LibraryTarget::memory(&plan.cast, plan.atime)),
    };
    Ok(Sides {
        kernel: Box::new(HostTarget::enter(&plan.cast, plan.atime)?),
        library,
    })
}

/// Runs one seed. A failure comes back shrunk, in words.
///
/// # Errors
/// The report of the first difference: its seed, both sides, the operations, a minimal sequence.
pub fn run_seed(arguments: &Arguments, seed: u64) -> std::result::Result<Summary, String> {
    let plan = arguments.plan(seed);
    let make = || sides(&plan, &arguments.against);
    let result = on_own_thread(|| match make() {
        Ok(sides) => generated(sides, &plan).map_err(Ok),
        Err(error) => Err(Err(error)),
    });
    match result {
        Ok(summary) => Ok(summary),
        Err(Err(error)) => Err(format!("cannot set up: {error}")),
        Err(Ok(failure)) => {
            print_errors(&failure.summary);
            let report = format!("seed {seed} ({:?} atime): {failure}", plan.atime);
            let small = shrink(
                *failure,
                &plan,
                &make,
                Duration::from_secs(arguments.shrink),
            );
            let script: Script = small.script.clone();
            Err(format!(
                "{report}\nminimal sequence ({} operations):\n{small}",
                script.len()
            ))
        }
    }
}

fn print_errors(summary: &Summary) {
    for (key, (count, first)) in &summary.errors {
        println!("  {count:>6} x {key}; first {first}");
    }
}

/// Runs what the command line says.
#[must_use]
pub fn main() -> ExitCode {
    let arguments = Arguments::parse();
    if let Some(obstacle) = HostTarget::obstacle() {
        println!("skipped: {obstacle}");
        return ExitCode::SUCCESS;
    }
    let mut failed = false;
    for seed in arguments.seed..arguments.seed + arguments.seeds {
        let began = Instant::now();
        match run_seed(&arguments, seed) {
            Ok(summary) => {
                let rate = summary.steps as f64 / began.elapsed().as_secs_f64();
                println!(
                    "seed {seed}: {} steps without a difference ({} succeeded, {} left out, {rate:.0} a second)",
                    summary.steps, summary.succeeded, summary.skipped
                );
                print_errors(&summary);
                if seed == arguments.seed {
                    for (kind, (succeeded, failed)) in &summary.kinds {
                        println!("  {kind:<12} {succeeded:>8} succeeded {failed:>8} failed");
                    }
                }
            }
            Err(report) => {
                println!("{report}");
                failed = true;
                if !arguments.go_on {
                    break;
                }
            }
        }
    }
    if failed {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    }
}
