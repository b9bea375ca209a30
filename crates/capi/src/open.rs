//! File systems: making, opening and closing them.

use std::ffi::CStr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use holdfast::{AtimePolicy, Caller, FileSystem, MemoryLimits, Options, Volume, VolumeBuilder};
use zerocopy::IntoBytes as _;

use crate::failure::{About as _, Failure, Result};
use crate::objects::{self, Place, Shared};
use crate::types::{
    HF_FORCE, HF_NOATIME, HF_OPEN_OR_CREATE, HF_READ_ONLY, HF_SYNC, hf_memory_options, hf_statvfs,
    hf_volume_options,
};

/// The mode of a new root directory.
const ROOT_MODE: u16 = 0o755;

/// Permission bits of a root directory. Others are ignored, as mkdir(2) does it.
fn permission_bits(mode: u32) -> u16 {
    match mode {
        0 => ROOT_MODE,
        _ => (mode & 0o7777) as u16,
    }
}

/// A number, or `None` for the default.
fn given(number: u64) -> Option<u64> {
    (number != 0).then_some(number)
}

pub(crate) fn memory(wanted: hf_memory_options) -> Result<Place> {
    let limits = MemoryLimits {
        bytes: given(wanted.bytes_max),
        inodes: given(wanted.inodes_max),
    };
    let builder = FileSystem::builder().limits(limits).options(Options {
        root_perm: permission_bits(wanted.mode),
        ..Options::default()
    });
    Ok(owner("memory".to_owned(), builder.build(), None))
}

/// The handle that closes its file system.
fn owner(name: String, fs: FileSystem, volume: Option<Volume>) -> Place {
    Place {
        dir: fs.root_dir(),
        shared: Shared::new(name, fs, volume),
        owner: true,
    }
}

fn volume_place(path: &Path, volume: Volume) -> Place {
    let fs = volume.file_system().clone();
    owner(path.display().to_string(), fs, Some(volume))
}

pub(crate) fn open_volume(path: &Path, wanted: hf_volume_options) -> Result<Place> {
    let [create, read_only] =
        [HF_OPEN_OR_CREATE, HF_READ_ONLY].map(|flag| wanted.flags & flag != 0);
    let builder = builder(
        &wanted,
        HF_READ_ONLY | HF_OPEN_OR_CREATE | HF_NOATIME | HF_SYNC,
        create,
    )?;
    let volume = match (create, read_only) {
        (true, true) => {
            let reason = "HF_READ_ONLY and HF_OPEN_OR_CREATE contradict; pass one of them";
            return Err(Failure::invalid(reason));
        }
        (true, false) => builder.open_or_create(path)?,
        (false, true) => builder.open_read_only(path)?,
        (false, false) => builder.open(path)?,
    };
    Ok(volume_place(path, volume))
}

pub(crate) fn create_volume(path: &Path, wanted: hf_volume_options) -> Result<Place> {
    let force = wanted.flags & HF_FORCE != 0;
    let builder = builder(&wanted, HF_FORCE | HF_NOATIME | HF_SYNC, true)?;
    let volume = builder.force(force).format(path)?;
    Ok(volume_place(path, volume))
}

/// The builder for these options.
///
/// # Errors
/// `EINVAL` for other flags than the known ones, and for options of a new volume without one.
fn builder(wanted: &hf_volume_options, known: u32, new: bool) -> Result<VolumeBuilder> {
    let mut builder = Volume::builder();
    let unknown = wanted.flags & !known;
    if unknown != 0 {
        return Err(Failure::unknown_flags(unknown, "others"));
    }
    let label = label(wanted)?;
    let sizes = [wanted.volume_size, wanted.journal_size];
    let of_new = wanted.mode != 0 || sizes != [0; 2] || !label.is_empty();
    if of_new && !new {
        let reason = "mode, volume_size, journal_size and label are for a new volume; clear them, \
                      or call hf_create_volume";
        return Err(Failure::invalid(reason));
    }
    if wanted.commit_ms != 0 {
        builder = builder.commit_every(Duration::from_millis(wanted.commit_ms.into()));
    }
    if let Some(size) = given(wanted.volume_size) {
        builder = builder.size(size);
    }
    if let Some(size) = given(wanted.journal_size) {
        builder = builder.journal(size);
    }
    let atime = match wanted.flags & HF_NOATIME {
        0 => AtimePolicy::default(),
        _ => AtimePolicy::None,
    };
    let options = Options {
        atime,
        sync: wanted.flags & HF_SYNC != 0,
        memory: given(wanted.memory),
        root_perm: permission_bits(wanted.mode),
        ..Options::default()
    };
    Ok(builder.options(options).label(&label)?)
}

/// # Errors
/// `EINVAL` for a name without an end, or not in UTF-8.
fn label(options: &hf_volume_options) -> Result<String> {
    let label = CStr::from_bytes_until_nul(options.label.as_bytes());
    let label = label.ok().and_then(|label| label.to_str().ok());
    let label = label.ok_or_else(|| {
        let reason = "the label is not UTF-8 of at most 63 bytes and a NUL; shorten it";
        Failure::invalid(reason)
    })?;
    Ok(label.to_owned())
}

pub(crate) fn close(place: &Arc<Place>) -> Result<()> {
    if !place.owner {
        return place.shared.alive();
    }
    objects::remove_all(&place.shared);
    let volume = place.shared.volume.lock().take();
    let closed = volume.map_or(Ok(()), Volume::close);
    place.shared.alive()?;
    Ok(closed?)
}

pub(crate) fn sync(place: &Place) -> Result<()> {
    place.shared.fs.sync().about(&place.shared.name)
}

/// A handle for relative paths from this directory.
pub(crate) fn subdir(place: &Place, path: &Path) -> Result<Place> {
    Ok(Place {
        shared: Arc::clone(&place.shared),
        dir: place.dir.open_dir(path).about(&path.display())?,
        owner: false,
    })
}

/// A handle of the same directory for another caller.
pub(crate) fn as_caller(place: &Place, caller: Caller) -> Place {
    Place {
        shared: Arc::clone(&place.shared),
        dir: place.dir.as_user(caller),
        owner: false,
    }
}

pub(crate) fn statvfs(place: &Place) -> Result<hf_statvfs> {
    let space = place.shared.fs.space().about(&place.shared.name)?;
    let read_only = place.shared.fs.core().options().read_only;
    Ok(hf_statvfs {
        size: 0,
        // `ST_RDONLY` of statvfs(3) is 1.
        f_flag: read_only.into(),
        f_bsize: space.block_size.into(),
        f_frsize: space.block_size.into(),
        f_blocks: space.blocks,
        f_bfree: space.blocks_free,
        f_bavail: space.blocks_available,
        f_files: space.files,
        f_ffree: space.files_free,
        f_favail: space.files_free,
        f_namemax: space.name_max.into(),
    })
}

#[cfg(test)]
mod tests {
    use holdfast::types::Errno;
    use zerocopy::FromZeros as _;

    use super::*;

    fn options(change: impl FnOnce(&mut hf_volume_options)) -> hf_volume_options {
        let mut options = hf_volume_options::new_zeroed();
        change(&mut options);
        options
    }

    #[test]
    fn options_without_a_meaning_are_refused() {
        let path = Path::new("/nowhere/data.hf");
        for wrong in [
            options(|options| options.flags = 1 << 31),
            options(|options| options.flags = HF_FORCE),
            options(|options| options.flags = HF_READ_ONLY | HF_OPEN_OR_CREATE),
            options(|options| options.mode = 0o700),
            options(|options| options.volume_size = 1 << 26),
            options(|options| options.label[0] = 65),
            options(|options| options.label = [65; 64]),
        ] {
            let failure = open_volume(path, wrong).unwrap_err();
            assert_eq!(failure.errno, Errno::EINVAL, "{failure:?}");
        }
        let wrong = options(|options| options.flags = HF_READ_ONLY);
        let failure = create_volume(path, wrong).unwrap_err();
        assert_eq!(failure.errno, Errno::EINVAL, "{failure:?}");
    }

    #[test]
    fn options_of_a_new_volume_have_effect() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("data.hf");
        let wanted = options(|options| {
            options.volume_size = 48 << 20;
            options.mode = 0o1777;
            options.label[..2].copy_from_slice(&[104, 102]);
            options.flags = HF_NOATIME | HF_SYNC;
        });
        let place = Arc::new(create_volume(&path, wanted).unwrap());
        assert_eq!(place.dir.dir_metadata().unwrap().mode() & 0o7777, 0o1777);
        let in_force = place.shared.fs.core().options();
        assert!(in_force.sync && in_force.atime == AtimePolicy::None);
        close(&place).unwrap();
        let info = Volume::inspect(&path).unwrap();
        assert_eq!(
            (info.label.as_str(), info.size, info.clean),
            ("hf", 48 << 20, true)
        );
        let again = create_volume(&path, options(|_| ())).unwrap_err();
        assert_eq!(again.errno, Errno::EEXIST);
        assert!(again.reason.contains("data.hf"), "{again:?}");
    }
}
