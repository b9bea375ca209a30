//! The contents of many files into one memory file: for programs that read data sets.
//!
//! The file that is handed over begins with the request: the number of paths as `u32`, then each
//! path behind its length as `u16`. The answer follows at the next multiple of 8: an `i64` for each
//! path, and after them the contents, without gaps. A number from 0 up is the length of a content,
//! a smaller one the negative number of an error. [`LEFT_OUT`] stands for a content that has no
//! room. All numbers are little-endian.
//!
//! No symbolic link is followed as the last name: a link's target may lie outside of the mount,
//! which only the kernel of the client can tell.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use holdfast::types::Errno;
use holdfast::{Copied, FileSystem, OpenOptions};
use rustix::fs::{FsWord, fstatfs};

/// Bytes of a request, at most.
const REQUEST_MAX: u64 = 4 << 20;
/// Bytes of all contents, at most: they are charged to the daemon until the client has read them.
const CONTENTS_MAX: usize = 32 << 20;
/// Bytes that are written at once.
const CHUNK: usize = 256 << 10;
/// The number for a content that has no room.
const LEFT_OUT: i64 = i64::MIN;
/// The type of memory files in statfs(2).
const TMPFS_MAGIC: FsWord = 0x0102_1994;

/// Answers the request in `memory`.
///
/// # Errors
/// `InvalidInput` for what is no memory file or no request; `ECANCELED` when stopped; those of the
/// file. Errors of the paths are part of the answer.
pub(super) fn read_files(
    fs: &FileSystem,
    memory: OwnedFd,
    stop: &AtomicBool,
) -> io::Result<Copied> {
    // A file of this mount would be written by a request that this daemon answers.
    if fstatfs(&memory)?.f_type != TMPFS_MAGIC {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let memory = File::from(memory);
    let size = memory.metadata()?.len();
    if size > REQUEST_MAX {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut request = vec![0; size as usize];
    memory.read_exact_at(&mut request, 0)?;
    let paths = paths(&request).ok_or(io::ErrorKind::InvalidInput)?;

    let table = size.next_multiple_of(8);
    let mut place = table + 8 * paths.len() as u64;
    let mut numbers = Vec::with_capacity(8 * paths.len());
    let mut chunk = Vec::with_capacity(2 * CHUNK);
    let mut left = CONTENTS_MAX;
    let mut done = Copied::default();
    for path in paths {
        // Relaxed: the flag carries nothing else.
        if stop.load(Ordering::Relaxed) {
            return Err(Errno::ECANCELED.into());
        }
        let number = match read(fs, path, left, &mut chunk) {
            Ok(Some(len)) => {
                left -= len;
                done.files += 1;
                done.bytes += len as u64;
                len as i64
            }
            Ok(None) => LEFT_OUT,
            Err(error) => {
                done.failed += 1;
                -i64::from(error.raw_os_error().unwrap_or(Errno::EIO.raw()))
            }
        };
        numbers.extend_from_slice(&number.to_le_bytes());
        if chunk.len() >= CHUNK {
            memory.write_all_at(&chunk, place)?;
            place += chunk.len() as u64;
            chunk.clear();
        }
    }
    memory.write_all_at(&chunk, place)?;
    memory.write_all_at(&numbers, table)?;
    Ok(done)
}

/// The paths of a request; `None` if it is malformed.
fn paths(request: &[u8]) -> Option<Vec<&Path>> {
    let (count, mut rest) = request.split_first_chunk()?;
    // Each path has two bytes at least.
    let count = u32::from_le_bytes(*count) as usize;
    let mut paths = Vec::with_capacity(count.min(rest.len() / 2));
    for _ in 0..count {
        let (len, behind) = rest.split_first_chunk()?;
        let (path, behind) = behind.split_at_checked(u16::from_le_bytes(*len).into())?;
        paths.push(Path::new(OsStr::from_bytes(path)));
        rest = behind;
    }
    rest.is_empty().then_some(paths)
}

/// Appends the content of a regular file; `None` if it has more than `left` bytes.
fn read(fs: &FileSystem, path: &Path, left: usize, to: &mut Vec<u8>) -> io::Result<Option<usize>> {
    let file = fs.open_with(path, OpenOptions::new().read(true).no_follow(true))?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(Errno::EINVAL.into());
    }
    let Some(len) = usize::try_from(metadata.len())
        .ok()
        .filter(|len| *len <= left)
    else {
        return Ok(None);
    };
    let start = to.len();
    to.resize(start + len, 0);
    let read = file.read_at(&mut to[start..], 0);
    to.truncate(start + *read.as_ref().unwrap_or(&0));
    read.map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{MemfdFlags, memfd_create};

    fn memory(content: &[u8]) -> OwnedFd {
        let memory = File::from(memfd_create("request", MemfdFlags::CLOEXEC).unwrap());
        memory.write_all_at(content, 0).unwrap();
        memory.into()
    }

    fn request(paths: &[&str]) -> Vec<u8> {
        let mut request = (paths.len() as u32).to_le_bytes().to_vec();
        for path in paths {
            request.extend((path.len() as u16).to_le_bytes());
            request.extend(path.as_bytes());
        }
        request
    }

    /// The numbers of an answer, and the bytes behind them.
    fn answered(fs: &FileSystem, paths: &[&str]) -> (Vec<i64>, Vec<u8>) {
        let request = request(paths);
        let descriptor = memory(&request);
        let answer = File::from(descriptor.try_clone().unwrap());
        read_files(fs, descriptor, &AtomicBool::new(false)).unwrap();
        let table = request.len().next_multiple_of(8);
        let mut bytes = vec![0; answer.metadata().unwrap().len() as usize];
        answer.read_exact_at(&mut bytes, 0).unwrap();
        let (numbers, contents) = bytes[table..].split_at(8 * paths.len());
        let numbers = numbers.chunks(8);
        let numbers = numbers.map(|it| i64::from_le_bytes(it.try_into().unwrap()));
        (numbers.collect(), contents.to_vec())
    }

    #[test]
    fn contents_follow_each_other_and_errors_have_their_places() {
        let fs = FileSystem::memory();
        fs.create_dir("/dir").unwrap();
        fs.write("/dir/a", "one").unwrap();
        fs.write("/b", vec![7; 2 * CHUNK]).unwrap();
        fs.write("/empty", "").unwrap();
        fs.symlink("b", "/link").unwrap();
        let paths = ["/dir/a", "/gone", "/b", "/link", "/dir", "/empty", "dir/a"];
        let (numbers, contents) = answered(&fs, &paths);
        let [gone, link, dir] =
            [Errno::ENOENT, Errno::ELOOP, Errno::EINVAL].map(|it| -i64::from(it.raw()));
        assert_eq!(numbers, [3, gone, 2 * CHUNK as i64, link, dir, 0, 3]);
        let expected = [b"one", &vec![7; 2 * CHUNK][..], b"one"].concat();
        assert!(contents == expected);
    }

    #[test]
    fn contents_beyond_the_limit_are_left_out() {
        let fs = FileSystem::memory();
        fs.write("/large", vec![1; CONTENTS_MAX - 5]).unwrap();
        fs.write("/small", "123456").unwrap();
        fs.write("/tiny", "12345").unwrap();
        let (numbers, _) = answered(&fs, &["/large", "/small", "/tiny", "/small"]);
        assert_eq!(numbers, [CONTENTS_MAX as i64 - 5, LEFT_OUT, 5, LEFT_OUT]);
    }

    #[test]
    fn what_is_no_request_is_refused() {
        let fs = FileSystem::memory();
        let whole = request(&["/a", "/b"]);
        for len in 0..whole.len() {
            assert_eq!(paths(&whole[..len]), None);
        }
        assert_eq!(paths(&[&whole[..], b"x"].concat()), None);
        let stop = AtomicBool::new(false);
        let many = [&u32::MAX.to_le_bytes()[..], &[0; 100]].concat();
        for wrong in [many, Vec::new(), vec![0; REQUEST_MAX as usize + 1]] {
            read_files(&fs, memory(&wrong), &stop).unwrap_err();
        }
        let (pipe, _) = rustix::pipe::pipe().unwrap();
        let error = read_files(&fs, pipe, &stop).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
        stop.store(true, Ordering::Relaxed);
        let error = read_files(&fs, memory(&whole), &stop).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(Errno::ECANCELED.raw()));
    }
}
