//! Arguments of a workload, for tests.

use anyhow::{Context, Result};
use clap::{Args, Parser};

#[derive(Parser)]
struct Line<A: Args> {
    #[command(flatten)]
    args: A,
}

/// A workload's arguments, as its command line would have them.
///
/// # Errors
/// If they are none.
pub(crate) fn parsed<'a, A: Args>(line: impl IntoIterator<Item = &'a str>) -> Result<A> {
    let line = std::iter::once("bench").chain(line);
    let parsed = Line::try_parse_from(line).context("arguments of a part")?;
    Ok(parsed.args)
}
