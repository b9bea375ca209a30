//! The workers: each lists directories, and stats names that any of them found.

use super::{
    data,
    pace::Pace,
    queue::{Dir, Queue, Slice, Work},
    sample::Sample,
    totals::Totals,
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

/// Bytes of a directory read at once.
const CHUNK: usize = 256 << 10;
/// Names in a slice.
const SLICE: usize = 32;
/// Longest path of one call.
const PATH_MAX: usize = 4000;

/// The state that workers share.
pub(super) struct Walk {
    pub(super) root: File,
    pub(super) queue: Queue,
    pub(super) pace: Pace,
    pub(super) threads: usize,
    pub(super) totals: Totals,
    pub(super) sample: Option<Sample>,
    /// Sort names by inode number?
    pub(super) by_number: bool,
    /// Enter other file systems?
    pub(super) cross: bool,
    /// Most levels to descend.
    pub(super) depth: usize,
    /// Most bytes to read of each file.
    pub(super) data: Option<u64>,
    pub(super) stop: AtomicBool,
}

/// Opens the top directory; a link is followed.
pub(super) fn open_top(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(File::from(rustix::fs::open(path, flags, Mode::empty())?))
}

/// Is it the error of a name that was removed meanwhile, or is on another file system? Such names
/// are skipped silently.
fn is_passed_over(error: Errno) -> bool {
    matches!(
        error,
        Errno::NOENT | Errno::NOTDIR | Errno::XDEV | Errno::LOOP | Errno::STALE
    )
}

impl Walk {
    /// Runs a worker until there are no more items.
    pub(super) fn work(&self) {
        let mut buffer = vec![MaybeUninit::uninit(); CHUNK];
        let mut was_busy = false;
        while let Some(work) = self.queue.take(was_busy) {
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

    /// Cuts a chunk into slices for the queue; handles those that do not fit itself.
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

    /// Stats the names of a slice.
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
                    match data::readahead_file(&slice.dir, bytes, attributes.stx_size, most) {
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

    /// Updates the progress bar.
    pub(super) fn show(&self, bar: &ProgressBar, elapsed: Duration) {
        let stats = self.totals.stats.load(Relaxed);
        let rate = stats as f64 / elapsed.as_secs_f64().max(1e-9);
        bar.set_message(format!("{stats} names, {rate:.0} a second"));
        bar.tick();
    }
}

/// Splits a path into pieces that are short enough for one call each; the empty path is the top
/// itself.
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
