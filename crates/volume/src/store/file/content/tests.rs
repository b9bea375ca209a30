use super::*;
use crate::space::{Extent, FileRequest};
use crate::store::file::delayed_allocation::BlockAllocator;
use crate::store::file::page::WriteInFlight;
use holdfast_core::frame::{Frame, Frames};
use proptest::prelude::*;
use std::cell::RefCell;
use std::collections::HashMap;

/// A device that is garbage where nothing was written.
#[derive(Default)]
struct Device {
    blocks: RefCell<HashMap<u64, Page>>,
    next: u64,
}

impl Source for Device {
    fn read(&self, block: u64, page: &mut [u8; BLOCK]) -> Result<()> {
        match self.blocks.borrow().get(&block) {
            Some(written) => page.copy_from_slice(&written[..]),
            None => page.fill(0xee),
        }
        Ok(())
    }
}

impl BlockAllocator for Device {
    fn preallocated(&mut self, logical: u64, blocks: u64) -> Option<Run> {
        // Anywhere, whether allocated blocks follow or not.
        logical.is_multiple_of(3).then(|| self.place(blocks.min(2)))
    }

    fn find(&mut self, request: &FileRequest) -> Result<Run> {
        // At most three in a row, so that runs are cut short.
        Ok(self.place(request.length.min(3)))
    }
}

impl Device {
    fn place(&mut self, blocks: u64) -> Run {
        let start = self.next;
        self.next += blocks + 1;
        Run {
            extent: Extent::new(start, blocks),
            generation: 1,
            unwritten: true,
        }
    }

    fn write_out(&mut self, content: &mut Content) {
        let mut in_flight = Vec::new();
        content
            .take_dirty(self, &mut |_, _| {}, &mut in_flight)
            .unwrap();
        self.write(in_flight);
        assert_eq!(content.dirty(), 0);
    }

    fn write(&self, pages: Vec<WriteInFlight>) {
        for page in pages {
            let mut blocks = self.blocks.borrow_mut();
            let own = blocks
                .entry(page.block)
                .or_insert_with(|| Box::new([0xee; BLOCK]));
            if page.fresh {
                own.fill(0);
            }
            page.changed.show_in(own);
        }
    }
}

/// The pages of a page cache with these bytes.
fn cached(bytes: &[u8]) -> Frames<()> {
    let frames = Frames::new();
    for (block, bytes) in (0..).zip(bytes.chunks(BLOCK)) {
        let mut frame = Frame::with_capacity(bytes.len());
        // Some with gaps.
        let zeros = bytes.iter().take_while(|byte| **byte == 0).count() / 512 * 512;
        if zeros < bytes.len() && block % 2 == 0 {
            frame.put(zeros, &bytes[zeros..]);
        } else {
            frame.push(bytes);
        }
        frames.lock().put(block, frame);
    }
    frames
}

#[derive(Clone, Debug)]
enum Step {
    /// `bool`: does the page cache share its pages?
    Write(u64, usize, u8, bool),
    Resize(u64),
    Zero(u64, u64, bool),
    Allocate(u64, u64),
    Collapse(u64, u64),
    Insert(u64, u64),
    WriteOut,
}

fn step() -> impl Strategy<Value = Step> {
    let offset = 0..40_000_u64;
    let len = 1..9000_u64;
    prop_oneof![
        4 => (offset.clone(), 1..9000_usize, 1..=255_u8, any::<bool>())
            .prop_map(|(at, len, byte, kept)| Step::Write(at, len, byte, kept)),
        2 => (0..3000_u64, 1..100_usize, 1..=255_u8, any::<bool>())
            .prop_map(|(at, len, byte, kept)| Step::Write(at, len, byte, kept)),
        2 => offset.clone().prop_map(Step::Resize),
        1 => Just(Step::Resize(0)),
        2 => (offset.clone(), len.clone(), any::<bool>()).prop_map(|(at, len, keep)| Step::Zero(at, len, keep)),
        1 => (offset, len).prop_map(|(at, len)| Step::Allocate(at, len)),
        1 => (0..8_u64, 1..3_u64).prop_map(|(at, len)| Step::Collapse(at, len)),
        1 => (0..8_u64, 1..3_u64).prop_map(|(at, len)| Step::Insert(at, len)),
        3 => Just(Step::WriteOut),
    ]
}

/// A source that must not be read.
struct Dry;

impl Source for Dry {
    fn read(&self, block: u64, _: &mut [u8; BLOCK]) -> Result<()> {
        panic!("block {block} is read behind all that was prepared");
    }
}

/// Prefetches what a change needs, which changes nothing.
fn prepare(
    content: &mut Content,
    edges: [u64; 2],
    len: u64,
    known: impl Fn(u64) -> bool,
    device: &Device,
) {
    let shown = |content: &Content| {
        let mut shown = vec![1; content.len as usize + 10];
        content.read(0, &mut shown, device).unwrap();
        shown
    };
    let before = shown(content);
    content.prepare(edges, len, known, device).unwrap();
    assert!(shown(content) == before, "other bytes");
}

/// Performs a step as the core would, and on plain bytes.
fn perform(step: &Step, content: &mut Content, device: &mut Device, naive: &mut Vec<u8>) {
    let size = naive.len() as u64;
    match *step {
        Step::Write(at, len, byte, kept) => {
            let end = at as usize + len;
            naive.resize(naive.len().max(end), 0);
            naive[at as usize..end].fill(byte);
            let cached = cached(naive);
            let lock = cached.lock();
            let show = |block| lock.show(block);
            let kept = kept.then_some(&show as &PageOf<'_>);
            let data = vec![byte; len];
            let range = at..at + len as u64;
            let known = |block| {
                let page = kept.and_then(|kept| kept(block));
                page.is_some_and(|page| page.share().is_some())
            };
            prepare(content, edges_of(&range), range.end, known, device);
            content.write(at, &data, kept, &Dry).unwrap();
        }
        Step::Resize(len) => {
            prepare(content, [0, 0], len, |_| false, device);
            content.resize(len, Some(&Dry)).unwrap();
            naive.resize(len as usize, 0);
        }
        Step::Zero(at, len, keep) => {
            prepare(content, [at, at + len], 0, |_| false, device);
            content.zero(at..at + len, keep, Some(&Dry)).unwrap();
            let end = (at + len).min(size);
            if at < end {
                naive[at as usize..end as usize].fill(0);
            }
        }
        Step::Allocate(at, len) => {
            for hole in content.holes(at..at + len) {
                let run = device.place(hole.end - hole.start);
                content.map(hole.start, run);
            }
            prepare(content, [0, 0], at + len, |_| false, device);
            content.grow(at + len, Some(&Dry)).unwrap();
            naive.resize(naive.len().max((at + len) as usize), 0);
        }
        Step::Collapse(at, len) => {
            let (at, len) = (at * BLOCK_LEN, len * BLOCK_LEN);
            if at + len < size {
                content.collapse(at..at + len);
                naive.drain(at as usize..(at + len) as usize);
            }
        }
        Step::Insert(at, len) => {
            let (at, len) = (at * BLOCK_LEN, len * BLOCK_LEN);
            if at < size {
                content.insert(at, len);
                let zeros = vec![0; len as usize];
                naive.splice(at as usize..at as usize, zeros);
            }
        }
        Step::WriteOut => device.write_out(content),
    }
}

proptest! {
    #[test]
    fn it_reads_as_plain_bytes_would(steps in prop::collection::vec(step(), 1..30)) {
        let mut device = Device::default();
        let mut content = Content::inline(Vec::new());
        let mut naive = Vec::new();
        for step in &steps {
            perform(step, &mut content, &mut device, &mut naive);
            let mut read = vec![1; naive.len() + 5000];
            content.read(0, &mut read, &device).unwrap();
            prop_assert!(read[..naive.len()] == naive[..], "after {step:?}");
            prop_assert!(read[naive.len()..].iter().all(|byte| *byte == 0));
            let mut at = 0;
            for block in written(&content) {
                let (start, end) = (block * BLOCK_LEN, (block + 1) * BLOCK_LEN);
                let hole = at.min(naive.len() as u64)..start.min(naive.len() as u64);
                prop_assert!(naive[hole.start as usize..hole.end as usize].iter().all(|byte| *byte == 0));
                at = end;
            }
            let rest = naive.get(at as usize..).unwrap_or_default();
            prop_assert!(rest.iter().all(|byte| *byte == 0), "after {:?}", step);
        }
    }
}

/// The unallocated ones of the blocks that take space.
fn written(content: &Content) -> Vec<u64> {
    let mut written = Vec::new();
    let mut at = 0;
    while let Some(run) = content.next_space(at) {
        assert!(run.start >= at && run.len > 0);
        at = run.start + run.len;
        let blocks = run.start / BLOCK_LEN..at.div_ceil(BLOCK_LEN);
        if run.written {
            written.extend(blocks);
        } else {
            let mapping = content.mapping().unwrap();
            assert!(
                blocks
                    .into_iter()
                    .all(|block| mapping.find(block).is_some())
            );
        }
    }
    written
}

#[test]
fn the_same_place_again_is_not_given_back() {
    let mut device = Device::default();
    let mut content = Content::inline(Vec::new());
    let run = device.place(4);
    assert!(content.map(0, run).is_empty());
    let written = Run {
        unwritten: false,
        ..run
    };
    assert!(content.map(0, written).is_empty());
    assert_eq!(content.map(0, device.place(4)).len(), 1);
}
