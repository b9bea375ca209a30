//! `Read`, `Write` and `Seek`, at the file's own offset.
//!
//! *Invariants.* The offset is at most 2^63 - 1, as in the kernel.

use std::io::{self, IoSlice, IoSliceMut, Read, Seek, SeekFrom, Write};
use std::sync::{MutexGuard, PoisonError};

use super::File;
use crate::types::{Errno, OpenFlags};
use crate::view::View;

impl File {
    fn position(&self) -> MutexGuard<'_, u64> {
        // A panic of another holder leaves a valid number.
        let position = self.open.position.lock();
        position.unwrap_or_else(PoisonError::into_inner)
    }

    /// Bytes from the offset to the end, as a hint for the size of a buffer.
    fn bytes_left(&self) -> usize {
        let len = self.view().core.getattr(self.node()).size;
        let left = len.saturating_sub(*self.position());
        usize::try_from(left).unwrap_or(usize::MAX)
    }
}

impl Read for &File {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        self.read_vectored(&mut [IoSliceMut::new(buf)])
    }

    fn read_vectored(&mut self, bufs: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        let mut position = self.position();
        let read = self.read_vectored_at(bufs, *position)?;
        *position += read as u64;
        Ok(read)
    }

    fn read_to_end(&mut self, buf: &mut Vec<u8>) -> io::Result<usize> {
        // With one byte more, the last read finds the end without growing the buffer.
        buf.try_reserve(self.bytes_left().saturating_add(1))?;
        let before = buf.len();
        loop {
            let filled = buf.len();
            if buf.capacity() == filled {
                buf.try_reserve(4096)?;
            }
            buf.resize(buf.capacity(), 0);
            let read = self.read(&mut buf[filled..]);
            buf.truncate(filled + read.as_ref().map_or(0, |&read| read));
            if read? == 0 {
                return Ok(filled - before);
            }
        }
    }

    fn read_to_string(&mut self, buf: &mut String) -> io::Result<usize> {
        let mut bytes = Vec::new();
        let read = self.read_to_end(&mut bytes)?;
        let text = std::str::from_utf8(&bytes)
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        buf.push_str(text);
        Ok(read)
    }
}

impl Write for &File {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        let mut position = self.position();
        if self.core_file().flags().contains(OpenFlags::APPEND) {
            let View { core, who } = self.view();
            let (start, written) = core.append(who, self.core_file(), buf)?;
            if written > 0 {
                *position = start + written as u64;
            }
            return Ok(written);
        }
        let written = self.write_at(buf, *position)?;
        *position += written as u64;
        Ok(written)
    }

    fn write_vectored(&mut self, bufs: &[IoSlice<'_>]) -> io::Result<usize> {
        if self.core_file().flags().contains(OpenFlags::APPEND) {
            // The core appends one buffer at a time, and the append must be atomic.
            let joined: Vec<u8> = bufs.iter().flat_map(|buf| buf.iter().copied()).collect();
            return self.write(&joined);
        }
        let mut position = self.position();
        let written = self.write_vectored_at(bufs, *position)?;
        *position += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Seek for &File {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.opened_node()?;
        let mut position = self.position();
        let target = match to {
            SeekFrom::Start(offset) => Some(offset),
            SeekFrom::Current(delta) => position.checked_add_signed(delta),
            SeekFrom::End(delta) => {
                let size = self.view().core.attributes(self.node())?.size;
                size.checked_add_signed(delta)
            }
        };
        *position = target
            .filter(|&target| target <= i64::MAX as u64)
            .ok_or(Errno::EINVAL)?;
        Ok(*position)
    }
}

impl Read for File {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        (&*self).read(buf)
    }

    fn read_vectored(&mut self, bufs: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        (&*self).read_vectored(bufs)
    }

    fn read_to_end(&mut self, buf: &mut Vec<u8>) -> io::Result<usize> {
        (&*self).read_to_end(buf)
    }

    fn read_to_string(&mut self, buf: &mut String) -> io::Result<usize> {
        (&*self).read_to_string(buf)
    }
}

impl Write for File {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        (&*self).write(buf)
    }

    fn write_vectored(&mut self, bufs: &[IoSlice<'_>]) -> io::Result<usize> {
        (&*self).write_vectored(bufs)
    }

    fn flush(&mut self) -> io::Result<()> {
        (&*self).flush()
    }
}

impl Seek for File {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        (&*self).seek(to)
    }
}
