//! Chores of the source tree that cargo has no command for, run as `cargo xtask NAME`.
//!
//! `tidy` checks the rules that no compiler lint covers; `budget`, `circles` and `rooms` show what
//! it counts. `conflicts` runs the conflict audit and keeps its table in the documentation.
//! `instructions` counts instructions per operation. `dist` makes packages, `header` the header of
//! the library for C.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};

mod conflicts;
mod dist;
mod header;
mod instructions;
mod tidy;

const USAGE: &str = "\
usage: cargo xtask COMMAND

commands:
  tidy    check file lengths, edges between crates and rooms, links, names; exit code 1 on findings
  budget [--write]
          what is counted in the tree beside what xtask/budget.toml allows, and exit code 1 if a
          count is above; --write lowers the numbers
  circles which imports and calls lead from a file to another one of the same circle
  rooms   which imports run back up, from a room of a crate to one above it, and how many
  conflicts [--write] [OPTIONS]
          which operations that commute touch a cache line in common? --write also puts the
          table into docs/performance.md; --help shows the other options
  instructions [--check | --write PERCENT]
          user-space instructions per operation, counted by valgrind, beside the limits of
          xtask/instructions.table; --write makes new limits, so much above what is counted
  dist --out DIR [OPTIONS]
          make packages: .deb, .rpm, static tarballs, symbols; --help shows the other options
  header [--check]
          makes holdfast.h with cbindgen, or compares it";

fn main() -> Result<ExitCode> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["tidy"] => tidy::run(&workspace_root()?),
        ["budget"] => tidy::budget(&workspace_root()?, false),
        ["budget", "--write"] => tidy::budget(&workspace_root()?, true),
        ["circles"] => tidy::circles(&workspace_root()?),
        ["rooms"] => tidy::rooms(&workspace_root()?),
        ["instructions", rest @ ..] => instructions::run(&workspace_root()?, rest),
        ["dist", rest @ ..] => dist::run_dist(&workspace_root()?, rest),
        ["conflicts", rest @ ..] => conflicts::run(&workspace_root()?, rest),
        ["header"] => header::run(&workspace_root()?, false),
        ["header", "--check"] => header::run(&workspace_root()?, true),
        ["help" | "--help" | "-h"] => {
            println!("{USAGE}");
            Ok(ExitCode::SUCCESS)
        }
        [] => bail!("no command given\n{USAGE}"),
        other => bail!("unknown command: {}\n{USAGE}", other.join(" ")),
    }
}

/// The folder above this package, wherever the command was started.
fn workspace_root() -> Result<PathBuf> {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let root = package.parent().context("xtask has no folder above it")?;
    Ok(root.to_path_buf())
}
