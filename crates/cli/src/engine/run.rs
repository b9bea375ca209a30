//! Runs a job on a file system.

use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use holdfast::{
    ChangeEvent, ChangeOptions, Changed, Copied, CopyError, CopyEvent, CopyOptions, FileSystem,
    Owners, PackOptions, Side, UnpackOptions,
};

use super::compression::{Compression, compress, decompressed};
use super::job::{Counts, Job, RawPath, Told, Wrong};
use super::names::HostNames;
use super::stream::{ReadAhead, Stoppable};

/// How often progress is told, at most.
const PACE: Duration = Duration::from_millis(100);

/// Runs a job to its end. `archive` is what it unpacks or packs into. `tell` hears of everything but the end,
/// which is the answer.
pub(super) fn run(
    fs: &FileSystem,
    job: &Job,
    archive: Option<OwnedFd>,
    stop: &Arc<AtomicBool>,
    tell: &mut dyn FnMut(Told),
) -> Told {
    let mut told = Paced { tell, last: None };
    let ended = stop;
    let stop = Some(Arc::clone(stop));
    let change = ChangeOptions { stop: stop.clone() };
    let done = match job {
        Job::Copy { from, to } => {
            let options = CopyOptions {
                stop,
                ..CopyOptions::default()
            };
            let (from, to) = (PathBuf::from(from), PathBuf::from(to));
            let copied = fs.copy_across(from, fs, to, &options, &mut |event| told.copy(&event));
            copied.map(|copied| Counts::from(&copied))
        }
        Job::Remove { path } => {
            let path = PathBuf::from(path);
            fs.remove_tree(path, &change, &mut |event| told.change(&event))
                .map(counts)
        }
        Job::Owner { path, uid, gid } => {
            let path = PathBuf::from(path);
            let watch = &mut |event: ChangeEvent<'_>| told.change(&event);
            fs.set_owner_tree(path, *uid, *gid, &change, watch)
                .map(counts)
        }
        Job::Mode { path, mode } => {
            let path = PathBuf::from(path);
            match mode.parse() {
                Ok(mode) => {
                    let watch = &mut |event: ChangeEvent<'_>| told.change(&event);
                    fs.set_mode_tree(path, &mode, &change, watch).map(counts)
                }
                Err(error) => Err(failed(Side::To, path, io::Error::other(error))),
            }
        }
        Job::Unpack { .. } | Job::Pack { .. } => match archive {
            Some(archive) => on_archive(fs, job, archive, ended, &mut told),
            None => Err(failed(
                Side::From,
                PathBuf::new(),
                io::ErrorKind::NotFound.into(),
            )),
        },
    };
    // What reads the archive ahead may be waiting for more of it.
    ended.store(true, Ordering::Relaxed);
    match done {
        Ok(counts) => Told::Done(counts),
        Err(error) => Told::Ended(Wrong::from(&error)),
    }
}

fn on_archive(
    fs: &FileSystem,
    job: &Job,
    archive: OwnedFd,
    stop: &Arc<AtomicBool>,
    told: &mut Paced<'_>,
) -> Result<Counts, CopyError> {
    let of_archive = |side| move |error| failed(side, PathBuf::new(), error);
    let stream = Stoppable::new(archive, Arc::clone(stop));
    let names =
        |numeric: bool| (!numeric).then(|| Arc::new(HostNames::default()) as Arc<dyn Owners>);
    let watch = &mut |event: CopyEvent<'_>| told.copy(&event);
    let copied: Copied = match job {
        Job::Unpack {
            to,
            owners,
            permissions,
            numeric,
        } => {
            let to = PathBuf::from(to);
            match fs.create_dir(&to) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                    return Err(failed(Side::To, to, error));
                }
                _ => {}
            }
            let is_stored = stream.is_stored();
            let (stream, compression) = decompressed(stream).map_err(of_archive(Side::From))?;
            let usual = UnpackOptions::of(fs.caller());
            let options = UnpackOptions {
                owners: owners.unwrap_or(usual.owners),
                permissions: permissions.unwrap_or(usual.permissions),
                names: names(*numeric),
                // A tape or a disk need not be read to its end for an archive on it.
                drain: compression != Compression::None || !is_stored,
                stop: Some(Arc::clone(stop)),
            };
            let mut stream = ReadAhead::of(stream);
            fs.unpack(&mut stream, to, &options, watch)?
        }
        Job::Pack {
            from,
            compression,
            numeric,
        } => {
            let options = PackOptions {
                names: names(*numeric),
                stop: Some(Arc::clone(stop)),
            };
            let packed = compress(stream, *compression, |out| {
                fs.pack(PathBuf::from(from), out, &options, watch)
            });
            packed.map_err(of_archive(Side::To))??
        }
        _ => Copied::default(),
    };
    Ok(Counts::from(&copied))
}

fn counts(changed: Changed) -> Counts {
    Counts::from(&changed)
}

fn failed(side: Side, path: PathBuf, error: io::Error) -> CopyError {
    CopyError { side, path, error }
}

/// Tells everything but too much progress.
struct Paced<'t> {
    tell: &'t mut dyn FnMut(Told),
    last: Option<Instant>,
}

impl Paced<'_> {
    fn copy(&mut self, event: &CopyEvent<'_>) {
        match event {
            CopyEvent::Progress(copied) => self.progress(|| Counts::from(*copied)),
            CopyEvent::Failed(error) => (self.tell)(Told::Failed(Wrong::from(*error))),
            CopyEvent::Skipped(path) => (self.tell)(Told::Skipped(RawPath::shown(path))),
            CopyEvent::Warning { path, text } => (self.tell)(Told::Warning(Wrong {
                is_source: true,
                path: RawPath::shown(path),
                text: (*text).to_owned(),
                no_reader: false,
            })),
        }
    }

    fn change(&mut self, event: &ChangeEvent<'_>) {
        match event {
            ChangeEvent::Progress(changed) => self.progress(|| Counts::from(*changed)),
            ChangeEvent::Failed(error) => (self.tell)(Told::Failed(Wrong::from(*error))),
        }
    }

    fn progress(&mut self, counts: impl FnOnce() -> Counts) {
        if self.last.is_none_or(|last| last.elapsed() >= PACE) {
            self.last = Some(Instant::now());
            (self.tell)(Told::Progress(counts()));
        }
    }
}
