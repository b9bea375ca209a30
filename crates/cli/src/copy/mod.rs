//! `holdfast cp`: trees in and out of volumes that are not mounted, and into mounts.

mod into_mount;
pub(crate) mod meter;
pub(crate) mod place;

use crate::complete;
use crate::engine::{Inside, Job, RawPath, perform};
use crate::message::{Failure, Result};
use crate::output::Output;
use crate::volume::{close_after, open, open_read_only, to_make_files_in};
use clap_complete::ArgValueCompleter;
use holdfast::{Copied, CopyEvent, CopyOptions, FileSystem, Volume};
use meter::Meter;
use place::Place;
use rustix::io::Errno;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

/// Copy files and trees in and out of volumes that are not mounted, and into and within one that is
///
/// A path in a volume is written VOLUME:/PATH, where VOLUME is an image file or a block device:
///
///   holdfast cp -r src data.hf:/backup
///   holdfast cp data.hf:/notes.txt .
///   holdfast cp -r old.hf:/ new.hf:/
///
/// Where SRC and DST are directories of one mount of holdfast, its daemon copies with this user's
/// rights, without a kernel request for each file. Interrupting the command stops the copy:
///
///   holdfast cp -r mnt/tree mnt/copy
///
/// Where only DST is in a mount, this process reads SRC with this user's rights, and the daemon
/// writes. Sockets are left out:
///
///   holdfast cp -r src mnt/backup
///
/// If DST is an existing directory, SRC is copied into it, otherwise SRC becomes DST. Of a SRC that
/// ends with `/` or `/.`, or is the root of a volume, only the content is copied. Directories are
/// merged with existing ones; other names replace existing names, but no directory.
///
/// Kept are modes, owners, access and modification times to the nanosecond, extended attributes,
/// ACLs, symbolic and hard links, pipes, sockets, devices, and holes. Times of birth and change are
/// those of the copy. Without root, new files belong to this user. Attributes that this user cannot
/// set, or the target cannot hold, are counted at the end.
///
/// A volume that is only copied from is not changed. A name that cannot be copied is printed, the
/// rest is copied, and the exit code is 1.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Arguments {
    /// What is copied
    #[arg(value_name = "SRC", required = true, add = ArgValueCompleter::new(complete::places))]
    from: Vec<OsString>,

    /// Where to
    #[arg(value_name = "DST", add = ArgValueCompleter::new(complete::places))]
    to: OsString,

    /// Copy directories with all below them
    #[arg(short, long, visible_short_alias = 'a')]
    recursive: bool,

    #[command(flatten)]
    output: Output,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let to = Place::of(&arguments.to);
    let from: Vec<Place> = arguments.from.iter().map(|text| Place::of(text)).collect();
    if to.image().is_none() && from.iter().all(|place| place.image().is_none()) {
        Inside::of(&to, INSTEAD)?;
    }
    let target = to.image().map(open).transpose()?;
    let copied = copy_all(arguments, &from, &to, target.as_ref());
    let copied = match (target, to.image()) {
        (Some(volume), Some(image)) => close_after(volume, image, copied)?,
        _ => copied?,
    };
    let to = Path::new(&arguments.to);
    arguments.output.copied(to, &copied, "copied")
}

fn copy_all(
    arguments: &Arguments,
    from: &[Place],
    to: &Place,
    target: Option<&Volume>,
) -> Result<Copied> {
    let inside = target.map(to_make_files_in);
    let inside = inside.as_ref();
    let goal_is_dir = is_dir(to, inside)?.unwrap_or(false);
    if from.len() > 1 && !goal_is_dir {
        return Err(
            Failure::new("is not a directory, and there are several sources")
                .about(to)
                .hint("name a directory that is there as the last one"),
        );
    }
    let mut total = Copied::default();
    for place in from {
        let source;
        let source_fs = match place.image() {
            None => None,
            // `target` has it open already.
            image if image == to.image() => inside,
            Some(image) => {
                source = open_read_only(image)?;
                Some(source.file_system())
            }
        };
        let is_tree = is_dir(place, source_fs)?.ok_or_else(|| {
            let missing = io::Error::from(Errno::NOENT);
            Failure::of(&missing).about(place)
        })?;
        if is_tree && !arguments.recursive {
            return Err(Failure::new("is a directory")
                .about(place)
                .hint("-r copies it"));
        }
        let goal = match own_name(place) {
            Some(name) if goal_is_dir => to.with(to.path().join(name)),
            _ => to.clone(),
        };
        let options = CopyOptions {
            skip: skip(to),
            ..CopyOptions::default()
        };
        let copied = copy((place, source_fs), (&goal, inside), &options)?;
        add(&mut total, copied);
    }
    Ok(total)
}

/// A side of a copy, and its file system if it is in a volume.
type Side<'c> = (&'c Place, Option<&'c FileSystem>);

fn copy((from, from_fs): Side<'_>, (to, to_fs): Side<'_>, options: &CopyOptions) -> Result<Copied> {
    let meter = Meter::new(from, to);
    let watch = &mut |event: CopyEvent<'_>| meter.note(&event);
    let (source, target) = (from.path(), to.path());
    let copied = match (from_fs, to_fs) {
        (None, Some(fs)) => fs.copy_in(source, target, options, watch),
        (Some(fs), None) => fs.copy_out(source, target, options, watch),
        (Some(one), Some(other)) => one.copy_across(source, other, target, options, watch),
        (None, None) => return to_mount(from, to),
    };
    let copied = copied.map_err(|error| meter.failure(&error));
    meter.end();
    copied
}

/// The hint where neither side is in a volume.
const INSTEAD: &str =
    "a path in a volume that is not mounted is written VOLUME:/PATH; cp(1) copies all else";

/// Copies within one mount, or from elsewhere into it.
fn to_mount(from: &Place, to: &Place) -> Result<Copied> {
    let target = Inside::of(to, INSTEAD)?;
    let source = match Inside::mounted(from.path()) {
        Ok(source) if source.is_beside(&target) => source,
        Err(Some(failure)) => return Err(failure),
        _ => return into_mount::copy(from, to),
    };
    let job = Job::Copy {
        from: RawPath::from(&*source.path),
        to: RawPath::from(&*target.path),
    };
    Ok(Copied::from(&perform(&source, job, None)?))
}

/// Is the place a directory? `None`: there is no such name.
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
        // A dangling link can be copied.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(linked().then_some(false)),
        Err(error) => Err(Failure::of(&error).about(place)),
    }
}

/// The name that a source gets in a target directory; `None`: only its content is copied.
fn own_name(place: &Place) -> Option<PathBuf> {
    let path = place.path();
    let bytes = path.as_os_str().as_encoded_bytes();
    if bytes.ends_with(b"/") || bytes.ends_with(b"/.") || bytes == b"." {
        return None;
    }
    path.file_name().map(PathBuf::from)
}

/// Device and number of the image file that is copied into: it is left out of the copy.
pub(crate) fn skip(to: &Place) -> Option<(u64, u64)> {
    identity(to.image()?)
}

/// Device and number of a file.
fn identity(path: &Path) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt as _;
    let meta = std::fs::metadata(path).ok()?;
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
