//! `-o metrics=ADDRESS`: the daemon's report over HTTP, in the form that Prometheus reads.
//!
//! One thread answers one client after the other. Each has a time in which to send its request and to take the answer, so that a client
//! that does neither keeps the next one waiting no longer than that. No password is asked for: what can reach the address can read the numbers.
//!
//! *Invariant.* The thread has ended when [`Metrics`] is dropped, unless it waits for a file system below that does not answer: then it is left
//! behind, to end with the process.

mod exposition;
mod http;
#[cfg(test)]
mod openmetrics;

use crate::info::report::Report;
use crate::message::{Failure, Result};
use http::Exchange;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// A client is not waited for any longer, from its connection to the end of the answer.
const EXCHANGE_MAX: Duration = Duration::from_secs(2);
/// Before it is tried again where there was no descriptor for a client.
const PAUSE: Duration = Duration::from_millis(100);

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
            .spawn(move || serve(&self.listener, &asked_to_end, &report, sender))?;
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
        if self.ended.recv_timeout(EXCHANGE_MAX) == Err(RecvTimeoutError::Timeout) {
            tracing::warn!("metrics wait for a file system below that does not answer");
            return;
        }
        if let Some(thread) = self.thread.take() {
            // A panic was told of when it happened.
            let _ = thread.join();
        }
    }
}

/// Answers until the other end of `end` is closed. `_ended` is dropped last.
fn serve(listener: &TcpListener, end: &UnixStream, report: &MakeReport, _ended: Sender<()>) {
    loop {
        let mut both = [
            PollFd::new(listener, PollFlags::IN),
            PollFd::new(end, PollFlags::IN),
        ];
        match poll(&mut both, None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => {
                tracing::error!(%error, "metrics are not served any more");
                return;
            }
        }
        if !both[1].revents().is_empty() {
            return;
        }
        match listener.accept() {
            // A client that fails, or is too slow, has no answer: it knows.
            Ok((client, _)) => _ = answer(&client, end, report),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(_) => thread::sleep(PAUSE),
        }
    }
}

fn answer(client: &TcpStream, end: &UnixStream, report: &MakeReport) -> io::Result<()> {
    let mut exchange = Exchange::begin(client, end, EXCHANGE_MAX)?;
    exchange.run(|| exposition::text(report()))
}

#[cfg(test)]
mod tests {
    use super::http::HEAD_MAX;
    use super::*;
    use std::io::{Read, Write};
    use std::time::Instant;

    fn connect(url: &str) -> TcpStream {
        let address = url.trim_start_matches("http://");
        TcpStream::connect(address.trim_end_matches("/metrics")).unwrap()
    }

    fn answered(url: &str, request: &str) -> String {
        let mut client = connect(url);
        client.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        client.read_to_string(&mut answer).unwrap();
        answer
    }

    fn listening() -> (String, Metrics) {
        let listening = Listening::at("127.0.0.1:0").unwrap();
        let url = listening.url();
        let report = || Report {
            inodes: 42,
            ..Report::default()
        };
        (url, listening.answer(Box::new(report)).unwrap())
    }

    #[test]
    fn an_address_is_a_host_and_a_port() {
        for right in ["127.0.0.1:9464", "[::1]:0", "localhost:80", "0.0.0.0:65535"] {
            assert_eq!(check(right), Ok(()));
        }
        for wrong in [
            "",
            "9464",
            ":9464",
            "127.0.0.1",
            "127.0.0.1:",
            "host:http",
            "host:65536",
        ] {
            assert!(check(wrong).unwrap_err().contains("HOST:PORT"), "{wrong}");
        }
    }

    #[test]
    fn the_report_is_answered_at_its_path_alone() {
        let (url, metrics) = listening();
        let answer = answered(&url, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
        let length = format!("Content-Length: {}", body.len());
        assert!(head.contains(&length), "{head}");
        assert!(head.contains(exposition::CONTENT_TYPE), "{head}");
        let families = openmetrics::parse(body).unwrap();
        assert_eq!(families["holdfast_inodes"].value(&[]), Some(42.0));
        let head = answered(&url, "HEAD /metrics?x=1 HTTP/1.0\r\n\r\n");
        assert!(
            head.ends_with("\r\n\r\n") && head.contains("200 OK"),
            "{head}"
        );
        for (request, status) in [
            ("GET / HTTP/1.1\r\n\r\n", "404"),
            ("POST /metrics HTTP/1.1\r\n\r\n", "405"),
            ("nonsense\r\n\r\n", "400"),
        ] {
            let answer = answered(&url, request);
            assert!(
                answer.starts_with(&format!("HTTP/1.1 {status} ")),
                "{answer}"
            );
        }
        drop(metrics);
        let address = url.trim_start_matches("http://");
        assert!(TcpStream::connect(address.trim_end_matches("/metrics")).is_err());
    }

    #[test]
    fn an_address_in_use_is_named_with_the_remedy() {
        let (url, _metrics) = listening();
        let address = url.trim_start_matches("http://");
        let address = address.trim_end_matches("/metrics");
        let refused = Listening::at(address).unwrap_err().to_string();
        assert!(
            refused.contains(&format!("option metrics={address}")),
            "{refused}"
        );
        assert!(refused.contains("or 0 for any that is free"), "{refused}");
        let refused = Listening::at("192.0.2.1:0").unwrap_err().to_string();
        assert!(
            refused.contains("network interface of this host"),
            "{refused}"
        );
    }

    #[test]
    fn a_client_that_says_nothing_or_too_much_holds_up_the_next_for_a_while_only() {
        let (url, _metrics) = listening();
        let begun = Instant::now();
        let silent = connect(&url);
        let mut endless = connect(&url);
        // It may be sent away before it has said all.
        let _ = endless.write_all(&vec![b'x'; 3 * HEAD_MAX]);
        let answer = answered(&url, "GET /metrics HTTP/1.1\r\n\r\n");
        assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
        assert!(begun.elapsed() < 10 * EXCHANGE_MAX);
        drop((silent, endless));
    }

    #[test]
    fn the_end_waits_for_no_client() {
        let (url, metrics) = listening();
        let silent = connect(&url);
        thread::sleep(Duration::from_millis(50));
        let begun = Instant::now();
        drop(metrics);
        assert!(begun.elapsed() < EXCHANGE_MAX, "{:?}", begun.elapsed());
        drop(silent);
    }
}
