//! A volume in memory with files that nothing is known of, mounted over a device of the test's.

use holdfast_core::{
    FileSystem, Options,
    types::{Caller, OpenFlags},
};
use holdfast_device::{BlockDevice, MemoryDevice};
use holdfast_fuse::{Config, Session, serve};
use holdfast_testkit::mount;
use holdfast_volume::{FormatOptions, OpenOptions, VolumeStore, format};
use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

const SIZE: u64 = 64 << 20;
/// The size of each cold file.
pub(crate) const COLD: usize = 64 << 10;
/// Cold files: `cold/0`, `cold/1` and so on.
pub(crate) const COLD_FILES: u8 = 64;
/// No commit but those that the test makes.
const OPTIONS: OpenOptions = OpenOptions {
    commit_every: None,
    ..OpenOptions::DEFAULT
};

/// Where it is mounted, and what is below.
pub(crate) struct Mounted {
    pub(crate) store: Arc<VolumeStore>,
    pub(crate) core: FileSystem,
    session: Session,
    dir: tempfile::TempDir,
}

impl Mounted {
    /// Mounts a new volume, on the device that `over` makes of one in memory.
    pub(crate) fn new<D: BlockDevice + 'static>(
        config: &Config,
        over: impl FnOnce(Arc<dyn BlockDevice>) -> D,
    ) -> (Self, Arc<D>) {
        let memory: Arc<dyn BlockDevice> = Arc::new(MemoryDevice::new(SIZE));
        fill(&memory);
        let device = Arc::new(over(memory));
        let store = Arc::new(VolumeStore::open(Arc::clone(&device) as _, &OPTIONS).unwrap());
        let core = FileSystem::new(Arc::clone(&store) as _, Options::default()).unwrap();
        let dir = tempfile::tempdir().unwrap();
        let session = serve::mount(&core, dir.path(), config, None).unwrap();
        let mounted = Self {
            store,
            core,
            session,
            dir,
        };
        (mounted, device)
    }

    pub(crate) fn dir(&self) -> &Path {
        self.dir.path()
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir().join(name)
    }

    /// Unmounts, and closes what can be closed.
    pub(crate) fn end(self) -> Result<(), String> {
        mount::unmount(&self.session);
        self.session.wait();
        assert_eq!(self.session.failure(), None);
        drop(self.session);
        let Self { store, core, .. } = self;
        core.close().map_err(|error| error.to_string())?;
        drop(core);
        store.close().map_err(|error| error.to_string())
    }
}

/// What a cold file has.
pub(crate) fn content(number: u8) -> Vec<u8> {
    vec![number + 1; COLD]
}

fn fill(device: &Arc<dyn BlockDevice>) {
    format(device, &FormatOptions::default()).unwrap();
    let store = Arc::new(VolumeStore::open(Arc::clone(device), &OPTIONS).unwrap());
    let fs = FileSystem::new(Arc::clone(&store) as _, Options::default()).unwrap();
    let (who, root) = (Caller::root(), fs.root());
    drop(fs.mkdir(&who, &root, b"work", 0o755).unwrap());
    let cold = fs.mkdir(&who, &root, b"cold", 0o755).unwrap();
    for number in 0..COLD_FILES {
        let (name, flags) = (number.to_string(), OpenFlags::WRITE_ONLY);
        let file = fs.create(&who, &cold, name.as_bytes(), 0o644, flags);
        let file = file.unwrap();
        let written = fs.write(&who, &file, 0, &content(number));
        assert_eq!(written, Ok(COLD));
    }
    drop((cold, root));
    fs.close().unwrap();
    drop(fs);
    store.close().unwrap();
}
