//! How an archive is compressed: found out by its first bytes, or chosen.

use std::io::{self, BufReader, BufWriter, Read, Write};

use serde::{Deserialize, Serialize};

/// Most memory that unpacking xz may take: as much as its highest level asks for, in KiB.
const XZ_MEMORY_KIB: u32 = 192 << 10;
/// Bytes at the beginning by which a compression is known.
const MAGIC: usize = 6;
/// Levels that each program takes by itself.
const GZIP_LEVEL: u32 = 6;
const ZSTD_LEVEL: i32 = 3;
const XZ_LEVEL: u32 = 6;
/// Bytes between here and the archive.
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
    /// What a file of this name is compressed with.
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

/// What a stream holds, whatever it is compressed with.
///
/// # Errors
/// Those of reading; `Unsupported` for a compression that is known and not read here.
pub(super) fn decompressed(
    mut stream: impl Read + Send + 'static,
) -> io::Result<Box<dyn Read + Send>> {
    let mut begin = Vec::new();
    (&mut stream).take(MAGIC as u64).read_to_end(&mut begin)?;
    let kind = match &begin[..] {
        [0x1f, 0x8b, ..] => Compression::Gzip,
        [0xfd, b'7', b'z', b'X', b'Z', 0] => Compression::Xz,
        [0x28, 0xb5, 0x2f, 0xfd, ..] => Compression::Zstd,
        [b'B', b'Z', b'h', ..] => {
            return Err(io::Error::new(
                io::ErrorKind::Unsupported,
                "is compressed with bzip2, which is not read here: bzip2 -dc FILE | holdfast unpack - DIR",
            ));
        }
        _ => Compression::None,
    };
    let whole = BufReader::with_capacity(BUFFER, io::Cursor::new(begin).chain(stream));
    Ok(match kind {
        Compression::None => Box::new(whole),
        Compression::Gzip => Box::new(flate2::bufread::MultiGzDecoder::new(whole)),
        Compression::Xz => Box::new(lzma_rust2::XzReader::new_mem_limit(
            whole,
            true,
            XZ_MEMORY_KIB,
        )),
        Compression::Zstd => Box::new(zstd::Decoder::with_buffer(whole)?),
    })
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
            // Several streams in a row are one, as gzip(1) and the others have it.
            if kind != Compression::None {
                let again = stream.clone();
                stream.extend(again);
            }
            let mut all = Vec::new();
            decompressed(io::Cursor::new(stream))
                .unwrap()
                .read_to_end(&mut all)
                .unwrap();
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
                read.and_then(|mut read| read.read_to_end(&mut Vec::new()))
                    .is_err(),
                "{magic:?}"
            );
        }
        let bzip2 = decompressed(&b"BZh91AY"[..]).err().unwrap();
        assert!(bzip2.to_string().contains("bzip2"));
        assert!(decompressed(&b"ab"[..]).is_ok());
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
