//! One request over HTTP/1.1 and its answer, within a time.

use super::exposition::CONTENT_TYPE;
use httparse::Status;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::fmt;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// Bytes of a request's head, at most.
pub(super) const HEAD_MAX: usize = 8 << 10;
/// Header lines of a request, at most.
const HEADERS_MAX: usize = 64;
const PLAIN: &str = "text/plain; charset=utf-8";

/// What was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asked {
    /// The metrics, or only the head of such an answer.
    Metrics { head_only: bool },
    /// Another path.
    Elsewhere,
    /// Another method.
    OtherMethod,
    /// Nothing that could be understood.
    Nonsense,
    /// A head that is too long.
    TooLong,
}

/// A client that is listened to, and answered.
pub(super) struct Exchange<'s> {
    client: &'s TcpStream,
    /// Its other end is closed when the exchange is to stop.
    end: &'s UnixStream,
    until: Instant,
}

impl<'s> Exchange<'s> {
    /// With this client, for so long at most.
    pub(super) fn begin(
        client: &'s TcpStream,
        end: &'s UnixStream,
        most: Duration,
    ) -> io::Result<Self> {
        client.set_nonblocking(true)?;
        Ok(Self {
            client,
            end,
            until: Instant::now() + most,
        })
    }

    /// Reads a request, and answers it: with `metrics`, if they are asked for.
    ///
    /// # Errors
    /// The client failed or was too slow, or this is to end.
    pub(super) fn run(
        &mut self,
        metrics: impl FnOnce() -> std::result::Result<String, fmt::Error>,
    ) -> io::Result<()> {
        let plain = |status, text: &str| (status, PLAIN, text.to_owned());
        let asked = self.asked()?;
        let (status, kind, body) = match asked {
            Asked::Metrics { .. } => match metrics() {
                Ok(text) => ("200 OK", CONTENT_TYPE, text),
                Err(fmt::Error) => plain("500 Internal Server Error", "no metrics could be made\n"),
            },
            Asked::Elsewhere => plain("404 Not Found", "metrics are at /metrics\n"),
            Asked::OtherMethod => plain("405 Method Not Allowed\r\nAllow: GET, HEAD", "GET it\n"),
            Asked::Nonsense => plain("400 Bad Request", "that is no request\n"),
            Asked::TooLong => plain("431 Request Header Fields Too Large", "that is too long\n"),
        };
        let length = body.len();
        let head = format!(
            "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
        );
        self.write_all(head.as_bytes())?;
        match asked {
            Asked::Metrics { head_only: true } => Ok(()),
            _ => self.write_all(body.as_bytes()),
        }
    }

    fn asked(&mut self) -> io::Result<Asked> {
        let (mut bytes, mut part) = (Vec::new(), [0; 1024]);
        loop {
            if let Some(asked) = asked(&bytes) {
                return Ok(asked);
            }
            if bytes.len() > HEAD_MAX {
                return Ok(Asked::TooLong);
            }
            match self.read(&mut part)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                count => bytes.extend_from_slice(&part[..count]),
            }
        }
    }

    /// Waits until something can be read, or written.
    fn wait(&self, flags: PollFlags) -> io::Result<()> {
        loop {
            let left = self.until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(io::ErrorKind::TimedOut.into());
            }
            let mut both = [
                PollFd::new(self.client, flags),
                PollFd::new(self.end, PollFlags::IN),
            ];
            let left = Timespec::try_from(left).map_err(|_| io::ErrorKind::TimedOut)?;
            match poll(&mut both, Some(&left)) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            if !both[1].revents().is_empty() {
                return Err(io::ErrorKind::Interrupted.into());
            }
            if !both[0].revents().is_empty() {
                return Ok(());
            }
        }
    }
}

impl Read for Exchange<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        loop {
            self.wait(PollFlags::IN)?;
            match self.client.read(bytes) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                read => return read,
            }
        }
    }
}

impl Write for Exchange<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            self.wait(PollFlags::OUT)?;
            match self.client.write(bytes) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                written => return written,
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.client.flush()
    }
}

/// What a head asks for. `None`: there is more to come.
fn asked(head: &[u8]) -> Option<Asked> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut request = httparse::Request::new(&mut headers);
    match request.parse(head) {
        Ok(Status::Partial) => return None,
        Ok(Status::Complete(_)) => {}
        Err(httparse::Error::TooManyHeaders) => return Some(Asked::TooLong),
        Err(_) => return Some(Asked::Nonsense),
    }
    let path = request.path.unwrap_or_default();
    let is_metrics = path.split('?').next() == Some("/metrics");
    Some(match request.method {
        Some(method @ ("GET" | "HEAD")) if is_metrics => Asked::Metrics {
            head_only: method == "HEAD",
        },
        Some("GET" | "HEAD") => Asked::Elsewhere,
        _ => Asked::OtherMethod,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_understood_once_all_of_its_head_is_there() {
        let head = b"GET /metrics HTTP/1.1\r\nHost: here\r\nAccept: */*\r\n\r\n";
        for length in 0..head.len() {
            assert_eq!(asked(&head[..length]), None, "{length}");
        }
        let metrics = |head_only| Some(Asked::Metrics { head_only });
        assert_eq!(asked(head), metrics(false));
        assert_eq!(asked(b"HEAD /metrics?a=b HTTP/1.0\r\n\r\n"), metrics(true));
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
    }
}
