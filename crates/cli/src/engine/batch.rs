//! Many files in one job, by a memory file: for programs that read and write data sets.
//!
//! The file that is handed over begins with the request: the number of paths as `u32`, then each
//! path behind its length as `u16`; for [`Job::ReadRanges`](super::Job::ReadRanges) two `i64`
//! follow each path, the begin and the end of the part, as Python's slices count them. At the next
//! multiple of 8 there is an `i64` for each path, and after them the contents, without gaps. A
//! number from 0 up is the length of a content, a smaller one the negative number of an error.
//! [`LEFT_OUT`] stands for a content that has no room. All numbers are little-endian.
//!
//! The daemon answers with numbers and contents, or for [`Job::Stat`](super::Job::Stat) with
//! [rows](row) of attributes as contents. For [`Job::Write`](super::Job::Write) they are there, and
//! the daemon puts errors in place of their numbers.
//!
//! No symbolic link is followed as the last name: a link's target may lie outside of the mount,
//! which only the kernel of the client can tell.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Seek as _, SeekFrom, Write as _};
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use holdfast::types::Errno;
use holdfast::{Copied, FileSystem, OpenOptions, row};
use rustix::fs::{FsWord, fstatfs};

/// Bytes of a request, at most.
const REQUEST_MAX: u64 = 4 << 20;
/// Bytes of all contents of an answer, at most: they are charged to the daemon until the client has
/// read them.
const CONTENTS_MAX: usize = 32 << 20;
/// Bytes that are read or written at once.
const CHUNK: usize = 256 << 10;
/// The number for a content that has no room.
const LEFT_OUT: i64 = i64::MIN;
/// The type of memory files in statfs(2).
const TMPFS_MAGIC: FsWord = 0x0102_1994;
/// The whole of a content.
const WHOLE: Range<i64> = 0..i64::MAX;

/// What is wanted of the files.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted {
    Contents,
    Parts,
    Attributes,
}

/// Answers the request in `memory`.
///
/// # Errors
/// `InvalidInput` for what is no memory file or no request; `ECANCELED` when stopped; those of the
/// file. Errors of the paths are part of the answer.
pub(super) fn read_files(
    fs: &FileSystem,
    wanted: Wanted,
    memory: OwnedFd,
    stop: &AtomicBool,
) -> io::Result<Copied> {
    let memory = memory_file(memory)?;
    let size = memory.metadata()?.len();
    let request = request(&memory, size)?;
    let files = files(&request, wanted == Wanted::Parts).ok_or(io::ErrorKind::InvalidInput)?;

    let table = size.next_multiple_of(8);
    let mut place = table + 8 * files.len() as u64;
    let mut numbers = Vec::with_capacity(8 * files.len());
    let mut chunk = Vec::with_capacity(2 * CHUNK);
    let mut left = CONTENTS_MAX;
    let mut done = Copied::default();
    for (path, part) in files {
        check(stop)?;
        let found = match wanted {
            Wanted::Attributes => attributes(fs, path, &mut chunk),
            _ => read(fs, path, &part, left, &mut chunk),
        };
        let number = match found {
            Ok(Some(len)) => {
                left = left.saturating_sub(len);
                done.files += 1;
                done.bytes += len as u64;
                len as i64
            }
            Ok(None) => LEFT_OUT,
            Err(error) => failed(&mut done, &error),
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

/// Makes or replaces files. Their paths and contents are in `memory`, which begins with a request
/// of `len` bytes.
///
/// # Errors
/// As [`read_files`].
pub(super) fn write_files(
    fs: &FileSystem,
    len: u64,
    memory: OwnedFd,
    stop: &AtomicBool,
) -> io::Result<Copied> {
    let memory = memory_file(memory)?;
    let request = request(&memory, len)?;
    let files = files(&request, false).ok_or(io::ErrorKind::InvalidInput)?;
    let table = len.next_multiple_of(8);
    let mut numbers = vec![0; 8 * files.len()];
    memory.read_exact_at(&mut numbers, table)?;

    let mut contents = BufReader::with_capacity(CHUNK, &memory);
    contents.seek(SeekFrom::Start(table + numbers.len() as u64))?;
    let mut done = Copied::default();
    let (slots, _) = numbers.as_chunks_mut();
    for ((path, _), slot) in files.into_iter().zip(slots) {
        check(stop)?;
        let len = i64::from_le_bytes(*slot);
        let len = u64::try_from(len).map_err(|_| io::ErrorKind::InvalidInput)?;
        match write(fs, path, len, &mut contents)? {
            Ok(()) => {
                done.files += 1;
                done.bytes += len;
            }
            Err(error) => *slot = failed(&mut done, &error).to_le_bytes(),
        }
    }
    memory.write_all_at(&numbers, table)?;
    Ok(done)
}

/// Refuses another file than one in memory: a file of this mount would be read and written by
/// requests that this daemon answers.
fn memory_file(memory: OwnedFd) -> io::Result<File> {
    match fstatfs(&memory)?.f_type {
        TMPFS_MAGIC => Ok(File::from(memory)),
        _ => Err(io::ErrorKind::InvalidInput.into()),
    }
}

fn request(memory: &File, len: u64) -> io::Result<Vec<u8>> {
    if len > REQUEST_MAX {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut request = vec![0; len as usize];
    memory.read_exact_at(&mut request, 0)?;
    Ok(request)
}

fn check(stop: &AtomicBool) -> io::Result<()> {
    // Relaxed: the flag carries nothing else.
    match stop.load(Ordering::Relaxed) {
        true => Err(Errno::ECANCELED.into()),
        false => Ok(()),
    }
}

/// Counts a file that failed; returns its number in the answer.
fn failed(done: &mut Copied, error: &io::Error) -> i64 {
    done.failed += 1;
    -i64::from(error.raw_os_error().unwrap_or(Errno::EIO.raw()))
}

/// The paths of a request, and the parts if it has some; `None` if it is malformed.
fn files(request: &[u8], has_parts: bool) -> Option<Vec<(&Path, Range<i64>)>> {
    let (count, mut rest) = request.split_first_chunk()?;
    // Each path has two bytes at least.
    let count = u32::from_le_bytes(*count) as usize;
    let mut files = Vec::with_capacity(count.min(rest.len() / 2));
    for _ in 0..count {
        let (len, behind) = rest.split_first_chunk()?;
        let (path, behind) = behind.split_at_checked(u16::from_le_bytes(*len).into())?;
        let path = Path::new(OsStr::from_bytes(path));
        rest = behind;
        let mut part = WHOLE;
        if has_parts {
            for end in [&mut part.start, &mut part.end] {
                let (place, behind) = rest.split_first_chunk()?;
                *end = i64::from_le_bytes(*place);
                rest = behind;
            }
        }
        files.push((path, part));
    }
    rest.is_empty().then_some(files)
}

/// Appends a part of the content of a regular file; `None` if it has more than `left` bytes.
fn read(
    fs: &FileSystem,
    path: &Path,
    part: &Range<i64>,
    left: usize,
    to: &mut Vec<u8>,
) -> io::Result<Option<usize>> {
    let file = fs.open_with(path, OpenOptions::new().read(true).no_follow(true))?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(Errno::EINVAL.into());
    }
    let size = metadata.len();
    let [begin, end] = [part.start, part.end].map(|place| match u64::try_from(place) {
        Ok(place) => place.min(size),
        Err(_) => size.saturating_sub(place.unsigned_abs()),
    });
    let Some(len) = usize::try_from(end.saturating_sub(begin))
        .ok()
        .filter(|len| *len <= left)
    else {
        return Ok(None);
    };
    let start = to.len();
    to.resize(start + len, 0);
    let read = file.read_at(&mut to[start..], begin);
    to.truncate(start + *read.as_ref().unwrap_or(&0));
    read.map(Some)
}

/// Appends the attributes of what has this path.
fn attributes(fs: &FileSystem, path: &Path, to: &mut Vec<u8>) -> io::Result<Option<usize>> {
    let metadata = fs.symlink_metadata(path)?;
    row::put(metadata.attr(), to);
    Ok(Some(row::ROW))
}

/// Makes or replaces a regular file of the next `len` bytes of `contents`, which are consumed.
///
/// # Errors
/// Those of `contents`, around those of the file.
fn write(
    fs: &FileSystem,
    path: &Path,
    len: u64,
    contents: &mut BufReader<&File>,
) -> io::Result<io::Result<()>> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).no_follow(true);
    let mut file = fs.open_with(path, &options).and_then(|file| {
        if !file.metadata()?.is_file() {
            return Err(Errno::EINVAL.into());
        }
        file.set_len(0)?;
        Ok(file)
    });
    let mut left = len;
    while left > 0 {
        let bytes = contents.fill_buf()?;
        let bytes = &bytes[..left.min(bytes.len() as u64) as usize];
        if bytes.is_empty() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if let Ok(open) = &mut file
            && let Err(error) = open.write_all(bytes)
        {
            file = Err(error);
        }
        let done = bytes.len();
        contents.consume(done);
        left -= done as u64;
    }
    Ok(file.map(drop))
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

    fn asked(paths: &[(&str, Range<i64>)], has_parts: bool) -> Vec<u8> {
        let mut request = (paths.len() as u32).to_le_bytes().to_vec();
        for (path, part) in paths {
            request.extend((path.len() as u16).to_le_bytes());
            request.extend(path.as_bytes());
            if has_parts {
                request.extend(part.start.to_le_bytes());
                request.extend(part.end.to_le_bytes());
            }
        }
        request
    }

    fn whole(paths: &[&str]) -> Vec<u8> {
        let paths: Vec<_> = paths.iter().map(|path| (*path, WHOLE)).collect();
        asked(&paths, false)
    }

    /// The numbers of an answer, and the bytes behind them.
    fn answered(fs: &FileSystem, wanted: Wanted, request: &[u8]) -> (Vec<i64>, Vec<u8>) {
        let descriptor = memory(request);
        let answer = File::from(descriptor.try_clone().unwrap());
        read_files(fs, wanted, descriptor, &AtomicBool::new(false)).unwrap();
        let table = request.len().next_multiple_of(8);
        let count = u32::from_le_bytes(*request.first_chunk().unwrap()) as usize;
        let mut bytes = vec![0; answer.metadata().unwrap().len() as usize];
        answer.read_exact_at(&mut bytes, 0).unwrap();
        let (numbers, contents) = bytes[table..].split_at(8 * count);
        let numbers = numbers.chunks(8);
        let numbers = numbers.map(|it| i64::from_le_bytes(it.try_into().unwrap()));
        (numbers.collect(), contents.to_vec())
    }

    /// Has files written; returns their numbers.
    fn written(fs: &FileSystem, items: &[(&str, &[u8])]) -> Vec<i64> {
        let paths: Vec<_> = items.iter().map(|(path, _)| *path).collect();
        let request = whole(&paths);
        let table = request.len().next_multiple_of(8);
        let mut all = request.clone();
        all.resize(table, 0);
        for (_, content) in items {
            all.extend((content.len() as i64).to_le_bytes());
        }
        for (_, content) in items {
            all.extend_from_slice(content);
        }
        let descriptor = memory(&all);
        let answer = File::from(descriptor.try_clone().unwrap());
        let stop = AtomicBool::new(false);
        write_files(fs, request.len() as u64, descriptor, &stop).unwrap();
        let mut numbers = vec![0; 8 * items.len()];
        answer.read_exact_at(&mut numbers, table as u64).unwrap();
        let numbers = numbers.chunks(8);
        numbers
            .map(|it| i64::from_le_bytes(it.try_into().unwrap()))
            .collect()
    }

    fn numbers_of<const N: usize>(errors: [Errno; N]) -> [i64; N] {
        errors.map(|error| -i64::from(error.raw()))
    }

    #[test]
    fn contents_follow_each_other_and_errors_have_their_places() {
        let fs = FileSystem::memory();
        fs.create_dir("/dir").unwrap();
        fs.write("/dir/a", "one").unwrap();
        fs.write("/b", vec![7; 2 * CHUNK]).unwrap();
        fs.write("/empty", "").unwrap();
        fs.symlink("b", "/link").unwrap();
        let request = whole(&["/dir/a", "/gone", "/b", "/link", "/dir", "/empty", "dir/a"]);
        let (numbers, contents) = answered(&fs, Wanted::Contents, &request);
        let [gone, link, dir] = numbers_of([Errno::ENOENT, Errno::ELOOP, Errno::EINVAL]);
        assert_eq!(numbers, [3, gone, 2 * CHUNK as i64, link, dir, 0, 3]);
        let expected = [b"one", &vec![7; 2 * CHUNK][..], b"one"].concat();
        assert!(contents == expected);
    }

    #[test]
    fn parts_are_counted_from_both_ends() {
        let fs = FileSystem::memory();
        fs.write("/a", "0123456789").unwrap();
        let (least, most) = (i64::MIN, i64::MAX);
        let parts = [
            (2, 5),
            (-3, most),
            (8, 20),
            (20, 30),
            (5, 2),
            (least, -9),
            (0, -1),
        ];
        let paths: Vec<_> = parts
            .iter()
            .map(|(begin, end)| ("/a", *begin..*end))
            .collect();
        let (numbers, contents) = answered(&fs, Wanted::Parts, &asked(&paths, true));
        assert_eq!(numbers, [3, 3, 2, 0, 0, 1, 9]);
        assert_eq!(contents, b"234789890012345678");
    }

    #[test]
    fn attributes_come_as_rows() {
        let fs = FileSystem::memory();
        fs.write("/a", "0123456789").unwrap();
        fs.symlink("a", "/link").unwrap();
        let request = whole(&["/a", "/gone", "/link", "/"]);
        let (numbers, rows) = answered(&fs, Wanted::Attributes, &request);
        let len = row::ROW as i64;
        let [gone] = numbers_of([Errno::ENOENT]);
        assert_eq!(numbers, [len, gone, len, len]);
        for (row, path) in rows.chunks(row::ROW).zip(["/a", "/link", "/"]) {
            let expected = fs.symlink_metadata(path).unwrap();
            assert_eq!(row::get(row).as_ref(), Some(expected.attr()));
        }
    }

    #[test]
    fn files_are_made_and_replaced_and_errors_have_their_places() {
        let fs = FileSystem::memory();
        fs.create_dir("/dir").unwrap();
        fs.write("/old", vec![1; 3 * CHUNK]).unwrap();
        fs.symlink("old", "/link").unwrap();
        fs.mkfifo("/pipe", 0o600).unwrap();
        let large = vec![7; CHUNK + 5];
        let items: [(&str, &[u8]); 7] = [
            ("/dir/a", b"one"),
            ("/gone/b", &large),
            ("/old", &large),
            ("/link", b"not here"),
            ("/dir", b"nor here"),
            ("/pipe", b"nor here"),
            ("/empty", b""),
        ];
        let numbers = written(&fs, &items);
        let [gone, link, dir] = numbers_of([Errno::ENOENT, Errno::ELOOP, Errno::EISDIR]);
        let long = large.len() as i64;
        assert_eq!(numbers[..5], [3, gone, long, link, dir]);
        assert!(numbers[5] < 0 && numbers[6] == 0);
        assert_eq!(fs.read("/dir/a").unwrap(), b"one");
        assert!(fs.read("/old").unwrap() == large);
        assert_eq!(fs.read("/empty").unwrap(), b"");
    }

    #[test]
    fn contents_that_are_not_there_are_not_written() {
        let fs = FileSystem::memory();
        let request = whole(&["/a", "/b"]);
        let table = request.len().next_multiple_of(8);
        let stop = AtomicBool::new(false);
        for numbers in [[3_i64, 3], [i64::MAX, 0], [-1, 0]] {
            let mut all = request.clone();
            all.resize(table, 0);
            all.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
            all.extend(b"12345");
            let len = request.len() as u64;
            write_files(&fs, len, memory(&all), &stop).unwrap_err();
            write_files(&fs, len, memory(&all[..table + 9]), &stop).unwrap_err();
            write_files(&fs, u64::MAX, memory(&all), &stop).unwrap_err();
        }
    }

    #[test]
    fn contents_beyond_the_limit_are_left_out() {
        let fs = FileSystem::memory();
        fs.write("/large", vec![1; CONTENTS_MAX - 5]).unwrap();
        fs.write("/small", "123456").unwrap();
        fs.write("/tiny", "12345").unwrap();
        let request = whole(&["/large", "/small", "/tiny", "/small"]);
        let (numbers, _) = answered(&fs, Wanted::Contents, &request);
        assert_eq!(numbers, [CONTENTS_MAX as i64 - 5, LEFT_OUT, 5, LEFT_OUT]);
    }

    #[test]
    fn what_is_no_request_is_refused() {
        let fs = FileSystem::memory();
        let whole = whole(&["/a", "/b"]);
        for (request, has_parts) in [(&whole, false), (&asked(&[("/a", 1..2)], true), true)] {
            for len in 0..request.len() {
                assert_eq!(files(&request[..len], has_parts), None);
            }
            assert_eq!(files(&[request, &b"x"[..]].concat(), has_parts), None);
        }
        let stop = AtomicBool::new(false);
        let many = [&u32::MAX.to_le_bytes()[..], &[0; 100]].concat();
        for wrong in [many, Vec::new(), vec![0; REQUEST_MAX as usize + 1]] {
            read_files(&fs, Wanted::Contents, memory(&wrong), &stop).unwrap_err();
        }
        let (pipe, _) = rustix::pipe::pipe().unwrap();
        let error = read_files(&fs, Wanted::Contents, pipe, &stop).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
        stop.store(true, Ordering::Relaxed);
        let error = read_files(&fs, Wanted::Contents, memory(&whole), &stop).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(Errno::ECANCELED.raw()));
    }
}
