//! The workers: each lists directories, and asks for the attributes of names that it or others found.

use super::{
    Top, data,
    pace::Pace,
    queue::{Dir, Queue, Slice, Work},
    report::Totals,
    sample::Sample,
};
use indicatif::ProgressBar;
use rustix::{
    fd::OwnedFd,
    fs::{AtFlags, FileType, Mode, OFlags, RawDir, ResolveFlags, StatxFlags},
    io::Errno,
};
use std::{
    ffi::OsStr,
    fs::File,
    io,
    mem::MaybeUninit,
    os::unix::ffi::OsStrExt as _,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

/// Bytes of a directory that are read at once.
const CHUNK: usize = 256 << 10;
/// Names that are given away together.
const SLICE: usize = 32;
/// Longest path that one call takes.
const PATH_MAX: usize = 4000;

/// All that workers share.
pub(super) struct Walk {
    pub(super) root: Top,
    pub(super) queue: Queue,
    pub(super) pace: Pace,
    pub(super) totals: Totals,
    pub(super) sample: Option<Sample>,
    /// Is a chunk sorted by inode numbers?
    pub(super) by_number: bool,
    /// Are other file systems entered?
    pub(super) cross: bool,
    /// Directories to go down, at most.
    pub(super) depth: usize,
    /// Bytes of each file to be read.
    pub(super) data: Option<u64>,
    pub(super) stop: AtomicBool,
}

/// Opens the directory that is named; a link to one is followed.
pub(super) fn open_top(path: &Path) -> io::Result<Top> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(File::from(rustix::fs::open(path, flags, Mode::empty())?))
}

/// Did it go meanwhile, or lie elsewhere? Then there is nothing to be told.
fn is_passed_over(error: Errno) -> bool {
    matches!(
        error,
        Errno::NOENT | Errno::NOTDIR | Errno::XDEV | Errno::LOOP | Errno::STALE
    )
}

impl Walk {
    /// Works until there is nothing to do.
    pub(super) fn work(&self, worker: usize) {
        let mut buffer = vec![MaybeUninit::uninit(); CHUNK];
        let mut was_busy = false;
        while let Some(work) = self.queue.take(was_busy, || self.pace.needs(worker)) {
            was_busy = true;
            match work {
                Work::List(dir) => {
                    if let Err(error) = self.list(&dir, &mut buffer)
                        && !is_passed_over(error)
                    {
                        self.totals.failed(&dir.path, error);
                    }
                }
                Work::Ask(slice) => self.ask(&slice),
            }
        }
    }

    fn open(&self, path: &Path) -> rustix::io::Result<OwnedFd> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
        if !self.cross {
            resolve |= ResolveFlags::NO_XDEV;
        }
        let mut held: Option<OwnedFd> = None;
        for piece in pieces(path) {
            let from = held.as_ref().map_or_else(
                || rustix::fd::AsFd::as_fd(&self.root),
                rustix::fd::AsFd::as_fd,
            );
            held = Some(
                match rustix::fs::openat2(from, &piece, flags, Mode::empty(), resolve) {
                    // Before Linux 5.6.
                    Err(Errno::NOSYS) => rustix::fs::openat(from, &piece, flags, Mode::empty())?,
                    opened => opened?,
                },
            );
        }
        held.ok_or(Errno::NOENT)
    }

    fn list(&self, dir: &Dir, buffer: &mut [MaybeUninit<u8>]) -> rustix::io::Result<()> {
        let held = Arc::new(self.open(&dir.path)?);
        self.totals.directories.fetch_add(1, Relaxed);
        let path = Arc::new(dir.path.clone());
        let mut entries = RawDir::new(&held, buffer);
        let mut chunk: Vec<(u64, Vec<u8>)> = Vec::new();
        loop {
            let ended = match entries.next() {
                None => true,
                Some(entry) => {
                    let entry = entry?;
                    let name = entry.file_name().to_bytes();
                    if !matches!(name, b"." | b"..") {
                        chunk.push((entry.ino(), name.to_owned()));
                    }
                    false
                }
            };
            if ended || entries.is_buffer_empty() {
                self.totals.names.fetch_add(chunk.len() as u64, Relaxed);
                self.give_away(&held, &path, dir.depth, std::mem::take(&mut chunk));
            }
            if ended || self.stop.load(Relaxed) {
                return Ok(());
            }
        }
    }

    /// Cuts a chunk into slices, and does those itself that nobody has time for.
    fn give_away(
        &self,
        dir: &Arc<OwnedFd>,
        path: &Arc<PathBuf>,
        depth: usize,
        mut chunk: Vec<(u64, Vec<u8>)>,
    ) {
        if self.by_number {
            chunk.sort_unstable();
        }
        let mut names = chunk.into_iter().map(|(_, name)| name).peekable();
        while names.peek().is_some() && !self.stop.load(Relaxed) {
            let slice = Slice {
                dir: Arc::clone(dir),
                path: Arc::clone(path),
                depth,
                names: names.by_ref().take(SLICE).collect(),
            };
            if let Err(slice) = self.queue.offer(slice) {
                self.ask(&slice);
            }
        }
    }

    /// Asks for the attributes of names.
    fn ask(&self, slice: &Slice) {
        let mut below = Vec::new();
        for bytes in &slice.names {
            if self.stop.load(Relaxed) {
                return;
            }
            self.pace.wait();
            let name = Path::new(OsStr::from_bytes(bytes));
            let begun = Instant::now();
            let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT;
            let found = rustix::fs::statx(&slice.dir, name, flags, StatxFlags::BASIC_STATS);
            let took = begun.elapsed();
            self.pace.answered(took);
            let attributes = match found {
                Ok(attributes) => attributes,
                Err(error) => {
                    if !is_passed_over(error) {
                        self.totals.failed(&slice.path.join(name), error);
                    }
                    continue;
                }
            };
            self.totals.stats.fetch_add(1, Relaxed);
            if let Some(sample) = &self.sample {
                sample.add(&slice.path, name, took);
            }
            match (
                FileType::from_raw_mode(attributes.stx_mode.into()),
                self.data,
            ) {
                (FileType::Directory, _) if slice.depth < self.depth => below.push(Dir {
                    path: slice.path.join(name),
                    depth: slice.depth + 1,
                }),
                (FileType::RegularFile, Some(most)) => {
                    match data::read_ahead(&slice.dir, bytes, attributes.stx_size, most) {
                        Ok(bytes) => _ = self.totals.bytes.fetch_add(bytes, Relaxed),
                        Err(error) if is_passed_over(error) => {}
                        Err(error) => self.totals.failed(&slice.path.join(name), error),
                    }
                }
                _ => {}
            }
        }
        self.queue.add(below);
    }

    /// Shows how far it is.
    pub(super) fn show(&self, bar: &ProgressBar, elapsed: Duration) {
        let stats = self.totals.stats.load(Relaxed);
        let rate = stats as f64 / elapsed.as_secs_f64().max(1e-9);
        let peak = self.pace.peak.load(Relaxed);
        bar.set_message(format!(
            "{stats} names, {rate:.0} a second, up to {peak} at a time"
        ));
        bar.tick();
    }
}

/// A path in pieces that are short enough for one call each; the empty path is the top itself.
fn pieces(path: &Path) -> Vec<PathBuf> {
    let mut pieces = vec![PathBuf::from(".")];
    for part in path {
        match pieces.last_mut() {
            Some(last) if last.as_os_str().len() + part.len() < PATH_MAX => last.push(part),
            _ => pieces.push(part.into()),
        }
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_path_is_cut_into_short_ones() {
        let long: PathBuf = std::iter::repeat_n("x".repeat(100), 100).collect();
        let cut = pieces(&long);
        assert!(cut.len() > 1 && cut.iter().all(|piece| piece.as_os_str().len() <= PATH_MAX));
        assert_eq!(cut.iter().collect::<PathBuf>(), Path::new(".").join(long));
        assert_eq!(pieces(Path::new("")), [PathBuf::from(".")]);
    }
}
