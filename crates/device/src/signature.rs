//! Recognizes the content of a device by its first bytes, before it is overwritten.

use crate::{BlockDevice, Result, SECTOR};

/// The bytes that are read: all magic numbers lie in them.
const HEAD: u64 = 132 << 10;

/// The content at the head of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// Zeros.
    Nothing,
    /// Known content, with its article: "an xfs file system".
    Known(&'static str),
    /// Unknown content.
    Unknown,
}

/// A kind of content known by a few bytes.
struct Magic {
    name: &'static str,
    offset: usize,
    bytes: &'static [u8],
}

const fn magic(name: &'static str, offset: usize, bytes: &'static [u8]) -> Magic {
    Magic {
        name,
        offset,
        bytes,
    }
}

/// The first match is named, so the more specific ones come first.
const MAGICS: &[Magic] = &[
    magic("a Holdfast volume", 0, b"HOLDFAST"),
    magic("a Holdfast volume", 4096, b"HOLDFAST"),
    magic("an xfs file system", 0, b"XFSB"),
    magic("a LUKS container", 0, b"LUKS\xba\xbe"),
    magic("a LUKS container", 0x4000, b"SKUL\xba\xbe"),
    magic("a btrfs file system", 0x10040, b"_BHRfS_M"),
    magic("swap space", 4086, b"SWAPSPACE2"),
    magic("swap space", 4086, b"SWAP-SPACE"),
    magic("a hibernated system", 4086, b"S1SUSPEND"),
    magic("an LVM physical volume", 512, b"LABELONE"),
    magic("an LVM physical volume", 0, b"LABELONE"),
    magic("a part of an MD RAID", 4096, b"\xfc\x4e\x2b\xa9"),
    magic("a part of an MD RAID", 0, b"\xfc\x4e\x2b\xa9"),
    magic("a part of a ZFS pool", 0x20000, b"\x0c\xb1\xba\0"),
    magic(
        "a bcachefs file system",
        4120,
        b"\xc6\x85\x73\xf6\x4e\x1a\x45\xca",
    ),
    magic(
        "a bcachefs file system",
        4120,
        b"\xc6\x85\x73\xf6\x66\xce\x90\xa9",
    ),
    magic("an f2fs file system", 1024, b"\x10\x20\xf5\xf2"),
    magic("an erofs file system", 1024, b"\xe2\xe1\xf5\xe0"),
    magic("a squashfs file system", 0, b"hsqs"),
    magic("a jfs file system", 0x8000, b"JFS1"),
    magic("a reiserfs file system", 0x10034, b"ReIsEr"),
    magic("an ISO 9660 file system", 0x8001, b"CD001"),
    magic("an exFAT file system", 3, b"EXFAT   "),
    magic("an NTFS file system", 3, b"NTFS    "),
    magic("a FAT file system", 82, b"FAT32   "),
    magic("a FAT file system", 54, b"FAT16   "),
    magic("a FAT file system", 54, b"FAT12   "),
    magic("a qcow2 image", 0, b"QFI\xfb"),
    magic("a partition table (GPT)", 512, b"EFI PART"),
    magic("a partition table (GPT)", 4096, b"EFI PART"),
    magic("a partition table (MBR) or a boot sector", 510, b"\x55\xaa"),
];

/// The magic number of ext2, ext3 and ext4, and the features that distinguish them.
const EXT: Magic = magic("an ext file system", 1080, b"\x53\xef");
const EXT_COMPATIBLE: usize = 1024 + 92;
const EXT_INCOMPATIBLE: usize = 1024 + 96;
const EXT_READ_ONLY: usize = 1024 + 100;
const HAS_JOURNAL: u32 = 4;
/// Extents, 64 bit, flex groups, and later ones.
const EXT4_INCOMPATIBLE: u32 = 0x2c0;
/// Huge files, checksums of groups, directories with many links, large inodes, ...
const EXT4_READ_ONLY: u32 = 0x78;

/// Recognizes the head of a device.
///
/// # Errors
/// If it cannot be read.
pub fn content(device: &dyn BlockDevice) -> Result<Content> {
    let len = HEAD.min(device.size()) / SECTOR * SECTOR;
    let mut head = vec![0; len as usize];
    let step = device.alignment() as usize;
    let whole = head.len() / step * step;
    device.read(0, &mut head[..whole])?;
    Ok(of_head(&head))
}

fn of_head(head: &[u8]) -> Content {
    let fits = |magic: &Magic| {
        let end = magic.offset + magic.bytes.len();
        head.get(magic.offset..end) == Some(magic.bytes)
    };
    if fits(&EXT) {
        return Content::Known(which_ext(head));
    }
    match MAGICS.iter().find(|magic| fits(magic)) {
        Some(magic) => Content::Known(magic.name),
        None if head.iter().all(|byte| *byte == 0) => Content::Nothing,
        None => Content::Unknown,
    }
}

fn which_ext(head: &[u8]) -> &'static str {
    let field = |at: usize| {
        let bytes = head.get(at..).and_then(|rest| rest.first_chunk());
        bytes.map_or(0, |bytes| u32::from_le_bytes(*bytes))
    };
    let newest = field(EXT_INCOMPATIBLE) & EXT4_INCOMPATIBLE != 0
        || field(EXT_READ_ONLY) & EXT4_READ_ONLY != 0;
    match (newest, field(EXT_COMPATIBLE) & HAS_JOURNAL != 0) {
        (true, _) => "an ext4 file system",
        (false, true) => "an ext3 file system",
        (false, false) => "an ext2 file system",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MemoryDevice;

    fn device(pieces: &[(u64, &[u8])]) -> MemoryDevice {
        let device = MemoryDevice::new(1 << 20);
        for (offset, bytes) in pieces {
            let start = offset / SECTOR * SECTOR;
            let mut sectors = vec![0; 2 * SECTOR as usize];
            device.read(start, &mut sectors).unwrap();
            let at = (offset - start) as usize;
            sectors[at..at + bytes.len()].copy_from_slice(bytes);
            device.write(start, &sectors).unwrap();
        }
        device
    }

    #[test]
    fn everything_in_the_table_is_found_by_its_own_magic() {
        for magic in MAGICS {
            let device = device(&[(magic.offset as u64, magic.bytes)]);
            let found = content(&device).unwrap();
            assert_eq!(found, Content::Known(magic.name), "at {}", magic.offset);
            assert!(magic.offset + magic.bytes.len() <= HEAD as usize);
        }
    }

    #[test]
    fn the_ext_file_systems_are_told_apart() {
        let magic = (1080, &b"\x53\xef"[..]);
        let found = |more: (u64, &[u8])| content(&device(&[magic, more])).unwrap();
        assert_eq!(found((0, b"")), Content::Known("an ext2 file system"));
        assert_eq!(
            found((1116, b"\x04")),
            Content::Known("an ext3 file system")
        );
        assert_eq!(
            found((1120, b"\x40")),
            Content::Known("an ext4 file system")
        );
    }

    #[test]
    fn zeros_are_nothing_and_other_bytes_are_unknown() {
        assert_eq!(content(&device(&[])), Ok(Content::Nothing));
        let notes = device(&[(0, b"notes on knots")]);
        assert_eq!(content(&notes), Ok(Content::Unknown));
        assert_eq!(content(&MemoryDevice::new(0)), Ok(Content::Nothing));
        let small = MemoryDevice::new(512);
        small.write(0, &[1; 512]).unwrap();
        assert_eq!(content(&small), Ok(Content::Unknown));
    }
}
