//! The helpers of mount(8), umount(8), mkfs(8) and fsck(8) for the type `holdfast`.
//!
//! Their options and exit codes follow those programs (mount(8): 1 for a wrong call, 32 for a
//! failed mount).

use crate::{
    checker::{self, FsckArguments},
    message::{Failure, Result},
    mkfs, mount, umount,
};
use clap::Parser;
use std::{
    ffi::{OsStr, OsString},
    path::{Path, PathBuf},
    process::ExitCode,
};

/// Exit code of mount(8) for a wrong call.
const USAGE: u8 = 1;
/// Exit code of mount(8) when mounting or unmounting failed.
const FAILED: u8 = 32;

/// Make a volume on behalf of mkfs(8): `mkfs -t holdfast DEVICE`
#[derive(Debug, Parser)]
#[command(name = "mkfs.holdfast", version)]
pub(crate) struct MkfsArguments {
    #[command(flatten)]
    arguments: mkfs::Arguments,
}

/// A helper of another program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Helper {
    Mount,
    Umount,
    Mkfs,
    Fsck,
}

/// Mount a file system on behalf of mount(8): `mount -t holdfast mem: DIR`, or a line of fstab
#[derive(Debug, Parser)]
#[command(name = "mount.holdfast", version)]
pub(crate) struct MountArguments {
    /// What to mount, as for `holdfast mount`
    #[arg(value_name = "SOURCE")]
    source: OsString,

    /// Where to mount it
    #[arg(value_name = "DIR")]
    dir: PathBuf,

    /// Ignore unknown options
    #[arg(short = 's')]
    sloppy: bool,

    /// Do everything but mounting
    #[arg(short = 'f')]
    fake: bool,

    /// Without effect: there is no /etc/mtab to write
    #[arg(short = 'n')]
    no_mtab: bool,

    /// Say what is mounted
    #[arg(short = 'v')]
    verbose: bool,

    /// Mount in this mount namespace: a process id or a file
    #[arg(short = 'N', value_name = "NAMESPACE")]
    namespace: Option<PathBuf>,

    /// Mount options, separated by commas (`holdfast mount --help` lists them)
    #[arg(short = 'o', value_name = "OPTIONS", allow_hyphen_values = true)]
    options: Vec<String>,

    /// The type asked for, as TYPE.SUBTYPE; without effect
    #[arg(short = 't', value_name = "TYPE")]
    kind: Option<String>,
}

/// Unmount a file system on behalf of umount(8)
#[derive(Debug, Parser)]
#[command(name = "umount.holdfast", version)]
pub(crate) struct UmountArguments {
    /// The mount point
    #[arg(value_name = "DIR")]
    dir: PathBuf,

    /// Take a mount that is in use away from its users; if the daemon hangs, cut its connection
    #[arg(short = 'f')]
    force: bool,

    /// Detach a mount that is in use
    #[arg(short = 'l')]
    lazy: bool,

    /// Without effect: there is no /etc/mtab to write
    #[arg(short = 'n')]
    no_mtab: bool,

    /// Make a mount read-only that cannot be unmounted
    #[arg(short = 'r')]
    read_only: bool,

    /// Say what is unmounted
    #[arg(short = 'v')]
    verbose: bool,

    /// Unmount in this mount namespace: a process id or a file
    #[arg(short = 'N', value_name = "NAMESPACE")]
    namespace: Option<PathBuf>,

    /// The type, as TYPE.SUBTYPE; without effect
    #[arg(short = 't', value_name = "TYPE")]
    kind: Option<String>,
}

impl Helper {
    /// The helper that a program name stands for.
    pub(crate) fn named(program: &OsStr) -> Option<Self> {
        let name = std::path::Path::new(program).file_name()?;
        match name.to_str()? {
            "mount.holdfast" | "mount.fuse.holdfast" | "mount.fuseblk.holdfast" => {
                Some(Self::Mount)
            }
            "umount.holdfast" | "umount.fuse.holdfast" | "umount.fuseblk.holdfast" => {
                Some(Self::Umount)
            }
            "mkfs.holdfast" => Some(Self::Mkfs),
            "fsck.holdfast" => Some(Self::Fsck),
            _ => None,
        }
    }

    /// Is this a call of mount.fuse3(8)? For the type `fuse.NAME` it calls
    /// `NAME SOURCE DIR -o OPTIONS`, without a subcommand.
    pub(crate) fn of_mount_fuse(
        arguments: &[OsString],
        is_command: impl Fn(&OsStr) -> bool,
    ) -> Option<Self> {
        let [_, source, dir, option, _, ..] = arguments else {
            return None;
        };
        let is_path = |text: &OsString| !text.as_encoded_bytes().starts_with(b"-");
        let is_one = is_path(source) && is_path(dir) && option == "-o" && !is_command(source);
        is_one.then_some(Self::Mount)
    }

    pub(crate) fn run(self) -> ExitCode {
        let (result, failed) = match self {
            Self::Mount => (MountArguments::try_parse().map(run_mount), FAILED),
            Self::Umount => (UmountArguments::try_parse().map(run_umount), FAILED),
            Self::Mkfs => {
                let parsed = MkfsArguments::try_parse();
                (parsed.map(|call| mkfs::run(&call.arguments)), USAGE)
            }
            Self::Fsck => {
                return match FsckArguments::try_parse() {
                    Ok(arguments) => checker::run(&arguments),
                    Err(usage) => wrong_call(&usage, checker::USAGE),
                };
            }
        };
        match result {
            Ok(Ok(())) => ExitCode::SUCCESS,
            Ok(Err(failure)) => {
                failure.print();
                ExitCode::from(failed)
            }
            Err(usage) => wrong_call(&usage, USAGE),
        }
    }
}

/// Prints the usage error, or the text that `--help` asked for.
pub(crate) fn wrong_call(usage: &clap::Error, code: u8) -> ExitCode {
    // If standard error is closed, there is nowhere to report it.
    let _ = usage.print();
    if usage.use_stderr() {
        ExitCode::from(code)
    } else {
        ExitCode::SUCCESS
    }
}

fn run_mount(arguments: MountArguments) -> Result<()> {
    enter(arguments.namespace)?;
    let request = mount::Request {
        source: arguments.source,
        dir: arguments.dir,
        options: arguments.options,
        sloppy: arguments.sloppy,
        fake: arguments.fake,
    };
    mount::run_helper(&request)?;
    if arguments.verbose {
        anstream::println!(
            "{}: {} mounted",
            request.dir.display(),
            request.source.display()
        );
    }
    Ok(())
}

fn run_umount(arguments: UmountArguments) -> Result<()> {
    enter(arguments.namespace)?;
    let dir = arguments.dir;
    let whole = umount::Arguments::new(dir.clone(), arguments.lazy, arguments.force);
    if let Err(failure) = umount::run(&whole) {
        if arguments.read_only && make_read_only(&dir).is_ok() {
            anstream::eprintln!(
                "holdfast: {}: is in use: it is mounted read-only now",
                dir.display()
            );
            return Ok(());
        }
        return Err(failure);
    }
    if arguments.verbose {
        anstream::println!("{}: unmounted", dir.display());
    }
    Ok(())
}

/// As `mount -o remount,ro`.
fn make_read_only(dir: &Path) -> Result<()> {
    mount::run_helper(&mount::Request {
        source: OsString::new(),
        dir: dir.to_owned(),
        options: vec!["remount,ro".to_owned()],
        sloppy: false,
        fake: false,
    })
}

/// Moves this process into a mount namespace, which the daemon inherits.
fn enter(namespace: Option<PathBuf>) -> Result<()> {
    use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
    let Some(namespace) = namespace else {
        return Ok(());
    };
    let is_pid = namespace
        .to_str()
        .is_some_and(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
    let file = if is_pid {
        PathBuf::from("/proc").join(&namespace).join("ns/mnt")
    } else {
        namespace
    };
    let failed = |error: std::io::Error| {
        let failure = Failure::new(format!("this mount namespace cannot be entered: {error}"));
        let failure = failure.at(&file);
        failure.hint("-N takes the id of a process, or a file such as /proc/PID/ns/mnt")
    };
    let link = std::fs::File::open(&file).map_err(failed)?;
    move_into_link_name_space(
        std::os::fd::AsFd::as_fd(&link),
        Some(LinkNameSpaceType::Mount),
    )
    .map_err(|code| failed(code.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_programs_name_says_what_it_is() {
        let named = |name: &str| Helper::named(OsStr::new(name));
        assert_eq!(named("/sbin/mount.holdfast"), Some(Helper::Mount));
        assert_eq!(named("mount.fuse.holdfast"), Some(Helper::Mount));
        assert_eq!(named("umount.fuseblk.holdfast"), Some(Helper::Umount));
        assert_eq!(named("/usr/sbin/umount.holdfast"), Some(Helper::Umount));
        assert_eq!(named("/sbin/mkfs.holdfast"), Some(Helper::Mkfs));
        assert_eq!(named("fsck.holdfast"), Some(Helper::Fsck));
        assert_eq!(named("/usr/bin/holdfast"), None);
        assert_eq!(named(""), None);
    }

    #[test]
    fn calls_of_mount_fuse_are_told_from_commands() {
        let helper = |call: &[&str]| {
            let arguments: Vec<OsString> = call.iter().map(OsString::from).collect();
            Helper::of_mount_fuse(&arguments, |name| name == "mount")
        };
        let call = ["holdfast", "mem:", "/mnt", "-o", "rw,remount"];
        assert_eq!(helper(&call), Some(Helper::Mount));
        for call in [
            &call[..3],
            &["holdfast", "mount", "mem:", "-o", "ro"],
            &["holdfast", "--version", "mem:", "-o", "ro"],
            &["holdfast", "mem:", "/mnt", "-f", "ro"],
        ] {
            assert_eq!(helper(call), None, "{call:?}");
        }
    }

    #[test]
    fn calls_of_mount_are_understood() {
        let call = [
            "mount.holdfast",
            "mem:",
            "/mnt",
            "-s",
            "-n",
            "-v",
            "-o",
            "rw,noatime",
            "-t",
            "x.y",
        ];
        let arguments = MountArguments::try_parse_from(call).unwrap();
        assert!(arguments.sloppy && arguments.verbose && !arguments.fake);
        assert_eq!(arguments.options, ["rw,noatime"]);
        UmountArguments::try_parse_from(["umount.holdfast", "/mnt", "-fln", "-r"]).unwrap();
    }
}
