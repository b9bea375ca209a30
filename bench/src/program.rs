//! This very program, to be started once more for a part of the work.

use anyhow::{Context, Result};
use std::env;
use std::ffi::OsString;
use std::process::Command;

/// How this program is called: its file, and the arguments that lead to the workloads.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    path: OsString,
    arguments: Vec<OsString>,
}

impl Program {
    /// This very program; `word` is the subcommand that runs now, which others stand beside.
    ///
    /// # Errors
    /// If the program does not know its own file.
    pub(crate) fn own(word: &str) -> Result<Self> {
        let path = env::current_exe()
            .context("where is this program?")?
            .into_os_string();
        let arguments = env::args_os()
            .skip(1)
            .take_while(|argument| argument != word)
            .collect();
        Ok(Self { path, arguments })
    }

    /// Calls it with another subcommand.
    pub(crate) fn again(&self, word: &str) -> Command {
        let mut command = Command::new(&self.path);
        command.args(&self.arguments).arg(word);
        command
    }
}
