//! The identity of the cache that holds the unflushed writes to a file.
//!
//! A killed process leaves its writes in the kernel's page cache, or in the device's own, and the
//! next opening finds them there. A restart of the machine empties the first, and removing a disk
//! the second. So the identity combines that of the boot with the sequence number that the kernel
//! gives a disk each time it appears (Linux 5.15). For a file, that is the disk of its file system,
//! if it is on one.

use std::fmt::Arguments;
use std::fs::File;

use rustix::fs::{FileType, fstat, major, minor};

const BOOT: &str = "/proc/sys/kernel/random/boot_id";

/// The identity; `None` if the kernel has no identity of the boot.
pub(super) fn identity(file: &File) -> Option<u64> {
    let boot = std::fs::read_to_string(BOOT).ok()?;
    let boot = Some(boot.trim()).filter(|boot| !boot.is_empty())?;
    let stat = fstat(file).ok()?;
    let disk = match FileType::from_raw_mode(stat.st_mode) {
        FileType::BlockDevice => stat.st_rdev,
        _ => stat.st_dev,
    };
    Some(hash(format_args!(
        "{boot} {}",
        sequence(disk).unwrap_or_default()
    )))
}

/// The sequence number of the disk with this device number, or of the disk of that partition.
fn sequence(disk: u64) -> Option<String> {
    let (major, minor) = (major(disk), minor(disk));
    ["diskseq", "../diskseq"].into_iter().find_map(|name| {
        let number = std::fs::read_to_string(format!("/sys/dev/block/{major}:{minor}/{name}"));
        Some(number.ok()?.trim().to_owned())
    })
}

/// FNV-1a: the same in every version of this program, which may be updated while volumes are in
/// use.
fn hash(text: Arguments<'_>) -> u64 {
    let bytes = text.to_string().into_bytes();
    bytes.into_iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_same_at_each_opening_and_differs_from_boot_to_boot() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("image");
        std::fs::write(&path, b"").unwrap();
        let identity = || identity(&File::open(&path).unwrap());
        assert!(identity().is_some(), "Linux tells which boot this is");
        assert_eq!(identity(), identity());
        let of = |boot, disk| hash(format_args!("{boot} {disk}"));
        assert_ne!(of("a", "1"), of("b", "1"));
        assert_ne!(of("a", "1"), of("a", "2"));
        assert_eq!(
            hash(format_args!("a")),
            0xaf63_dc4c_8601_ec8c,
            "as published"
        );
    }
}
