//! `report`: runs what the page on benchmarks tells, or takes files of records, and writes the
//! page's generated parts, with their charts.

mod figures;
mod markers;
mod plot;
mod sections;

use crate::arguments::parsed;
use crate::program::Program;
use crate::record::{LineIn, Record};
use crate::report::{Chapter, Report, ReportArgs};
use crate::targets::Target;
use crate::workloads::{baselines, cached_read, sharded};
use anyhow::{Context, Result, ensure};
use clap::Args;
use sections::{Plots, SECTIONS};
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

/// As the command line calls it.
pub(crate) const NAME: &str = "report";

/// Write the page on benchmarks: tables and charts, from runs made now or from their records
#[derive(Args, Clone, Debug)]
pub(crate) struct DocumentArgs {
    /// Take these files of records, one of `--json` each, instead of measuring
    #[arg(long, value_name = "FILE", num_args = 1.., conflicts_with_all = ["quick", "rival", "threads", "json"])]
    from: Vec<PathBuf>,
    /// Short runs: they show that all works, and no more
    #[arg(long)]
    quick: bool,
    /// What to compare with
    #[arg(
        long,
        value_name = "TARGET",
        default_value = "dir:/dev/shm/holdfast-bench"
    )]
    rival: Target,
    /// Thread counts
    #[arg(long, value_name = "N,…", default_value = "1,2")]
    threads: String,
    /// The page: what is not generated stays as it is. Charts go to `plots` beside it
    #[arg(long, value_name = "FILE", default_value = "target/benchmarks.md")]
    out: PathBuf,
    #[command(flatten)]
    report: ReportArgs,
}

/// Numbers that make a run long enough to mean something, or not.
struct Effort {
    files: &'static str,
    /// In directories of 1000.
    many_files: &'static str,
    seconds: &'static str,
    rounds: &'static str,
}

const FULL: Effort = Effort {
    files: "100000",
    many_files: "1000000",
    seconds: "0.5",
    rounds: "5",
};

const QUICK: Effort = Effort {
    files: "5000",
    many_files: "20000",
    seconds: "0.02",
    rounds: "1",
};

/// Measures or reads, and writes the page.
///
/// # Errors
/// What a run could not do; files that hold no records, or none of any use; a page whose markers
/// make no sense.
pub(crate) fn run(args: &DocumentArgs) -> Result<()> {
    let chapters = if args.from.is_empty() {
        measure(args)?
    } else {
        let files = args.from.iter().map(|path| read(path));
        files.collect::<Result<Vec<_>>>()?.concat()
    };
    let page = match fs::read_to_string(&args.out) {
        Ok(page) => page,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => "# Benchmarks\n".to_owned(),
        Err(error) => return Err(error).with_context(|| args.out.display().to_string()),
    };
    let page = written(&page, &chapters, &Plots::beside(&args.out)?)?;
    fs::write(&args.out, page).with_context(|| format!("cannot write {}", args.out.display()))
}

/// The page with all parts that the runs tell of.
fn written(page: &str, chapters: &[Chapter], plots: &Plots) -> Result<String> {
    let mut page = page.to_owned();
    let mut parts = 0;
    for (name, section) in SECTIONS {
        if let Some(content) = section(chapters, plots)? {
            page = markers::replace(&page, name, &content)?;
            parts += 1;
        }
    }
    ensure!(parts > 0, "the records tell nothing that the page is about");
    Ok(page)
}

fn measure(args: &DocumentArgs) -> Result<Vec<Chapter>> {
    let program = Program::own(NAME)?;
    let effort = if args.quick { QUICK } else { FULL };
    let rival = args.rival.to_string();
    let Effort {
        files,
        many_files,
        seconds,
        rounds,
    } = effort;
    let often = ["--rounds", rounds];
    let contest = ["--target", "mem:", "--target", &rival, "--processes"];
    let threads = ["--threads", &args.threads];
    let mut report = Report::new(&args.report)?;

    let line = contest.into_iter().chain(threads).chain(often);
    let line = line.chain(["--files", files]);
    sharded::measure(&parsed(line)?, &program, &mut report)?;

    let line = "--target mem: --target made: --per-dir 1000 \
                --phases create,iterate,mkdir,drop-caches,unmount --files";
    let line = line.split_whitespace().chain([many_files]).chain(often);
    sharded::measure(&parsed(line)?, &program, &mut report)?;

    let line = contest.into_iter().chain(threads).chain(often);
    let line = line.chain(["--seconds", seconds]);
    cached_read::measure(&parsed(line)?, &program, &mut report)?;

    let line = threads.into_iter().chain(often);
    let line = line.chain(["--files", files, "--seconds", seconds]);
    baselines::measure(&parsed(line)?, &program, &mut report)?;
    report.into_chapters()
}

/// The runs whose records a file holds.
fn read(path: &Path) -> Result<Vec<Chapter>> {
    let told = || format!("cannot read {}", path.display());
    let file = fs::File::open(path).with_context(told)?;
    let mut chapters: Vec<Chapter> = Vec::new();
    for (number, line) in BufReader::new(file).lines().enumerate() {
        let line = line.with_context(told)?;
        let LineIn { record, run } = serde_json::from_str(&line)
            .with_context(|| format!("{}:{}: no record", path.display(), number + 1))?;
        let same = |chapter: &&mut Chapter| {
            let workload = |record: &Record| record.workload.clone();
            chapter.about == run && chapter.records.first().map(workload) == Some(workload(&record))
        };
        match chapters.last_mut().filter(same) {
            Some(chapter) => chapter.records.push(record),
            None => chapters.push(Chapter::new(run, vec![record])),
        }
    }
    Ok(chapters)
}
