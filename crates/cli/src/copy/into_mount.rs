//! Copies from the host into a mount.
//!
//! This process reads the source with its own rights and sends it as an archive through a pipe. The
//! daemon gets the descriptor of the pipe, and writes with the rights of this process. So the
//! daemon opens no path of the host, and no hanging file system of the source can hold it up.

use super::meter::Meter;
use super::place::Place;
use super::{INSTEAD, identity};
use crate::engine::{Inside, Job, RawPath, perform};
use crate::message::{Failure, Result};
use holdfast::{Copied, CopyError, CopyEvent, PackOptions, pack_host};
use rustix::pipe::{PipeFlags, fcntl_setpipe_size, pipe_with};
use std::fs::{self, File};
use std::io::{self, BufWriter};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::thread;

/// Bytes of the pipe, and of a write to it.
const PIPE: usize = 1 << 20;

/// Copies a path of the host to `to`, which is in a mount.
///
/// # Errors
/// If nothing more can be read or written. Names that failed are only counted.
pub(super) fn copy(from: &Place, to: &Place) -> Result<Copied> {
    let source = from.path();
    // A link is followed only where the path ends with a slash.
    let is_followed = source.as_os_str().as_encoded_bytes().ends_with(b"/");
    let about = match is_followed {
        true => fs::metadata(source),
        false => fs::symlink_metadata(source),
    };
    let is_tree = about
        .map_err(|error| Failure::of(&error).about(from))?
        .is_dir();
    let dir = target_dir(to, is_tree)?;
    let name = to.path().file_name().filter(|_| !is_tree);
    let options = PackOptions {
        skip: identity(&dir).filter(|_| is_tree),
        name: name.map(ToOwned::to_owned),
        access_times: true,
        ..PackOptions::default()
    };
    let inside = Inside::of(&Place::Host(dir), INSTEAD)?;
    let job = Job::Unpack {
        to: RawPath::from(&*inside.path),
        owners: Some(true),
        permissions: Some(true),
        numeric: true,
    };
    let (ours, theirs) = pipe_with(PipeFlags::CLOEXEC).map_err(io::Error::from)?;
    // A pipe of the usual size is only slower.
    let _ = fcntl_setpipe_size(&theirs, PIPE);
    let (written, packed) = thread::scope(|scope| {
        let packer = scope.spawn(|| pack(source, theirs, &options));
        let written = perform(&inside, job, Some((ours, source)));
        (written, packer.join())
    });
    let packed = packed.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    match packed {
        Ok(packed) => {
            let mut copied = Copied::from(&written?);
            copied.failed += packed.failed;
            Ok(copied)
        }
        // The daemon ended the job, and says why.
        Err(error) if error.error.kind() == io::ErrorKind::BrokenPipe => {
            let ended = Failure::new("its daemon ended before the work did").about(to);
            written.and(Err(ended.hint("the daemon's log has the reason")))
        }
        Err(error) => Err(Meter::new(from, to).failure(&error)),
    }
}

/// The directory of the mount that gets the content of a tree, or another name. A tree's is made.
fn target_dir(to: &Place, is_tree: bool) -> Result<PathBuf> {
    let failed = |error: io::Error| Failure::of(&error).about(to);
    if !is_tree {
        let whole = std::path::absolute(to.path()).map_err(failed)?;
        return Ok(whole.parent().unwrap_or(&whole).join(""));
    }
    match fs::create_dir(to.path()) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(failed(error)),
        _ => Ok(to.path().join("")),
    }
}

/// Writes the archive into the pipe; prints names that cannot be read.
fn pack(
    from: &Path,
    pipe: OwnedFd,
    options: &PackOptions,
) -> std::result::Result<Copied, CopyError> {
    let watch = &mut |event: CopyEvent<'_>| match event {
        CopyEvent::Failed(error) => {
            // A single file has its new name in the archive.
            let is_single = options.name.is_some();
            let path = if is_single { from } else { &*error.path };
            Failure::new(&error.error).at(path).print();
        }
        CopyEvent::Warning { path, text } => Failure::new(text).at(path).print(),
        CopyEvent::Skipped(path) => {
            let failure = Failure::new("is a socket, which is left out");
            failure.at(&from.join(path)).print();
        }
        CopyEvent::Progress(_) => {}
    };
    let mut pipe = BufWriter::with_capacity(PIPE, File::from(pipe));
    pack_host(from, &mut pipe, options, watch)
}
