//! `holdfast fsck`: checks a volume, and repairs it.

use crate::message::{Failure, Result};
use crate::output::Output;
use crate::volume::{hint_at_opening, volume_failure};
use anstyle::{AnsiColor, Style};
use holdfast::Volume;
use holdfast_device::{Access, BlockDevice, FileDevice};
use holdfast_volume::check::{Finding, Report, Stage};
use holdfast_volume::repair::Outcome;
use holdfast_volume::{CheckOptions, Error as VolumeError, check, recognize, repair};
use indicatif::ProgressBar;
use serde::Serialize;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

/// fsck(8): errors were corrected.
const CORRECTED: u8 = 1;
/// fsck(8): errors were left as they are.
const ERRORS_LEFT: u8 = 4;
/// fsck(8): the check itself could not be done.
pub(crate) const NOT_DONE: u8 = 8;

/// Most findings that are printed, unless another number is given.
const FINDINGS: usize = 10_000;

const FOUND: Style = AnsiColor::Yellow.on_default().bold();
const DONE: Style = AnsiColor::Green.on_default().bold();

/// Check a volume that is not mounted; changes nothing, unless asked to repair it
///
/// Every block, name, inode, extent and count is compared with all that refers to it. A volume that
/// was not closed cleanly is checked after a replay of its journal, in memory. If it failed while
/// it was mounted, the reason is in the daemon's log: the journal, syslog, or the file of
/// `-o log=`. `holdfast umount` prints the reason too. The volume itself cannot record it, since a
/// failed volume is not written to.
///
/// With --repair the journal is replayed, and what is wrong is repaired. Inodes without a name are
/// put into lost+found. Copy a volume of which there is no backup first.
///
/// Exit code 0: no errors. 1: errors were repaired. 4: errors are left. 8: the volume could not be
/// checked or repaired, or there is none. 16: the call was wrong.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct Arguments {
    /// The image file or block device; or a file system of several machines, pg://..., which may be
    /// mounted meanwhile
    #[arg(value_name = "VOLUME|URL")]
    volume: PathBuf,

    /// Repair what is wrong
    #[arg(short, long, visible_short_alias = 'y')]
    repair: bool,

    /// Change nothing, as without options
    #[arg(short = 'n', conflicts_with_all = ["repair", "automatic"])]
    no: bool,

    /// As at the start of a system: read the superblock only, since a mount replays the journal.
    /// With -f: check, and repair what is wrong
    #[arg(short = 'p', visible_short_alias = 'a', conflicts_with = "repair")]
    automatic: bool,

    /// With -p: check even a volume that its superblock says is usable. Without -p each volume is
    /// checked
    #[arg(short = 'f')]
    force: bool,

    /// Threads that check at the same time; one for each processor if absent
    #[arg(short, long, value_name = "NUMBER")]
    jobs: Option<std::num::NonZeroUsize>,

    /// Most findings to print; others are counted
    #[arg(long, value_name = "NUMBER", default_value_t = FINDINGS)]
    pub(crate) findings: usize,

    /// Of a file system of several machines: also read all objects, and compare their checksums
    #[cfg(feature = "cluster")]
    #[arg(long)]
    pub(crate) content: bool,

    #[command(flatten)]
    pub(crate) output: Output,
}

impl Arguments {
    /// A check with the defaults.
    pub(crate) fn new(volume: PathBuf, repair: bool) -> Self {
        Self {
            volume,
            repair,
            findings: FINDINGS,
            ..Self::default()
        }
    }
}

/// The result, for programs.
#[derive(Serialize)]
struct Summary<'r> {
    clean: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    repaired: Option<Repaired<'r>>,
    replayed: bool,
    inodes: u64,
    extents: u64,
    blocks: u64,
    findings: Vec<One<'r>>,
    findings_not_shown: u64,
}

/// The result of a repair.
#[derive(Serialize)]
struct Repaired<'r> {
    findings_before: Vec<One<'r>>,
    findings_before_not_shown: u64,
    done: Vec<String>,
    done_not_shown: u64,
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
    if arguments.automatic && !arguments.force {
        return glance(&arguments.volume, false);
    }
    #[cfg(feature = "cluster")]
    let checked = |arguments| match checked_by_address(arguments)? {
        Some(code) => Ok(code),
        None => checked(arguments),
    };
    match checked(arguments) {
        Ok(code) => code,
        Err(failure) => {
            failure.print();
            ExitCode::from(NOT_DONE)
        }
    }
}

/// Looks whether there is a volume that can be mounted, as far as its superblock tells.
pub(crate) fn glance(path: &Path, verbose: bool) -> ExitCode {
    #[cfg(feature = "cluster")]
    if matches!(crate::cluster::parse(path.as_os_str()), Ok(Some(_))) {
        // Its database recovers by itself.
        return ExitCode::SUCCESS;
    }
    match Volume::inspect(path) {
        Ok(info) => {
            if verbose {
                let state = if info.clean {
                    "closed cleanly"
                } else {
                    "its journal is replayed when it is mounted"
                };
                anstream::println!("{}: {state}, {} inodes", path.display(), info.inodes);
            }
            ExitCode::SUCCESS
        }
        Err(error) => {
            volume_failure(path, &error).print();
            ExitCode::from(NOT_DONE)
        }
    }
}

/// Checks a file system of several machines; `None`: it is a volume.
#[cfg(feature = "cluster")]
fn checked_by_address(arguments: &Arguments) -> Result<Option<ExitCode>> {
    use crate::cluster::fsck::{Check, State};
    match crate::cluster::named(arguments.volume.as_os_str())? {
        Some(address) => {
            let check = Check {
                repairs: arguments.repair || arguments.automatic,
                content: arguments.content,
                findings: arguments.findings,
                output: &arguments.output,
            };
            let state = crate::cluster::fsck::run(&address, &check)?;
            Ok(Some(match state {
                State::Clean => ExitCode::SUCCESS,
                State::Repaired => ExitCode::from(CORRECTED),
                State::Damaged => ExitCode::from(ERRORS_LEFT),
            }))
        }
        None if arguments.content => {
            let failure = Failure::new("a volume is always checked whole");
            Err(failure.about("option --content").hint("leave it out"))
        }
        None => Ok(None),
    }
}

fn checked(arguments: &Arguments) -> Result<ExitCode> {
    let repairs = arguments.repair || arguments.automatic;
    let access = match repairs {
        true => Access::ReadWrite,
        false => Access::ReadOnly,
    };
    let volume = &arguments.volume;
    let failed = |error: String| Failure::new(error).at(volume);
    let device = FileDevice::open(volume, access).map_err(|error| {
        let failure = failed(error.to_string());
        match error.kind() {
            io::ErrorKind::ResourceBusy => failure.hint("holdfast umount ends a mount of it"),
            _ => hint_at_opening(failure, volume, error.errno().raw()),
        }
    })?;
    let device: Arc<dyn BlockDevice> = Arc::new(device);
    recognize(&device).map_err(|error| {
        let failure = failed(error.to_string());
        match error {
            VolumeError::NoVolume { .. } => failure
                .hint("name the image file or device of a volume; blkid(8) tells what others hold"),
            _ => failure,
        }
    })?;
    let mut how = CheckOptions {
        findings_max: arguments.findings,
        ..CheckOptions::default()
    };
    if let Some(jobs) = arguments.jobs {
        how.jobs = jobs.get();
    }
    // `indicatif` hides it where standard error is no terminal.
    let bar = ProgressBar::new(0);
    let show = |stage: Stage, done: u64, all: u64| {
        bar.set_length(all);
        bar.set_position(done);
        bar.set_message(format!("{stage:?}"));
    };
    let (report, outcome) = if repairs {
        let outcome = repair(&device, &how, &show);
        let outcome = outcome.map_err(|error| failed(error.to_string()))?;
        (outcome.after.clone(), Some(outcome))
    } else {
        (check(&device, &how, &show), None)
    };
    bar.finish_and_clear();
    let mut out = anstream::stdout().lock();
    if arguments.output.json {
        print_json(&mut out, &report, outcome.as_ref())?;
    } else {
        if let Some(outcome) = &outcome {
            print_repair(&mut out, outcome)?;
        }
        let is_quiet = arguments.output.quiet;
        let replayed = report.replayed || outcome.as_ref().is_some_and(|it| it.before.replayed);
        if replayed && !is_quiet {
            print_unclosed(&mut out, arguments)?;
        }
        print_findings(&mut out, &report)?;
        if !is_quiet || !report.is_clean() {
            print_state(&mut out, &arguments.volume, repairs, &report)?;
        }
    }
    let was_clean = outcome.is_none_or(|outcome| outcome.before.is_clean());
    Ok(match (report.is_clean(), was_clean) {
        (true, true) => ExitCode::SUCCESS,
        (true, false) => ExitCode::from(CORRECTED),
        (false, _) => ExitCode::from(ERRORS_LEFT),
    })
}

fn print_json(out: &mut impl Write, report: &Report, outcome: Option<&Outcome>) -> io::Result<()> {
    let result = Summary {
        clean: report.is_clean(),
        repaired: outcome.map(|outcome| Repaired {
            findings_before: outcome.before.findings.iter().map(One::of).collect(),
            findings_before_not_shown: outcome.before.more,
            done: outcome.actions.iter().map(ToString::to_string).collect(),
            done_not_shown: outcome.more,
        }),
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

fn print_findings(out: &mut impl Write, report: &Report) -> io::Result<()> {
    for finding in &report.findings {
        writeln!(out, "{FOUND}{}{FOUND:#}: {finding}", finding.code())?;
    }
    if report.more > 0 {
        writeln!(out, "and {} more findings", report.more)?;
    }
    Ok(())
}

/// Prints the findings and the repairs.
fn print_repair(out: &mut impl Write, outcome: &Outcome) -> io::Result<()> {
    print_findings(out, &outcome.before)?;
    for action in &outcome.actions {
        writeln!(out, "{DONE}repair{DONE:#}: {action}")?;
    }
    if outcome.more > 0 {
        writeln!(out, "and {} more actions", outcome.more)?;
    }
    Ok(())
}

/// Names the places that may have the reason: a failed volume cannot record it.
fn print_unclosed(out: &mut impl Write, arguments: &Arguments) -> io::Result<()> {
    writeln!(
        out,
        "{}: was left unclosed: its daemon was killed, its host stopped, or it failed while it was in use (its device, or the \
         space where the image lies). Of a failure the daemon's log (journal, syslog or log=FILE) has the reason, and whatever unmounted it told it",
        arguments.volume.display()
    )
}

fn print_state(
    out: &mut impl Write,
    volume: &Path,
    repairs: bool,
    report: &Report,
) -> io::Result<()> {
    let state = match (report.is_clean(), repairs) {
        (true, _) => "clean",
        (false, _) if report.superblock.is_none() => {
            "DAMAGED: no superblock is left, without which this cannot be repaired"
        }
        (false, true) => "DAMAGED, and this cannot be repaired",
        (false, false) => "DAMAGED, and left as it is (--repair repairs it)",
    };
    let journal = if report.replayed {
        " (not closed cleanly: as its journal leaves it)"
    } else {
        ""
    };
    writeln!(
        out,
        "{}: {state}{journal}: {} inodes, {} extents, {} blocks in use",
        volume.display(),
        report.inodes,
        report.extents,
        report.blocks
    )
}
