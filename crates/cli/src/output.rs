//! The report of a command: as text, as one line of JSON, or none.
//!
//! The keys of the JSON are an interface: keys may be added, never renamed.

use crate::copy::meter::summary;
use crate::message::{Result, unless_failed};
use holdfast::Copied;
use serde::Serialize;
use serde_json::{Value, json};
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
            let mut report = counts(copied);
            report["target"] = json!(to.display().to_string());
            print_json(&report)?;
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

/// The counts of a copy. Names that lack an attribute of their source are lost ones.
pub(crate) fn counts(copied: &Copied) -> Value {
    let lost = &copied.lost;
    json!({
        "directories": copied.directories,
        "files": copied.files,
        "symlinks": copied.symlinks,
        "links": copied.links,
        "special": copied.special,
        "bytes": copied.bytes,
        "failed": copied.failed,
        "owners_lost": lost.owners.0,
        "xattrs_lost": lost.xattrs.0,
        "times_lost": lost.times.0,
    })
}
