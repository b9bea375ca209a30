//! Where records go: a file of JSON lines as they come, the table at the end, a progress bar.

use crate::about::About;
use crate::record::{Line, Record};
use crate::table;
use anyhow::{Context, Result};
use clap::Args;
use indicatif::{ProgressBar, ProgressFinish, ProgressStyle};
use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};

/// Where to write what was measured.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct ReportArgs {
    /// Write one JSON object per measured phase to FILE; `-`: to standard output
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
}

/// Collects the records of runs.
pub(crate) struct Report {
    /// What is printed of the runs that are over.
    texts: Vec<String>,
    /// The run that is going on.
    about: About,
    records: Vec<Record>,
    lines: Option<Box<dyn Write>>,
    /// Standard output carries the records, so the table must go elsewhere.
    lines_on_stdout: bool,
    bar: ProgressBar,
}

impl Report {
    /// An empty report.
    ///
    /// # Errors
    /// If the file cannot be made.
    pub(crate) fn new(args: &ReportArgs) -> Result<Self> {
        let lines_on_stdout = args.json.as_deref() == Some(Path::new("-"));
        let lines: Option<Box<dyn Write>> = match &args.json {
            None => None,
            Some(_) if lines_on_stdout => Some(Box::new(io::stdout())),
            Some(path) => {
                let file = File::create(path);
                Some(Box::new(file.with_context(|| {
                    format!("cannot make {}", path.display())
                })?))
            }
        };
        let bar = if io::stderr().is_terminal() {
            // No ticking thread: it would run beside what is measured.
            let style = ProgressStyle::with_template("{wide_msg} {bar:30} {pos}/{len} {eta}");
            let style = style.context("progress bar")?;
            let bar = ProgressBar::new(0).with_style(style);
            bar.with_finish(ProgressFinish::AndClear)
        } else {
            ProgressBar::hidden()
        };
        Ok(Self {
            texts: Vec::new(),
            about: About::default(),
            records: Vec::new(),
            lines,
            lines_on_stdout,
            bar,
        })
    }

    /// A run begins, which will have so many records.
    pub(crate) fn begin(&mut self, about: About, expected: usize) {
        self.about = about;
        self.bar.inc_length(expected as u64);
    }

    /// Shows what is being done now.
    pub(crate) fn doing(&self, what: String) {
        self.bar.set_message(what);
    }

    /// Takes a record.
    ///
    /// # Errors
    /// If it cannot be written.
    pub(crate) fn add(&mut self, record: Record) -> Result<()> {
        if let Some(lines) = &mut self.lines {
            let mut line = serde_json::to_vec(&Line {
                record: &record,
                run: &self.about,
            })?;
            line.push(b'\n');
            let written = lines.write_all(&line).and_then(|()| lines.flush());
            written.context("cannot write the records")?;
        }
        self.records.push(record);
        self.bar.inc(1);
        Ok(())
    }

    /// The records of the run that is going on.
    pub(crate) fn records(&self) -> &[Record] {
        &self.records
    }

    /// The run is over, and shall have this above the table of its rates.
    pub(crate) fn end(&mut self, heading: &str) {
        let table = table::render(&self.records);
        self.end_with(heading, &table);
    }

    /// The run is over, and shall have this above this table.
    pub(crate) fn end_with(&mut self, heading: &str, table: &str) {
        let about = std::mem::take(&mut self.about);
        self.texts.push(format!("{heading}\n{about}\n{table}"));
        self.records.clear();
    }

    /// Prints the tables.
    ///
    /// # Errors
    /// If they cannot be printed.
    pub(crate) fn finish(self) -> Result<()> {
        self.bar.finish_and_clear();
        let text = self.texts.join("\n");
        let printed = if self.lines_on_stdout {
            io::stderr().write_all(text.as_bytes())
        } else {
            io::stdout().write_all(text.as_bytes())
        };
        printed.context("cannot print the tables")
    }
}

#[cfg(test)]
impl Report {
    pub(crate) fn silent() -> Self {
        Self::new(&ReportArgs::default()).expect("no file, no error")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_cannot_be_made_is_an_error_before_the_run() {
        let args = ReportArgs {
            json: Some("/nonexistent/out.json".into()),
        };
        let error = Report::new(&args).err().expect("refused");
        assert!(
            error.to_string().contains("/nonexistent/out.json"),
            "{error}"
        );
    }
}
