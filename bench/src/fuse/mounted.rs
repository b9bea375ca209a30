//! The measuring side's hold on a server process and its mount.

use super::serve::{Kind, MountHow, Word};
use crate::process::Process;
use crate::program::Program;
use anyhow::{Context, Result, bail};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use tempfile::TempDir;

/// A mount, and the process that serves it. Dropping it unmounts and waits for the process.
pub(crate) struct Mounted {
    child: Child,
    /// The server ends when this does.
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
    folder: TempDir,
    transport: String,
}

impl Mounted {
    /// Mounts at a fresh folder.
    ///
    /// # Errors
    /// If the server cannot be started or does not come up; it has told why on standard error.
    pub(crate) fn start(program: &Program, kind: Kind, how: MountHow) -> Result<Self> {
        Self::start_in(program, kind, &how.arguments(), &std::env::temp_dir())
    }

    /// Mounts at a fresh folder beside this path.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub(crate) fn start_beside(
        program: &Program,
        kind: Kind,
        arguments: &[String],
        path: &Path,
    ) -> Result<Self> {
        let parent = match path.parent() {
            Some(parent) if parent != Path::new("") => parent,
            _ => Path::new("."),
        };
        Self::start_in(program, kind, arguments, parent)
    }

    fn start_in(
        program: &Program,
        kind: Kind,
        arguments: &[String],
        parent: &Path,
    ) -> Result<Self> {
        let folder = tempfile::Builder::new()
            .prefix("holdfast-bench-")
            .tempdir_in(parent)
            .with_context(|| format!("cannot make a mount point in {}", parent.display()))?;
        let mut child = program
            .again("serve")
            .arg(kind.to_string())
            .arg(folder.path())
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // A ^C at the terminal is for the measuring process alone, which then unmounts.
            .process_group(0)
            .spawn()
            .context("cannot start a server")?;
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
        let stdout = BufReader::new(stdout.context("the server has no output")?);
        let transport = String::new();
        let mut mounted = Self {
            child,
            stdin,
            stdout,
            folder,
            transport,
        };
        match mounted.hear() {
            Ok(Word::Live { transport }) => mounted.transport = transport,
            Ok(word) => bail!("the server answered {word:?}"),
            Err(error) => return Err(error.context(format!("cannot mount {kind}"))),
        }
        Ok(mounted)
    }

    /// Where it is mounted.
    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// How requests come.
    pub(crate) fn transport(&self) -> &str {
        &self.transport
    }

    /// The server.
    pub(crate) fn process(&self) -> Process {
        Process::Other(self.child.id())
    }

    /// Requests the server has had so far.
    ///
    /// # Errors
    /// If it is gone.
    pub(crate) fn requests(&mut self) -> Result<u64> {
        let stdin = self.stdin.as_mut().context("the server is at its end")?;
        stdin.write_all(b"\n").context("the server is gone")?;
        match self.hear()? {
            Word::Requests(count) => Ok(count),
            word => bail!("the server answered {word:?}"),
        }
    }

    /// Unmounts.
    ///
    /// # Errors
    /// If the server fails to do so.
    pub(crate) fn stop(mut self) -> Result<()> {
        self.end()
    }

    fn end(&mut self) -> Result<()> {
        if self.stdin.take().is_none() {
            return Ok(());
        }
        let status = self.child.wait()?;
        if !status.success() {
            bail!("the server ended with {status}");
        }
        Ok(())
    }

    fn hear(&mut self) -> Result<Word> {
        let mut line = String::new();
        if self.stdout.read_line(&mut line)? == 0 {
            bail!("the server is gone");
        }
        serde_json::from_str(&line).with_context(|| format!("the server said {line:?}"))
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        if let Err(error) = self.end() {
            eprintln!("{error:#}");
        }
    }
}
