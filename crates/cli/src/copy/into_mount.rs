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
use std::path::Path;
use std::thread;

/// Bytes of the pipe, and of a write to it.
const PIPE: usize = 1 << 20;

/// Copies a path of the host to `to`, which is in a mount.
///
/// # Errors
/// If nothing more can be read or written. Names that failed are only counted.
pub(super) fn copy(from: &Place, to: &Place) -> Result<Copied> {
    let failed = |error: io::Error| Failure::of(&error).about(to);
    let source = from.path();
    // A link is followed only where the path has a slash behind it.
    let about = match source.as_os_str().as_encoded_bytes().last() {
        Some(b'/') => fs::metadata(source),
        _ => fs::symlink_metadata(source),
    };
    let is_tree = about
        .map_err(|error| Failure::of(&error).about(from))?
        .is_dir();
    // The directory of the mount that gets the content of the tree, or the name.
    let whole = std::path::absolute(to.path()).map_err(failed)?;
    let dir = if is_tree {
        &whole
    } else {
        whole.parent().unwrap_or(&whole)
    };
    if is_tree
        && let Err(error) = fs::create_dir(dir)
        && !dir.is_dir()
    {
        return Err(failed(error));
    }
    let dir = dir.join("");
    let name = whole.file_name().filter(|_| !is_tree);
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

/// Writes the archive into the pipe; prints names that cannot be read.
fn pack(
    from: &Path,
    pipe: OwnedFd,
    options: &PackOptions,
) -> std::result::Result<Copied, CopyError> {
    let watch = &mut |event: CopyEvent<'_>| match event {
        CopyEvent::Failed(error) => {
            // A single file has its new name in the archive.
            let path = options.name.as_ref().map_or(&*error.path, |_| from);
            Failure::new(&error.error).at(path).print();
        }
        CopyEvent::Skipped(path) => {
            let failure = Failure::new("is a socket, which is left out");
            failure.at(&from.join(path)).print();
        }
        // Packing warns of nothing.
        CopyEvent::Warning { .. } | CopyEvent::Progress(_) => {}
    };
    let mut pipe = BufWriter::with_capacity(PIPE, File::from(pipe));
    pack_host(from, &mut pipe, options, watch)
}
