//! Shell completions and manual pages, generated from the definitions of the command line.

use crate::{
    checker::FsckArguments,
    complete,
    helper::{MkfsArguments, MountArguments, UmountArguments},
    message::{Failure, Result},
};
use clap::{Command, CommandFactory};
use clap_complete::Shell;
use std::{
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
};

/// Print the script that makes a shell complete commands, options and paths
///
/// The script calls holdfast itself for what may follow: options and their values, mount points,
/// paths in volumes.
#[derive(Debug, clap::Args)]
pub(crate) struct CompletionsArguments {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

/// Print the manual page, or write those of all commands
#[derive(Debug, clap::Args)]
pub(crate) struct ManArguments {
    /// Write the pages of all commands, and of the helpers for mount(8), into this directory
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

pub(crate) fn completions(arguments: &CompletionsArguments) -> Result<()> {
    let name = arguments.shell.to_string();
    let mut script = Vec::new();
    if let Some(shell) = complete::SHELLS.completer(&name) {
        let (variable, program) = (complete::VARIABLE, "holdfast");
        shell.write_registration(variable, program, program, program, &mut script)?;
    }
    io::stdout().write_all(&script)?;
    Ok(())
}

pub(crate) fn man(arguments: &ManArguments, command: Command) -> Result<()> {
    match &arguments.out {
        None => {
            let mut page = Vec::new();
            clap_mangen::Man::new(command).render(&mut page)?;
            io::stdout().write_all(&page)?;
        }
        Some(dir) => write_pages(dir, command).map_err(|error| {
            Failure::new(format!("the pages cannot be written: {error}")).at(dir)
        })?,
    }
    Ok(())
}

fn write_pages(dir: &Path, command: Command) -> io::Result<()> {
    fs::create_dir_all(dir)?;
    clap_mangen::generate_to(command, dir)?;
    for helper in [
        MountArguments::command(),
        UmountArguments::command(),
        MkfsArguments::command(),
        FsckArguments::command(),
    ] {
        write_helper(dir, helper)?;
    }
    Ok(())
}

/// Helpers of mount(8) are in section 8 of the manual.
fn write_helper(dir: &Path, command: Command) -> io::Result<()> {
    let path = dir.join(format!("{}.8", command.get_name()));
    let mut page = Vec::new();
    clap_mangen::Man::new(command)
        .section("8")
        .render(&mut page)?;
    fs::write(path, page)
}
