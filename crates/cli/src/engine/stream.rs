//! Reading and writing an archive's descriptor so that the job can be stopped while a slow pipe
//! blocks; and reading ahead on a thread of its own.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use rustix::event::PollFlags;

use super::socket::wait;

/// How often a blocked stream checks its stop flag.
const LOOK: Duration = Duration::from_millis(200);
/// Bytes read at once, and how many such pieces the queue holds.
const PIECE: usize = 256 << 10;
const WAITING: usize = 8;

/// A descriptor; its reads and writes fail once `stop` is set.
#[derive(Debug)]
pub(super) struct Stoppable {
    file: File,
    /// Bytes that can be written without blocking once it is ready: `PIPE_BUF` for a pipe.
    at_once: usize,
    stop: Arc<AtomicBool>,
}

impl Stoppable {
    pub(super) fn new(descriptor: OwnedFd, stop: Arc<AtomicBool>) -> Self {
        let file = File::from(descriptor);
        let is_file = file.metadata().is_ok_and(|meta| meta.is_file());
        Self {
            file,
            at_once: if is_file {
                usize::MAX
            } else {
                rustix::pipe::PIPE_BUF
            },
            stop,
        }
    }

    /// Is it a file or a device, and not a pipe or socket that may still be written to?
    pub(super) fn is_stored(&self) -> bool {
        use std::os::unix::fs::FileTypeExt as _;
        let kind = self.file.metadata().map(|meta| meta.file_type());
        kind.is_ok_and(|kind| !kind.is_fifo() && !kind.is_socket())
    }

    fn ready(&self, flags: PollFlags) -> io::Result<()> {
        // Relaxed: the flag carries nothing else.
        while !self.stop.load(Ordering::Relaxed) {
            if wait(&self.file, flags, LOOK)? {
                return Ok(());
            }
        }
        Err(rustix::io::Errno::CANCELED.into())
    }
}

impl Read for Stoppable {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        loop {
            self.ready(PollFlags::IN)?;
            match self.file.read(buf) {
                // The descriptor is non-blocking, and another process may have read the data.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                read => return read,
            }
        }
    }
}

impl Write for Stoppable {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        loop {
            self.ready(PollFlags::OUT)?;
            match self.file.write(&buf[..buf.len().min(self.at_once)]) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                written => return written,
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A stream that another thread reads ahead.
#[derive(Debug)]
pub(super) struct Readahead {
    pieces: Receiver<io::Result<Vec<u8>>>,
    piece: Vec<u8>,
    at: usize,
    ended: bool,
}

impl Readahead {
    /// Starts the thread. If none can be started, the reader itself is returned.
    pub(super) fn of(reader: Box<dyn Read + Send>) -> Box<dyn Read> {
        let (sender, pieces) = sync_channel(WAITING);
        let shared = Arc::new(parking_lot::Mutex::new(Some(reader)));
        let mine = Arc::clone(&shared);
        let work = move || {
            if let Some(reader) = mine.lock().take() {
                fill(reader, &sender);
            }
        };
        let name = "holdfast-read".to_owned();
        match std::thread::Builder::new().name(name).spawn(work) {
            Ok(_) => Box::new(Self {
                pieces,
                piece: Vec::new(),
                at: 0,
                ended: false,
            }),
            Err(_) => match shared.lock().take() {
                Some(reader) => reader,
                None => Box::new(io::empty()),
            },
        }
    }
}

/// Reads until the end, an error, or until the receiver is gone. An empty piece marks the end.
fn fill(mut reader: Box<dyn Read + Send>, sender: &SyncSender<io::Result<Vec<u8>>>) {
    loop {
        let mut piece = Vec::with_capacity(PIECE);
        let read = (&mut reader).take(PIECE as u64).read_to_end(&mut piece);
        let end = !matches!(read, Ok(PIECE));
        if !piece.is_empty() && sender.send(Ok(piece)).is_err() {
            return;
        }
        if end {
            // A receiver that is gone needs no end mark.
            let _ = sender.send(read.map(|_| Vec::new()));
            return;
        }
    }
}

impl Read for Readahead {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if self.at == self.piece.len() {
            if self.ended {
                return Ok(0);
            }
            let lost = |_| io::Error::other("the thread that reads it ended before the stream did");
            self.piece = self.pieces.recv().map_err(lost)??;
            self.at = 0;
            self.ended = self.piece.is_empty();
        }
        let read = (&self.piece[self.at..]).read(buf)?;
        self.at += read;
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_bytes_come_in_their_order_and_an_error_after_them() {
        struct Fails;
        impl Read for Fails {
            fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
                Err(io::ErrorKind::TimedOut.into())
            }
        }
        let content: Vec<u8> = (0..3 * PIECE + 7).map(|at| (at % 251) as u8).collect();
        let mut all = Vec::new();
        let reader = io::Cursor::new(content.clone()).chain(Fails);
        let error = Readahead::of(Box::new(reader))
            .read_to_end(&mut all)
            .unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert!(all == content);
    }

    #[test]
    fn a_reader_that_panics_is_no_end_of_the_stream() {
        struct Panics;
        impl Read for Panics {
            fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
                panic!("this is part of the test");
            }
        }
        let reader = (&b"begin"[..]).chain(Panics);
        let read = Readahead::of(Box::new(reader)).read_to_end(&mut Vec::new());
        assert_eq!(read.unwrap_err().kind(), io::ErrorKind::Other);
    }

    #[test]
    fn a_pipe_that_nobody_fills_or_empties_is_left_when_told_to() {
        let (read, write) = rustix::pipe::pipe().unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let (mut read, mut write) = (
            Stoppable::new(read, stop.clone()),
            Stoppable::new(write, stop.clone()),
        );
        std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(50));
                stop.store(true, Ordering::Relaxed);
            });
            let error = read.read(&mut [0; 9]).unwrap_err();
            assert_eq!(
                error.raw_os_error(),
                Some(rustix::io::Errno::CANCELED.raw_os_error())
            );
        });
        stop.store(false, Ordering::Relaxed);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(50));
                stop.store(true, Ordering::Relaxed);
            });
            assert!(write.write_all(&[0; 1 << 20]).is_err());
        });
    }
}
