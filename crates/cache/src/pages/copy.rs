//! Copying from file to file without a caller's buffer.

use super::content::PagesLock;
use super::pieces::Piece;
use crate::account::Account;
use crate::sizes::{MAX_SIZE, PAGE_SIZE};
use holdfast_types::{Errno, Result};

/// Bytes that [`PagesLock::copy_within`] copies at a time: one group of pages.
const STEP: usize = 256 << 10;

impl PagesLock<'_> {
    /// Copies `len` bytes of `source` at `from` to `to` and returns the bytes copied, which are
    /// fewer when space runs out. A hole in the source becomes one here, as far as it covers whole
    /// pages. The owner bounds `len` by the source's size, and raises this file's size. No page of
    /// either range is absent.
    ///
    /// # Errors
    /// If nothing could be copied: `EFBIG` at [`MAX_SIZE`], or that of the space (`ENOSPC`).
    pub fn copy_range(
        &mut self,
        to: u64,
        source: &PagesLock<'_>,
        from: u64,
        len: u64,
        account: Account<'_>,
    ) -> Result<u64> {
        let len = copy_len(to, from, len)?;
        let mut done = 0;
        // Zeros are collected until data follows, so that a hole of several groups becomes one
        // hole.
        let mut zeros = 0;
        for piece in source.pieces(from, from + len) {
            let Piece::Data(data) = piece else {
                zeros += piece.len();
                continue;
            };
            self.punch(to + done, zeros, account);
            done += std::mem::take(&mut zeros);
            match self.write(to + done, data, account) {
                Ok(written) => {
                    done += written as u64;
                    if written < data.len() {
                        return Ok(done);
                    }
                }
                Err(errno) if done == 0 => return Err(errno),
                Err(_) => return Ok(done),
            }
        }
        self.punch(to + done, zeros, account);
        Ok(done + zeros)
    }

    /// As [`copy_range`](Self::copy_range) within one file. The ranges must not overlap (the owner
    /// returns `EINVAL`), and no page of either is absent. Holes are those of the source before the
    /// copy.
    ///
    /// # Errors
    /// Those of `copy_range`.
    pub fn copy_within(
        &mut self,
        to: u64,
        from: u64,
        len: u64,
        account: Account<'_>,
    ) -> Result<u64> {
        let len = copy_len(to, from, len)?;
        let end = from + len;
        let data_end = self.source_data_end(from, end);
        let mut buf = Vec::new();
        let mut done = 0;
        while done < len {
            let at = from + done;
            let data = self.seek_data(at, data_end).unwrap_or(end);
            if data > at {
                self.punch(to + done, data - at, account);
                done += data - at;
                continue;
            }
            let hole = self.seek_hole(at, data_end).unwrap_or(data_end);
            let step = (hole - at).min(STEP as u64) as usize;
            buf.resize(step, 0);
            let read = self.read(at, &mut buf, end);
            match self.write(to + done, &buf[..read], account) {
                Ok(written) => {
                    done += written as u64;
                    if written < step {
                        break;
                    }
                }
                Err(errno) if done == 0 => return Err(errno),
                Err(_) => break,
            }
        }
        Ok(done)
    }

    /// The end of the data in the source `from..end` of this file. It is before the page of the
    /// last byte if that has no frame now. The copy may begin in that page and give it a frame,
    /// with zeros that are not data.
    fn source_data_end(&self, from: u64, end: u64) -> u64 {
        let last_page = end.saturating_sub(1) / PAGE_SIZE as u64 * PAGE_SIZE as u64;
        match self.seek_data(last_page, end) {
            Some(_) => end,
            None => last_page.max(from),
        }
    }
}

fn copy_len(to: u64, from: u64, len: u64) -> Result<u64> {
    if len > 0 && to >= MAX_SIZE {
        return Err(Errno::EFBIG);
    }
    Ok(len
        .min(MAX_SIZE.saturating_sub(to))
        .min(MAX_SIZE.saturating_sub(from)))
}
