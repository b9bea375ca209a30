//! Blocks of files on their way to the device.
//!
//! A commit *announces* what it is about to write: until that is on the device, who reads one of the blocks finds
//! it here.

use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use holdfast_device::{BlockDevice, WriteRequest};
use holdfast_sync::without_idle_policy;
use parking_lot::{Mutex, RwLock};

use crate::store::file::page::{Page, WriteInFlight, zeros};
use crate::{BLOCK, Result};

const BLOCK_LEN: u64 = BLOCK as u64;
/// Blocks whose writes are asked for at once.
const AT_ONCE: usize = 1024;
/// Threads that write much at a time, at most, where the device takes it from several: copying to the host's
/// cache takes as long as a processor does.
const WRITERS: usize = 4;
/// Zeros, for what is behind the bytes of a new block.
static ZEROS: [u8; BLOCK] = [0; BLOCK];

/// What was announced together.
#[derive(Debug)]
struct Batch {
    /// Its place among all that were announced, from 1.
    number: u64,
    /// By their numbers.
    blocks: Vec<WriteInFlight>,
    /// How often somebody has ended to look at it. That the last owner of an `Arc` comes after all others a sanitizer does
    /// not see, and pages that were looked at go on from here, to be freed by others: this it sees.
    looks: AtomicUsize,
}

impl Batch {
    fn find(&self, block: u64) -> Option<&WriteInFlight> {
        let place = self.blocks.binary_search_by_key(&block, |page| page.block);
        place.ok().map(|place| &self.blocks[place])
    }
}

impl Drop for Batch {
    fn drop(&mut self) {
        self.looks.load(Ordering::Acquire);
    }
}

/// Batches that somebody looks at.
struct Looked(Vec<Arc<Batch>>);

impl Drop for Looked {
    fn drop(&mut self) {
        for batch in &self.0 {
            batch.looks.fetch_add(1, Ordering::Release);
        }
    }
}

/// What was announced up to a moment.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::store) struct Ticket(u64);

impl Ticket {
    /// Was it given before the other?
    pub(in crate::store) fn is_before(self, other: Self) -> bool {
        self.0 < other.0
    }
}

/// What was written up to a moment: what was announced, and what else.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::store) struct Written {
    upto: Ticket,
    writes: u64,
}

/// Batches on their way.
///
/// *Invariant.* Of the batches that were announced the first `written` are in the device's cache; `batches` are those of the
/// others that have blocks. The first `durable` are on the device: `durable <= written <= announced`.
#[derive(Debug, Default)]
struct OnTheirWay {
    /// The oldest first.
    batches: Vec<Arc<Batch>>,
    announced: u64,
    written: u64,
    durable: u64,
}

/// What was announced and is not written yet.
#[derive(Debug, Default)]
pub(in crate::store) struct Announced {
    on_their_way: RwLock<OnTheirWay>,
    /// Held by the thread that writes.
    writing: Mutex<Writes>,
}

/// How often something was written, and how often up to what is durable.
#[derive(Debug, Default)]
struct Writes {
    begun: u64,
    durable: u64,
}

impl Announced {
    /// Shows blocks to readers from now on, as if they were written.
    pub(in crate::store) fn announce(&self, mut blocks: Vec<WriteInFlight>) -> Ticket {
        if !blocks.is_sorted_by_key(|page| page.block) {
            blocks.sort_unstable_by_key(|page| page.block);
        }
        let mut on_their_way = self.on_their_way.write();
        on_their_way.announced += 1;
        let number = on_their_way.announced;
        if !blocks.is_empty() {
            let looks = AtomicUsize::new(0);
            on_their_way.batches.push(Arc::new(Batch {
                number,
                blocks,
                looks,
            }));
        }
        Ticket(number)
    }

    /// Shows the blocks that were announced with this ticket and are not written yet.
    pub(in crate::store) fn each(&self, ticket: Ticket, show: &mut dyn FnMut(&WriteInFlight)) {
        let announced = {
            let on_their_way = self.on_their_way.read();
            let mut batches = on_their_way.batches.iter();
            Looked(
                batches
                    .find(|it| it.number == ticket.0)
                    .cloned()
                    .into_iter()
                    .collect(),
            )
        };
        let blocks = announced.0.iter().flat_map(|batch| &batch.blocks);
        blocks.for_each(show);
    }

    /// Nobody may announce where a file's blocks are, in the journal or in the trees, before they hold its bytes: a crash
    /// would show what was there before, another file's perhaps.
    ///
    /// # Panics
    /// If what was announced up to the ticket is not on the device.
    pub(in crate::store) fn assert_durable(&self, upto: Ticket) {
        let durable = self.on_their_way.read().durable;
        assert!(
            durable >= upto.0,
            "a mapping is announced before its data is on the device: {durable} of {} batches are",
            upto.0
        );
    }

    /// The same of a commit that does not count after a crash of the host: it may tell of what the device's cache has.
    ///
    /// # Panics
    /// If what was announced up to the ticket was not written.
    pub(in crate::store) fn assert_written(&self, upto: Ticket) {
        let written = self.on_their_way.read().written;
        assert!(
            written >= upto.0,
            "a mapping is announced before its data is written: {written} of {} batches are",
            upto.0
        );
    }

    /// How many blocks are on their way.
    pub(in crate::store) fn blocks(&self) -> u64 {
        let on_their_way = self.on_their_way.read();
        let batches = on_their_way.batches.iter();
        batches.map(|batch| batch.blocks.len() as u64).sum()
    }

    /// Is nothing on its way?
    pub(in crate::store) fn is_empty(&self) -> bool {
        self.on_their_way.read().batches.is_empty()
    }

    /// Puts what is on its way over what the device has of a block. `read` reads that, if need be.
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
            let on_their_way = self.on_their_way.read();
            let having = on_their_way.batches.iter().filter(having);
            Looked(having.cloned().collect())
        };
        // What is all that there is to know of the block, and what came after it.
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

    /// Writes all that was announced up to the ticket. It is durable when a flush has ended that begins behind that, and
    /// [was told](Self::flushed) so.
    ///
    /// # Errors
    /// If the device fails; it all stays announced.
    pub(in crate::store) fn write_out(
        &self,
        device: &dyn BlockDevice,
        upto: Ticket,
    ) -> Result<Written> {
        let mut writes = self.writing.lock();
        let batches = {
            let on_their_way = self.on_their_way.read();
            let batches = &on_their_way.batches;
            let count = batches.partition_point(|batch| batch.number <= upto.0);
            Looked(batches[..count].to_vec())
        };
        writes.begun += u64::from(!batches.0.is_empty());
        for batch in &batches.0 {
            write_all(device, &batch.blocks)?;
        }
        let mut on_their_way = self.on_their_way.write();
        on_their_way.written = on_their_way.written.max(upto.0);
        // Others may have been announced meanwhile.
        let gone = on_their_way.batches.drain(..batches.0.len()).collect();
        drop(on_their_way);
        drop::<Vec<_>>(gone);
        let writes = writes.begun;
        Ok(Written { upto, writes })
    }

    /// Was anything written that is not durable?
    pub(in crate::store) fn is_unflushed(&self) -> bool {
        let writes = self.writing.lock();
        writes.durable < writes.begun
    }

    /// A flush has ended that began when this was written.
    pub(in crate::store) fn flushed(&self, written: Written) {
        let mut writes = self.writing.lock();
        writes.durable = writes.durable.max(written.writes);
        let mut on_their_way = self.on_their_way.write();
        on_their_way.durable = on_their_way.durable.max(written.upto.0);
    }
}

/// Writes blocks, several threads at a time if they are many.
fn write_all(device: &dyn BlockDevice, blocks: &[WriteInFlight]) -> Result<()> {
    let pieces: Vec<&[WriteInFlight]> = blocks.chunks(AT_ONCE).collect();
    let next = AtomicUsize::new(0);
    let work = || {
        // Relaxed: it only deals pieces out.
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
        // Without a thread the work is done here.
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

/// Writes blocks in the order of their numbers: neighbours as one.
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

/// Would the device not take its bytes as they are?
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

/// Whole blocks for those that the device would not take, in their order.
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
    use crate::store::file::page::Changed;
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

    fn shown(announced: &Announced, device: &MemoryDevice, block: u64) -> [u8; BLOCK] {
        let mut page = [0; BLOCK];
        let read = |page: &mut [u8; BLOCK]| Ok(device.read(block * BLOCK_LEN, page)?);
        announced.show(block, &mut page, read).unwrap();
        page
    }

    #[test]
    fn what_is_announced_shows_at_once_and_is_on_the_device_when_it_was_written() {
        let device = MemoryDevice::new(1 << 20);
        device.write(0, &[7; 8 * BLOCK]).unwrap();
        let announced = Announced::default();
        announced.announce(vec![
            in_flight(5, parts(512, &[1; 512]), false),
            in_flight(3, parts(1024, &[2; 512]), true),
            in_flight(4, Changed::Whole(Box::new([3; BLOCK])), false),
        ]);
        let ticket = announced.announce(vec![
            in_flight(5, parts(0, &[4; 512]), false),
            in_flight(4, parts(3584, &[5; 512]), false),
        ]);
        let before: Vec<_> = (2..7).map(|at| shown(&announced, &device, at)).collect();
        announced.write_out(&device, ticket).unwrap();
        let after: Vec<_> = (2..7).map(|at| shown(&announced, &device, at)).collect();
        assert!(before == after);
        assert!(announced.is_empty());
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
