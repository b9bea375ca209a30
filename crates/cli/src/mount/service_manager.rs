//! What the service manager is told, by sd_notify(3): when the mount is live, its state, its end,
//! and that the queues make progress.
//!
//! Without `NOTIFY_SOCKET` nothing is sent.

use crate::{log::ALWAYS, source::Source};
use holdfast_fuse::Liveness;
use sd_notify::NotifyState;
use std::{
    io,
    path::Path,
    process::Command,
    sync::mpsc::{self, RecvTimeoutError, Sender},
    thread::{self, JoinHandle},
    time::Duration,
};

/// The process that systemd has executed for a unit.
const UNITS_PROCESS: &str = "SYSTEMD_EXEC_PID";

/// The mount is live, and this process serves it.
pub(super) fn ready(source: &Source, transport: &str) {
    send(&[
        NotifyState::Ready,
        NotifyState::Status(&one_line(&live(source, transport))),
    ]);
}

/// The state in words.
pub(super) fn status(text: &str) {
    send(&[NotifyState::Status(&one_line(text))]);
}

/// The mount has ended, and the source is about to be closed.
pub(super) fn stopping(source: &Source) {
    send(&[
        NotifyState::Stopping,
        NotifyState::Status(&one_line(&format!("closing {source}"))),
    ]);
}

/// The state of a mount that is served.
pub(super) fn live(source: &Source, transport: &str) -> String {
    format!("serving {source} over {transport}")
}

/// Is this process the one that systemd has executed for a unit? A command within a script is not:
/// its daemon is no main process of the unit.
fn is_units_process() -> bool {
    match std::env::var(UNITS_PROCESS) {
        Ok(pid) => pid == std::process::id().to_string(),
        // Before systemd 248.
        Err(_) => true,
    }
}

/// Prepares the command of a daemon: of the unit's own process, the daemon becomes the main process
/// of the unit, and answers to its watchdog. Another daemon sends nothing.
pub(super) fn prepare(daemon: &mut Command) {
    daemon.env_remove("WATCHDOG_PID");
    if !is_units_process() {
        silence(daemon);
    }
}

/// Makes a process send nothing.
pub(super) fn silence(command: &mut Command) {
    command.env_remove("NOTIFY_SOCKET");
    command.env_remove("WATCHDOG_USEC");
}

/// The daemon with this process id serves a mount that is live. The service manager accepts this
/// from the main process only, which is still this one.
pub(super) fn announce(daemon: u32) {
    if is_units_process() {
        send(&[NotifyState::MainPid(daemon), NotifyState::Ready]);
    }
}

fn send(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        tracing::warn!("the service manager cannot be notified: {error}");
    }
}

/// A message has a line for each state.
fn one_line(text: &str) -> String {
    text.replace(char::is_control, "?")
}

/// The thread that answers the service manager's watchdog for the queues.
pub(super) struct Watchdog {
    /// Closed to end the thread.
    end: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Watchdog {
    /// Starts the thread, if the service manager has a watchdog for this process. `live`: the state
    /// while all queues make progress.
    pub(super) fn start(
        mut liveness: Liveness,
        dir: &Path,
        live: String,
    ) -> io::Result<Option<Self>> {
        let Some(timeout) = sd_notify::watchdog_enabled() else {
            return Ok(None);
        };
        let dir = dir.to_owned();
        let (end, ended) = mpsc::channel();
        let thread = thread::Builder::new()
            .name("holdfast-watchdog".into())
            .spawn(move || {
                let mut was_stalled = false;
                let mut answer = || match liveness.stalled() {
                    None => {
                        send(&[NotifyState::Watchdog]);
                        if std::mem::take(&mut was_stalled) {
                            status(&live);
                        }
                    }
                    Some(queue) if !was_stalled => {
                        was_stalled = true;
                        let text = stalled(&queue);
                        tracing::error!(target: ALWAYS, ?dir, "{text}: the watchdog gets no answer");
                        status(&text);
                    }
                    Some(_) => {}
                };
                answer();
                while ended.recv_timeout(interval(timeout)) == Err(RecvTimeoutError::Timeout) {
                    answer();
                }
            })?;
        Ok(Some(Self {
            end: Some(end),
            thread: Some(thread),
        }))
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        self.end = None;
        if let Some(thread) = self.thread.take() {
            // A panic is in the log.
            let _ = thread.join();
        }
    }
}

fn stalled(queue: &str) -> String {
    format!("{queue}: all threads serve requests, and none was answered")
}

/// Systemd asks for two answers within the time; a third leaves room for a busy machine.
fn interval(timeout: Duration) -> Duration {
    (timeout / 3).max(Duration::from_millis(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_cannot_add_a_line_to_a_message() {
        let source = Source::Volume("/a\nMAINPID=1".into());
        assert_eq!(
            one_line(&live(&source, "io_uring")),
            "serving /a?MAINPID=1 over io_uring"
        );
    }

    #[test]
    fn the_watchdog_is_answered_in_time_even_if_an_answer_is_late() {
        let timeout = Duration::from_secs(60);
        assert!(interval(timeout) * 2 < timeout);
        assert!(interval(Duration::ZERO) > Duration::ZERO);
    }
}
