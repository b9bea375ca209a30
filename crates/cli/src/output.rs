//! The report of a command: as text, as one line of JSON, or none.
//!
//! The keys of the JSON are an interface: keys may be added, never renamed.

use crate::copy::meter::summary;
use crate::message::{Result, unless_failed};
use holdfast::Copied;
use serde::Serialize;
use std::io::Write as _;
use std::path::Path;

/// How a command reports what it did.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct Output {
    /// Print one line of JSON
    #[arg(long, conflicts_with = "quiet")]
    pub(crate) json: bool,

    /// Print failures only
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

impl Output {
    /// Prints a report, or the text that says the same.
    ///
    /// # Errors
    /// Those of standard output.
    pub(crate) fn print(&self, report: &impl Serialize, text: impl ToString) -> Result<()> {
        if self.json {
            return print_json(report);
        }
        if !self.quiet {
            print(&text.to_string())?;
        }
        Ok(())
    }

    /// Prints what was copied to `to`. Lost attributes are printed even if `quiet`.
    ///
    /// # Errors
    /// If names were not `done`; those of standard output.
    pub(crate) fn copied(&self, to: &Path, copied: &Copied, done: &str) -> Result<()> {
        if self.json {
            print_json(&Target {
                target: to,
                counts: Counts::of(copied),
            })?;
        } else {
            print(&summary(to, copied, self.quiet))?;
        }
        unless_failed(copied.failed, done)
    }
}

/// Prints one line of JSON.
///
/// # Errors
/// Those of standard output.
pub(crate) fn print_json(report: &impl Serialize) -> Result<()> {
    print(&(serde_json::to_string(report)? + "\n"))
}

fn print(text: &str) -> Result<()> {
    Ok(anstream::stdout().write_all(text.as_bytes())?)
}

/// A path, and what is said of it.
#[derive(Serialize)]
struct Target<'t> {
    target: &'t Path,
    #[serde(flatten)]
    counts: Counts,
}

/// What was copied.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Counts {
    directories: u64,
    files: u64,
    symlinks: u64,
    links: u64,
    special: u64,
    bytes: u64,
    failed: u64,
    /// Names that lack an attribute of their source.
    owners_lost: u64,
    xattrs_lost: u64,
    times_lost: u64,
}

impl Counts {
    pub(crate) fn of(copied: &Copied) -> Self {
        Self {
            directories: copied.directories,
            files: copied.files,
            symlinks: copied.symlinks,
            links: copied.links,
            special: copied.special,
            bytes: copied.bytes,
            failed: copied.failed,
            owners_lost: copied.lost.owners.0,
            xattrs_lost: copied.lost.xattrs.0,
            times_lost: copied.lost.times.0,
        }
    }
}
