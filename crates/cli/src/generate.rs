//! Shell completions: the scripts that ask this program.

use crate::message::Result;
use clap_complete::{Shell, env::Shells};
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
    // bash splits words at `=` and `:`, which the script of `clap_complete` does not expect.
    let mut script = include_bytes!("../shell/holdfast.bash").to_vec();
    let shells = Shells::builtins();
    let name = arguments.shell.to_string();
    if let Some(shell) = shells.completer(&name).filter(|_| name != "bash") {
        script.clear();
        let program = "holdfast";
        shell.write_registration("COMPLETE", program, program, program, &mut script)?;
    }
    Ok(io::stdout().write_all(&script)?)
}
