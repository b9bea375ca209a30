//! The file system that a daemon serves: opened at the start, closed once.

#[cfg(feature = "cluster")]
use super::cluster::Mounted;
use super::{applicable, directory, limits, options::Plan};
use crate::{
    message::{Failure, Result},
    source::Source,
    volume::{close_failure, hint_at_opening},
};
use holdfast::{FileSystem, Shared, Volume, VolumeBuilder, VolumeError};
use parking_lot::Mutex;
use std::{io, path::Path, sync::Arc};

/// Closes the file system: when the kernel unmounts and waits for that, else when the session is
/// over.
pub(super) struct Ending {
    source: String,
    /// Guards the open file system, or the result of closing it.
    state: Mutex<State>,
}

enum State {
    Open(Opened),
    Closed(Result<()>),
}

impl Ending {
    pub(super) fn of(opened: Opened, source: &Source) -> Self {
        Self {
            source: source.to_string(),
            state: Mutex::new(State::Open(opened)),
        }
    }

    /// Closes the file system, or waits until another thread has closed it. After that, other
    /// processes may open the volume.
    pub(super) fn end(&self) {
        let mut state = self.state.lock();
        let before = std::mem::replace(&mut *state, State::Closed(Ok(())));
        *state = match before {
            State::Open(opened) => State::Closed(opened.close(&self.source)),
            closed @ State::Closed(_) => closed,
        };
    }

    /// Closes the file system if it is open, and returns the result of closing.
    pub(super) fn closed(&self) -> Result<()> {
        let state = std::mem::replace(&mut *self.state.lock(), State::Closed(Ok(())));
        match state {
            State::Open(opened) => opened.close(&self.source),
            State::Closed(how) => how,
        }
    }
}

/// An open file system.
pub(super) enum Opened {
    Memory(FileSystem),
    Volume {
        volume: Box<Volume>,
        /// Is the device open for reading only?
        fixed: bool,
        /// Is free space discarded at the end?
        discard: bool,
    },
    Directory {
        fs: FileSystem,
        /// Was it mounted read-only?
        fixed: bool,
    },
    #[cfg(feature = "cluster")]
    Cluster(Box<Mounted>),
}

impl Opened {
    pub(super) fn of(source: &Source, plan: &Plan) -> Result<Self> {
        applicable::check(source, plan)?;
        match source {
            Source::Directory(path) => Ok(Self::Directory {
                fs: directory::open(path, plan)?,
                fixed: plan.core.read_only,
            }),
            #[cfg(feature = "cluster")]
            Source::Cluster(address) => Ok(Self::Cluster(Box::new(Mounted::open(address, plan)?))),
            Source::Memory => {
                let fs = FileSystem::builder().limits(plan.limits);
                Ok(Self::Memory(fs.options(plan.core).build()))
            }
            Source::Volume(path) => {
                if !plan.core.read_only {
                    limits::check_size(path)?;
                }
                if let Some(item) = plan.given.iter().find(|item| item.starts_with("cache=")) {
                    tracing::warn!(
                        "option {item} is removed in the next release: memory= limits all memory of the daemon"
                    );
                }
                let mut builder = Volume::builder().options(plan.core);
                if let Some(every) = plan.commit {
                    builder = builder.commit_every(every);
                }
                if let Some(size) = plan.create_size {
                    builder = builder.size(size);
                }
                let opened = open_volume(builder, path, plan);
                let (volume, fixed) = opened.map_err(|error| volume_failure(path, &error))?;
                Ok(Self::Volume {
                    volume: Box::new(volume),
                    fixed,
                    discard: plan.discard,
                })
            }
        }
    }

    pub(super) fn file_system(&self) -> &FileSystem {
        match self {
            Self::Memory(fs) | Self::Directory { fs, .. } => fs,
            Self::Volume { volume, .. } => volume.file_system(),
            #[cfg(feature = "cluster")]
            Self::Cluster(mounted) => &mounted.fs,
        }
    }

    pub(super) fn volume(&self) -> Option<&Volume> {
        match self {
            Self::Memory(_) | Self::Directory { .. } => None,
            #[cfg(feature = "cluster")]
            Self::Cluster(_) => None,
            Self::Volume { volume, .. } => Some(volume),
        }
    }

    /// The device that others may read, if it is a volume.
    pub(super) fn shared(&self) -> Option<Arc<Shared>> {
        self.volume()?.shared()
    }

    pub(super) fn is_fixed(&self) -> bool {
        matches!(
            self,
            Self::Volume { fixed: true, .. } | Self::Directory { fixed: true, .. }
        )
    }

    fn close(self, source: &str) -> Result<()> {
        match self {
            Self::Memory(_) | Self::Directory { .. } => Ok(()),
            #[cfg(feature = "cluster")]
            Self::Cluster(mounted) => mounted.close(source),
            Self::Volume {
                volume,
                fixed,
                discard,
            } => {
                if discard && !fixed && !volume.core().options().read_only {
                    give_back(&volume);
                }
                let closed = volume.close();
                closed.map_err(|error| close_failure(&error).about(source))
            }
        }
    }
}

/// Discards free space. A failure is only logged.
fn give_back(volume: &Volume) {
    if let Err(error) = volume.store().trim(0..u64::MAX, 0) {
        tracing::warn!("free space was not given back: {error}");
    }
}

/// Opens a volume, and returns whether its device is open for reading only: with `norecovery`, and
/// with `ro` if the device cannot be opened for writing. With `ro`, other processes may read a
/// volume that was closed.
fn open_volume(
    builder: VolumeBuilder,
    path: &Path,
    plan: &Plan,
) -> std::result::Result<(Volume, bool), VolumeError> {
    if plan.no_recovery {
        return Ok((builder.open_read_only(path)?, true));
    }
    let opened = if plan.core.read_only && !plan.create {
        let shared = builder.clone().open_shared(path);
        shared.and_then(|shared| shared.map_or_else(|| builder.clone().open(path), Ok))
    } else if plan.create {
        builder.clone().open_or_create(path)
    } else {
        builder.clone().open(path)
    };
    match opened {
        Err(error) if plan.core.read_only && is_refusal_to_write(&error) => {
            Ok((builder.open_read_only(path)?, true))
        }
        opened => Ok((opened?, false)),
    }
}

/// Is it an error of opening for writing: of a read-only file system or device, an immutable file,
/// missing permission, or a running program?
fn is_refusal_to_write(error: &VolumeError) -> bool {
    let refusals = [libc::EROFS, libc::EPERM, libc::EACCES, libc::ETXTBSY];
    let number = error.raw_os_error();
    number.is_some_and(|number| refusals.contains(&number))
}

fn volume_failure(path: &Path, error: &VolumeError) -> Failure {
    let failure = Failure::new(error).at(path);
    match error.kind() {
        io::ErrorKind::ReadOnlyFilesystem => failure.hint("mount it read-only: -o ro"),
        io::ErrorKind::NotFound if !path.starts_with("/dev") => failure.hint(
            "check SOURCE: an image file, a block device or a directory; --create makes an image file with an empty volume",
        ),
        io::ErrorKind::ResourceBusy => failure.hint(
            "mounts with -o ro share a volume, while none has it open for writing",
        ),
        io::ErrorKind::StorageFull => {
            failure.hint("make room there, or take less: --create --size AMOUNT")
        }
        io::ErrorKind::FileTooLarge => {
            limits::hint_at_size(failure, error.raw_os_error())
        }
        _ => hint_at_opening(failure, path, error.errno().raw()),
    }
}
