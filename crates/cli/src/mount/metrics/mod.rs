//! `-o metrics=ADDRESS`: the daemon's report over HTTP, for Prometheus.
//!
//! One thread serves all clients and blocks on none of them. There is no authentication: any client
//! that can reach the address can read the numbers.
//!
//! *Invariant.* The thread has ended when [`Metrics`] is dropped, unless it waits for a file system
//! below that does not answer. Then it ends with the process.

mod accept;
mod exposition;
mod http;
mod server;

use crate::info::report::Report;
use crate::message::{Failure, Result};
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// How long `drop` waits for the thread.
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

/// A bound address at which nothing is answered yet.
#[derive(Debug)]
pub(super) struct Listening {
    listener: TcpListener,
    address: SocketAddr,
}

/// The thread that answers.
#[derive(Debug)]
pub(super) struct Metrics {
    /// Closed to end it.
    end: Option<UnixStream>,
    thread: Option<JoinHandle<()>>,
    /// Disconnected when the thread has ended; nothing is sent.
    ended: Receiver<()>,
}

impl Listening {
    /// Binds `HOST:PORT`. For port 0 the system chooses a free one.
    ///
    /// # Errors
    /// If the address is in use, is none of this host's, or its name is unknown.
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

    /// The URL of the metrics.
    pub(super) fn url(&self) -> String {
        format!("http://{}/metrics", self.address)
    }

    /// Starts the thread that answers.
    ///
    /// # Errors
    /// If no thread can be started.
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
            // A panic is in the log.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests;
