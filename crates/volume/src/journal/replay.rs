use super::context::Context;
use super::decode::{self, Decoder, Undecodable};
use super::error::{Error, Reason, Result};
use super::frame::NUMBERS_END;
use super::journal::{Journal, Replayed};
use super::record::{BatchHead, Record};
use super::region::{Area, Position, Region};
use super::scan::{Group, Scan, Segment};
use crate::varint::Reader;
use holdfast_core::store::Lsn;
use holdfast_device::BlockDevice;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::sync::Arc;

/// Returns the committed batches in the order of LSNs.
///
/// One commit at a time is in memory, in its encoded form.
#[derive(Debug)]
pub struct Replay {
    scan: Scan,
    from: Position,
    group: Group,
    /// The start of the group.
    start: u64,
    log_buffers: Vec<LogBuffer>,
    /// The log buffers with a next batch, except the current one, by the LSN of that batch.
    waiting: BinaryHeap<Reverse<(Lsn, usize)>>,
    /// The log buffer that returned the last batch.
    current: Option<usize>,
    last: Lsn,
    ended: bool,
}

/// The batches of one log buffer in a group.
#[derive(Debug)]
struct LogBuffer {
    /// The segments to come, the next one last.
    segments: Vec<Segment>,
    /// The segment in progress: its unread bytes and batches.
    now: Segment,
    context: Context,
    /// The head of the next batch, already read.
    head: BatchHead,
    /// The reason why the last batch could not be read to its end.
    broken: Option<Undecodable>,
}

impl LogBuffer {
    fn corrupt(&self, reason: Reason) -> Error {
        let block = self.now.block;
        Error::Corrupt { block, reason }
    }

    fn broken_by(&self, undecodable: Undecodable) -> Error {
        match undecodable {
            Undecodable::Malformed => self.corrupt(Reason::Record),
            Undecodable::Unknown(operation) => Error::Newer {
                block: self.now.block,
                operation,
            },
        }
    }

    /// Reads the head of the next batch; `false` if there is none.
    fn advance(&mut self, bytes: &[u8]) -> Result<bool> {
        if let Some(undecodable) = self.broken {
            return Err(self.broken_by(undecodable));
        }
        while self.now.batches == 0 {
            if !self.now.range.is_empty() {
                return Err(self.corrupt(Reason::Record));
            }
            let Some(segment) = self.segments.pop() else {
                return Ok(false);
            };
            self.now = segment;
            if self.now.first < self.head.lsn {
                return Err(self.corrupt(Reason::Order));
            }
            self.context = Context::new(self.now.first);
        }
        let rest = bytes.get(self.now.range.clone()).unwrap_or(&[]);
        let mut reader = Reader::new(rest);
        match decode::head(&mut reader, &mut self.context) {
            Some(head) if head.lsn.0 < NUMBERS_END => self.head = head,
            _ => return Err(self.corrupt(Reason::Record)),
        }
        self.now.range.start = self.now.range.end - reader.remaining();
        self.now.batches -= 1;
        Ok(true)
    }
}

/// One batch of a replay.
#[derive(Debug)]
pub struct Batch<'a> {
    /// The end of its group.
    group: u64,
    log_buffer: &'a mut LogBuffer,
    decoder: Decoder<'a>,
    ended: bool,
}

impl<'a> Batch<'a> {
    /// Its place in the order of all batches.
    #[must_use]
    pub const fn lsn(&self) -> Lsn {
        self.log_buffer.head.lsn
    }

    /// The subvolume of its inode numbers.
    #[must_use]
    pub const fn subvolume(&self) -> u64 {
        self.log_buffer.head.subvolume
    }

    /// A number of its commit, greater than those of the commits before.
    #[must_use]
    pub const fn commit(&self) -> u64 {
        self.group
    }

    /// Its next record, in the order in which they were appended; `None` after the last.
    ///
    /// # Errors
    /// [`Error::Corrupt`] with [`Reason::Record`], [`Error::Newer`]; the replay cannot go on then.
    #[expect(clippy::should_implement_trait, reason = "it fails")]
    pub fn next(&mut self) -> Result<Option<Record<'a>>> {
        if self.ended {
            return Ok(None);
        }
        match self.decoder.next(&mut self.log_buffer.context) {
            Ok(Some(record)) => Ok(Some(record)),
            Ok(None) => {
                self.ended = true;
                let range = &mut self.log_buffer.now.range;
                range.start = range.end - self.decoder.rest().remaining();
                Ok(None)
            }
            Err(undecodable) => {
                self.ended = true;
                self.log_buffer.broken = Some(undecodable);
                Err(self.log_buffer.broken_by(undecodable))
            }
        }
    }

    /// All records that are left.
    ///
    /// # Errors
    /// As [`next`](Self::next).
    pub fn rest(&mut self) -> Result<Vec<Record<'a>>> {
        let mut records = Vec::new();
        while let Some(record) = self.next()? {
            records.push(record);
        }
        Ok(records)
    }
}

impl Drop for Batch<'_> {
    // Later batches can be decoded only after all records of this one.
    fn drop(&mut self) {
        while let Ok(Some(_)) = self.next() {}
    }
}

impl Replay {
    pub(super) fn new(area: Area, from: Position) -> Self {
        Self {
            scan: Scan::new(area, from),
            from,
            start: from.block,
            group: Group::default(),
            log_buffers: Vec::new(),
            waiting: BinaryHeap::new(),
            current: None,
            last: from.lsn,
            ended: false,
        }
    }

    /// Ends the replay of a journal that was closed at the position, without a search for leftovers
    /// of a crash. `false` if a committed frame follows all the same.
    ///
    /// *Invariant.* The incarnation of the position is that of the closed journal. It is later than
    /// that of any frame behind the position, since the opening of that journal searched for them.
    ///
    /// # Errors
    /// The device's.
    pub fn is_at_end(&mut self) -> Result<bool> {
        self.ended = self.scan.is_blank()?;
        Ok(self.ended)
    }

    /// The next batch; `None` at the end of the journal.
    ///
    /// # Errors
    /// The device's; [`Error::Corrupt`] if what was committed is damaged; [`Error::Newer`].
    pub fn next_batch(&mut self) -> Result<Option<Batch<'_>>> {
        let Some(index) = self.pick()? else {
            return Ok(None);
        };
        let Some(log_buffer) = self.log_buffers.get_mut(index) else {
            return Ok(None);
        };
        let rest = self
            .group
            .bytes
            .get(log_buffer.now.range.clone())
            .unwrap_or(&[]);
        Ok(Some(Batch {
            group: self.scan.next,
            log_buffer,
            decoder: Decoder::new(Reader::new(rest)),
            ended: false,
        }))
    }

    /// The position from which a replay skips the batches so far.
    #[must_use]
    pub fn position(&self) -> Position {
        Position {
            block: self.start,
            lsn: self.last,
            incarnation: self.scan.incarnation(),
        }
    }

    /// The log buffer with the next batch that is not in the trees yet.
    fn pick(&mut self) -> Result<Option<usize>> {
        loop {
            let Some(index) = self.earliest()? else {
                if self.ended || !self.load()? {
                    self.ended = true;
                    return Ok(None);
                }
                continue;
            };
            let Some(log_buffer) = self.log_buffers.get_mut(index) else {
                return Ok(None);
            };
            self.last = self.last.max(log_buffer.head.lsn);
            if log_buffer.head.lsn > self.from.lsn {
                return Ok(Some(index));
            }
            let rest = self
                .group
                .bytes
                .get(log_buffer.now.range.clone())
                .unwrap_or(&[]);
            drop(Batch {
                group: self.scan.next,
                log_buffer,
                decoder: Decoder::new(Reader::new(rest)),
                ended: false,
            });
        }
    }

    /// Makes the log buffer with the least LSN of the group the current one, and returns it.
    fn earliest(&mut self) -> Result<Option<usize>> {
        if let Some(index) = self.current.take()
            && let Some(log_buffer) = self.log_buffers.get_mut(index)
            && log_buffer.advance(&self.group.bytes)?
        {
            let own = Reverse((log_buffer.head.lsn, index));
            if self.waiting.peek().is_none_or(|other| *other < own) {
                self.current = Some(index);
                return Ok(self.current);
            }
            self.waiting.push(own);
        }
        self.current = self.waiting.pop().map(|Reverse((_, index))| index);
        Ok(self.current)
    }

    /// Reads the next group.
    fn load(&mut self) -> Result<bool> {
        self.log_buffers.clear();
        self.start = self.scan.next;
        if !self.scan.load(&mut self.group)? {
            return Ok(false);
        }
        let mut log_buffers = BTreeMap::<u16, Vec<Segment>>::new();
        for segment in self.group.segments.drain(..).rev() {
            log_buffers
                .entry(segment.log_buffer)
                .or_default()
                .push(segment);
        }
        for (_, mut segments) in log_buffers {
            let Some(now) = segments.pop() else {
                continue;
            };
            let head = BatchHead {
                lsn: now.first,
                subvolume: 0,
            };
            let mut log_buffer = LogBuffer {
                segments,
                context: Context::new(now.first),
                now,
                head,
                broken: None,
            };
            if log_buffer.advance(&self.group.bytes)? {
                let lsn = log_buffer.head.lsn;
                self.waiting.push(Reverse((lsn, self.log_buffers.len())));
                self.log_buffers.push(log_buffer);
            }
        }
        Ok(true)
    }

    /// Reads the remaining batches, and opens the journal behind them for appends.
    ///
    /// # Errors
    /// As [`next_batch`](Self::next_batch).
    pub fn finish(mut self) -> Result<Journal> {
        while self.next_batch()?.is_some() {}
        let replayed = Replayed {
            tail: self.from.block,
            durable_end: self.scan.durable_end,
            head: self.scan.next,
            incarnation: self.scan.latest + 1,
            last: self.last,
            owes_mark: self.scan.met_written,
        };
        Ok(Journal::new(self.scan.area, &replayed))
    }
}

impl Journal {
    /// Opens the journal at the superblock's `position`. Batches committed after it must be
    /// replayed first: [`Replay::finish`] then returns the journal.
    ///
    /// # Errors
    /// [`Error::Region`].
    pub fn open(
        device: Arc<dyn BlockDevice>,
        region: Region,
        position: Position,
    ) -> Result<Replay> {
        Ok(Replay::new(Area::new(device, region)?, position))
    }
}
