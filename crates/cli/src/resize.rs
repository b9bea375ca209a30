//! `holdfast resize` and `holdfast trim`.

use crate::complete;
use crate::control::{self, Answer, Request};
use crate::info::units::bytes;
use crate::message::{Failure, Result};
use crate::mount::size::amount;
use crate::output::Output;
use crate::target::Target;
use crate::volume::{close_after, open};
use clap_complete::ArgValueCompleter;
use serde_json::json;
use std::path::PathBuf;

/// Grow a volume, mounted or not
///
/// An image file grows with its volume; a block device must have grown before. A mounted volume
/// stays in use, and a crash leaves the old size or the new one. Volumes do not shrink.
#[derive(Debug, clap::Args)]
pub(crate) struct ResizeArguments {
    /// An image file, a block device, or a directory where one is mounted
    #[arg(value_name = "VOLUME|DIR", add = ArgValueCompleter::new(complete::targets))]
    target: PathBuf,

    /// The new size in bytes (512m, 8g, 1t)
    #[arg(value_name = "SIZE", value_parser = amount)]
    size: u64,

    #[command(flatten)]
    output: Output,
}

/// Discard the free space of a volume, mounted or not
///
/// As fstrim(8), which works on a mount too. An image file gives the space back to its host; a
/// block device may discard the data. Blocks that a recovery could still need are not free.
#[derive(Debug, clap::Args)]
pub(crate) struct TrimArguments {
    /// An image file, a block device, or a directory where one is mounted
    #[arg(value_name = "VOLUME|DIR", add = ArgValueCompleter::new(complete::targets))]
    target: PathBuf,

    /// First byte of the range to discard
    #[arg(short, long, value_name = "AMOUNT", value_parser = amount, default_value = "0")]
    offset: u64,

    /// Length of the range in bytes; all without this
    #[arg(short, long, value_name = "AMOUNT", value_parser = amount)]
    length: Option<u64>,

    /// Skip runs of free space shorter than this
    #[arg(short, long, value_name = "AMOUNT", value_parser = amount, default_value = "0")]
    minimum: u64,

    #[command(flatten)]
    output: Output,
}

/// The remedy for a size that is too small.
const ONLY_GROWS: &str = "volumes only grow: copy the files to a smaller one";

pub(crate) fn resize(arguments: &ResizeArguments) -> Result<()> {
    let path = &arguments.target;
    let size = match Target::of(path)? {
        Target::Mounted(root) => {
            let request = Request::Resize {
                bytes: arguments.size,
            };
            let answer = control::ask(&control::open(&root)?, &root, &request);
            match answer.map_err(|failure| failure.or_hint(ONLY_GROWS))? {
                Answer::Resized(size) => size,
                _ => return Err(control::other_answer(&root)),
            }
        }
        Target::Volume(image) => {
            let volume = open(&image)?;
            let grown = volume.grow(arguments.size);
            let grown = grown.map_err(|error| {
                let failure = Failure::new(&error).at(&image);
                match error.errno().raw() {
                    libc::EINVAL => failure.hint(ONLY_GROWS),
                    libc::ENOSPC => failure.hint("make room where it lies first"),
                    _ => failure,
                }
            });
            close_after(volume, &image, grown)?
        }
    };
    let target = path.display().to_string();
    let text = format!("{target}: {}\n", bytes(size));
    let report = json!({ "target": target, "size_bytes": size });
    arguments.output.print(&report, text)
}

pub(crate) fn trim(arguments: &TrimArguments) -> Result<()> {
    let path = &arguments.target;
    let (start, least) = (arguments.offset, arguments.minimum);
    let len = arguments.length.unwrap_or(u64::MAX - start);
    let trimmed = match Target::of(path)? {
        Target::Mounted(root) => {
            let trimmed = control::open(&root)?.trim(start, len, least);
            trimmed.map_err(|error| control::refused(&root, &error))?
        }
        Target::Volume(image) => {
            let volume = open(&image)?;
            let trimmed = volume.trim(start..start.saturating_add(len), least);
            let trimmed = trimmed.map_err(|error| Failure::new(error).at(&image));
            close_after(volume, &image, trimmed)?
        }
    };
    let target = path.display().to_string();
    let text = format!("{target}: {} given back\n", bytes(trimmed));
    let report = json!({ "target": target, "trimmed_bytes": trimmed });
    arguments.output.print(&report, text)
}
