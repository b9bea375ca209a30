//! Shell completions: the scripts that ask this program.

use crate::{complete, message::Result};
use clap_complete::Shell;
use std::io::{self, Write as _};

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
