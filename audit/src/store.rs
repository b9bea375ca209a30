//! What is below the core that is tried.

use clap::ValueEnum;
use holdfast_core::types::{Errno, Result};
use holdfast_core::{FileSystem, MemoryLimits, Options};
use holdfast_device::{BlockDevice, MemoryDevice};
use holdfast_volume::{FormatOptions, OpenOptions, VolumeStore, format};
use std::sync::Arc;

/// Bytes of a volume, all of them in memory: room for what a pair's rounds make, many times over.
const VOLUME: u64 = 256 << 20;

/// Which store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum StoreKind {
    /// None: all that there is is in memory
    #[default]
    Memory,
    /// A volume on a device in memory, which commits when it is asked to: what a pair meets is all
    /// that comes before a commit
    Volume,
}

impl StoreKind {
    /// A new file system.
    ///
    /// # Errors
    /// What making a volume answers.
    pub(crate) fn file_system(self, options: Options) -> Result<FileSystem> {
        match self {
            Self::Memory => Ok(FileSystem::memory(MemoryLimits::default(), options)),
            Self::Volume => {
                let device: Arc<dyn BlockDevice> = Arc::new(MemoryDevice::new(VOLUME));
                let answered = |error: holdfast_volume::Error| -> Errno { error.errno() };
                format(&device, &FormatOptions::default()).map_err(answered)?;
                let how = OpenOptions {
                    commit_every: None,
                    ..OpenOptions::default()
                };
                let store = VolumeStore::open(device, &how).map_err(answered)?;
                FileSystem::new(Arc::new(store), options)
            }
        }
    }

    /// As the command line calls it.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Volume => "volume",
        }
    }

    /// A class of pairs as the file of constants calls it for this store.
    pub(crate) fn class(self, word: &str) -> String {
        match self {
            Self::Memory => word.to_owned(),
            Self::Volume => format!("volume-{word}"),
        }
    }
}
