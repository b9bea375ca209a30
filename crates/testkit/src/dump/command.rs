//! The command line.

use super::Dump;
use clap::Parser;
use holdfast_device::{Access, FileDevice};
use std::error::Error;
use std::path::PathBuf;
use std::sync::Arc;

/// Shows one part of a volume as it lies on the device
///
/// Changes that only the journal holds appear in `journal` alone. Block numbers are those of
/// messages and of `holdfast fsck`; docs/format.md explains the fields.
#[derive(Parser)]
#[command(name = "dump")]
struct Arguments {
    /// The image file or block device
    volume: PathBuf,
    #[command(subcommand)]
    part: Part,
}

#[derive(clap::Subcommand)]
enum Part {
    /// Both slots of the superblock
    Superblock,
    /// The free blocks of a group, counted from 0
    Group { number: u64 },
    /// An inode: its record, content and names
    Inode { number: u64 },
    /// The node of a tree that begins at a block
    Node { block: u64 },
    /// The batches of the journal that are not in the trees
    Journal,
}

/// Prints the part that the command line names.
///
/// # Errors
/// Those of the device and the volume.
pub fn main() -> Result<(), Box<dyn Error>> {
    let Arguments { volume, part } = Arguments::parse();
    let dump = Dump::open(Arc::new(FileDevice::open(&volume, Access::ReadOnly)?))?;
    let text = match part {
        Part::Superblock => dump.superblock()?,
        Part::Group { number } => dump.group(number)?,
        Part::Inode { number } => dump.inode(number)?,
        Part::Node { block } => dump.node(block)?,
        Part::Journal => return Ok(dump.journal(|batch| print!("{batch}"))?),
    };
    print!("{text}");
    Ok(())
}
