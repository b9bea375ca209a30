//! The compression of an archive: detected by its first bytes, or chosen.

use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};

use flate2::bufread::GzDecoder;

use serde::{Deserialize, Serialize};

/// Most memory for unpacking xz, in KiB: what its highest level needs.
const XZ_MEMORY_KIB: u32 = 192 << 10;
/// Bytes read to detect a compression, or the magic of a tar archive.
const MAGIC: usize = 262;
const TAR_MAGIC: &[u8] = b"ustar";
/// The default levels of gzip(1), zstd(1) and xz(1).
const GZIP_LEVEL: u32 = 6;
const ZSTD_LEVEL: i32 = 3;
const XZ_LEVEL: u32 = 6;
/// Bytes of the buffer between the compressor and the archive.
const BUFFER: usize = 256 << 10;

/// A compression.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Compression {
    /// None
    #[default]
    None,
    /// As gzip(1)
    Gzip,
    /// As xz(1)
    Xz,
    /// As zstd(1)
    Zstd,
}

impl Compression {
    /// The compression that a file name stands for.
    pub(super) fn of_name(name: &std::path::Path) -> Self {
        let suffix = name.extension().and_then(std::ffi::OsStr::to_str);
        match suffix {
            Some("gz" | "tgz") => Self::Gzip,
            Some("xz" | "txz") => Self::Xz,
            Some("zst" | "tzst") => Self::Zstd,
            _ => Self::None,
        }
    }
}

/// The decompressed stream, and its compression. Damage is an error once the stream is read to its
/// end.
///
/// # Errors
/// Those of reading; `Unsupported` for bzip2.
pub(super) fn decompressed(
    mut stream: impl Read + Send + 'static,
) -> io::Result<(Box<dyn Read + Send>, Compression)> {
    let mut begin = Vec::new();
    (&mut stream).take(MAGIC as u64).read_to_end(&mut begin)?;
    let kind = match &begin[..] {
        tar if tar.ends_with(TAR_MAGIC) && tar.len() == MAGIC => Compression::None,
        [0x1f, 0x8b, ..] => Compression::Gzip,
        [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Compression::Xz,
        // A frame, or a skippable frame, with which pzstd begins.
        [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Compression::Zstd,
        [b'B', b'Z', b'h', ..] => {
            return Err(io::Error::new(
                io::ErrorKind::Unsupported,
                "is compressed with bzip2, which is not read here: bzip2 -dc FILE | holdfast unpack - DIR",
            ));
        }
        _ => Compression::None,
    };
    let whole = BufReader::with_capacity(BUFFER, io::Cursor::new(begin).chain(stream));
    let content: Box<dyn Read + Send> = match kind {
        Compression::None => Box::new(whole),
        Compression::Gzip => Box::new(Gzip(GzDecoder::new(Box::new(whole)))),
        Compression::Xz => Box::new(lzma_rust2::XzReader::new_mem_limit(
            whole,
            true,
            XZ_MEMORY_KIB,
        )),
        Compression::Zstd => Box::new(zstd::Decoder::with_buffer(whole)?),
    };
    Ok((Box::new(Content(content)), kind))
}

/// The output of a decompressor, with a clearer message for an early end.
struct Content(Box<dyn Read + Send>);

impl Read for Content {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        self.0.read(buf).map_err(|error| match error.kind() {
            kind @ io::ErrorKind::UnexpectedEof => {
                io::Error::new(kind, "the compressed stream was cut off")
            }
            _ => error,
        })
    }
}

/// The members of a gzip stream, as gzip(1) reads them: zeros may follow the last member.
/// `flate2::MultiGzDecoder` rejects those zeros.
struct Gzip(GzDecoder<Box<dyn BufRead + Send>>);

impl Read for Gzip {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        loop {
            let read = self.0.read(buf)?;
            if read > 0 || buf.is_empty() {
                return Ok(read);
            }
            let rest = self.0.get_mut();
            match rest.fill_buf()? {
                [] => return Ok(0),
                [0x1f, ..] => {
                    let rest = std::mem::replace(rest, Box::new(io::empty()));
                    self.0 = GzDecoder::new(rest);
                }
                piece => {
                    let zeros = piece.iter().take_while(|byte| **byte == 0).count();
                    if zeros == 0 {
                        let what = "something that is not gzip's follows its end";
                        return Err(io::Error::new(io::ErrorKind::InvalidData, what));
                    }
                    rest.consume(zeros);
                }
            }
        }
    }
}

/// Writes what `fill` writes, compressed.
///
/// # Errors
/// Those of writing.
pub(super) fn compress<R>(
    out: impl Write,
    kind: Compression,
    fill: impl FnOnce(&mut dyn Write) -> R,
) -> io::Result<R> {
    let mut out = BufWriter::with_capacity(BUFFER, out);
    let filled = match kind {
        Compression::None => fill(&mut out),
        Compression::Gzip => {
            let mut gzip =
                flate2::write::GzEncoder::new(&mut out, flate2::Compression::new(GZIP_LEVEL));
            let filled = fill(&mut gzip);
            gzip.finish()?;
            filled
        }
        Compression::Xz => {
            let options = lzma_rust2::XzOptions::with_preset(XZ_LEVEL);
            let mut xz = lzma_rust2::XzWriter::new(&mut out, options)?;
            let filled = fill(&mut xz);
            xz.finish()?;
            filled
        }
        Compression::Zstd => {
            let mut zstd = zstd::Encoder::new(&mut out, ZSTD_LEVEL)?;
            zstd.include_checksum(true)?;
            let filled = fill(&mut zstd);
            zstd.finish()?;
            filled
        }
    };
    out.flush()?;
    Ok(filled)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn what_was_compressed_is_found_out_and_comes_back() {
        let content: Vec<u8> = (0..300_000_u32)
            .flat_map(|at| (at / 7).to_le_bytes())
            .collect();
        for kind in [
            Compression::None,
            Compression::Gzip,
            Compression::Xz,
            Compression::Zstd,
        ] {
            let mut stream = Vec::new();
            compress(&mut stream, kind, |out| out.write_all(&content))
                .unwrap()
                .unwrap();
            assert_eq!(
                stream.len() < content.len(),
                kind != Compression::None,
                "{kind:?}"
            );
            // Concatenated streams are one stream, as for gzip(1) and the others.
            if kind != Compression::None {
                let again = stream.clone();
                stream.extend(again);
            }
            let mut all = Vec::new();
            let (mut read, found) = decompressed(io::Cursor::new(stream)).unwrap();
            assert_eq!(found, kind);
            read.read_to_end(&mut all).unwrap();
            assert!(all.starts_with(&content), "{kind:?}");
            assert_eq!(
                all.len() / content.len(),
                if kind == Compression::None { 1 } else { 2 }
            );
        }
    }

    #[test]
    fn damage_is_an_error() {
        for magic in [
            &b"\x1f\x8b\x08junkjunkjunk"[..],
            b"\xfd7zXZ\0junkjunkjunk",
            b"\x28\xb5\x2f\xfdjunkjunkjunk",
        ] {
            let read = decompressed(io::Cursor::new(magic.to_vec()));
            assert!(
                read.and_then(|(mut read, _)| read.read_to_end(&mut Vec::new()))
                    .is_err(),
                "{magic:?}"
            );
        }
        let bzip2 = decompressed(&b"BZh91AY"[..]).err().unwrap();
        assert!(bzip2.to_string().contains("bzip2"));
        assert!(decompressed(&b"ab"[..]).is_ok());
    }

    /// The decompressed content of a stream.
    fn read(stream: &[u8]) -> io::Result<Vec<u8>> {
        let mut all = Vec::new();
        let (mut content, _) = decompressed(io::Cursor::new(stream.to_vec()))?;
        content.read_to_end(&mut all)?;
        Ok(all)
    }

    #[test]
    fn no_changed_byte_and_no_missing_end_goes_unnoticed() {
        let content: Vec<u8> = (0..900_u32).flat_map(|at| (at / 7).to_le_bytes()).collect();
        for kind in [Compression::Gzip, Compression::Xz, Compression::Zstd] {
            let mut stream = Vec::new();
            let written = compress(&mut stream, kind, |out| out.write_all(&content));
            written.unwrap().unwrap();
            for at in 0..stream.len() {
                for bit in [0x01, 0x10, 0x80] {
                    let mut changed = stream.clone();
                    changed[at] ^= bit;
                    // A changed magic makes it an uncompressed stream.
                    let found = read(&changed);
                    let is_other = found.as_ref().is_ok_and(|found| *found == changed);
                    let same = found.is_ok_and(|found| found == content);
                    assert!(
                        is_other || same || read(&changed).is_err(),
                        "{kind:?} {at} {bit}"
                    );
                }
                if at > 6 {
                    assert!(read(&stream[..at]).is_err(), "{kind:?} {at}");
                }
            }
            for (behind, is_right) in [
                (&[0; 4096][..], kind != Compression::Zstd),
                (b"behind the end", false),
                (b"\0\0\0\0behind the end", false),
            ] {
                let longer = [&stream[..], behind].concat();
                assert_eq!(read(&longer).is_ok(), is_right, "{kind:?} {behind:?}");
            }
        }
    }

    #[test]
    fn zstd_may_begin_with_a_frame_to_be_skipped() {
        let mut stream = b"\x50\x2a\x4d\x18\x03\0\0\0abc".to_vec();
        let written = compress(&mut stream, Compression::Zstd, |out| {
            out.write_all(b"content")
        });
        written.unwrap().unwrap();
        assert_eq!(read(&stream).unwrap(), b"content");
    }

    #[test]
    fn an_archive_is_one_whatever_its_first_name_is() {
        let mut archive = b"BZh9".to_vec();
        archive.resize(257, 0);
        archive.extend(b"ustar\x0000");
        archive.resize(1024, 0);
        assert_eq!(read(&archive).unwrap(), archive);
    }

    #[test]
    fn names_tell_what_is_wanted() {
        for (name, kind) in [
            ("a.tar", Compression::None),
            ("a.tgz", Compression::Gzip),
            ("b/a.tar.zst", Compression::Zstd),
            ("a.tar.xz", Compression::Xz),
            ("gz", Compression::None),
        ] {
            assert_eq!(Compression::of_name(Path::new(name)), kind, "{name}");
        }
    }
}
