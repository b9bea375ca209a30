use crate::file_system::owned;
use crate::types::Caller;
use crate::{FileSystem, MemoryLimits, Options};

/// Makes a file system in memory with limits and options; begun by [`FileSystem::builder`].
///
/// ```
/// use holdfast::FileSystem;
/// use std::io::ErrorKind;
///
/// let fs = FileSystem::builder().bytes_max(1 << 20).inodes_max(100).build();
/// let error = fs.write("/too-large", vec![0; 2 << 20]).unwrap_err();
/// assert_eq!(error.kind(), ErrorKind::StorageFull);
/// ```
#[derive(Clone, Debug)]
#[must_use = "a builder makes nothing until `build`"]
pub struct Builder {
    limits: MemoryLimits,
    options: Options,
    caller: Caller,
}

impl FileSystem {
    /// A file system in memory without limits. It is gone when its last handle is dropped.
    #[must_use]
    pub fn memory() -> Self {
        Self::builder().build()
    }

    /// Begins a file system in memory with limits or options.
    pub fn builder() -> Builder {
        Builder {
            limits: MemoryLimits::default(),
            options: Options::default(),
            caller: Caller::current(),
        }
    }
}

impl Builder {
    /// Most bytes of names, extended attributes, and content in pages of 4 KiB; beyond them is
    /// `ENOSPC`.
    pub fn bytes_max(mut self, bytes: u64) -> Self {
        self.limits.bytes = Some(bytes);
        self
    }

    /// Most inodes, the root directory included; beyond them is `ENOSPC`.
    pub fn inodes_max(mut self, inodes: u64) -> Self {
        self.limits.inodes = Some(inodes);
        self
    }

    /// Both limits at once, as the core takes them.
    pub fn limits(mut self, limits: MemoryLimits) -> Self {
        self.limits = limits;
        self
    }

    /// The options of mount(8): access times, read-only, the root's owner and mode, ...
    pub fn options(mut self, options: Options) -> Self {
        self.options = options;
        self
    }

    /// The caller that the file system handle acts for; without this, the thread that called
    /// [`FileSystem::builder`].
    /// The root directory belongs to this user and group, unless the [options](Self::options) name
    /// others.
    pub fn caller(mut self, caller: Caller) -> Self {
        self.caller = caller;
        self
    }

    /// Makes the file system, with an empty root directory.
    #[must_use]
    pub fn build(self) -> FileSystem {
        let options = owned(self.options, &self.caller);
        let core = holdfast_core::FileSystem::memory(self.limits, options);
        FileSystem::of(core, self.caller)
    }
}
