//! `holdfast probe`: prints what udev keeps of a block device with a volume, for the rule of the
//! packages.
//!
//! It takes no lock and reads two blocks, so it neither disturbs a mounted volume nor waits for
//! one. A device without a volume prints nothing.

use crate::message::{Failure, Result};
use holdfast_volume::BLOCK;
use holdfast_volume::superblock::{SLOTS, Superblock};
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Read, Write as _};
use std::path::PathBuf;

/// Print the properties of a block device, for udev
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The device
    #[arg(value_name = "DEVICE")]
    device: PathBuf,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let mut start = Vec::new();
    File::open(&arguments.device)
        .and_then(|file| {
            file.take((SLOTS.len() * BLOCK) as u64)
                .read_to_end(&mut start)
        })
        .map_err(|error| Failure::new(error).at(&arguments.device))?;
    if let Some(superblock) = newest(&start) {
        io::stdout().write_all(properties(&superblock).as_bytes())?;
    }
    Ok(())
}

/// The superblock that counts, of those that are whole.
fn newest(start: &[u8]) -> Option<Superblock> {
    let slots = start.chunks_exact(BLOCK).zip(SLOTS);
    let whole = slots.filter_map(|(block, slot)| Superblock::decode(block, slot).ok());
    whole.max_by_key(|superblock| superblock.generation)
}

/// As `blkid -o udev` prints them. The label is anybody's: no character of it ends a line.
fn properties(superblock: &Superblock) -> String {
    let (uuid, label) = (superblock.uuid, superblock.label.to_string());
    let size = superblock.blocks.saturating_mul(BLOCK as u64);
    let mut text = format!(
        "ID_FS_TYPE=holdfast\nID_FS_USAGE=filesystem\nID_FS_VERSION=1\n\
         ID_FS_UUID={uuid}\nID_FS_UUID_ENC={uuid}\n\
         ID_FS_BLOCKSIZE={BLOCK}\nID_FS_SIZE={size}\n"
    );
    if !label.is_empty() {
        text += &format!(
            "ID_FS_LABEL={}\nID_FS_LABEL_ENC={}\n",
            safe(&label),
            encoded(&label)
        );
    }
    text
}

/// Characters that stay as they are in names of devices.
fn is_plain(character: char) -> bool {
    character.is_ascii_alphanumeric()
        || "#+-.:=@_".contains(character)
        || (!character.is_ascii() && !character.is_control() && !character.is_whitespace())
}

/// For reading: other characters become `_`.
fn safe(label: &str) -> String {
    let plain = |character| if is_plain(character) { character } else { '_' };
    label.trim().chars().map(plain).collect()
}

/// For links below /dev/disk: other characters become their bytes, as `\x20`.
fn encoded(label: &str) -> String {
    let mut text = String::new();
    for character in label.chars() {
        if is_plain(character) {
            text.push(character);
            continue;
        }
        for byte in character.to_string().bytes() {
            // Writing to a string does not fail.
            let _ = write!(text, "\\x{byte:02x}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_cannot_add_properties() {
        let label = "a b\nID_FS_TYPE=ext4/é";
        assert_eq!(safe(label), "a_b_ID_FS_TYPE=ext4_é");
        assert_eq!(encoded(label), "a\\x20b\\x0aID_FS_TYPE=ext4\\x2fé");
    }

    #[test]
    fn what_is_no_volume_has_no_superblock() {
        assert!(newest(&[]).is_none());
        assert!(newest(&[0; 2 * BLOCK]).is_none());
        assert!(newest(b"HOLDFAST").is_none());
    }
}
