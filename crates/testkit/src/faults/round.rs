//! One round: a volume, its threads, and what is left of it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use holdfast_core::{FileSystem, OpenFile, Options, Store as _};
use holdfast_device::{BlockDevice, Image, MemoryDevice};
use holdfast_types::{Caller, Errno, OpenFlags, Result};
use holdfast_volume::{FormatOptions, OpenOptions, VolumeStore, format};
use parking_lot::Mutex;

use super::judge;
use super::plan::Plan;
use super::state::{States, foreign};
use super::worker::Worker;
use crate::device::{CrashStates, FaultyDevice, RecordingDevice, SlowDevice};

/// Bytes of a volume.
const SIZE: u64 = 6 << 20;
/// What is left of one that is nearly full.
const LEFT: u64 = 600 << 10;
/// A file that each thread holds open all the time.
const HELD: &str = "held";
/// What calls of the device take: so threads meet in commits.
const WRITE: Duration = Duration::from_micros(30);
const FLUSH: Duration = Duration::from_micros(200);
/// Sampled crash states of a round.
const SAMPLED: u64 = 2;

/// What came of a round.
#[derive(Clone, Debug, Default)]
pub(super) struct Outcome {
    pub(super) faults: u64,
    pub(super) failed: bool,
    pub(super) operations: u64,
    pub(super) promises: u64,
    pub(super) states: u64,
    pub(super) wrong: Option<String>,
}

/// Volumes that rounds begin with: a directory with two others for each thread.
#[derive(Clone, Debug)]
pub(super) struct Bases {
    roomy: Image,
    crowded: Image,
}

impl Bases {
    pub(super) fn make(threads: usize) -> std::result::Result<Self, String> {
        let make = |crowded| base(threads, crowded).map_err(|error| format!("no volume: {error}"));
        Ok(Self {
            roomy: make(false)?,
            crowded: make(true)?,
        })
    }
}

fn base(threads: usize, crowded: bool) -> Result<Image> {
    let memory = Arc::new(MemoryDevice::new(SIZE));
    let device: Arc<dyn BlockDevice> = memory.clone();
    let options = FormatOptions {
        journal: Some(512 << 10),
        group_blocks: Some(400),
        seed: Some(1),
        ..FormatOptions::default()
    };
    format(&device, &options)?;
    let (store, fs) = opened(device, None)?;
    let (who, root) = (Caller::root(), fs.root());
    let flags = OpenFlags::CREATE | OpenFlags::READ_WRITE;
    for thread in 0..threads {
        for dir in [
            format!("{thread}"),
            format!("{thread}/a"),
            format!("{thread}/b"),
        ] {
            fs.mkdir_at(&who, &root, dir.as_bytes(), 0o755)?;
        }
        let path = format!("{thread}/{HELD}");
        drop(fs.open_at(&who, &root, path.as_bytes(), flags, 0o644)?);
    }
    if crowded {
        let file = fs.create(&who, &root, b"filler", 0o644, flags)?;
        let space = fs.statfs()?;
        let filled = (space.blocks_available * 4096).saturating_sub(LEFT);
        fs.write(&who, &file, 0, &vec![0xff; filled as usize])?;
    }
    drop(root);
    fs.close()?;
    store.close()?;
    Ok(memory.image())
}

fn opened(
    device: Arc<dyn BlockDevice>,
    every: Option<Duration>,
) -> Result<(Arc<VolumeStore>, FileSystem)> {
    let options = OpenOptions {
        commit_every: every,
        ..OpenOptions::default()
    };
    let store = Arc::new(VolumeStore::open(device, &options)?);
    let fs = FileSystem::new(Arc::clone(&store) as _, Options::default())?;
    Ok((store, fs))
}

/// What the threads of a round share.
pub(super) struct World {
    pub(super) store: Arc<VolumeStore>,
    pub(super) fs: FileSystem,
    pub(super) who: Caller,
    recording: Arc<RecordingDevice>,
    clock: AtomicU64,
    /// The state that each thread has come to.
    done: Vec<AtomicUsize>,
    /// The states that each thread must keep at least, by the number of the mark that says so.
    promises: Mutex<Vec<Vec<usize>>>,
}

impl World {
    /// The time, which goes on by that.
    pub(super) fn tick(&self) -> u64 {
        self.clock.fetch_add(1, Ordering::SeqCst)
    }

    /// A thread has come to a state.
    pub(super) fn done(&self, thread: usize, state: usize) {
        self.done[thread].store(state, Ordering::SeqCst);
    }

    pub(super) fn has_failed(&self) -> bool {
        self.store.failure().is_latched()
    }

    pub(super) fn checkpoint(&self) -> Result<()> {
        Ok(self.store.checkpoint()?)
    }

    /// Does what promises, if it succeeds, that nothing is lost of what was done before.
    pub(super) fn promised(&self, work: impl FnOnce(&Self) -> Result<()>) -> Result<()> {
        let done = self.done.iter().map(|done| done.load(Ordering::SeqCst));
        let promise = done.collect();
        work(self)?;
        let mut promises = self.promises.lock();
        promises.push(promise);
        self.recording.mark(promises.len() as u64 - 1);
        Ok(())
    }
}

/// Makes a round.
pub(super) fn run(plan: &Plan, bases: &Bases, threads: usize) -> Outcome {
    let mut outcome = Outcome::default();
    outcome.wrong = attempt(plan, bases, threads, &mut outcome).err();
    outcome
}

fn attempt(
    plan: &Plan,
    bases: &Bases,
    threads: usize,
    outcome: &mut Outcome,
) -> std::result::Result<(), String> {
    let image = match plan.faults.is_empty() {
        true => &bases.crowded,
        false => &bases.roomy,
    };
    let recording = Arc::new(RecordingDevice::from_image(image.clone()));
    let slow = SlowDevice::new(recording.clone(), Duration::ZERO, WRITE, FLUSH);
    let faulty = Arc::new(FaultyDevice::new(Arc::new(slow)));
    let (store, fs) = opened(faulty.clone(), plan.every).map_err(|error| format!("{error}"))?;
    let world = World {
        store,
        fs,
        who: Caller::root(),
        recording,
        clock: AtomicU64::new(1),
        done: (0..threads).map(|_| AtomicUsize::new(0)).collect(),
        promises: Mutex::default(),
    };
    let held = (0..threads).map(|thread| hold(&world, thread));
    let held: Vec<OpenFile> = held
        .collect::<Result<_>>()
        .map_err(|error| error.to_string())?;
    plan.faults.iter().for_each(|fault| faulty.plan(*fault));
    let states = work(&world, plan, threads)?;
    outcome.operations = states.iter().map(|states| states.0.len() as u64 - 1).sum();
    let failure = world.store.failure().reason();
    outcome.failed = failure.is_some();
    if let Some(reason) = failure {
        told(&world, &held, reason)?;
    }
    for (thread, _) in held.iter().enumerate() {
        // A read that fails tells nothing.
        if let Ok(found) = judge::files(&world.fs, thread)
            && let Some(trouble) = foreign(thread, &found)
        {
            return Err(format!("before the crash, {trouble}"));
        }
    }
    drop(held);
    if plan.closes {
        let close = || {
            world.promised(|world| {
                world.fs.close()?;
                Ok(world.store.close()?)
            })
        };
        // It may fail like anything else.
        let _ = catch_unwind(AssertUnwindSafe(close));
    }
    outcome.faults = faulty.struck();
    let World {
        store,
        fs,
        recording,
        promises,
        ..
    } = world;
    drop((fs, store));
    let promises = promises.into_inner();
    outcome.promises = promises.len() as u64;
    let history = recording.history();
    let whole = history.len() as u64;
    let crashes = CrashStates::new(history, plan.seed);
    let unflushed = crashes.systematic();
    let sampled = (0..SAMPLED).map(|nth| unflushed + nth);
    for index in [unflushed - 1, whole].into_iter().chain(sampled) {
        let crash = crashes.state(index);
        let said = crash.to_string();
        outcome.states += 1;
        judge::judge(crash, &states, &promises).map_err(|trouble| format!("{trouble}; {said}"))?;
    }
    Ok(())
}

fn hold(world: &World, thread: usize) -> Result<OpenFile> {
    let path = format!("{thread}/{HELD}");
    let (root, flags) = (world.fs.root(), OpenFlags::READ_WRITE);
    world
        .fs
        .open_at(&world.who, &root, path.as_bytes(), flags, 0)
}

/// Lets the threads work beside each other.
fn work(world: &World, plan: &Plan, threads: usize) -> std::result::Result<Vec<States>, String> {
    std::thread::scope(|scope| {
        let start = |thread| scope.spawn(move || Worker::new(world, thread, plan.seed).run());
        let threads: Vec<_> = (0..threads).map(start).collect();
        let joined = threads.into_iter().map(|thread| thread.join());
        let joined =
            joined.map(|states| states.unwrap_or_else(|_| Err("a thread panicked".into())));
        joined.collect()
    })
}

/// Each open file hears once why the store failed, and no fsync succeeds any more.
fn told(world: &World, held: &[OpenFile], reason: Errno) -> std::result::Result<(), String> {
    for (place, file) in held.iter().enumerate() {
        let fs = &world.fs;
        let flushed = [fs.flush(file), fs.flush(file)];
        let synced = fs.fsync(file, false);
        if (flushed, synced) != ([Err(reason), Ok(())], Err(Errno::EIO)) {
            return Err(format!(
                "the store failed with {reason}, and file {place} answers {flushed:?} to flush, {synced:?} to fsync"
            ));
        }
    }
    let changed = world
        .fs
        .mkdir_at(&world.who, &world.fs.root(), b"new", 0o755);
    match changed.err() {
        Some(Errno::EROFS) => Ok(()),
        other => Err(format!("the store failed, and mkdir answers {other:?}")),
    }
}
