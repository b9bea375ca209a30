use std::io::{IoSlice, IoSliceMut, Read, Seek, SeekFrom, Write};

use super::subject::{How, Subject};
use super::{Log, Script, compare};

const O_DIRECTORY: i32 = 0o200_000;
const O_NOFOLLOW: i32 = 0o400_000;
const O_PATH: i32 = 0o10_000_000;
const O_TMPFILE: i32 = 0o20_000_000 | O_DIRECTORY;

struct Opening;

impl Script for Opening {
    fn run<S: Subject>(&self, fs: &S, log: &mut Log) {
        log.note("dir", fs.create_dir("dir"));
        log.note("link", fs.symlink("file", "link"));
        let letters = [
            "", "r", "w", "a", "rw", "ra", "wa", "rwa", "rt", "wt", "at", "wat", "rc", "wc", "ac",
            "rwct", "rn", "wn", "an", "wnt", "ant", "wcnt", "t", "c", "n",
        ];
        for letters in letters {
            for path in ["file", "file", "dir", "link", "none/x", "dir/"] {
                let mut file = log.note_file(
                    format!("open {path} {letters:?}"),
                    fs.open(path, How(letters, 0)),
                );
                if let Some(file) = &mut file {
                    log.note("write", file.write(b"some"));
                    log.note("read", file.read(&mut [0; 8]));
                    log.note("tell", file.stream_position());
                    log.note("fstat", fs.fstat(file));
                }
            }
            let removed = fs.remove_file("file");
            log.note("unlink", removed);
        }
        log.note("write", fs.write("file", "content"));
        for flags in [
            O_DIRECTORY,
            O_NOFOLLOW,
            O_PATH,
            O_PATH | O_NOFOLLOW,
            O_TMPFILE,
        ] {
            for path in ["file", "dir", "link", "none"] {
                for letters in ["r", "rw"] {
                    let what = format!("open {path} {letters} {flags:o}");
                    let file = log.note_file(what, fs.open(path, How(letters, flags)));
                    if let Some(mut file) = file {
                        log.note("look", fs.fstat(&file).map(|look| look.0));
                        log.note("read", file.read(&mut [0; 8]));
                        log.note("write", file.write(b"12"));
                        log.note("seek", file.seek(SeekFrom::Start(1)));
                        log.note("cut", fs.set_len(&file, 3));
                        log.note("chmod", fs.fchmod(&file, 0o700));
                    }
                }
            }
        }
    }
}

#[test]
fn files_open_alike() {
    compare(&Opening);
}

struct Streams;

impl Script for Streams {
    fn run<S: Subject>(&self, fs: &S, log: &mut Log) {
        let Some(mut file) = log.note_file("open", fs.open("f", How("rwc", 0))) else {
            return;
        };
        log.note("write", file.write(b"0123456789"));
        for to in [
            SeekFrom::Start(3),
            SeekFrom::Current(2),
            SeekFrom::Current(-6),
            SeekFrom::End(-4),
            SeekFrom::End(5),
            SeekFrom::End(-11),
            SeekFrom::Start(u64::MAX),
            // Beyond that, each file system has another largest size.
            SeekFrom::Start(1 << 43),
            SeekFrom::Current(1),
            SeekFrom::Start(4),
        ] {
            log.note(format!("seek {to:?}"), file.seek(to));
            log.note("tell", file.stream_position());
        }
        let mut halves = ([0; 3], [0; 5]);
        let mut bufs = [
            IoSliceMut::new(&mut halves.0),
            IoSliceMut::new(&mut halves.1),
        ];
        log.note("readv", file.read_vectored(&mut bufs));
        log.note("bytes", Ok(halves));
        log.note("seek", file.seek(SeekFrom::Start(8)));
        let bufs = [
            IoSlice::new(b"ab"),
            IoSlice::new(b""),
            IoSlice::new(b"cdef"),
        ];
        log.note("writev", file.write_vectored(&bufs));
        let Some(mut twin) = log.note_file("clone", fs.try_clone(&file)) else {
            return;
        };
        log.note("seek", twin.seek(SeekFrom::Start(9)));
        let mut rest = Vec::new();
        log.note("rest", file.read_to_end(&mut rest));
        log.note("bytes", Ok(rest));
        log.note("clone's end", twin.stream_position());
        log.note("pwrite", fs.write_at(&file, b"XY", 1));
        log.note("pwrite behind", fs.write_at(&file, b"Z", 20));
        log.note("pread", fs.read_at(&file, &mut [0; 4], 18));
        log.note("pread behind", fs.read_at(&file, &mut [0; 4], 21));
        log.note("pread far", fs.read_at(&file, &mut [0; 4], u64::MAX));
        log.note("tell", file.stream_position());
        log.note("cut", fs.set_len(&file, 5));
        log.note("grow", fs.set_len(&file, 7));
        log.note("too large", fs.set_len(&file, u64::MAX));
        log.note("rewind", file.rewind());
        let mut text = String::from("> ");
        log.note("text", file.read_to_string(&mut text));
        log.note("text", Ok(text));
        log.note("binary", fs.write_at(&file, b"\xff\xfe", 0));
        log.note("rewind", file.rewind());
        let mut text = String::from("> ");
        log.note("not text", file.read_to_string(&mut text));
        log.note("kept", Ok(text));
        log.note("unlink", fs.remove_file("f"));
        log.note("still there", fs.fstat(&file));
        log.note("write", file.write(b"ghost"));
    }
}

#[test]
fn streams_run_alike() {
    compare(&Streams);
}

struct Appending;

impl Script for Appending {
    fn run<S: Subject>(&self, fs: &S, log: &mut Log) {
        log.note("write", fs.write("f", "start"));
        let Some(mut file) = log.note_file("open", fs.open("f", How("ra", 0))) else {
            return;
        };
        log.note("tell", file.stream_position());
        log.note("read", file.read(&mut [0; 2]));
        log.note("append", file.write(b"-one"));
        log.note("tell", file.stream_position());
        log.note("rewind", file.rewind());
        log.note("nothing", file.write(b""));
        log.note("tell", file.stream_position());
        let bufs = [IoSlice::new(b"-"), IoSlice::new(b"two")];
        log.note("appendv", file.write_vectored(&bufs));
        log.note("tell", file.stream_position());
        log.note("pwrite", fs.write_at(&file, b"!", 0));
        log.note("read", fs.read("f"));
    }
}

#[test]
fn appending_goes_to_the_end_alike() {
    compare(&Appending);
}
