//! `fsck.holdfast`: what fsck(8) calls, and what it may ask for.

use crate::fsck;
use clap::Parser;
use std::path::PathBuf;
use std::process::ExitCode;

/// fsck(8): a wrong call.
pub(crate) const USAGE: u8 = 16;

/// Check a volume on behalf of fsck(8)
///
/// With -a or -p, as at system start, only the superblock is read: a mount replays the journal.
/// With -f, fsck checks such a volume all the same, and repairs it if need be, as -y does. Without
/// these options findings are printed and left (exit code 4).
#[derive(Debug, Parser)]
#[command(name = "fsck.holdfast", version)]
pub(crate) struct FsckArguments {
    /// The image file or block device
    #[arg(value_name = "VOLUME")]
    volume: PathBuf,

    /// Ask nothing: at the start of a system
    #[arg(short = 'a', visible_short_alias = 'p')]
    automatic: bool,

    /// Change nothing
    #[arg(short = 'n', conflicts_with = "yes")]
    no: bool,

    /// Repair what is wrong
    #[arg(short = 'y')]
    yes: bool,

    /// Check even a volume that was closed cleanly
    #[arg(short = 'f')]
    force: bool,

    /// Without effect: nothing is asked
    #[arg(short = 'r')]
    interactive: bool,

    /// Print what the superblock says
    #[arg(short = 'v')]
    verbose: bool,

    /// Without effect: progress is shown where standard error is a terminal
    #[arg(short = 'C', value_name = "DESCRIPTOR", num_args = 0..=1, require_equals = true)]
    progress: Option<Option<String>>,

    /// The type, without effect
    #[arg(short = 't', value_name = "TYPE")]
    kind: Option<String>,
}

/// Checks; the exit code is fsck(8)'s.
pub(crate) fn run(arguments: &FsckArguments) -> ExitCode {
    if arguments.automatic && !arguments.force {
        return fsck::glance(&arguments.volume, arguments.verbose);
    }
    let repairs = arguments.yes || arguments.automatic && !arguments.no;
    fsck::run(&fsck::Arguments::new(arguments.volume.clone(), repairs))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_of_fsck_are_understood() {
        for call in [
            &["-a", "/dev/sda"][..],
            &["-p", "-f", "/dev/sda"],
            &["-n", "-v", "data.hf"],
            &["-y", "-f", "-C", "data.hf"],
            &["-C=3", "data.hf"],
            &["-V", "data.hf"],
        ] {
            let words = ["fsck.holdfast"].iter().chain(call);
            let parsed = FsckArguments::try_parse_from(words);
            // -V is the version.
            assert_eq!(parsed.is_ok(), call[0] != "-V", "{call:?}");
        }
        assert!(FsckArguments::try_parse_from(["fsck.holdfast", "-n", "-y", "x"]).is_err());
    }
}
