//! `holdfast unpack` and `holdfast pack`.

use std::ffi::OsString;
use std::fs::File;
use std::io::IsTerminal as _;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use clap_complete::ArgValueCompleter;
use holdfast::Copied;

use super::compression::Compression;
use super::{Inside, Job, RawPath, perform};
use crate::complete;
use crate::copy::place::Place;
use crate::message::{Failure, Result, unless_failed};
use crate::output::{Output, counts, print_json};

/// Unpack a tar archive into a volume, mounted or not
///
/// TAR may be compressed with gzip, xz or zstd, whatever its name is; `-` is standard input. DIR is
/// a directory in a mount of holdfast, or VOLUME:/DIR. In a mount the daemon does the work with
/// this user's rights, without a kernel request for each file.
///
/// Kept is what tar(1) keeps: modes, owners (for root; by name if this host knows it), modification
/// times to the nanosecond, links, pipes, devices, holes, extended attributes and ACLs. Nothing is
/// made outside of DIR: names with `..` are refused, absolute names are taken below DIR, and no
/// symbolic link is followed. A member that cannot be unpacked completely is printed, the rest is
/// unpacked, and the exit code is 1. A compressed archive is read to its end, where checksums show
/// damage. Interrupting the command stops the work.
#[derive(Debug, clap::Args)]
pub(crate) struct UnpackArguments {
    /// The archive
    #[arg(value_name = "TAR")]
    archive: PathBuf,

    /// The target directory; made if it does not exist
    #[arg(value_name = "DIR", add = ArgValueCompleter::new(complete::places))]
    to: OsString,

    /// Give all files to this user, as always happens without root
    #[arg(long)]
    no_same_owner: bool,

    /// Give owners by number even where this host knows their names
    #[arg(long)]
    numeric_owner: bool,

    /// Set permissions as the archive has them, without this user's umask, as always happens for
    /// root
    #[arg(short = 'p', long)]
    same_permissions: bool,

    #[command(flatten)]
    output: Output,
}

/// Pack a directory of a volume, mounted or not, into a tar archive
///
/// DIR is in a mount of holdfast, or is VOLUME:/DIR. The archive is as
/// `tar --format=posix --xattrs --acls --sparse` writes it, with names relative to DIR. A name that
/// cannot be packed is printed, the rest is packed, and the exit code is 1.
#[derive(Debug, clap::Args)]
pub(crate) struct PackArguments {
    /// The directory to pack
    #[arg(value_name = "DIR", add = ArgValueCompleter::new(complete::places))]
    from: OsString,

    /// A file to write instead of standard output; its name chooses a compression (.gz .tgz .xz
    /// .zst)
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// The compression
    #[arg(short, long, value_name = "KIND")]
    compress: Option<Compression>,

    /// Leave names of users and groups out
    #[arg(long)]
    numeric_owner: bool,

    /// Print one line of JSON
    #[arg(long, requires = "output")]
    json: bool,
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
    let unpacked = perform(&inside, job, Some((archive, &arguments.archive)))?;
    let to = Path::new(&arguments.to);
    let done = "unpacked as the archive has them";
    arguments.output.copied(to, &Copied::from(&unpacked), done)
}

pub(crate) fn pack(arguments: &PackArguments) -> Result<()> {
    let place = Place::of(&arguments.from);
    let inside = Inside::of(&place, "tar(1) packs it")?;
    let out: OwnedFd = match &arguments.output {
        Some(path) => File::create(path)
            .map_err(|error| Failure::of(&error).at(path))?
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
    let done = perform(&inside, job, Some((out, name)))?;
    if arguments.json {
        print_json(&counts(&Copied::from(&done)))?;
    }
    unless_failed(done.failed, "packed")
}

fn open(path: &Path) -> Result<OwnedFd> {
    if path == Path::new("-") {
        return Ok(rustix::io::dup(std::io::stdin()).map_err(std::io::Error::from)?);
    }
    let opened = File::open(path).map_err(|error| Failure::of(&error).at(path))?;
    Ok(opened.into())
}
