//! `-o remount`: changing the options of a mount.
//!
//! Some switches belong to the kernel, and mount(2) changes them. All others are fixed for the life
//! of the daemon.

use super::options::Plan;
use super::refusal::not_mounted;
use crate::{
    control,
    info::{
        self,
        report::{Report, State},
    },
    message::{Failure, Result},
};
use holdfast_fuse::{mount::mounted_at, serve::INFO_XATTR};
use rustix::mount::MountFlags;
use std::{fs, io, path::Path};

/// Switches of the kernel: the words that set and clear each.
const SWITCHES: [(&str, &str, MountFlags); 4] = [
    ("ro", "rw", MountFlags::RDONLY),
    ("nosuid", "suid", MountFlags::NOSUID),
    ("nodev", "dev", MountFlags::NODEV),
    ("noexec", "exec", MountFlags::NOEXEC),
];

/// Flags to preserve, by their words in the mount table.
const KEPT: [(&str, MountFlags); 7] = [
    ("noatime", MountFlags::NOATIME),
    ("relatime", MountFlags::RELATIME),
    ("nodiratime", MountFlags::NODIRATIME),
    ("sync", MountFlags::SYNCHRONOUS),
    ("dirsync", MountFlags::DIRSYNC),
    ("lazytime", MountFlags::LAZYTIME),
    ("nosymfollow", MountFlags::NOSYMFOLLOW),
];

/// Changes the switches in `plan` for the mount at `dir`.
pub(super) fn run(dir: &Path, plan: &Plan) -> Result<()> {
    let Some(mounted) = mounted_at(dir)? else {
        return Err(not_mounted(dir));
    };
    let root = &mounted.mount_point;
    let report: Report = serde_json::from_str(&info::read(root, INFO_XATTR)?)?;
    if let Some(reason) = &report.failure
        && plan.given.iter().any(|item| item == "rw")
    {
        return Err(Failure::new(format!("its volume failed: {reason}"))
            .at(dir)
            .hint("unmount it and mount it again"));
    }
    let table = format!("{},{}", mounted.options, mounted.super_options);
    let flags = flags(dir, &plan.given, &table, &report.options)?;
    if plan.given.iter().any(|item| item == "rw") && report.state == State::ReadOnly {
        control::ask(&control::open(root)?, root, &control::Request::Writable)?;
    }
    remount(dir, root, flags)?;
    if flags.contains(MountFlags::RDONLY) {
        make_durable(root).map_err(|error| {
            Failure::new(format!(
                "is read-only, but what was written is not durable: {error}"
            ))
            .at(dir)
            .hint("holdfast info DIR has the reason; unmount it and mount it again")
        })?;
        control::ask(&control::open(root)?, root, &control::Request::ReadOnly)?;
    }
    Ok(())
}

/// Makes all changes on a mount durable by fsync(2) of the root. (syncfs(2) reaches only a mount as
/// `fuseblk`.)
fn make_durable(root: &Path) -> io::Result<()> {
    fs::File::open(root)?.sync_all()
}

/// Makes this mount at `dir` read-only; others of the same file system, bound elsewhere, stay as
/// they are.
///
/// # Errors
/// If a file is open for writing, or this user may not.
pub(super) fn make_read_only(dir: &Path) -> Result<()> {
    let Some(mounted) = mounted_at(dir)? else {
        return Err(not_mounted(dir));
    };
    let table = format!("{},{}", mounted.options, mounted.super_options);
    let flags = flags(dir, &["ro".to_owned()], &table, "")?;
    remount(dir, &mounted.mount_point, flags | MountFlags::BIND)
}

fn remount(dir: &Path, root: &Path, flags: MountFlags) -> Result<()> {
    rustix::mount::mount_remount(root, flags, c"").map_err(|code| {
        let failure = Failure::new(format!("remounting failed: {}", io::Error::from(code))).at(dir);
        match code {
            rustix::io::Errno::PERM => failure.hint("only root remounts"),
            rustix::io::Errno::BUSY => failure.hint("a file is open for writing"),
            _ => failure.hint("dmesg(1) may tell why"),
        }
    })
}

/// The flags after the change. `table` has the options in the kernel's mount table, `daemon` those
/// in the daemon's report.
fn flags(dir: &Path, given: &[String], table: &str, daemon: &str) -> Result<MountFlags> {
    let has = |options: &str, word: &str| options.split(',').any(|option| option == word);
    let mut flags = MountFlags::empty();
    for (word, flag) in SWITCHES
        .map(|(set, _, flag)| (set, flag))
        .into_iter()
        .chain(KEPT)
    {
        flags.set(flag, has(table, word));
    }
    for item in given {
        let switch = SWITCHES
            .iter()
            .find(|(set, clear, _)| item == set || item == clear);
        match switch {
            // The daemon enforces this one itself.
            Some((set, clear, _)) if item == clear && *set != "ro" && has(daemon, set) => {
                let text =
                    format!("the daemon was started with {set}, which only a new mount undoes");
                return Err(Failure::new(text)
                    .at(dir)
                    .hint("unmount it and mount it again"));
            }
            Some((set, _, flag)) => flags.set(*flag, item == set),
            // mount(8) repeats options that are in force.
            None if has(daemon, item) || has(table, item) => {}
            None => {
                let text = format!("option {item} cannot be changed while mounted");
                return Err(Failure::new(text)
                    .at(dir)
                    .hint("a remount changes ro, rw, suid, dev and exec; for others mount anew"));
            }
        }
    }
    Ok(flags)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(given: &str, table: &str, daemon: &str) -> Result<MountFlags> {
        let given: Vec<String> = given.split(',').map(str::to_owned).collect();
        flags(Path::new("/mnt"), &given, table, daemon)
    }

    #[test]
    fn switches_turn_and_what_is_not_named_stays() {
        let now = MountFlags::NOSUID | MountFlags::RELATIME;
        assert_eq!(
            change("ro", "rw,nosuid,relatime", "rw"),
            Ok(now | MountFlags::RDONLY)
        );
        assert_eq!(change("rw", "ro,nosuid,relatime", "rw"), Ok(now));
        assert_eq!(
            change("suid,noexec", "rw,nosuid", "rw"),
            Ok(MountFlags::NOEXEC)
        );
    }

    #[test]
    fn what_the_daemon_keeps_is_refused_with_a_remedy() {
        let refusal = |given, daemon| change(given, "rw", daemon).unwrap_err().to_string();
        assert!(refusal("size=1g", "rw").contains("option size=1g cannot be changed"));
        assert!(refusal("noatime", "rw,relatime").contains("mount anew"));
        assert!(refusal("suid", "nosuid").contains("started with nosuid"));
        assert_eq!(change("rw", "ro", "ro"), Ok(MountFlags::empty()));
        // mount(8) hands back the kernel's table.
        let table = "rw,noatime,rw,default_permissions,allow_other";
        assert_eq!(
            change("noatime,allow_other,default_permissions,ro", table, "rw"),
            Ok(MountFlags::NOATIME | MountFlags::RDONLY)
        );
        assert_eq!(
            change("ro,size=1g", "rw", "rw,size=1g"),
            Ok(MountFlags::RDONLY)
        );
    }
}
