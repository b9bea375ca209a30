//! Writes of file blocks that are in flight.
//!
//! A commit *publishes* the blocks that it is about to write. Until they are on the device, readers
//! find them here.

use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use holdfast_device::{BlockDevice, WriteRequest};
use holdfast_sync::without_idle_policy;
use parking_lot::{Mutex, RwLock};

use crate::block::BLOCK;
use crate::error::Result;
use crate::store::file::{Page, WriteInFlight, zeros};

const BLOCK_LEN: u64 = BLOCK as u64;
/// Blocks per batch of writes.
const AT_ONCE: usize = 1024;
/// Threads of one large write, at most, on devices that profit: copying into the host's cache takes
/// processor time.
const WRITERS: usize = 4;
/// The rest of a new block.
static ZEROS: [u8; BLOCK] = [0; BLOCK];

/// Writes that were published together.
#[derive(Debug)]
struct Batch {
    /// Its number among all published batches, from 1.
    number: u64,
    /// By block.
    blocks: Vec<WriteInFlight>,
    /// Reads that have ended. Its release and the acquire in `drop` order a reader before the
    /// thread that frees the pages. The reference count of the `Arc` does so as well, but
    /// ThreadSanitizer does not see that.
    reads: AtomicUsize,
}

impl Batch {
    fn find(&self, block: u64) -> Option<&WriteInFlight> {
        let place = self.blocks.binary_search_by_key(&block, |page| page.block);
        place.ok().map(|place| &self.blocks[place])
    }
}

impl Drop for Batch {
    fn drop(&mut self) {
        self.reads.load(Ordering::Acquire);
    }
}

/// Batches in use by a reader.
struct Borrowed(Vec<Arc<Batch>>);

impl Drop for Borrowed {
    fn drop(&mut self) {
        for batch in &self.0 {
            batch.reads.fetch_add(1, Ordering::Release);
        }
    }
}

/// A position in the sequence of published batches.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::store) struct Ticket(u64);

impl Ticket {
    pub(in crate::store) fn is_before(self, other: Self) -> bool {
        self.0 < other.0
    }
}

/// Published batches.
///
/// *Invariant.* `durable <= written <= published`. The first `written` batches are in the device's
/// cache, the first `durable` on the device. `batches` has those of the others that are not empty.
#[derive(Debug, Default)]
struct Queue {
    /// Ascending.
    batches: Vec<Arc<Batch>>,
    published: u64,
    written: u64,
    durable: u64,
}

/// The writes in flight.
#[derive(Debug, Default)]
pub(in crate::store) struct InFlight {
    queue: RwLock<Queue>,
    /// Held by the thread that writes.
    writing: Mutex<()>,
}

impl InFlight {
    /// Publishes writes to readers, as if they were done.
    pub(in crate::store) fn publish(&self, mut blocks: Vec<WriteInFlight>) -> Ticket {
        if !blocks.is_sorted_by_key(|page| page.block) {
            blocks.sort_unstable_by_key(|page| page.block);
        }
        let mut queue = self.queue.write();
        if !blocks.is_empty() {
            queue.published += 1;
            let number = queue.published;
            let reads = AtomicUsize::new(0);
            queue.batches.push(Arc::new(Batch {
                number,
                blocks,
                reads,
            }));
        }
        Ticket(queue.published)
    }

    /// Calls `show` with the writes of this ticket that are not done yet.
    pub(in crate::store) fn each(&self, ticket: Ticket, show: &mut dyn FnMut(&WriteInFlight)) {
        let published = {
            let queue = self.queue.read();
            let mut batches = queue.batches.iter();
            Borrowed(
                batches
                    .find(|it| it.number == ticket.0)
                    .cloned()
                    .into_iter()
                    .collect(),
            )
        };
        let blocks = published.0.iter().flat_map(|batch| &batch.blocks);
        blocks.for_each(show);
    }

    /// No extent may be recorded, in the journal or in the trees, before its blocks hold the file's
    /// bytes: a crash would expose their old contents, perhaps another file's.
    ///
    /// # Panics
    /// If a batch up to the ticket is not on the device.
    pub(in crate::store) fn assert_durable(&self, upto: Ticket) {
        let durable = self.queue.read().durable;
        assert!(
            durable >= upto.0,
            "a mapping is published before its data is on the device: {durable} of {} batches are",
            upto.0
        );
    }

    /// The same for a commit that does not count after a crash of the host: its blocks must be in
    /// the device's cache.
    ///
    /// # Panics
    /// If a batch up to the ticket was not written.
    pub(in crate::store) fn assert_written(&self, upto: Ticket) {
        let written = self.queue.read().written;
        assert!(
            written >= upto.0,
            "a mapping is published before its data is written: {written} of {} batches are",
            upto.0
        );
    }

    /// Blocks in flight.
    pub(in crate::store) fn blocks(&self) -> u64 {
        let queue = self.queue.read();
        let batches = queue.batches.iter();
        batches.map(|batch| batch.blocks.len() as u64).sum()
    }

    pub(in crate::store) fn is_empty(&self) -> bool {
        self.queue.read().batches.is_empty()
    }

    /// Shows a block with in-flight writes on top. `read` reads the device's bytes, if needed.
    ///
    /// # Errors
    /// Those of `read`.
    pub(in crate::store) fn show(
        &self,
        block: u64,
        page: &mut [u8; BLOCK],
        read: impl FnOnce(&mut [u8; BLOCK]) -> Result<()>,
    ) -> Result<()> {
        let having = |batch: &&Arc<Batch>| batch.find(block).is_some();
        let batches = {
            let queue = self.queue.read();
            let having = queue.batches.iter().filter(having);
            Borrowed(having.cloned().collect())
        };
        // The latest write of the whole block, and those after it.
        let mut over = Vec::new();
        let mut known = false;
        for in_flight in batches.0.iter().rev().filter_map(|batch| batch.find(block)) {
            over.push(in_flight);
            known = in_flight.is_all();
            if known {
                break;
            }
        }
        if known {
            page.fill(0);
        } else {
            read(page)?;
        }
        for in_flight in over.into_iter().rev() {
            in_flight.changed.show_in(page);
        }
        Ok(())
    }

    /// Writes all batches up to the ticket. They are durable after a later flush that is
    /// [reported](Self::flushed) with the ticket returned.
    ///
    /// # Errors
    /// If the device fails; all batches stay published.
    pub(in crate::store) fn write_out(
        &self,
        device: &dyn BlockDevice,
        upto: Ticket,
    ) -> Result<Ticket> {
        hop!();
        let _one = self.writing.lock();
        let batches = {
            let queue = self.queue.read();
            let batches = &queue.batches;
            let count = batches.partition_point(|batch| batch.number <= upto.0);
            Borrowed(batches[..count].to_vec())
        };
        for batch in &batches.0 {
            write_all(device, &batch.blocks)?;
        }
        let mut queue = self.queue.write();
        queue.written = queue.written.max(upto.0);
        let written = Ticket(queue.written);
        // Further batches may have been published meanwhile.
        let gone = queue.batches.drain(..batches.0.len()).collect();
        drop(queue);
        drop::<Vec<_>>(gone);
        Ok(written)
    }

    /// Is any write not durable?
    pub(in crate::store) fn is_unflushed(&self) -> bool {
        let queue = self.queue.read();
        queue.durable < queue.written
    }

    /// A flush has ended that began after `written`.
    pub(in crate::store) fn flushed(&self, written: Ticket) {
        let mut queue = self.queue.write();
        queue.durable = queue.durable.max(written.0);
    }
}

/// Writes blocks, by several threads if they are many.
fn write_all(device: &dyn BlockDevice, blocks: &[WriteInFlight]) -> Result<()> {
    let pieces: Vec<&[WriteInFlight]> = blocks.chunks(AT_ONCE).collect();
    let next = AtomicUsize::new(0);
    let work = || {
        // Relaxed: it only distributes the pieces.
        while let Some(piece) = pieces.get(next.fetch_add(1, Ordering::Relaxed)) {
            write(device, piece)?;
        }
        Ok(())
    };
    let processors = thread::available_parallelism().map_or(1, usize::from);
    let most = match device.writes_side_by_side() {
        true => WRITERS,
        false => 1,
    };
    let others = processors.min(most).min(pieces.len() / 2).saturating_sub(1);
    thread::scope(|scope| {
        // If no thread can be started, this one does the work.
        let spawn =
            |_| without_idle_policy(|| thread::Builder::new().spawn_scoped(scope, work)).ok();
        let others: Vec<_> = (0..others).filter_map(spawn).collect();
        let mut done = work();
        for other in others {
            done = done.and(other.join().unwrap_or_else(|panic| resume_unwind(panic)));
        }
        done
    })
}

/// Writes blocks in ascending order.
fn write(device: &dyn BlockDevice, blocks: &[WriteInFlight]) -> Result<()> {
    let alignment = device.alignment();
    let mended = mend(device, blocks)?;
    let mut mended = mended.iter();
    let mut requests = Vec::with_capacity(blocks.len());
    for in_flight in blocks {
        let start = in_flight.block * BLOCK_LEN;
        let mut request = |at: usize, bytes| {
            requests.push(WriteRequest::new(start + at as u64, bytes));
        };
        if is_askew(in_flight, alignment) {
            let page = mended.next().expect("one for each");
            request(0, &page[..]);
            continue;
        }
        let (all, mut end) = (in_flight.is_all(), 0);
        in_flight.changed.each_piece(&mut |at, bytes| {
            if all && end < at {
                request(end, &ZEROS[end..at]);
            }
            request(at, bytes);
            end = at + bytes.len();
        });
        if all && end < BLOCK {
            request(end, &ZEROS[end..]);
        }
    }
    Ok(device.write_batch(&requests)?)
}

/// Does the device refuse its bytes because of their alignment?
fn is_askew(in_flight: &WriteInFlight, alignment: u64) -> bool {
    let mut askew = false;
    in_flight.changed.each_piece(&mut |at, bytes| {
        let edges = [at, at + bytes.len()];
        askew |= edges
            .iter()
            .any(|edge| !(*edge as u64).is_multiple_of(alignment));
    });
    askew
}

/// Whole blocks for those that are not aligned, in their order.
fn mend(device: &dyn BlockDevice, blocks: &[WriteInFlight]) -> Result<Vec<Page>> {
    let alignment = device.alignment();
    let mut mended = Vec::new();
    for in_flight in blocks.iter().filter(|it| is_askew(it, alignment)) {
        let mut page = zeros();
        if !in_flight.is_all() {
            device.read(in_flight.block * BLOCK_LEN, &mut page[..])?;
        }
        in_flight.changed.show_in(&mut page);
        mended.push(page);
    }
    Ok(mended)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::file::Changed;
    use holdfast_device::MemoryDevice;

    fn parts(from: usize, bytes: &[u8]) -> Changed {
        Changed::part(from, bytes)
    }

    fn in_flight(block: u64, changed: Changed, fresh: bool) -> WriteInFlight {
        WriteInFlight {
            block,
            changed,
            fresh,
            over: !fresh,
        }
    }

    fn shown(published: &InFlight, device: &MemoryDevice, block: u64) -> [u8; BLOCK] {
        let mut page = [0; BLOCK];
        let read = |page: &mut [u8; BLOCK]| Ok(device.read(block * BLOCK_LEN, page)?);
        published.show(block, &mut page, read).unwrap();
        page
    }

    #[test]
    fn what_is_announced_shows_at_once_and_is_on_the_device_when_it_was_written() {
        let device = MemoryDevice::new(1 << 20);
        device.write(0, &[7; 8 * BLOCK]).unwrap();
        let published = InFlight::default();
        published.publish(vec![
            in_flight(5, parts(512, &[1; 512]), false),
            in_flight(3, parts(1024, &[2; 512]), true),
            in_flight(4, Changed::Whole(Box::new([3; BLOCK])), false),
        ]);
        let ticket = published.publish(vec![
            in_flight(5, parts(0, &[4; 512]), false),
            in_flight(4, parts(3584, &[5; 512]), false),
        ]);
        let before: Vec<_> = (2..7).map(|at| shown(&published, &device, at)).collect();
        published.write_out(&device, ticket).unwrap();
        let after: Vec<_> = (2..7).map(|at| shown(&published, &device, at)).collect();
        assert!(before == after);
        assert!(published.is_empty());
        let sectors =
            |page: &[u8; BLOCK]| -> Vec<u8> { page.chunks(512).map(|it| it[0]).collect() };
        let expected = [
            [7; 8],
            [0, 0, 2, 0, 0, 0, 0, 0],
            [3, 3, 3, 3, 3, 3, 3, 5],
            [4, 1, 7, 7, 7, 7, 7, 7],
            [7; 8],
        ];
        for (page, expected) in after.iter().zip(expected) {
            assert_eq!(sectors(page), expected);
        }
    }
}
