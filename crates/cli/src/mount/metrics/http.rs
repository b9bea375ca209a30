//! One client of the metrics: its HTTP/1.1 request and the answer.
//!
//! Nothing here blocks: the socket is non-blocking, and [`Client::step`] proceeds as far as the
//! socket allows.
//!
//! Each answer closes its connection (`Connection: close`): a scrape every few seconds gains
//! nothing from keep-alive. After the answer, the write side is shut down and the rest of the
//! request is read, since closing a socket with unread bytes would discard the answer.

use super::accept::Format;
use httparse::Status;
use rustix::event::PollFlags;
use std::io::ErrorKind::{Interrupted, WouldBlock};
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Instant;

/// Bytes of a request's head, at most.
pub(super) const HEAD_MAX: usize = 8 << 10;
/// Header lines of a request, at most.
const HEADERS_MAX: usize = 64;
/// Bytes that one step reads, at most, so that no client keeps the others waiting.
const STEP_MAX: usize = 4 * HEAD_MAX;
const PLAIN: &str = "text/plain; charset=utf-8";

/// The kind of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asked {
    /// The metrics.
    Metrics(Format),
    /// Another path.
    Elsewhere,
    /// Another method.
    OtherMethod,
    /// Not HTTP.
    Nonsense,
    /// A head that is too long.
    TooLong,
}

/// A request with a complete head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Request {
    asked: Asked,
    /// Is only the head of the answer wanted?
    head_only: bool,
}

/// The state of an exchange.
#[derive(Debug)]
enum State {
    /// The bytes of the head that have arrived.
    Asking(Vec<u8>),
    /// The rest of the answer from `sent` on is to be sent.
    Answering { answer: Vec<u8>, sent: usize },
    /// All was sent; the client must close.
    Closing,
}

/// A connected client.
#[derive(Debug)]
pub(super) struct Client {
    stream: TcpStream,
    state: State,
    /// The deadline of the exchange.
    pub(super) until: Instant,
}

impl Client {
    /// Starts an exchange.
    ///
    /// # Errors
    /// Those of `fcntl(2)`.
    pub(super) fn new(stream: TcpStream, until: Instant) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        Ok(Self {
            stream,
            state: State::Asking(Vec::new()),
            until,
        })
    }

    pub(super) fn stream(&self) -> &TcpStream {
        &self.stream
    }

    /// Is the request complete?
    pub(super) fn has_asked(&self) -> bool {
        !matches!(self.state, State::Asking(_))
    }

    /// The event to poll for before the next step.
    pub(super) fn waits_for(&self) -> PollFlags {
        match self.state {
            State::Answering { .. } => PollFlags::OUT,
            State::Asking(_) | State::Closing => PollFlags::IN,
        }
    }

    /// Proceeds until the socket would block. `metrics` makes the text.
    ///
    /// Returns whether the exchange is over.
    ///
    /// # Errors
    /// Those of the socket; a client that ended before its request did.
    pub(super) fn step(&mut self, metrics: &dyn Fn(Format) -> String) -> io::Result<bool> {
        match self.try_step(metrics) {
            Err(error) if matches!(error.kind(), WouldBlock | Interrupted) => Ok(false),
            result => result,
        }
    }

    fn try_step(&mut self, metrics: &dyn Fn(Format) -> String) -> io::Result<bool> {
        let (mut part, mut taken) = ([0; 1024], 0);
        while taken < STEP_MAX {
            match &mut self.state {
                State::Asking(head) => {
                    let count = self.stream.read(&mut part)?;
                    if count == 0 {
                        return Err(io::ErrorKind::UnexpectedEof.into());
                    }
                    taken += count;
                    head.extend_from_slice(&part[..count]);
                    if let Some(request) = request(head) {
                        let answer = answer(request, metrics);
                        self.state = State::Answering { answer, sent: 0 };
                    }
                }
                State::Answering { answer, sent } => {
                    while *sent < answer.len() {
                        *sent += self.stream.write(&answer[*sent..])?;
                    }
                    self.stream.shutdown(Shutdown::Write)?;
                    self.state = State::Closing;
                }
                State::Closing => match self.stream.read(&mut part)? {
                    0 => return Ok(true),
                    count => taken += count,
                },
            }
        }
        Ok(false)
    }
}

fn answer(request: Request, metrics: &dyn Fn(Format) -> String) -> Vec<u8> {
    let plain = |status, text: &str| (status, PLAIN, text.to_owned());
    let (status, kind, body) = match request.asked {
        Asked::Metrics(format) => ("200 OK", format.content_type(), metrics(format)),
        Asked::Elsewhere => plain("404 Not Found", "the metrics are at /metrics\n"),
        Asked::OtherMethod => plain(
            "405 Method Not Allowed\r\nAllow: GET, HEAD",
            "only GET and HEAD are served\n",
        ),
        Asked::Nonsense => plain("400 Bad Request", "this is no request of HTTP/1.x\n"),
        Asked::TooLong => plain(
            "431 Request Header Fields Too Large",
            "a request may have 64 header lines of 8 KiB together\n",
        ),
    };
    let length = body.len();
    let mut answer = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
    );
    if !request.head_only {
        answer.push_str(&body);
    }
    answer.into_bytes()
}

/// Parses a head. `None`: it is incomplete.
fn request(head: &[u8]) -> Option<Request> {
    let whole = |asked| Request {
        asked,
        head_only: false,
    };
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut parsed = httparse::Request::new(&mut headers);
    match parsed.parse(head) {
        Ok(Status::Partial) if head.len() > HEAD_MAX => return Some(whole(Asked::TooLong)),
        Ok(Status::Partial) => return None,
        Ok(Status::Complete(length)) if length > HEAD_MAX => return Some(whole(Asked::TooLong)),
        Ok(Status::Complete(_)) => {}
        Err(httparse::Error::TooManyHeaders) => return Some(whole(Asked::TooLong)),
        Err(_) => return Some(whole(Asked::Nonsense)),
    }
    let path = parsed.path.unwrap_or_default();
    let is_metrics = path.split('?').next() == Some("/metrics");
    let asked = match parsed.method {
        Some("GET" | "HEAD") if is_metrics => {
            let headers = parsed.headers.iter();
            let accepts = headers.filter(|it| it.name.eq_ignore_ascii_case("accept"));
            Asked::Metrics(Format::accepted(accepts.map(|it| it.value)))
        }
        Some("GET" | "HEAD") => Asked::Elsewhere,
        _ => Asked::OtherMethod,
    };
    Some(Request {
        asked,
        head_only: parsed.method == Some("HEAD"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(head: &[u8]) -> Option<Asked> {
        request(head).map(|request| request.asked)
    }

    #[test]
    fn a_request_is_understood_once_all_of_its_head_is_there() {
        let head = b"GET /metrics HTTP/1.1\r\nHost: here\r\nAccept: */*\r\n\r\n";
        for length in 0..head.len() {
            assert_eq!(asked(&head[..length]), None, "{length}");
        }
        let metrics = |head_only| {
            Some(Request {
                asked: Asked::Metrics(Format::Text),
                head_only,
            })
        };
        assert_eq!(request(head), metrics(false));
        assert_eq!(
            request(b"HEAD /metrics?a=b HTTP/1.0\r\n\r\n"),
            metrics(true)
        );
        assert_eq!(
            asked(b"GET /metrics/x HTTP/1.1\r\n\r\n"),
            Some(Asked::Elsewhere)
        );
        assert_eq!(
            asked(b"PUT /metrics HTTP/1.1\r\n\r\n"),
            Some(Asked::OtherMethod)
        );
        assert_eq!(asked(b"\x16\x03\x01\x02\x00"), Some(Asked::Nonsense), "TLS");
        let many = "x: y\r\n".repeat(HEADERS_MAX + 1);
        let many = format!("GET /metrics HTTP/1.1\r\n{many}\r\n");
        assert_eq!(asked(many.as_bytes()), Some(Asked::TooLong));
        let long = format!("GET /metrics HTTP/1.1\r\nx: {}", "y".repeat(HEAD_MAX));
        assert_eq!(asked(long.as_bytes()), Some(Asked::TooLong));
        assert_eq!(
            asked(format!("{long}\r\n\r\n").as_bytes()),
            Some(Asked::TooLong)
        );
    }

    #[test]
    fn openmetrics_is_for_requests_that_accept_it() {
        let head = b"GET /metrics HTTP/1.1\r\naccept: text/html\r\nACCEPT: application/openmetrics-text\r\n\r\n";
        assert_eq!(asked(head), Some(Asked::Metrics(Format::OpenMetrics)));
    }
}
