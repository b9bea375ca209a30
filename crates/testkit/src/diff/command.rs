//! The command line of the tester, and what its test calls.

use crate::diff::cast::cast;
use crate::diff::host::{AtimeRule, HostTarget};
use crate::diff::library::LibraryTarget;
use crate::diff::remote::Remote;
use crate::diff::run::{Plan, Script, Sides, Summary, generated, on_own_thread};
use crate::diff::shrink::shrink;
use holdfast_types::Result;
use std::path::PathBuf;
use std::process::ExitCode;
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

/// The arguments of the command.
#[derive(Clone, Debug)]
pub struct Arguments {
    /// First seed.
    pub seed: u64,
    /// Number of seeds.
    pub seeds: u64,
    /// Steps for each seed.
    pub steps: usize,
    /// How access times are kept; `None` takes turns by seed.
    pub atime: Option<AtimeRule>,
    /// What to compare the kernel with.
    pub against: Against,
    /// Does the other side's kernel open files by itself (a mount with `opens=local`)?
    pub opens_local: bool,
    /// How long to shrink a failing sequence.
    pub patience: Duration,
    /// Stop at the first seed that fails?
    pub stop: bool,
    /// Collect differences between errors, and go on?
    pub collect: bool,
}

impl Default for Arguments {
    fn default() -> Self {
        Self {
            seed: 1,
            seeds: 1,
            steps: 100_000,
            atime: None,
            against: Against::Library,
            opens_local: false,
            patience: Duration::from_secs(30),
            stop: true,
            collect: false,
        }
    }
}

impl Arguments {
    /// Reads `--name value` pairs.
    ///
    /// # Errors
    /// A sentence about the argument that is wrong.
    pub fn parse(mut words: impl Iterator<Item = String>) -> std::result::Result<Self, String> {
        let mut arguments = Self::default();
        while let Some(word) = words.next() {
            let value = words
                .next()
                .ok_or_else(|| format!("{word} needs a value"))?;
            let number = || {
                value
                    .parse::<u64>()
                    .map_err(|_| format!("{word}: not a number: {value}"))
            };
            match word.as_str() {
                "--seed" => arguments.seed = number()?,
                "--seeds" => arguments.seeds = number()?,
                "--steps" => arguments.steps = number()? as usize,
                "--shrink" => arguments.patience = Duration::from_secs(number()?),
                "--go-on" => arguments.stop = number()? == 0,
                "--collect" => arguments.collect = number()? != 0,
                "--atime" => arguments.atime = Some(atime_rule(&value)?),
                "--opens" => arguments.opens_local = is_local(&value)?,
                "--against" => arguments.against = against(&value)?,
                _ => return Err(format!("unknown argument {word}")),
            }
        }
        Ok(arguments)
    }

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
            opens_local: self.opens_local,
            seed,
            steps: self.steps,
            between_snapshots: 1000,
            collect: self.collect,
            cpu: Some(seed as usize % cpus),
        }
    }
}

fn is_local(value: &str) -> std::result::Result<bool, String> {
    match value {
        "local" => Ok(true),
        "served" => Ok(false),
        _ => Err(format!("--opens is served or local, not {value}")),
    }
}

fn atime_rule(value: &str) -> std::result::Result<AtimeRule, String> {
    match value {
        "strict" => Ok(AtimeRule::Strict),
        "relative" => Ok(AtimeRule::Relative),
        "never" => Ok(AtimeRule::Never),
        "ignored" => Ok(AtimeRule::Ignored),
        _ => Err(format!(
            "--atime is strict, relative, never or ignored, not {value}"
        )),
    }
}

fn against(value: &str) -> std::result::Result<Against, String> {
    match value {
        "host" => Ok(Against::Host),
        "library" => Ok(Against::Library),
        _ => match value.strip_prefix("dir:") {
            Some(path) => Ok(Against::Directory(path.into())),
            None => Err(format!(
                "--against is library, host or dir:PATH, not {value}"
            )),
        },
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
            let small = shrink(*failure, &plan, &make, arguments.patience);
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

/// The command.
pub fn main(words: impl Iterator<Item = String>) -> ExitCode {
    let arguments = match Arguments::parse(words) {
        Ok(arguments) => arguments,
        Err(message) => {
            eprintln!("differential: {message}");
            return ExitCode::from(2);
        }
    };
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
                if arguments.stop {
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
