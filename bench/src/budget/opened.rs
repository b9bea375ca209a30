//! A volume that is open in this process, with counts of what is asked of its store.

use anyhow::{Context, Result};
use holdfast_core::store::{
    EntryRecord, Failure, Guarantees, InodeRecord, Lsn, NameRun, Rest, Shared, SharedPages,
    SpaceReport, SpaceRun, WalkInodes, Writes,
};
use holdfast_core::{FileSystem, Memory, Options, Store};
use holdfast_device::{Access, BlockDevice, FileDevice};
use holdfast_types::{Ino, Result as Answer};
use holdfast_volume::{FormatOptions, OpenOptions, VolumeStore};
use std::cell::Cell;
use std::path::Path;
use std::sync::Arc;

/// A volume and its file system.
pub(crate) struct Opened {
    store: Arc<VolumeStore>,
    fs: FileSystem,
}

impl Opened {
    /// Makes a volume in a new image of so many bytes, which are taken as they are written.
    ///
    /// # Errors
    /// If the image is there already, or cannot be made; those of the volume.
    pub(crate) fn make(image: &Path, bytes: u64, options: Options) -> Result<Self> {
        let device = FileDevice::create(image, bytes);
        let device: Arc<dyn BlockDevice> = Arc::new(device.context("cannot make the image")?);
        holdfast_volume::format(&device, &FormatOptions::default())
            .context("cannot make the volume")?;
        Self::on(device, options)
    }

    /// Opens the volume of an image, with nothing of it in memory.
    ///
    /// # Errors
    /// Those of the image and of the volume.
    pub(crate) fn open(image: &Path, options: Options) -> Result<Self> {
        let device = FileDevice::open(image, Access::ReadWrite);
        Self::on(Arc::new(device.context("cannot open the image")?), options)
    }

    fn on(device: Arc<dyn BlockDevice>, options: Options) -> Result<Self> {
        let store = Arc::new(VolumeStore::open(device, &OpenOptions::default())?);
        let counted = Arc::new(CountedLoads(store.clone()));
        let fs = FileSystem::new(counted, options)?;
        Ok(Self { store, fs })
    }

    pub(crate) fn fs(&self) -> &FileSystem {
        &self.fs
    }

    /// Ends it.
    ///
    /// # Errors
    /// Those of the file system and of the volume.
    pub(crate) fn close(self) -> Result<()> {
        self.fs.close()?;
        self.store.close().context("cannot close the volume")
    }
}

/// What threads have had to ask stores for, because it was not in memory.
pub(crate) struct Loads;

thread_local! {
    static LOADS: Cell<u64> = const { Cell::new(0) };
}

impl Loads {
    /// Loads of the calling thread so far: a difference of 0 says that all was found in memory.
    pub(crate) fn of_this_thread() -> u64 {
        LOADS.get()
    }

    fn count() {
        LOADS.set(LOADS.get() + 1);
    }
}

/// A store that counts what is loaded from it, by thread; it is changed as the one below is.
struct CountedLoads<S>(Arc<S>);

impl<S: Store> Store for CountedLoads<S> {
    fn guarantees(&self) -> Guarantees {
        self.0.guarantees()
    }

    fn writes(self: Arc<Self>) -> Writes {
        Arc::clone(&self.0).writes()
    }

    fn failure(&self) -> Arc<Failure> {
        self.0.failure()
    }

    fn join(&self, memory: &Arc<Memory>) {
        self.0.join(memory);
    }

    fn load_inodes(&self, inos: &[Ino], found: &mut Vec<InodeRecord>) -> Answer<()> {
        Loads::count();
        self.0.load_inodes(inos, found)
    }

    fn load_rests(&self, records: &[InodeRecord], found: &mut Vec<Rest>) -> Answer<()> {
        Loads::count();
        self.0.load_rests(records, found)
    }

    fn look_up(
        &self,
        dir: Ino,
        names: &[&[u8]],
        found: &mut Vec<Option<(EntryRecord, Option<InodeRecord>)>>,
    ) -> Answer<()> {
        Loads::count();
        self.0.look_up(dir, names, found)
    }

    fn read_names(&self, dir: Ino, after: u64, max: usize, run: &mut NameRun) -> Answer<()> {
        Loads::count();
        self.0.read_names(dir, after, max, run)
    }

    fn end_cookie(&self, dir: Ino) -> Answer<u64> {
        self.0.end_cookie(dir)
    }

    fn next_space(&self, ino: Ino, offset: u64) -> Answer<Option<SpaceRun>> {
        self.0.next_space(ino, offset)
    }

    fn read_data(&self, ino: Ino, offset: u64, buf: &mut [u8]) -> Answer<()> {
        Loads::count();
        self.0.read_data(ino, offset, buf)
    }

    fn space(&self) -> Answer<SpaceReport> {
        self.0.space()
    }

    fn commit(&self, upto: Option<Lsn>) -> Answer<()> {
        self.0.commit(upto)
    }

    fn walk(&self) -> Option<&dyn WalkInodes> {
        self.0.walk()
    }

    fn pages(&self) -> Option<&dyn SharedPages> {
        self.0.pages()
    }

    fn shared(&self) -> Option<&dyn Shared> {
        self.0.shared()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_types::{Caller, FileType};

    #[test]
    fn what_is_not_in_memory_counts_as_loads_of_the_thread_that_asks() {
        let folder = tempfile::tempdir().expect("temporary directory");
        let image = folder.path().join("image");
        let who = Caller::root();
        let volume = Opened::make(&image, 64 << 20, Options::default()).expect("made");
        let root = volume.fs().root();
        let made = (volume.fs()).mknod(&who, &root, b"file", FileType::Regular, 0o644, 0);
        drop((made.expect("made"), root));
        volume.close().expect("closed");
        let volume = Opened::open(&image, Options::default()).expect("opened");
        let look = || {
            let loads = Loads::of_this_thread();
            let path = b"/file";
            (volume.fs().stat_at(&who, &volume.fs().root(), path, true)).expect("there");
            Loads::of_this_thread() - loads
        };
        assert!(look() > 0, "it came from the store");
        assert_eq!(look(), 0, "it is in memory");
        std::thread::scope(|scope| {
            let other = scope.spawn(Loads::of_this_thread).join().expect("thread");
            assert_eq!(other, 0);
        });
        volume.close().expect("closed");
    }
}
