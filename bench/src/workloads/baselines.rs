//! `baselines`: the designs that were replaced, beside the engine, in the phases that condemned
//! them: one list of all inodes, reads that write what readers share, and one list of what is set
//! aside for a file.

use super::{cached_read, sharded, sparse};
use crate::arguments::parsed;
use crate::program::Program;
use crate::report::{Report, ReportArgs};
use anyhow::Result;
use clap::Args;

/// As the command line calls it.
pub(crate) const NAME: &str = "baselines";

/// The designs that the engine does without, beside the engine
#[derive(Args, Clone, Debug)]
pub(crate) struct BaselinesArgs {
    /// Thread counts
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_value = "1,2")]
    threads: Vec<usize>,
    /// Files of each thread, and five times the scattered writes
    #[arg(long, value_name = "F", default_value_t = 100_000)]
    files: usize,
    /// How long each phase of reads is
    #[arg(long, value_name = "S", default_value_t = 0.5)]
    seconds: f64,
    /// How often to run it all
    #[arg(long, value_name = "R", default_value_t = 3)]
    rounds: usize,
    #[command(flatten)]
    report: ReportArgs,
}

/// Runs the workloads and prints what came of them.
///
/// # Errors
/// Those of the workloads.
pub(crate) fn run(args: &BaselinesArgs) -> Result<()> {
    let mut report = Report::new(&args.report)?;
    measure(args, &Program::own(NAME)?, &mut report)?;
    report.finish()
}

/// Runs the workloads as chapters of this report.
///
/// # Errors
/// Those of the workloads.
pub(crate) fn measure(args: &BaselinesArgs, program: &Program, report: &mut Report) -> Result<()> {
    let threads: Vec<String> = args.threads.iter().map(ToString::to_string).collect();
    let (threads, rounds) = (threads.join(","), args.rounds.to_string());
    let both = ["--threads", &threads, "--rounds", &rounds];
    let (files, seconds) = (args.files.to_string(), args.seconds.to_string());

    let list = "--target baseline:list --target mem: --phases create,iterate,unlink --files";
    let list = list.split(' ').chain([files.as_str()]).chain(both);
    sharded::measure(&parsed(list)?, program, report)?;

    let reads = "--target baseline:lock --target baseline:two-counters \
                 --target baseline:one-counter --target mem: \
                 --phases read2,pread3 --sizes 1,4096 --seconds";
    let reads = reads.split_whitespace().chain([seconds.as_str()]);
    cached_read::measure(&parsed(reads.chain(both))?, program, report)?;

    let writes = (args.files / 5).max(1).to_string();
    let pieces = "--target baseline:pieces-list --target baseline:pieces-index \
                  --phases sparse-random,sparse-stride --writes";
    let pieces = pieces.split_whitespace().chain([writes.as_str()]);
    sparse::measure(&parsed(pieces.chain(both))?, program, report)
}
