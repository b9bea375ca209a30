//! What a file system of a round stands on, and what must be left of that.

use super::Base;
use super::survey::{Survey, difference, survey};
use crate::store::ModelStore;
use holdfast_core::store::Store;
use holdfast_core::{FileSystem, MemoryLimits, MemoryStore, Options};
use holdfast_device::{BlockDevice, MemoryDevice};
use holdfast_types::Ino;
use holdfast_volume::{FormatOptions, OpenOptions, VolumeStore, format};
use std::sync::Arc;
use std::time::Duration;

/// Pages and inodes that a store has: few enough that it is full now and then.
const LIMITS: MemoryLimits = MemoryLimits {
    bytes: Some(24 * 1024 * 4096),
    inodes: Some(6000),
};
/// Bytes of a volume: about as many pages.
const VOLUME: u64 = 112 << 20;

/// Commits and evictions of nodes come often.
const OPTIONS: OpenOptions = OpenOptions {
    cache: 2 << 20,
    commit_every: Some(Duration::from_millis(200)),
    ..OpenOptions::DEFAULT
};

/// The store below.
pub(super) enum Below {
    Memory(Arc<MemoryStore>),
    Model(Arc<ModelStore>),
    Volume(Volume),
}

/// An open volume.
pub(super) struct Volume {
    device: Arc<dyn BlockDevice>,
    store: Arc<VolumeStore>,
    /// Pages in use when it was new.
    empty: u64,
}

impl Below {
    /// A new one.
    ///
    /// # Errors
    /// If a volume cannot be made.
    pub(super) fn new(base: Base) -> Result<Self, String> {
        Ok(match base {
            Base::Memory => Self::Memory(Arc::new(MemoryStore::new(LIMITS))),
            Base::Model => Self::Model(Arc::new(ModelStore::limited(LIMITS))),
            Base::Volume => Self::Volume(Volume::new()?),
        })
    }

    pub(super) fn store(&self) -> Arc<dyn Store> {
        match self {
            Self::Memory(store) => Arc::clone(store) as _,
            Self::Model(store) => Arc::clone(store) as _,
            Self::Volume(volume) => Arc::clone(&volume.store) as _,
        }
    }

    /// Is all there is in memory?
    pub(super) fn is_pinned(&self) -> bool {
        matches!(self, Self::Memory(_))
    }

    /// Why it does not take changes any more, if it says so.
    pub(super) fn refusal(&self) -> Option<String> {
        match self {
            Self::Memory(_) => None,
            Self::Model(model) => {
                let change = model.refusal()?;
                Some(format!("first of all the store refused {change}"))
            }
            Self::Volume(volume) => {
                let stopped = volume.store.checkpoint().err()?;
                Some(format!("the volume says: {stopped}"))
            }
        }
    }

    /// # Errors
    /// Where it contradicts itself, as far as it can tell.
    pub(super) fn consistent(&self) -> Result<(), String> {
        let Self::Model(model) = self else {
            return Ok(());
        };
        match model.contradictions().as_slice() {
            [] => Ok(()),
            found => Err(format!("the store contradicts itself: {found:?}")),
        }
    }

    /// Closes a volume under its last file system, which shows this, and opens it again: it has to
    /// show the same. Other stores stay as they are.
    ///
    /// # Errors
    /// What differs, or went wrong.
    pub(super) fn reopened(
        self,
        fs: FileSystem,
        before: &Survey,
    ) -> Result<(Self, FileSystem), String> {
        let Self::Volume(volume) = self else {
            return Ok((self, fs));
        };
        fs.close().map_err(|error| format!("close: {error:?}"))?;
        let inodes = volume.space()?.1;
        drop(fs);
        let volume = volume.again()?;
        let found = volume.space()?.1;
        if inodes != found {
            return Err(format!("{inodes} inodes, and {found} when opened again"));
        }
        let store = Arc::clone(&volume.store) as Arc<dyn Store>;
        let fs = FileSystem::new(store, Options::default());
        let fs = fs.map_err(|error| format!("opened again: {error:?}"))?;
        match difference(before, &survey(&fs)?) {
            None => Ok((Self::Volume(volume), fs)),
            Some(difference) => Err(format!("opened again: {difference}")),
        }
    }

    /// Nothing but the root may be in a store without files, and `most` pages at most. (A volume
    /// shows its space when it is opened again. The model's promises for pages behind the end of a
    /// file are not given back if the file was evicted meanwhile: the core loads no such pages.)
    ///
    /// # Errors
    /// What is there.
    pub(super) fn nothing_taken(&self, what: &str, most: u64) -> Result<(), String> {
        let store = self.store();
        let space = store.space();
        let space = space.map_err(|error| format!("space: {error:?}"))?;
        let pages = match self {
            Self::Memory(_) => space.pages_used,
            _ => 0,
        };
        if pages > most || space.inodes_used != 1 {
            return Err(format!("{what}, and the store has {space:?}"));
        }
        if self.is_pinned() {
            return Ok(());
        }
        let mut left = Vec::new();
        let walk = store.walk().ok_or("it does not walk")?;
        match (walk.walk(Ino(0), 10, &mut left), left.as_slice()) {
            (Ok(()), [root]) if root.ino == Ino::ROOT => Ok(()),
            other => Err(format!("{what}, and the store has {other:?}")),
        }
    }

    /// Ends it, emptied, without a file system: a volume has as much space then as when it was new.
    ///
    /// # Errors
    /// What is left, or went wrong.
    pub(super) fn end(self) -> Result<(), String> {
        let Self::Volume(volume) = self else {
            return Ok(());
        };
        let (new, volume) = (volume.empty, volume.again()?);
        match volume.space()? {
            (pages, 1) if pages == new => volume.store.close().map_err(|error| error.to_string()),
            (pages, inodes) => Err(format!(
                "emptied and opened again, the volume has {pages} pages in use and {inodes} \
                 inodes; new it had {new} pages"
            )),
        }
    }
}

impl Volume {
    fn new() -> Result<Self, String> {
        let device: Arc<dyn BlockDevice> = Arc::new(MemoryDevice::new(VOLUME));
        format(&device, &FormatOptions::default()).map_err(|error| error.to_string())?;
        let new = Self::open(device, 0)?;
        // The first file system makes the root.
        let fs = FileSystem::new(Arc::clone(&new.store) as _, Options::default());
        drop(fs.map_err(|error| format!("over a new volume: {error:?}"))?);
        let new = new.again()?;
        let empty = new.space()?.0;
        Ok(Self { empty, ..new })
    }

    fn open(device: Arc<dyn BlockDevice>, empty: u64) -> Result<Self, String> {
        let store = VolumeStore::open(Arc::clone(&device), &OPTIONS);
        let store = store.map_err(|error| format!("the volume does not open: {error}"))?;
        Ok(Self {
            device,
            store: Arc::new(store),
            empty,
        })
    }

    /// Closes it, and opens it again.
    fn again(self) -> Result<Self, String> {
        let closed = self.store.close();
        closed.map_err(|error| format!("the volume does not close: {error}"))?;
        let Self {
            device,
            store,
            empty,
        } = self;
        drop(store);
        Self::open(device, empty)
    }

    /// Pages and inodes in use.
    fn space(&self) -> Result<(u64, u64), String> {
        let space = self.store.space();
        let space = space.map_err(|error| format!("space: {error:?}"))?;
        Ok((space.pages_used, space.inodes_used))
    }
}
