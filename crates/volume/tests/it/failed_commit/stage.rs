//! A volume over a device that can hold its next data write, and then fail it.

use holdfast_core::{FileSystem, OpenFile, Options};
use holdfast_device::{
    BlockDevice, DeviceError, Image, MemoryDevice, Operation, Result as DeviceResult,
};
use holdfast_types::{Caller, Errno, OpenFlags, Result};
use holdfast_volume::{FormatOptions, OpenOptions, VolumeStore, format};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

/// Threads, each with a file.
pub(crate) const FILES: usize = 8;
/// Bytes of a file.
pub(crate) const LEN: usize = 102_400;
/// Bytes of an inline file.
const FEW: usize = 2000;
/// Bytes of a file that is just too long to be inline.
pub(crate) const GROWN: usize = 2100;
const SIZE: u64 = 16 << 20;
/// The contents of deleted files.
const LEFT_BEHIND: u8 = 0xdd;

pub(crate) fn name_of(number: usize) -> String {
    format!("file-{number}")
}

/// Each file has a byte of its own.
pub(crate) fn bytes_of(number: usize) -> Vec<u8> {
    vec![1 + number as u8; LEN]
}

/// The fate of the write.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Fault {
    Error(Errno),
    /// Its first sector is written, and it fails.
    Torn,
    Panic,
}

/// A device that holds its next data write until [`release`](Self::release), and then fails it.
#[derive(Debug)]
pub(crate) struct Held {
    memory: MemoryDevice,
    armed: Mutex<Armed>,
    changed: Condvar,
    /// The data area begins here.
    data: u64,
}

#[derive(Debug, Default)]
struct Armed {
    fault: Option<Fault>,
    held: bool,
    released: bool,
}

impl Held {
    fn new(data: u64) -> Self {
        Self {
            memory: MemoryDevice::new(SIZE),
            armed: Mutex::default(),
            changed: Condvar::new(),
            data,
        }
    }

    pub(crate) fn arm(&self, fault: Fault) {
        *self.armed.lock().unwrap() = Armed {
            fault: Some(fault),
            ..Armed::default()
        };
    }

    /// Is a write held?
    pub(crate) fn is_held(&self) -> bool {
        self.armed.lock().unwrap().held
    }

    pub(crate) fn release(&self) {
        self.armed.lock().unwrap().released = true;
        self.changed.notify_all();
    }

    fn strike(&self, offset: u64) -> Option<Fault> {
        let mut armed = self.armed.lock().unwrap();
        if offset < self.data {
            return None;
        }
        let fault = armed.fault.take()?;
        armed.held = true;
        while !armed.released {
            armed = self.changed.wait(armed).unwrap();
        }
        Some(fault)
    }

    fn fail(&self, offset: u64, len: usize, errno: Errno) -> DeviceResult<()> {
        let (device, len) = (self.describe(), len as u64);
        Err(DeviceError::new(
            device,
            Operation::Write,
            offset,
            len,
            errno.into(),
        ))
    }
}

impl BlockDevice for Held {
    holdfast_device::pass_on!(memory: describe, size, alignment, read, flush, discard, resize);

    fn write(&self, offset: u64, bytes: &[u8]) -> DeviceResult<()> {
        match self.strike(offset) {
            None => self.memory.write(offset, bytes),
            Some(Fault::Error(errno)) => self.fail(offset, bytes.len(), errno),
            Some(Fault::Torn) => {
                self.memory.write(offset, &bytes[..512])?;
                self.fail(offset, bytes.len(), Errno::EIO)
            }
            Some(Fault::Panic) => panic!("the device does so: this is a test"),
        }
    }
}

/// An open volume on this device.
pub(crate) struct Stage {
    pub(crate) device: Arc<Held>,
    pub(crate) store: Arc<VolumeStore>,
    pub(crate) fs: FileSystem,
    who: Caller,
}

impl Stage {
    /// `every`: its commit interval.
    pub(crate) fn new(every: Option<Duration>) -> Self {
        let options = FormatOptions {
            seed: Some(1),
            journal: Some(512 << 10),
            ..FormatOptions::default()
        };
        // After superblocks and journal.
        let device = Arc::new(Held::new((512 << 10) + (32 << 10)));
        format(&(Arc::clone(&device) as Arc<dyn BlockDevice>), &options).unwrap();
        Self::over(device, every)
    }

    fn over(device: Arc<Held>, every: Option<Duration>) -> Self {
        let options = OpenOptions {
            commit_every: every,
            ..OpenOptions::default()
        };
        let opened = VolumeStore::open(Arc::clone(&device) as _, &options).unwrap();
        let store = Arc::new(opened);
        let fs = FileSystem::new(Arc::clone(&store) as _, Options::default()).unwrap();
        let who = Caller::root();
        Self {
            device,
            store,
            fs,
            who,
        }
    }

    /// Opens a copy of the device's present contents.
    pub(crate) fn crash(self) -> Self {
        let image: Image = self.device.memory.image();
        drop(self);
        let memory = MemoryDevice::from_image("crashed", image);
        let device = Held {
            memory,
            ..Held::new(u64::MAX)
        };
        Self::over(Arc::new(device), None)
    }

    pub(crate) fn open(&self, name: &str, flags: OpenFlags) -> Result<OpenFile> {
        let root = self.fs.root();
        self.fs
            .open_at(&self.who, &root, name.as_bytes(), flags, 0o600)
    }

    fn made(&self, number: usize, len: usize) -> OpenFile {
        let flags = OpenFlags::CREATE | OpenFlags::READ_WRITE;
        let file = self.open(&name_of(number), flags).unwrap();
        let bytes = &bytes_of(number)[..len];
        assert_eq!(self.fs.write(&self.who, &file, 0, bytes), Ok(len));
        file
    }

    /// Writes so many files without a commit.
    pub(crate) fn written(&self, files: usize) -> Vec<OpenFile> {
        (0..files).map(|number| self.made(number, LEN)).collect()
    }

    /// The same, inline.
    pub(crate) fn written_few(&self, files: usize) -> Vec<OpenFile> {
        (0..files).map(|number| self.made(number, FEW)).collect()
    }

    /// Makes an inline file a mapped one.
    pub(crate) fn grow(&self, file: &OpenFile) -> Result<()> {
        let mut first = [0];
        self.fs.read(file, 0, &mut first)?;
        let rest = vec![first[0]; GROWN - FEW];
        match self.fs.write(&self.who, file, FEW as u64, &rest)? {
            all if all == rest.len() => Ok(()),
            _ => Err(Errno::ENOSPC),
        }
    }

    pub(crate) fn fsync(&self, file: &OpenFile) -> Result<()> {
        self.fs.fsync(file, false)
    }

    pub(crate) fn write_again(&self, file: &OpenFile) -> Result<usize> {
        self.fs.write(&self.who, file, 0, &[9; 4096])
    }

    /// Fills blocks with bytes of a deleted file, where others will be allocated.
    pub(crate) fn leave_bytes_behind(&self) {
        let flags = OpenFlags::CREATE | OpenFlags::READ_WRITE;
        let file = self.open("old", flags).unwrap();
        for piece in 0..40 {
            let bytes = [LEFT_BEHIND; LEN];
            let done = self.fs.write(&self.who, &file, piece * LEN as u64, &bytes);
            assert_eq!(done, Ok(LEN));
        }
        self.fsync(&file).unwrap();
        drop(file);
        let root = self.fs.root();
        self.fs.unlink_at(&self.who, &root, b"old").unwrap();
        self.fs.sync().unwrap();
        self.store.checkpoint().unwrap();
    }

    /// Fills the volume.
    pub(crate) fn fill(&self) {
        let flags = OpenFlags::CREATE | OpenFlags::READ_WRITE;
        let file = self.open("filler", flags).unwrap();
        let mut at = 0;
        for len in [LEN, 4096] {
            let bytes = vec![LEFT_BEHIND; len];
            while self.fs.write(&self.who, &file, at, &bytes) == Ok(len) {
                at += len as u64;
            }
        }
        self.fsync(&file).unwrap();
    }

    /// A file's bytes.
    pub(crate) fn read(&self, name: &str) -> Option<Vec<u8>> {
        let file = self.open(name, OpenFlags::empty()).ok()?;
        let mut bytes = vec![0; self.fs.getattr(file.node()).size as usize];
        let done = self.fs.read(&file, 0, &mut bytes).unwrap();
        assert_eq!(done, bytes.len());
        Some(bytes)
    }
}
