//! What may follow on a command line, for the shells' completions.
//!
//! The shell calls this program with `COMPLETE=SHELL`, and `clap_complete` finds the argument. The
//! functions here answer for its value. An error means that there is nothing to propose.

use crate::copy::place::Place;
use crate::mount::{known::KNOWN, options::words};
use clap_complete::CompletionCandidate as Candidate;
use clap_complete::engine::{PathCompleter, ValueCompleter as _};
use holdfast::Volume;
use holdfast_fuse::mount::mounts;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::Path;

/// Most files of a directory that are looked into for a volume.
const LOOKED_INTO: usize = 64;

/// The last option of a list of `-o`: its name, or its value.
pub(crate) fn mount_options(current: &OsStr) -> Vec<Candidate> {
    let Some(text) = current.to_str() else {
        return Vec::new();
    };
    let (before, item) = text.split_at(text.rfind(',').map_or(0, |at| at + 1));
    let (begin, tails) = match item.split_once('=') {
        None => (item, KNOWN.to_vec()),
        Some((name, value)) => (value, words(name)),
    };
    let fixed = &text[..before.len() + item.len() - begin.len()];
    let tails = tails.into_iter().filter(|tail| tail.starts_with(begin));
    tails
        .map(|tail| Candidate::new(format!("{fixed}{tail}")))
        .collect()
}

/// The mount points of holdfast.
pub(crate) fn mount_points(current: &OsStr) -> Vec<Candidate> {
    let mounts = mounts().unwrap_or_default().into_iter();
    let points = mounts.filter(|mounted| mounted.is_holdfast());
    let points = points.map(|mounted| mounted.mount_point.into_os_string());
    let points = points.filter(|point| point.as_bytes().starts_with(current.as_bytes()));
    points.map(Candidate::new).collect()
}

/// Mount points of holdfast, and all paths.
pub(crate) fn targets(current: &OsStr) -> Vec<Candidate> {
    let mut found = mount_points(current);
    for path in PathCompleter::any().complete(current) {
        if !found
            .iter()
            .any(|other| other.get_value() == path.get_value())
        {
            found.push(path);
        }
    }
    found
}

/// What can be mounted.
pub(crate) fn sources(current: &OsStr) -> Vec<Candidate> {
    let mut found = PathCompleter::any().complete(current);
    if b"mem:".starts_with(current.as_bytes()) {
        found.push(Candidate::new("mem:"));
    }
    if b"pg://".starts_with(current.as_bytes()) {
        found.push(Candidate::new("pg://"));
    }
    found
}

/// Paths of the host, of mounts, and in volumes that are not mounted: `VOLUME:/PATH`.
pub(crate) fn places(current: &OsStr) -> Vec<Candidate> {
    let place = Place::of(current);
    if let Some(image) = place.image() {
        return inside(current, image, place.path()).unwrap_or_default();
    }
    let mut found = targets(current);
    let volumes: Vec<_> = found
        .iter()
        .map(|candidate| candidate.get_value())
        .filter(|path| Path::new(path).is_file())
        .take(LOOKED_INTO)
        .filter(|path| Volume::inspect(path).is_ok())
        .map(|path| [path.as_bytes(), b":/"].concat())
        .collect();
    found.extend(
        volumes
            .into_iter()
            .map(OsString::from_vec)
            .map(Candidate::new),
    );
    found
}

/// The names in a volume that continue `path`, each after the text before its last name.
fn inside(current: &OsStr, image: &Path, path: &Path) -> io::Result<Vec<Candidate>> {
    let path = path.as_os_str().as_bytes();
    let begins_at = path
        .iter()
        .rposition(|&byte| byte == b'/')
        .map_or(0, |at| at + 1);
    let (dir, begin) = path.split_at(begins_at);
    let before = &current.as_bytes()[..current.len() - begin.len()];
    let volume = Volume::open_read_only(image)?;
    let mut found = Vec::new();
    for entry in volume.read_dir(OsStr::from_bytes(dir))? {
        let entry = entry?;
        let slash: &[u8] = if entry.file_type()?.is_dir() {
            b"/"
        } else {
            b""
        };
        let name = entry.file_name();
        if name.as_bytes().starts_with(begin) {
            let whole = [before, name.as_bytes(), slash].concat();
            found.push(Candidate::new(OsString::from_vec(whole)));
        }
    }
    found.sort();
    volume.close()?;
    Ok(found)
}
