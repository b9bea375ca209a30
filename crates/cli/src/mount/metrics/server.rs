//! The event loop that serves all clients in one thread.
//!
//! Each client is stepped when its socket is ready, so no client delays others. A slow client takes
//! one of [`CLIENTS_MAX`] places and nothing else. It loses that place at its deadline, or to a new
//! client: the oldest client without a complete request is dropped first.

use super::MakeReport;
use super::exposition;
use super::http::Client;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::io;
use std::net::TcpListener;
use std::os::unix::net::UnixStream;
use std::sync::mpsc::Sender;
use std::thread;
use std::time::{Duration, Instant};

/// Most connections at a time.
pub(super) const CLIENTS_MAX: usize = 64;
/// Most connections accepted before the existing ones are polled again.
const ACCEPTED_MAX: usize = 16;
/// The time from a client's connection to the end of its answer.
const EXCHANGE_MAX: Duration = Duration::from_secs(10);
/// The pause after accept(2) failed, for lack of descriptors.
const PAUSE: Duration = Duration::from_millis(100);

/// The server and its clients.
struct Server<'s> {
    listener: &'s TcpListener,
    report: &'s MakeReport,
    /// The oldest first.
    clients: Vec<Client>,
}

/// Serves until the other end of `end` is closed. `_ended` is dropped last.
pub(super) fn serve(
    listener: &TcpListener,
    end: &UnixStream,
    report: &MakeReport,
    _ended: Sender<()>,
) {
    let mut server = Server {
        listener,
        report,
        clients: Vec::new(),
    };
    loop {
        match server.wait(end) {
            Ok(None) => return,
            Ok(Some(ready)) => server.turn(&ready),
            Err(error) => {
                tracing::error!(%error, "metrics are not served any more");
                return;
            }
        }
    }
}

impl Server<'_> {
    /// Waits for the next event. Returns which clients are ready, and last whether the listener is.
    /// `None`: `end` was closed.
    fn wait(&self, end: &UnixStream) -> io::Result<Option<Vec<bool>>> {
        let of_clients = self.clients.iter();
        let mut all: Vec<PollFd<'_>> = of_clients
            .map(|client| PollFd::new(client.stream(), client.waits_for()))
            .collect();
        all.push(PollFd::new(self.listener, PollFlags::IN));
        all.push(PollFd::new(end, PollFlags::IN));
        let next = self.clients.iter().map(|client| client.until).min();
        let left = next.map(|until| until.saturating_duration_since(Instant::now()));
        let left = left.and_then(|left| Timespec::try_from(left).ok());
        match poll(&mut all, left.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let mut ready: Vec<bool> = all.iter().map(|it| !it.revents().is_empty()).collect();
        Ok(if ready.pop() == Some(true) {
            None
        } else {
            Some(ready)
        })
    }

    /// Steps the clients that are ready, drops those that are done, and accepts new ones.
    fn turn(&mut self, ready: &[bool]) {
        let now = Instant::now();
        let (listens, ready) = ready.split_last().unwrap_or((&false, &[]));
        let report = self.report;
        let mut ready = ready.iter();
        self.clients.retain_mut(|client| {
            let is_ready = ready.next() == Some(&true);
            (!is_ready || goes_on(client, report)) && now < client.until
        });
        if *listens {
            self.accept(now);
        }
    }

    fn accept(&mut self, now: Instant) {
        for _ in 0..ACCEPTED_MAX {
            let stream = match self.listener.accept() {
                Ok((stream, _)) => stream,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(_) => return thread::sleep(PAUSE),
            };
            let Ok(mut client) = Client::new(stream, now + EXCHANGE_MAX) else {
                continue;
            };
            // Usually the request has arrived already.
            if !goes_on(&mut client, self.report) {
                continue;
            }
            if self.clients.len() >= CLIENTS_MAX {
                let silent = self.clients.iter().position(|client| !client.has_asked());
                self.clients.remove(silent.unwrap_or(0));
            }
            self.clients.push(client);
        }
    }
}

/// Steps a client; `false` if the exchange is over or failed.
fn goes_on(client: &mut Client, report: &MakeReport) -> bool {
    let is_over = client.step(&|format| exposition::text(&report(), format));
    matches!(is_over, Ok(false))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::info::report::Report;
    use std::io::Read;
    use std::net::TcpStream;

    #[test]
    fn a_client_whose_time_is_over_is_sent_away_and_no_other() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let report: MakeReport = Box::new(Report::default);
        let mut connections = Vec::new();
        let now = Instant::now();
        let mut client = |until| {
            connections.push(TcpStream::connect(address).unwrap());
            Client::new(listener.accept().unwrap().0, until).unwrap()
        };
        let clients = vec![client(now), client(now + Duration::from_hours(1))];
        let mut server = Server {
            listener: &listener,
            report: &report,
            clients,
        };
        let (_end, asked_to_end) = UnixStream::pair().unwrap();
        let ready = server.wait(&asked_to_end).unwrap().unwrap();
        assert_eq!(ready, [false; 3], "nothing is waited for but the time");
        server.turn(&ready);
        assert_eq!(server.clients.len(), 1);
        assert_eq!(connections[0].read(&mut [0]).unwrap(), 0);
    }
}
