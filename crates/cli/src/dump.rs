//! `holdfast dump`: what single parts of a volume hold.

use crate::message::{Failure, Result};
use crate::volume::hint_at_opening;
use holdfast::types::Errno;
use holdfast_device::{Access, BlockDevice, FileDevice, FileOptions};
use holdfast_volume::dump::{Dump, Shown};
use serde_json::{Map, Value};
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;

/// Show what a part of a volume holds: for the curious, and for reports of damage
///
/// Shown is what lies on the device: what only the journal knows is in none but `journal`. Numbers of blocks
/// are those of messages and of `holdfast fsck`. docs/format.md says what everything means.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The image file or block device
    #[arg(value_name = "VOLUME")]
    volume: PathBuf,

    #[command(subcommand)]
    part: Part,

    /// Print JSON
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Clone, Copy, Debug, clap::Subcommand)]
enum Part {
    /// The superblocks
    Superblock,
    /// A group of blocks: its bitmap, and what is free
    Group {
        /// Its number, from 0
        number: u64,
    },
    /// An inode: its attributes, its content, the names in it
    Inode {
        /// Its number
        number: u64,
    },
    /// A node of a tree
    Node {
        /// The block at which it begins
        block: u64,
    },
    /// All batches of the journal that are not in the trees, one after the other
    Journal,
}

/// Prints one part.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let options = FileOptions {
        access: Access::ReadOnly,
        ..FileOptions::default()
    };
    let path = &arguments.volume;
    let failed = |error: String, errno: Errno| {
        hint_at_opening(Failure::new(error).at(path), path, errno.raw())
    };
    let device = FileDevice::open(path, options);
    let device = device.map_err(|error| failed(error.to_string(), error.errno()))?;
    let device: Arc<dyn BlockDevice> = Arc::new(device);
    let volume_failed = |error: holdfast_volume::Error| failed(error.to_string(), error.errno());
    let dump = Dump::open(device).map_err(volume_failed)?;
    let mut out = std::io::stdout().lock();
    let mut print = |shown: &Shown| -> std::io::Result<()> {
        if arguments.json {
            serde_json::to_writer(&mut out, &json(shown))?;
            writeln!(out)
        } else {
            write!(out, "{shown}")
        }
    };
    let shown = match arguments.part {
        Part::Superblock => dump.superblock(),
        Part::Group { number } => dump.group(number),
        Part::Inode { number } => dump.inode(number),
        Part::Node { block } => dump.node(block),
        Part::Journal => {
            let mut printed = Ok(());
            let read = dump.journal(|batch| {
                if printed.is_ok() {
                    printed = print(&batch);
                }
            });
            printed?;
            return read.map_err(volume_failed);
        }
    };
    Ok(print(&shown.map_err(volume_failed)?)?)
}

/// Names of parts are words with underlines.
fn json(shown: &Shown) -> Value {
    match shown {
        Shown::Number(number) => Value::from(*number),
        Shown::Signed(number) => Value::from(*number),
        Shown::Text(text) => Value::from(text.as_str()),
        Shown::Flag(flag) => Value::from(*flag),
        Shown::Fields(fields) => {
            let fields = fields.iter();
            let fields = fields.map(|(name, value)| (name.replace([' ', '-'], "_"), json(value)));
            Value::Object(fields.collect::<Map<String, Value>>())
        }
        Shown::List(items) => Value::Array(items.iter().map(json).collect()),
    }
}
