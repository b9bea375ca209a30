//! `holdfast cp`: trees in and out of volumes that are not mounted, and within one that is.

pub(crate) mod meter;
pub(crate) mod place;

use crate::engine::{Inside, Job, RawPath, perform};
use crate::message::{Failure, Result};
use crate::volume::{close_after, volume_failure};
use holdfast::{Copied, CopyError, CopyEvent, CopyOptions, FileSystem, Volume};
use meter::{Meter, summary};
use place::Place;
use rustix::io::Errno;
use std::ffi::OsString;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// Copy files and trees in and out of volumes that are not mounted, and within one that is
///
/// A path in a volume is written VOLUME:/PATH, where VOLUME is an image file or a block device:
///
///   holdfast cp -r src data.hf:/backup
///   holdfast cp data.hf:/notes.txt .
///   holdfast cp -r old.hf:/ new.hf:/
///
/// Where SRC and DST are directories of one mount of holdfast, its daemon copies, with this user's rights,
/// without a request of the kernel for each file; interrupting the command stops it:
///
///   holdfast cp -r mnt/tree mnt/copy
///
/// If DST is a directory that is there, SRC is copied into it, otherwise SRC becomes DST. A SRC that
/// ends with `/` or `/.`, or is the root of a volume, is copied with what it holds, not with its
/// name. Directories are merged with those that are there; other names replace what is there, but no
/// directory.
///
/// Kept are modes, owners, access and modification times to the nanosecond, extended attributes and
/// ACLs, symbolic and hard links, pipes, sockets, devices, and holes. Times of birth and change are
/// those of the copy, as everywhere. What this user or the file system copied to does not get
/// (owners and devices without root, say) is told at the end.
///
/// A volume that is only copied from is not changed. What cannot be copied is told by its path, and the
/// rest is copied; the exit code is 1 then.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Arguments {
    /// What is copied
    #[arg(value_name = "SRC", required = true)]
    from: Vec<OsString>,

    /// Where to
    #[arg(value_name = "DST")]
    to: OsString,

    /// Copy directories with all below them
    #[arg(short, long, visible_short_alias = 'a')]
    recursive: bool,

    /// Say nothing but what goes wrong
    #[arg(short, long)]
    quiet: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let to = Place::of(&arguments.to);
    let from: Vec<Place> = arguments.from.iter().map(|text| Place::of(text)).collect();
    if to.image().is_none() && from.iter().all(|place| place.image().is_none()) {
        for place in from.iter().chain([&to]) {
            Inside::of(place, INSTEAD)?;
        }
    }
    let target = match to.image() {
        Some(image) => Some(Volume::open(image).map_err(|error| volume_failure(image, &error))?),
        None => None,
    };
    let copied = copy_all(arguments, &from, &to, target.as_ref());
    let copied = match (target, to.image()) {
        (Some(volume), Some(image)) => close_after(volume, image, copied)?,
        _ => copied?,
    };
    let summary = summary(Path::new(&arguments.to), &copied, arguments.quiet);
    anstream::stdout().write_all(summary.as_bytes())?;
    if copied.failed > 0 {
        return Err(Failure::new(format!(
            "{} names were not copied",
            copied.failed
        )));
    }
    Ok(())
}

fn copy_all(
    arguments: &Arguments,
    from: &[Place],
    to: &Place,
    target: Option<&Volume>,
) -> Result<Copied> {
    let inside = target.map(|volume| volume.file_system().clone());
    let goal_is_dir = is_dir(to, inside.as_ref())?.unwrap_or(false);
    if from.len() > 1 && !goal_is_dir {
        return Err(
            Failure::new("is no directory, and several things are copied")
                .about(to.to_string())
                .hint("name a directory that is there as the last one"),
        );
    }
    let mut total = Copied::default();
    for place in from {
        let source = match place.image() {
            // The volume that is copied to is open already.
            Some(image) if Some(image) == to.image() => None,
            Some(image) => {
                Some(Volume::open_read_only(image).map_err(|error| volume_failure(image, &error))?)
            }
            None => None,
        };
        let source_fs = match (place.image(), &source) {
            (Some(_), Some(volume)) => Some(volume.file_system().clone()),
            (Some(_), None) => inside.clone(),
            (None, _) => None,
        };
        let is_tree = is_dir(place, source_fs.as_ref())?.ok_or_else(|| {
            let missing = io::Error::from(Errno::NOENT);
            Failure::new(missing.to_string()).about(place.to_string())
        })?;
        if is_tree && !arguments.recursive {
            return Err(Failure::new("is a directory")
                .about(place.to_string())
                .hint("-r copies it"));
        }
        let goal = match own_name(place) {
            Some(name) if goal_is_dir => to.with(to.path().join(name)),
            _ => to.clone(),
        };
        let sides = Sides {
            from: (place, source_fs.as_ref()),
            to: (&goal, inside.as_ref()),
        };
        let options = CopyOptions {
            skip: skip(to),
            ..CopyOptions::default()
        };
        let copied = sides.copy(&options)?;
        add(&mut total, copied);
    }
    Ok(total)
}

/// The two sides of one copy, and the file systems of those in volumes.
struct Sides<'c> {
    from: (&'c Place, Option<&'c FileSystem>),
    to: (&'c Place, Option<&'c FileSystem>),
}

impl Sides<'_> {
    fn copy(&self, options: &CopyOptions) -> Result<Copied> {
        let mut meter = Meter::new(self.from.0, self.to.0);
        let mut watch = |event: CopyEvent<'_>| meter.note(&event);
        let (from, to) = (self.from.0.path(), self.to.0.path());
        let copied: std::result::Result<Copied, CopyError> = match (self.from.1, self.to.1) {
            (None, Some(fs)) => fs.copy_in(from, to, options, &mut watch),
            (Some(fs), None) => fs.copy_out(from, to, options, &mut watch),
            (Some(one), Some(other)) => one.copy_across(from, other, to, options, &mut watch),
            (None, None) => return within_mount(self.from.0, self.to.0),
        };
        let copied = copied.map_err(|error| meter.failure(&error));
        meter.end();
        copied
    }
}

/// What copies where no side lies in a volume.
const INSTEAD: &str =
    "a path in a volume that is not mounted is written VOLUME:/PATH; cp(1) copies all else";

/// Copies what lies in a mount to elsewhere in the same.
fn within_mount(from: &Place, to: &Place) -> Result<Copied> {
    let (source, target) = (Inside::of(from, INSTEAD)?, Inside::of(to, INSTEAD)?);
    if !source.is_beside(&target) {
        let failure = Failure::new("lies in another mount than the goal").about(from.to_string());
        return Err(failure.hint("cp(1) copies from one to the other"));
    }
    let job = Job::Copy {
        from: RawPath::from(&*source.path),
        to: RawPath::from(&*target.path),
    };
    Ok(Copied::from(&perform(&source, job, None)?))
}

/// Is there a directory? `None`: nothing is there.
fn is_dir(place: &Place, fs: Option<&FileSystem>) -> Result<Option<bool>> {
    let found = match fs {
        Some(fs) => fs.metadata(place.path()).map(|meta| meta.is_dir()),
        None => std::fs::metadata(place.path()).map(|meta| meta.is_dir()),
    };
    let linked = || match fs {
        Some(fs) => fs.symlink_metadata(place.path()).is_ok(),
        None => std::fs::symlink_metadata(place.path()).is_ok(),
    };
    match found {
        Ok(is_dir) => Ok(Some(is_dir)),
        // A link that leads nowhere can be copied.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(linked().then_some(false)),
        Err(error) => Err(Failure::new(error.to_string()).about(place.to_string())),
    }
}

/// The name under which something is copied into a directory; none: only what it holds is.
fn own_name(place: &Place) -> Option<PathBuf> {
    let path = place.path();
    let bytes = path.as_os_str().as_encoded_bytes();
    if bytes.ends_with(b"/") || bytes.ends_with(b"/.") || bytes == b"." {
        return None;
    }
    path.file_name().map(PathBuf::from)
}

/// The image file that is copied into, in case it is met among what is copied.
pub(crate) fn skip(to: &Place) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt as _;
    let meta = std::fs::metadata(to.image()?).ok()?;
    Some((meta.dev(), meta.ino()))
}

fn add(total: &mut Copied, more: Copied) {
    total.files += more.files;
    total.directories += more.directories;
    total.symlinks += more.symlinks;
    total.links += more.links;
    total.special += more.special;
    total.bytes += more.bytes;
    total.failed += more.failed;
    for (sum, one) in [
        (&mut total.lost.owners, more.lost.owners),
        (&mut total.lost.xattrs, more.lost.xattrs),
        (&mut total.lost.times, more.lost.times),
    ] {
        sum.0 += one.0;
        if sum.1.is_none() {
            sum.1 = one.1;
        }
    }
}
