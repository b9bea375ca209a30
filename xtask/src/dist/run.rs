//! Other programs, run with errors that name them.

use std::process::Command;

use anyhow::{Context, Result, bail};

/// Runs a program; its output goes where ours goes.
pub(super) fn run(command: &mut Command) -> Result<()> {
    let name = shown(command);
    let status = command
        .status()
        .with_context(|| format!("{name} cannot be started: is it installed?"))?;
    if !status.success() {
        bail!("{name}: {status}");
    }
    Ok(())
}

/// Runs a program and returns what it prints.
pub(super) fn output(command: &mut Command) -> Result<String> {
    Ok(String::from_utf8(bytes(command)?)?)
}

/// Runs a program and returns the bytes that it prints.
pub(super) fn bytes(command: &mut Command) -> Result<Vec<u8>> {
    let name = shown(command);
    let output = command
        .output()
        .with_context(|| format!("{name} cannot be started: is it installed?"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("{name}: {}\n{said}", output.status);
    }
    Ok(output.stdout)
}

fn shown(command: &Command) -> String {
    let program = command.get_program().to_string_lossy().into_owned();
    let first = command.get_args().next();
    first.map_or(program.clone(), |argument| {
        format!("{program} {}", argument.to_string_lossy())
    })
}
