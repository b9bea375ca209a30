//! `-o metrics=ADDRESS`: the daemon's report over HTTP, in the form that Prometheus reads.
//!
//! One thread serves all clients side by side, and waits for none of them. No password is asked for: what can reach the
//! address can read the numbers.
//!
//! *Invariant.* The thread has ended when [`Metrics`] is dropped, unless it waits for a file system below that does not answer: then it is left
//! behind, to end with the process.

mod accept;
mod exposition;
mod http;
#[cfg(test)]
mod openmetrics;
#[cfg(test)]
mod promtool;
mod server;

use crate::info::report::Report;
use crate::message::{Failure, Result};
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// The end of the thread is waited for so long.
const END_MAX: Duration = Duration::from_secs(2);

/// Makes the report.
pub(super) type MakeReport = Box<dyn Fn() -> Report + Send>;

/// Is this `HOST:PORT`?
///
/// # Errors
/// What is wrong with it.
pub(super) fn check(address: &str) -> std::result::Result<(), String> {
    let parts = address.rsplit_once(':');
    match parts.map(|(host, port)| (host, port.parse::<u16>())) {
        Some((host, Ok(_))) if !host.is_empty() => Ok(()),
        _ => Err(format!(
            "{address:?} is no HOST:PORT, as 127.0.0.1:9464 and [::1]:0 are"
        )),
    }
}

/// An address that is taken, at which nothing is answered yet.
#[derive(Debug)]
pub(super) struct Listening {
    listener: TcpListener,
    address: SocketAddr,
}

/// The thread that answers; it ends with this.
#[derive(Debug)]
pub(super) struct Metrics {
    /// Closed to end it.
    end: Option<UnixStream>,
    thread: Option<JoinHandle<()>>,
    /// Tells that it has ended: nothing is ever sent.
    ended: Receiver<()>,
}

impl Listening {
    /// Takes `HOST:PORT`. Of port 0 the system deals one that is free.
    ///
    /// # Errors
    /// Another process has it; it is none of this host's addresses, or its name is not known.
    pub(super) fn at(address: &str) -> Result<Self> {
        let listen = || {
            let listener = TcpListener::bind(address)?;
            listener.set_nonblocking(true)?;
            let address = listener.local_addr()?;
            Ok(Self { listener, address })
        };
        listen().map_err(|error: io::Error| {
            let hint = match error.kind() {
                io::ErrorKind::AddrInUse => {
                    "another process listens there: choose another port, or 0 for any that is free, which `holdfast info` tells"
                }
                io::ErrorKind::PermissionDenied => "ports from 1024 on are for all users",
                _ => "the address of a network interface of this host, or 127.0.0.1",
            };
            Failure::new(format!("metrics cannot be served there: {error}"))
                .about(format!("option metrics={address}"))
                .hint(hint)
        })
    }

    /// Where the metrics are to be had.
    pub(super) fn url(&self) -> String {
        format!("http://{}/metrics", self.address)
    }

    /// Answers from now on.
    ///
    /// # Errors
    /// There is no thread to be had.
    pub(super) fn answer(self, report: MakeReport) -> io::Result<Metrics> {
        let (end, asked_to_end) = UnixStream::pair()?;
        let (sender, ended) = mpsc::channel();
        let thread = thread::Builder::new()
            .name("holdfast-metrics".to_owned())
            .spawn(move || server::serve(&self.listener, &asked_to_end, &report, sender))?;
        Ok(Metrics {
            end: Some(end),
            thread: Some(thread),
            ended,
        })
    }
}

impl Drop for Metrics {
    fn drop(&mut self) {
        self.end = None;
        if self.ended.recv_timeout(END_MAX) == Err(RecvTimeoutError::Timeout) {
            tracing::warn!("metrics wait for a file system below that does not answer");
            return;
        }
        if let Some(thread) = self.thread.take() {
            // A panic was told of when it happened.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests;
