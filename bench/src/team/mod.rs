//! Fresh processes that do a task's phases: one with several threads, or several with one each.
//!
//! Each run of a target has processes of its own, so that no run finds what an earlier one left.
//! The growth of resident memory over a phase is then what the phase took, and threads and
//! independent processes are compared on equal terms.
//!
//! *Invariants.* All workers begin an order at one moment. A worker ends when its standard input
//! does, or its parent, and leaves nothing behind; a signal to end that came to the measuring
//! process is passed on.

mod wire;
pub(crate) mod worker;

pub(crate) use wire::Done;

use crate::mode::Mode;
use crate::process;
use crate::program::Program;
use crate::sys;
use anyhow::{Context, Result, anyhow, bail};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process};
use serde::Serialize;
use std::io::{BufRead, BufReader, Write};
use std::marker::PhantomData;
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::time::Duration;
use wire::{Answer, Assignment, Order};

/// The hidden subcommand that workers are started with.
const WORD: &str = "work";

/// From an order to its beginning: time enough for every thread to wake up and wait for it.
const NOTICE: Duration = Duration::from_millis(2);

/// How long a signal may wait to be passed on.
const GLANCE: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 100_000_000,
};

/// The workers of one run, which take commands of type `C`. Dropping it ends them and waits.
pub(crate) struct Team<C> {
    workers: Vec<Worker>,
    takes: PhantomData<C>,
}

struct Worker {
    child: Child,
    /// The worker ends when this does.
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
    /// A signal to end was passed on.
    end_ordered: bool,
}

impl<C: Serialize> Team<C> {
    /// Starts the workers and waits until all is in place.
    ///
    /// # Errors
    /// If one cannot be started, or cannot set up what its task needs.
    pub(crate) fn start(program: &Program, task: &impl Serialize, mode: Mode) -> Result<Self> {
        let mut team = Self {
            workers: Vec::new(),
            takes: PhantomData,
        };
        for slots in mode.slots() {
            let mut worker = Worker::start(program)?;
            worker.say(&Assignment { task, slots })?;
            team.workers.push(worker);
        }
        team.hear()?;
        Ok(team)
    }

    /// Lets all do this, and waits for them.
    ///
    /// # Errors
    /// The first error of a worker.
    pub(crate) fn perform(&mut self, command: C) -> Result<Done> {
        let moment = process::monotonic() + NOTICE;
        let order = Order { command, moment };
        for worker in &mut self.workers {
            worker.say(&order)?;
        }
        self.hear()
    }

    /// All answers; all have come to rest before a failure is told.
    fn hear(&mut self) -> Result<Done> {
        let answers: Vec<Result<Done>> = self.workers.iter_mut().map(Worker::hear).collect();
        answers
            .into_iter()
            .try_fold(Done::default(), |all, done| Ok(all.beside(done?)))
    }

    /// Ends them.
    ///
    /// # Errors
    /// If one could not remove what it had made; it has told why on standard error.
    pub(crate) fn dismiss(mut self) -> Result<()> {
        let mut evictions: Vec<Result<()>> = self.workers.iter_mut().map(Worker::end).collect();
        evictions.drain(..).collect()
    }
}

impl Worker {
    fn start(program: &Program) -> Result<Self> {
        let mut child = program
            .again(WORD)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // A ^C at the terminal is for the measuring process alone, which passes it on.
            .process_group(0)
            .spawn()
            .context("cannot start a worker")?;
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
        Ok(Self {
            child,
            stdin,
            stdout: BufReader::new(stdout.context("the worker has no output")?),
            end_ordered: false,
        })
    }

    fn say(&mut self, line: &impl Serialize) -> Result<()> {
        let mut text = serde_json::to_vec(line)?;
        text.push(b'\n');
        let stdin = self.stdin.as_mut().context("the worker is at its end")?;
        stdin.write_all(&text).context("a worker is gone")
    }

    fn hear(&mut self) -> Result<Done> {
        self.wait_for_word()?;
        let mut line = String::new();
        if self.stdout.read_line(&mut line)? == 0 {
            // A worker that was told to end before it could listen ended at once.
            bail!(if self.end_ordered {
                "interrupted"
            } else {
                "a worker is gone"
            });
        }
        match serde_json::from_str(&line).with_context(|| format!("a worker said {line:?}"))? {
            Answer::Done(done) => Ok(done),
            Answer::Failed(why) => Err(anyhow!(why)),
        }
    }

    /// Waits until there is something to read, and passes a signal on in the meantime.
    fn wait_for_word(&mut self) -> Result<()> {
        loop {
            let mut ears = [PollFd::new(self.stdout.get_ref(), PollFlags::IN)];
            match poll(&mut ears, Some(&GLANCE)) {
                Ok(0) | Err(Errno::INTR) => {}
                Ok(_) => return Ok(()),
                Err(error) => return Err(error).context("poll"),
            }
            if sys::end_asked() && !self.end_ordered {
                kill_process(Pid::from_child(&self.child), Signal::TERM).context("kill")?;
                self.end_ordered = true;
            }
        }
    }

    fn end(&mut self) -> Result<()> {
        if self.stdin.take().is_none() {
            return Ok(());
        }
        let status = self.child.wait()?;
        if !status.success() {
            bail!("a worker ended with {status}");
        }
        Ok(())
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        if let Err(error) = self.end() {
            eprintln!("{error:#}");
        }
    }
}
