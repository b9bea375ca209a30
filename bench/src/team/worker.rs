//! The worker's side: a process that takes one task, and orders until its standard input ends.

use super::wire::{Answer, Assignment, Done, Order};
use crate::mode::Slots;
use crate::pool::Pool;
use crate::process::Process;
use anyhow::{Context, Result};
use rustix::process::{Signal, set_parent_process_death_signal};
use serde::de::DeserializeOwned;
use std::io::{self, Lines, StdinLock, Write};

/// The measuring process, which sends the orders.
pub(crate) struct Boss {
    lines: Lines<StdinLock<'static>>,
    /// It was told that all is in place.
    ready: bool,
}

/// Takes a task and lets `staff` do it.
///
/// # Errors
/// Lines that make no sense; what could not be removed at the end. What could not be set up, and
/// orders that failed, are answers and no errors.
pub(crate) fn run<T: DeserializeOwned>(
    staff: impl FnOnce(&T, Slots, &mut Boss) -> Result<()>,
) -> Result<()> {
    // If the measuring process is killed during a phase, the phase must end too.
    set_parent_process_death_signal(Some(Signal::TERM)).context("prctl")?;
    let mut boss = Boss {
        lines: io::stdin().lines(),
        ready: false,
    };
    let line = boss.lines.next().context("no task")??;
    let Assignment { task, slots } = serde_json::from_str(&line).context("what task?")?;
    match staff(&task, slots, &mut boss) {
        Err(error) if !boss.ready => say(&Answer::Failed(format!("{error:#}"))),
        outcome => outcome,
    }
}

impl Boss {
    /// Says that all is in place, and lets the pool do what is ordered, until there are no more
    /// orders.
    ///
    /// # Errors
    /// Orders that make no sense.
    pub(crate) fn serve<C>(&mut self, pool: &Pool<C>) -> Result<()>
    where
        C: Copy + Send + DeserializeOwned,
    {
        self.ready = true;
        let mut rss_before = Process::Own.rss_bytes()?;
        say(&Answer::Done(Done {
            rss_before,
            rss_bytes: rss_before,
            ..Done::default()
        }))?;
        for line in self.lines.by_ref() {
            let line = line?;
            let Order { command, moment } =
                serde_json::from_str(&line).with_context(|| format!("what order? {line}"))?;
            match pool.perform_at(command, moment) {
                Err(error) => say(&Answer::Failed(format!("{error:#}")))?,
                Ok(lap) => {
                    let rss_bytes = Process::Own.rss_bytes()?;
                    say(&Answer::Done(Done {
                        lap,
                        rss_before,
                        rss_bytes,
                    }))?;
                    rss_before = rss_bytes;
                }
            }
        }
        Ok(())
    }
}

fn say(answer: &Answer) -> Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{}", serde_json::to_string(answer)?)?;
    Ok(out.flush()?)
}
