//! `holdfast fsck`: is a volume what it says it is?

use crate::message::{Failure, Result};
use anstyle::{AnsiColor, Style};
use holdfast_device::{Access, BlockDevice, FileDevice, FileOptions};
use holdfast_volume::check::{Finding, Report};
use holdfast_volume::{CheckOptions, check};
use indicatif::ProgressBar;
use serde::Serialize;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

/// fsck(8): errors were left as they are.
const ERRORS_LEFT: u8 = 4;
/// fsck(8): the check itself could not be done.
const NOT_DONE: u8 = 8;

const FOUND: Style = AnsiColor::Yellow.on_default().bold();

/// Check a volume that is not mounted; changes nothing
///
/// Every block, name, inode, extent and count is compared with all that refers to it. A volume that was not
/// closed cleanly is checked as its journal leaves it, in memory.
///
/// Exit code 0: nothing is wrong; 4: something is; 8: it could not be checked.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The image file or block device
    #[arg(value_name = "VOLUME")]
    volume: PathBuf,

    /// Threads that look at the same time; one for each processor if absent
    #[arg(short, long, value_name = "NUMBER")]
    jobs: Option<std::num::NonZeroUsize>,

    /// Findings that are shown; others are counted
    #[arg(long, value_name = "NUMBER", default_value_t = 10_000)]
    findings: usize,

    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// The result, for programs.
#[derive(Serialize)]
struct Summary<'r> {
    clean: bool,
    replayed: bool,
    inodes: u64,
    extents: u64,
    blocks: u64,
    findings: Vec<One<'r>>,
    findings_not_shown: u64,
}

#[derive(Serialize)]
struct One<'r> {
    code: &'r str,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    block: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    inode: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
}

impl<'r> One<'r> {
    fn of(finding: &'r Finding) -> Self {
        Self {
            code: finding.code(),
            message: finding.to_string(),
            block: finding.block(),
            inode: finding.inode().map(|ino| ino.0),
            name: finding
                .name()
                .map(|name| String::from_utf8_lossy(name).into_owned()),
        }
    }
}

/// Checks; the exit code is fsck(8)'s.
pub(crate) fn run(arguments: &Arguments) -> ExitCode {
    match checked(arguments) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(ERRORS_LEFT),
        Err(failure) => {
            failure.print();
            ExitCode::from(NOT_DONE)
        }
    }
}

fn checked(arguments: &Arguments) -> Result<bool> {
    let options = FileOptions {
        access: Access::ReadOnly,
        ..FileOptions::default()
    };
    let failed = |error: String| Failure::new(error).at(&arguments.volume);
    let device = FileDevice::open(&arguments.volume, options);
    let device: Arc<dyn BlockDevice> = Arc::new(device.map_err(|error| failed(error.to_string()))?);
    let mut how = CheckOptions {
        findings_max: arguments.findings,
        ..CheckOptions::default()
    };
    if let Some(jobs) = arguments.jobs {
        how.jobs = jobs.get();
    }
    // Hidden by itself where standard error is no terminal.
    let bar = ProgressBar::new(0);
    let report = check(&device, &how, &|stage, done, all| {
        bar.set_length(all);
        bar.set_position(done);
        bar.set_message(format!("{stage:?}"));
    });
    bar.finish_and_clear();
    let mut out = anstream::stdout().lock();
    if arguments.json {
        print_json(&mut out, &report)?;
    } else {
        print_text(&mut out, arguments, &report)?;
    }
    Ok(report.is_clean())
}

fn print_json(out: &mut impl Write, report: &Report) -> io::Result<()> {
    let result = Summary {
        clean: report.is_clean(),
        replayed: report.replayed,
        inodes: report.inodes,
        extents: report.extents,
        blocks: report.blocks,
        findings: report.findings.iter().map(One::of).collect(),
        findings_not_shown: report.more,
    };
    serde_json::to_writer(&mut *out, &result)?;
    writeln!(out)
}

fn print_text(out: &mut impl Write, arguments: &Arguments, report: &Report) -> io::Result<()> {
    for finding in &report.findings {
        writeln!(out, "{FOUND}{}{FOUND:#}: {finding}", finding.code())?;
    }
    if report.more > 0 {
        writeln!(out, "and {} more findings", report.more)?;
    }
    let state = if report.is_clean() {
        "clean"
    } else {
        "DAMAGED, and left as it is"
    };
    let journal = if report.replayed {
        " (as its journal leaves it)"
    } else {
        ""
    };
    writeln!(
        out,
        "{}: {state}{journal}: {} inodes, {} extents, {} blocks in use",
        arguments.volume.display(),
        report.inodes,
        report.extents,
        report.blocks
    )
}
