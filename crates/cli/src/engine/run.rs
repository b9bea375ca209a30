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

use super::batch::{Wanted, read_files, write_files};
use super::compression::{Compression, compress, decompressed};
use super::job::{Counts, Event, Job, RawPath, Wrong};
use super::listing::list;
use super::names::HostNames;
use super::stream::{Readahead, Stoppable};

/// Least time between two progress events.
const PACE: Duration = Duration::from_millis(100);

/// Runs a job. `archive` is the archive to unpack or to write, or the memory file or pipe of a job
/// for many files. `tell` receives all events but the
/// last, which is returned.
pub(super) fn run(
    fs: &FileSystem,
    job: &Job,
    archive: Option<OwnedFd>,
    stop: &Arc<AtomicBool>,
    tell: &mut dyn FnMut(Event),
) -> Event {
    let mut paced = Paced { tell, last: None };
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
            let copied = fs.copy_across(from, fs, to, &options, &mut |event| paced.copy(&event));
            copied.map(|copied| Counts::from(&copied))
        }
        Job::Remove { path } => {
            let path = PathBuf::from(path);
            fs.remove_tree(path, &change, &mut |event| paced.change(&event))
                .map(counts)
        }
        Job::Owner { path, uid, gid } => {
            let path = PathBuf::from(path);
            let watch = &mut |event: ChangeEvent<'_>| paced.change(&event);
            fs.set_owner_tree(path, *uid, *gid, &change, watch)
                .map(counts)
        }
        Job::Mode { path, mode } => {
            let path = PathBuf::from(path);
            match mode.parse() {
                Ok(mode) => {
                    let watch = &mut |event: ChangeEvent<'_>| paced.change(&event);
                    fs.set_mode_tree(path, &mode, &change, watch).map(counts)
                }
                Err(error) => Err(failed(Side::To, path, io::Error::other(error))),
            }
        }
        _ => match archive {
            Some(memory) if is_batch(job) => on_memory(fs, job, memory, ended),
            Some(archive) => on_archive(fs, job, archive, ended, &mut paced),
            None => Err(failed(
                Side::From,
                PathBuf::new(),
                io::ErrorKind::NotFound.into(),
            )),
        },
    };
    // The read-ahead thread may be waiting for more of the archive.
    ended.store(true, Ordering::Relaxed);
    match done {
        Ok(counts) => Event::Done(counts),
        Err(error) => Event::Ended(Wrong::from(&error)),
    }
}

/// Is it work on many files by a memory file?
fn is_batch(job: &Job) -> bool {
    matches!(
        job,
        Job::Read | Job::ReadRanges | Job::Stat | Job::Write { .. }
    )
}

fn on_memory(
    fs: &FileSystem,
    job: &Job,
    memory: OwnedFd,
    stop: &AtomicBool,
) -> Result<Counts, CopyError> {
    let done = match job {
        Job::Write { request } => write_files(fs, *request, memory, stop),
        Job::ReadRanges => read_files(fs, Wanted::Parts, memory, stop),
        Job::Stat => read_files(fs, Wanted::Attributes, memory, stop),
        _ => read_files(fs, Wanted::Contents, memory, stop),
    };
    done.map(|done| Counts::from(&done))
        .map_err(|error| failed(Side::From, PathBuf::new(), error))
}

fn on_archive(
    fs: &FileSystem,
    job: &Job,
    archive: OwnedFd,
    stop: &Arc<AtomicBool>,
    paced: &mut Paced<'_>,
) -> Result<Counts, CopyError> {
    let of_archive = |side| move |error| failed(side, PathBuf::new(), error);
    let stream = Stoppable::new(archive, Arc::clone(stop));
    let names =
        |numeric: bool| (!numeric).then(|| Arc::new(HostNames::default()) as Arc<dyn Owners>);
    let watch = &mut |event: CopyEvent<'_>| paced.copy(&event);
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
                // An uncompressed archive on a tape or disk is not read to the device's end.
                drain: compression != Compression::None || !is_stored,
                stop: Some(Arc::clone(stop)),
            };
            let mut stream = Readahead::of(stream);
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
                ..PackOptions::default()
            };
            let packed = compress(stream, *compression, |out| {
                fs.pack(PathBuf::from(from), out, &options, watch)
            });
            packed.map_err(of_archive(Side::To))??
        }
        Job::List { top, depth } => {
            let mut out = stream;
            // A file of this mount would be written by requests that this daemon answers.
            if out.is_stored() {
                let error = io::ErrorKind::InvalidInput.into();
                return Err(failed(Side::To, PathBuf::new(), error));
            }
            list(fs, PathBuf::from(top), *depth, &mut out)
                .map_err(|(path, error)| failed(Side::From, path, error))?
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

/// Passes events on, progress at most once in [`PACE`].
struct Paced<'t> {
    tell: &'t mut dyn FnMut(Event),
    last: Option<Instant>,
}

impl Paced<'_> {
    fn copy(&mut self, event: &CopyEvent<'_>) {
        match event {
            CopyEvent::Progress(copied) => self.progress(|| Counts::from(*copied)),
            CopyEvent::Failed(error) => (self.tell)(Event::Failed(Wrong::from(*error))),
            CopyEvent::Skipped(path) => (self.tell)(Event::Skipped(RawPath::shown(path))),
            CopyEvent::Warning { path, text } => (self.tell)(Event::Warning(Wrong {
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
            ChangeEvent::Failed(error) => (self.tell)(Event::Failed(Wrong::from(*error))),
        }
    }

    fn progress(&mut self, counts: impl FnOnce() -> Counts) {
        if self.last.is_none_or(|last| last.elapsed() >= PACE) {
            self.last = Some(Instant::now());
            (self.tell)(Event::Progress(counts()));
        }
    }
}
