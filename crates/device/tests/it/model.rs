//! Every device against a plain vector of bytes.

use holdfast_device::{
    BlockDevice, Cause, FileDevice, MemoryDevice, ReadRequest, SECTOR, WriteRequest,
};
use holdfast_testkit::device::{FaultyDevice, RecordingDevice, SlowDevice, SparseDevice};
use proptest::prelude::*;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

const SIZE: u64 = 1 << 21;

#[derive(Clone, Debug)]
enum Step {
    Read {
        at: u64,
        len: u64,
        askew: usize,
    },
    Write {
        at: u64,
        len: u64,
        askew: usize,
        fill: u8,
    },
    ReadBatch(Vec<(u64, u64)>),
    WriteBatch {
        pieces: Vec<(u64, u64)>,
        fill: u8,
    },
    Discard {
        at: u64,
        len: u64,
    },
    Flush,
    Grow(u64),
}

/// In units of 4096 bytes, which suits every device here.
fn step() -> impl Strategy<Value = Step> {
    let range = || (0..600_u64, prop_oneof![0..4_u64, 0..300_u64]);
    let ranges = || proptest::collection::vec((0..600_u64, 0..40_u64), 0..60);
    let askew = || prop_oneof![Just(0_usize), 0..4096_usize];
    prop_oneof![
        (range(), askew()).prop_map(|((at, len), askew)| Step::Read { at, len, askew }),
        (range(), askew(), any::<u8>()).prop_map(|((at, len), askew, fill)| Step::Write {
            at,
            len,
            askew,
            fill
        }),
        ranges().prop_map(Step::ReadBatch),
        (ranges(), any::<u8>()).prop_map(|(pieces, fill)| Step::WriteBatch { pieces, fill }),
        range().prop_map(|(at, len)| Step::Discard { at, len }),
        Just(Step::Flush),
        (0..8_u64).prop_map(Step::Grow),
    ]
}

fn bytes(fill: u8, len: u64) -> Vec<u8> {
    (0..len)
        .map(|at| fill.wrapping_add((at / 7) as u8))
        .collect()
}

struct Pair<'a> {
    device: &'a dyn BlockDevice,
    model: Vec<u8>,
    unit: u64,
}

impl Pair<'_> {
    fn range(&self, at: u64, len: u64) -> Option<std::ops::Range<usize>> {
        let range = (at * self.unit) as usize..((at + len) * self.unit) as usize;
        (range.end <= self.model.len()).then_some(range)
    }

    fn run(&mut self, step: &Step) {
        match step {
            Step::Read { at, len, askew } => self.read(*at, *len, *askew),
            Step::Write {
                at,
                len,
                askew,
                fill,
            } => {
                let data = bytes(*fill, len * self.unit);
                let mut shifted = vec![0; askew + data.len()];
                shifted[*askew..].copy_from_slice(&data);
                let (at_byte, shifted) = (at * self.unit, &shifted[*askew..]);
                let wrote = self.device.write(at_byte, shifted);
                match self.range(*at, *len) {
                    Some(range) => {
                        wrote.unwrap();
                        self.model[range].copy_from_slice(&data);
                    }
                    None => self.past_the_end(wrote),
                }
            }
            Step::ReadBatch(pieces) => self.read_batch(pieces),
            Step::WriteBatch { pieces, fill } => self.write_batch(pieces, *fill),
            Step::Discard { at, len } => {
                let done = self.device.discard(at * self.unit, len * self.unit);
                match self.range(*at, *len) {
                    // An image reads zeros where it was punched.
                    Some(range) if done.clone().unwrap() => self.model[range].fill(0),
                    Some(_) => {}
                    None => self.past_the_end(done.map(drop)),
                }
            }
            Step::Flush => self.device.flush().unwrap(),
            Step::Grow(units) => {
                let size = self.model.len() as u64 + units * self.unit;
                self.device.resize(size).unwrap();
                self.model.resize(size as usize, 0);
            }
        }
        assert_eq!(self.device.size(), self.model.len() as u64);
    }

    fn past_the_end(&self, result: holdfast_device::Result<()>) {
        let size = self.model.len() as u64;
        assert_eq!(result.unwrap_err().cause, Cause::OutOfRange { size });
    }

    fn read(&self, at: u64, len: u64, askew: usize) {
        let mut buf = vec![0xaa; askew + (len * self.unit) as usize];
        let read = self.device.read(at * self.unit, &mut buf[askew..]);
        match self.range(at, len) {
            Some(range) => {
                read.unwrap();
                assert!(buf[askew..] == self.model[range], "at {at}");
            }
            None => self.past_the_end(read),
        }
    }

    fn read_batch(&self, pieces: &[(u64, u64)]) {
        let within = |&&(at, len): &&(u64, u64)| self.range(at, len).is_some();
        let pieces: Vec<_> = pieces.iter().filter(within).collect();
        let len = |it: &&(u64, u64)| vec![0xaa; (it.1 * self.unit) as usize];
        let mut bufs: Vec<Vec<u8>> = pieces.iter().map(len).collect();
        let requests = pieces.iter().zip(&mut bufs);
        let mut requests: Vec<_> = requests
            .map(|((at, _), buf)| ReadRequest::new(at * self.unit, buf))
            .collect();
        self.device.read_batch(&mut requests).unwrap();
        for ((at, len), buf) in pieces.into_iter().zip(&bufs) {
            assert!(
                *buf == self.model[self.range(*at, *len).unwrap()],
                "at {at}"
            );
        }
    }

    /// Pieces laid end to end or apart, as the second number says, never over each other.
    fn write_batch(&mut self, pieces: &[(u64, u64)], fill: u8) {
        let mut at = 0;
        let mut bufs = Vec::new();
        for &(gap, len) in pieces {
            at += gap % 3 * (gap % 7);
            if let Some(range) = self.range(at, len) {
                let data = bytes(fill.wrapping_add(gap as u8), len * self.unit);
                self.model[range].copy_from_slice(&data);
                bufs.push((at * self.unit, data));
            }
            at += len;
        }
        let requests: Vec<_> = bufs
            .iter()
            .map(|(at, it)| WriteRequest::new(*at, it))
            .collect();
        self.device.write_batch(&requests).unwrap();
    }
}

fn agrees(device: &dyn BlockDevice, unit: u64, steps: &[Step]) {
    let mut pair = Pair {
        device,
        model: vec![0; device.size() as usize],
        unit,
    };
    for step in steps {
        pair.run(step);
    }
    let mut seen = vec![0; pair.model.len()];
    device.read(0, &mut seen).unwrap();
    assert!(seen == pair.model);
}

fn image(dir: &str, steps: &[Step]) {
    if !Path::new(dir).exists() {
        return;
    }
    let dir = tempfile::tempdir_in(dir).unwrap();
    let device = FileDevice::create(&dir.path().join("image"), SIZE).unwrap();
    agrees(&device, 4096, steps);
}

/// Each case moves megabytes: a fifth of what is usual, or of what `PROPTEST_CASES` asks for.
fn fewer() -> ProptestConfig {
    let usual = ProptestConfig::default();
    ProptestConfig {
        cases: usual.cases / 5 + 1,
        ..usual
    }
}

proptest! {
    #![proptest_config(fewer())]

    #[test]
    fn an_image_is_what_the_model_says(steps in proptest::collection::vec(step(), 1..40)) {
        image(env!("CARGO_TARGET_TMPDIR"), &steps);
        image("/dev/shm", &steps);
    }

    #[test]
    fn wrappers_without_a_plan_change_nothing(steps in proptest::collection::vec(step(), 1..60)) {
        let memory: Arc<dyn BlockDevice> = Arc::new(MemoryDevice::new(SIZE));
        let none = Duration::ZERO;
        let slow = Arc::new(SlowDevice::new(memory, none, none, none));
        let sparse = Arc::new(SparseDevice::new(slow, u64::MAX));
        let recording = Arc::new(RecordingDevice::new(sparse).unwrap());
        let faulty = FaultyDevice::new(Arc::clone(&recording) as Arc<dyn BlockDevice>);
        agrees(&faulty, SECTOR, &steps);
        let mut seen = vec![0; faulty.size() as usize];
        faulty.read(0, &mut seen).unwrap();
        assert!(recording.history().last().to_vec() == seen);
    }
}
