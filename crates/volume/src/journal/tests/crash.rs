//! Every state a crash can leave.

use super::{Event, Recorder, Seen, all, creation, formatted, region, reopened, shown, write};
use crate::journal::{Journal, Position};
use holdfast_core::store::{Change, Lsn};
use holdfast_device::{BlockDevice, Image, MemoryDevice, SECTOR};
use holdfast_types::Ino;
use proptest::prelude::*;
use std::sync::Arc;
use std::sync::atomic::Ordering;

const BLOCKS: u64 = 128;

/// The events of one incarnation of a journal.
pub(super) struct Incarnation {
    before: Image,
    pub(super) log: Vec<Event>,
    appended: Vec<Seen>,
    /// Pairs: after so many events of the log, so many batches were durable.
    durable: Vec<(usize, usize)>,
    /// The same for batches that were written.
    written: Vec<(usize, usize)>,
    /// The cache that held the unflushed ones.
    cache: Option<u64>,
}

/// The step that writes everything into the device's cache.
pub(super) const WRITE: u32 = u32::MAX;

/// Opens, appends batches of these sizes (0: a commit), and dies.
pub(super) fn live(
    device: &Arc<Recorder>,
    position: Position,
    steps: &[u32],
    salt: u64,
) -> Incarnation {
    device.log.lock().clear();
    let before = device.inner.image();
    let (journal, mut appended) = reopened(device, BLOCKS, position);
    // The batches found may have been written only; the first commit settles that.
    let mut written = vec![(0, appended.len())];
    let elsewhere = Arc::new(Recorder::new(MemoryDevice::from_image(
        "elsewhere",
        before.clone(),
    )));
    let mut durable = vec![(0, reopened(&elsewhere, BLOCKS, position).1.len())];
    if journal.owes_mark() {
        journal.commit(None).expect("a device that works");
    }
    durable.push((device.log.lock().len(), appended.len()));
    for (index, &step) in steps.iter().enumerate() {
        if step == 0 {
            journal.commit(None).expect("a device that works");
            durable.push((device.log.lock().len(), appended.len()));
        }
        if step == WRITE {
            write(&journal).expect("a device that works");
        }
        if step == 0 || step == WRITE && device.cache_identity().is_some() {
            written.push((device.log.lock().len(), appended.len()));
        }
        if step == 0 || step == WRITE {
            continue;
        }
        let data = vec![salt as u8; step as usize];
        let mut batch = creation(salt * 1000 + index as u64, b"name");
        batch.push(Change::Write {
            ino: Ino(1),
            offset: 0,
            data: &data,
        });
        let lsn = journal.append(1, &batch).expect("room");
        appended.push((lsn, 1, shown(&batch)));
    }
    let log = std::mem::take(&mut *device.log.lock());
    Incarnation {
        before,
        log,
        appended,
        durable,
        written,
        cache: device.cache_identity(),
    }
}

impl Incarnation {
    /// The device after the first `events`. Of the sectors written since the last flush of those,
    /// only the ones that `kept` selects.
    pub(super) fn crashed(
        &self,
        events: usize,
        mut kept: impl FnMut(usize) -> bool,
    ) -> Arc<Recorder> {
        let mut image = self.before.clone();
        let events = &self.log[..events];
        let flushed = events.iter().rposition(|event| *event == Event::Flush);
        let mut sector = 0;
        for (index, event) in events.iter().enumerate() {
            let Event::Write { offset, bytes } = event else {
                continue;
            };
            let safe = flushed.is_some_and(|flush| index < flush);
            for (number, bytes) in bytes.chunks(SECTOR as usize).enumerate() {
                if safe || kept(sector) {
                    image.write(offset + number as u64 * SECTOR, bytes);
                }
                sector += usize::from(!safe);
            }
        }
        Arc::new(Recorder::new(MemoryDevice::from_image("crashed", image)))
    }

    /// The device when the process was killed after so many sectors of the last event.
    pub(super) fn killed(&self, events: usize, torn: usize) -> Arc<Recorder> {
        let mut count = 0;
        self.crashed(events, |sector| {
            count = sector + 1;
            true
        });
        let last = self.sectors(events);
        let kept = count - last + torn.min(last);
        self.crashed(events, |sector| sector < kept)
    }

    /// The sectors written by the last event of the first `events`.
    pub(super) fn sectors(&self, events: usize) -> usize {
        match events.checked_sub(1).and_then(|last| self.log.get(last)) {
            Some(Event::Write { bytes, .. }) => bytes.len() / SECTOR as usize,
            _ => 0,
        }
    }

    /// Replays such a device, and returns the number of its batches. If its cache is that of this
    /// incarnation, all written batches are there.
    pub(super) fn check(&self, device: &Arc<Recorder>, events: usize, position: Position) -> usize {
        let mut replay = Journal::open(device.clone(), region(BLOCKS), position).expect("a region");
        let seen = all(&mut replay).expect("a legal state");
        let same = self.cache.is_some() && self.cache == device.cache_identity();
        let least = match same {
            true => &self.written,
            false => &self.durable,
        };
        let least = least.iter().rfind(|(at, _)| *at <= events);
        let least = least.map_or(0, |(_, count)| *count);
        // With another cache, batches that were never flushed are gone.
        let whole = |(_, count): &(usize, usize)| *count == seen.len();
        assert!(same || self.durable.iter().any(whole), "{}", seen.len());
        assert!(seen.len() >= least, "{} of {least} durable", seen.len());
        assert!(seen.len() <= self.appended.len());
        assert!(seen == self.appended[..seen.len()], "not a prefix");
        seen.len()
    }
}

const STEPS: [u32; 14] = [9, 0, 300, 9_000, 0, 70_000, 4, 0, 5, 6, 7, 0, 150_000, 0];

#[test]
fn a_write_cut_at_any_sector_leaves_a_prefix() {
    let device = formatted(BLOCKS);
    let incarnation = live(&device, Position::default(), &STEPS, 1);
    let mut states = 0;
    for events in 0..=incarnation.log.len() {
        for cut in 0..=incarnation.sectors(events) {
            let crashed = incarnation.crashed(events, |sector| sector < cut);
            incarnation.check(&crashed, events, Position::default());
            states += 1;
        }
    }
    assert!(states > 400, "{states} states");
}

#[test]
fn a_write_without_any_one_sector_leaves_a_prefix() {
    let device = formatted(BLOCKS);
    let incarnation = live(&device, Position::default(), &STEPS, 1);
    for events in 0..=incarnation.log.len() {
        for missing in 0..incarnation.sectors(events) {
            let crashed = incarnation.crashed(events, |sector| sector != missing);
            incarnation.check(&crashed, events, Position::default());
        }
    }
}

/// A bit for each sector, from a seed.
fn subset(seed: u64) -> impl FnMut(usize) -> bool {
    let mut state = seed | 1;
    move |_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        // Frames survive often enough that stale ones remain.
        state % 8 < 7
    }
}

fn steps() -> impl Strategy<Value = Vec<u32>> {
    let step = prop_oneof![
        2 => Just(0),
        2 => Just(WRITE),
        4 => 1_u32..3000,
        1 => 1_u32..40_000,
    ];
    proptest::collection::vec(step, 1..12)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn crash_after_crash_leaves_a_prefix_and_nothing_stale(
        incarnations in proptest::collection::vec(
            (steps(), any::<u64>(), any::<u16>(), any::<bool>(), 0..4_u64),
            1..6,
        ),
    ) {
        let mut device = formatted(BLOCKS);
        let mut position = Position::default();
        let mut salt = 0;
        let mut cache = 1;
        for (steps, seed, point, checkpoint, how) in incarnations {
            salt += 1;
            device.cache.store(if how == 3 { 0 } else { cache }, Ordering::Relaxed);
            let incarnation = live(&device, position, &steps, salt);
            let events = usize::from(point) % (incarnation.log.len() + 1);
            // The process ends; or the power fails, and the cache is lost.
            if how == 0 {
                let torn = seed as usize % 20;
                device = incarnation.killed(events, torn);
                device.cache.store(cache, Ordering::Relaxed);
                let whole = events - usize::from(torn < incarnation.sectors(events));
                incarnation.check(&device, whole, position);
            } else {
                cache += 1;
                device = incarnation.crashed(events, subset(seed));
                device.cache.store(cache, Ordering::Relaxed);
                incarnation.check(&device, events, position);
            }
            if checkpoint {
                let (journal, _) = reopened(&device, BLOCKS, position);
                position = journal.cut();
            }
            // Leave room for the longest life.
            let (journal, seen) = reopened(&device, BLOCKS, position);
            if journal.used() > BLOCKS * 4096 / 4 || seen.len() > 100 {
                position = journal.cut();
            }
        }
    }
}

#[test]
fn frames_behind_a_torn_one_are_never_taken_up_by_a_later_life() {
    // Two writes arrive out of order: the second does, the first does not.
    let device = formatted(BLOCKS);
    let first = live(
        &device,
        Position::default(),
        &[40_000, 40_000, 40_000, 0],
        1,
    );
    let whole = first.crashed(first.log.len() - 1, |_| true);
    assert_eq!(first.check(&whole, 0, Position::default()), 3);
    let torn = first.crashed(first.log.len() - 1, |sector| sector >= 8);
    assert_eq!(first.check(&torn, 0, Position::default()), 0);
    // A frame just as long as the torn one, so that the stale ones follow it directly.
    let second = live(&torn, Position::default(), &[40_000, 0], 2);
    let after = second.crashed(second.log.len(), |_| true);
    assert_eq!(
        second.check(&after, second.log.len(), Position::default()),
        1
    );
    let (journal, _) = reopened(&after, BLOCKS, Position::default());
    assert!(journal.durable() >= Lsn(1));
}
