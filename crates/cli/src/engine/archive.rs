//! `holdfast unpack` and `holdfast pack`.

use std::ffi::OsString;
use std::fs::File;
use std::io::{IsTerminal as _, Write as _};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use holdfast::Copied;

use super::compression::Compression;
use super::{Inside, Job, RawPath, perform};
use crate::copy::meter::summary;
use crate::copy::place::Place;
use crate::message::{Failure, Result};

/// Unpack a tar archive into a volume, mounted or not
///
/// TAR may be compressed with gzip, xz or zstd, whatever its name is; `-` is standard input. DIR is a
/// directory in a mount of holdfast, where the daemon does the work with this user's rights and without a
/// request of the kernel for each file, or VOLUME:/DIR.
///
/// Kept are what tar(1) keeps: modes, owners (for root; by name where this host knows it), times of
/// modification to the nanosecond, symbolic and hard links, pipes, devices, holes, extended attributes and
/// ACLs. Nothing is made outside of DIR: no name with `..`, an absolute one below DIR, and no symbolic link is
/// followed. What cannot be unpacked, or only in part, is told, and the rest is unpacked; the exit code is 1
/// then. A compressed archive is read to its end, where its damage shows. Interrupting the command stops the
/// work.
#[derive(Debug, clap::Args)]
pub(crate) struct UnpackArguments {
    /// The archive
    #[arg(value_name = "TAR")]
    archive: PathBuf,

    /// Where to; made if it is not there
    #[arg(value_name = "DIR")]
    to: OsString,

    /// Leave all files to this user, as others than root always do
    #[arg(long)]
    no_same_owner: bool,

    /// Give owners by number even where this host knows their names
    #[arg(long)]
    numeric_owner: bool,

    /// Keep permissions as they are in the archive, without this user's umask, as root always does
    #[arg(short = 'p', long)]
    same_permissions: bool,

    /// Say nothing but what goes wrong
    #[arg(short, long)]
    quiet: bool,
}

/// Pack a directory of a volume, mounted or not, into a tar archive
///
/// DIR lies in a mount of holdfast, or is VOLUME:/DIR. The archive is as `tar --format=posix --xattrs --acls
/// --sparse` writes it, with names from DIR on. What cannot be packed is told, and the rest is; the exit
/// code is 1 then.
#[derive(Debug, clap::Args)]
pub(crate) struct PackArguments {
    /// What is packed
    #[arg(value_name = "DIR")]
    from: OsString,

    /// A file to write instead of standard output; its name chooses a compression (.gz .tgz .xz .zst)
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// How it is compressed
    #[arg(short, long, value_name = "KIND")]
    compress: Option<Compression>,

    /// Leave names of users and groups out
    #[arg(long)]
    numeric_owner: bool,
}

pub(crate) fn unpack(arguments: &UnpackArguments) -> Result<()> {
    let place = Place::of(&arguments.to);
    let archive = open(&arguments.archive)?;
    // A link to a directory is followed.
    let is_there = place.image().is_none() && place.path().exists();
    let goal = if is_there {
        place.with(place.path().join(""))
    } else {
        place
    };
    let inside = Inside::of(&goal, "tar(1) unpacks there")?;
    let job = Job::Unpack {
        to: RawPath::from(&*inside.path),
        owners: arguments.no_same_owner.then_some(false),
        permissions: arguments.same_permissions.then_some(true),
        numeric: arguments.numeric_owner,
    };
    let counts = perform(&inside, job, Some((archive, &arguments.archive)))?;
    let copied = Copied::from(&counts);
    let summary = summary(Path::new(&arguments.to), &copied, arguments.quiet);
    anstream::stdout().write_all(summary.as_bytes())?;
    not_done(counts.failed, "unpacked as the archive has them")
}

pub(crate) fn pack(arguments: &PackArguments) -> Result<()> {
    let place = Place::of(&arguments.from);
    let inside = Inside::of(&place, "tar(1) packs it")?;
    let out: OwnedFd = match &arguments.output {
        Some(path) => File::create(path)
            .map_err(|error| Failure::new(error.to_string()).at(path))?
            .into(),
        None if std::io::stdout().is_terminal() => {
            return Err(Failure::new("an archive is not for a terminal").hint("-o FILE, or > FILE"));
        }
        None => rustix::io::dup(std::io::stdout()).map_err(std::io::Error::from)?,
    };
    let named = arguments.output.as_deref().map(Compression::of_name);
    let job = Job::Pack {
        from: RawPath::from(&*inside.path),
        compression: arguments.compress.or(named).unwrap_or_default(),
        numeric: arguments.numeric_owner,
    };
    let name = arguments.output.as_deref();
    let name = name.unwrap_or(Path::new("standard output"));
    let counts = perform(&inside, job, Some((out, name)))?;
    not_done(counts.failed, "packed")
}

fn open(path: &Path) -> Result<OwnedFd> {
    if path == Path::new("-") {
        return Ok(rustix::io::dup(std::io::stdin()).map_err(std::io::Error::from)?);
    }
    let opened = File::open(path).map_err(|error| Failure::new(error.to_string()).at(path))?;
    Ok(opened.into())
}

fn not_done(failed: u64, what: &str) -> Result<()> {
    if failed > 0 {
        return Err(Failure::new(format!("{failed} names were not {what}")));
    }
    Ok(())
}
