//! A directory of the host as the source of a mount: its options, and how it is opened.

use super::options::{Choice, NOTIFIED, Plan};
use crate::message::{Failure, Result, refuse};
use holdfast::{FileSystem, engine, engine::store::Coherence};
use holdfast_fuse::{Config, KeptContent, ListingChoice, Passthrough, Session};
use holdfast_hostdir::{HostDirectory, Options};
use rustix::{
    fs::Mode,
    process::{geteuid, umask},
};
use std::{
    io,
    path::Path,
    sync::{Arc, mpsc},
    thread,
    time::Duration,
};

/// How often `wait` checks whether the mount has ended.
const LOOK: Duration = Duration::from_secs(1);
/// How long the host may take to finish requests after the mount has ended.
const END_WAIT_MAX: Duration = Duration::from_secs(3);

/// Opens the directory. This happens before mounting, so it may be the mount point itself.
///
/// # Errors
/// Names an option that contradicts another one, or says why the directory cannot be opened.
pub(super) fn open(path: &Path, plan: &Plan) -> Result<FileSystem> {
    if plan.serve_opens == Some(false) && opens_have_to_be_served(plan) {
        let (reason, remedy) = match plan.core.read_only {
            true if plan.passthrough == Choice::On => (
                "passthrough needs the daemon to open files",
                "passthrough=off",
            ),
            true => (
                "with valid=0 each read has to be a request",
                "more than valid=0",
            ),
            false => (
                "the host has to open the files that are written",
                "mount the directory read-only: -o ro",
            ),
        };
        return Err(Failure::new(reason)
            .about("option opens=local")
            .hint(format!("leave it out, or {remedy}")));
    }
    let writes = !plan.core.read_only;
    refuse([
        (
            plan.passthrough == Choice::On && !sees_what_kernels_write(plan),
            "writes by passthrough are noticed only if cached data expires",
            "passthrough=on",
            "leave out exclusive, or mount the directory read-only: -o ro",
        ),
        (
            plan.passthrough == Choice::On && waits_for_writes(plan),
            "writes by passthrough are not durable when the call returns",
            "passthrough=on",
            "leave out sync, or mount the directory read-only: -o ro",
        ),
        (
            writes && plan.mount.allow_other == Some(true) && !geteuid().is_root(),
            "only root can make files for other users",
            "allow_other",
            "leave it out, or mount the directory read-only: -o ro",
        ),
    ])?;
    if writes {
        // The requests carry each caller's umask; the daemon's own must not be applied.
        umask(Mode::empty());
    }
    let options = Options {
        coherence: match coherence(plan) {
            Coherence::Exclusive => Coherence::Exclusive,
            Coherence::For(valid) => Coherence::For(valid / 2),
            Coherence::Notified { valid, notified } => Coherence::Notified {
                valid: valid / 2,
                notified: notified / 2,
            },
        },
        xattrs: !plan.no_xattrs,
        ..Options::default()
    };
    let failed = |error| not_opened(path, &io::Error::from(error));
    let store = HostDirectory::open(path, options).map_err(failed)?;
    refuse([(
        matches!(plan.coherence, Some(Coherence::Notified { .. })) && !store.hears(),
        "changes by others are not reported there: its file system belongs to another machine or program, or inotify(7) has no instance left",
        "told",
        "leave it out; valid=SECONDS limits the age of cached data",
    )])?;
    let fs = engine::FileSystem::new(Arc::new(store), plan.core).map_err(failed)?;
    Ok(FileSystem::from_core(fs))
}

fn not_opened(path: &Path, error: &io::Error) -> Failure {
    let failure = Failure::new(error).at(path);
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => {
            failure.hint("check SOURCE: dir:PATH takes a directory that is there")
        }
        io::ErrorKind::PermissionDenied => {
            failure.hint("run as root, or as a user that may list it")
        }
        _ => failure,
    }
}

/// Does the daemon open files? It can keep a file alive that others remove only if it has opened
/// it.
fn opens_are_served(plan: &Plan) -> bool {
    let others_change_it = validity(plan).is_some();
    opens_have_to_be_served(plan) || others_change_it && plan.serve_opens != Some(false)
}

/// Must the daemon open files? It must for writing, because the host has to know which files are
/// open for writing. It must for passthrough. It must for `valid=0`: only of a file opened by the
/// daemon does the kernel cache nothing, not even the size. (A notification that races with the
/// kernel's question would leave the old size in its cache.)
fn opens_have_to_be_served(plan: &Plan) -> bool {
    !plan.core.read_only
        || plan.passthrough == Choice::On
        || validity(plan).is_some_and(|valid| valid.is_zero())
}

/// Are writes of the kernel by passthrough noticed?
fn sees_what_kernels_write(plan: &Plan) -> bool {
    plan.core.read_only || validity(plan).is_some()
}

/// Must each write be durable when its call returns? Writes by passthrough are not.
fn waits_for_writes(plan: &Plan) -> bool {
    plan.core.sync && !plan.core.read_only
}

/// The coherence with changes by others; by default notifications.
fn coherence(plan: &Plan) -> Coherence {
    plan.coherence.unwrap_or(NOTIFIED)
}

/// How long cached data is valid without a notification; `None`: for ever.
fn validity(plan: &Plan) -> Option<Duration> {
    match coherence(plan) {
        Coherence::Exclusive => None,
        Coherence::For(valid) | Coherence::Notified { valid, .. } => Some(valid),
    }
}

/// Sets the kernel's timeouts to one half of the validity; the store uses the other half.
pub(super) fn configure(config: &mut Config, plan: &Plan) {
    let valid = validity(plan);
    if opens_are_served(plan) {
        config.no_open = false;
    }
    config.passthrough = match plan.passthrough {
        Choice::On => Passthrough::All,
        Choice::Auto
            if !config.no_open && sees_what_kernels_write(plan) && !waits_for_writes(plan) =>
        {
            Passthrough::Auto
        }
        Choice::Auto | Choice::Off => Passthrough::Off,
    };
    let Some(valid) = valid else { return };
    config.content = match valid.is_zero() {
        true => KeptContent::Mapped,
        false => KeptContent::ByAttributes,
    };
    if valid.is_zero() {
        // Attributes in a listing would be expired on arrival.
        config.listing = ListingChoice::Plain;
    }
    if let Coherence::Notified { notified, .. } = coherence(plan) {
        config.notified_timeout = Some(notified / 2);
    }
    let valid = valid / 2;
    config.entry_timeout = valid;
    config.attr_timeout = valid;
    config.negative_timeout = valid;
    config.cache_listings = false;
}

/// Fails if `passthrough=on` is not possible.
///
/// # Errors
/// The reason.
pub(super) fn check_passthrough(session: &Session, plan: &Plan) -> Result<()> {
    match (plan.passthrough, session.info().no_passthrough) {
        (Choice::On, Some(reason)) => Err(Failure::new(format!(
            "files cannot be passed through: {reason}"
        ))
        .about("option passthrough=on")
        .hint("passthrough=auto does it if possible")),
        _ => Ok(()),
    }
}

/// Waits until the mount has ended, and then at most [`END_WAIT_MAX`] for outstanding calls to the
/// host. All writes are made by waiting callers, so none is lost by that. Returns whether all calls
/// returned.
pub(super) fn wait(session: &Arc<Session>) -> bool {
    let waiting = Arc::clone(session);
    let (sender, end) = mpsc::channel();
    let waiter = thread::Builder::new()
        .name("holdfast-end".into())
        .spawn(move || {
            waiting.wait();
            // The receiver is gone if it took too long.
            let _ = sender.send(());
        });
    if waiter.is_err() {
        session.wait();
        return true;
    }
    while !session.is_over() {
        match end.recv_timeout(LOOK) {
            Err(mpsc::RecvTimeoutError::Timeout) => {}
            Ok(()) | Err(mpsc::RecvTimeoutError::Disconnected) => return true,
        }
    }
    end.recv_timeout(END_WAIT_MAX) != Err(mpsc::RecvTimeoutError::Timeout)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(list: &str) -> Plan {
        Plan::parse([list], false).unwrap()
    }

    #[test]
    fn options_that_do_not_go_together_are_refused_by_name() {
        let dir = tempfile::tempdir().unwrap();
        assert!(open(dir.path(), &plan("")).is_ok());
        let refused = open(dir.path(), &plan("opens=local")).unwrap_err();
        assert!(refused.to_string().contains("opens=local"), "{refused}");
        assert!(open(dir.path(), &plan("ro,opens=local")).is_ok());
        let refused = open(dir.path(), &plan("ro,opens=local,valid=0")).unwrap_err();
        assert!(refused.to_string().contains("opens=local"), "{refused}");
    }

    #[test]
    fn both_sides_together_keep_what_was_seen_for_the_time_that_was_given() {
        let mut config = Config::default();
        configure(&mut config, &plan("exclusive"));
        assert_eq!(config.attr_timeout, Duration::MAX);
        assert_eq!(config.content, KeptContent::Notified);
        assert!(!config.no_open);
        config.no_open = true;
        configure(&mut config, &plan("ro"));
        assert_eq!(config.attr_timeout, Duration::from_millis(500));
        assert_eq!(config.notified_timeout, Some(Duration::from_secs(30)));
        config.notified_timeout = None;
        configure(&mut config, &plan("ro,valid=3"));
        assert_eq!(config.notified_timeout, None);
        assert!(!config.no_open, "others may remove what is open");
        config.no_open = true;
        configure(&mut config, &plan("ro,valid=3,opens=local"));
        assert!(config.no_open);
        configure(&mut config, &plan("ro,exclusive"));
        assert!(config.no_open, "no other process removes it");
        configure(&mut config, &plan("ro,valid=3"));
        assert_eq!(config.attr_timeout, Duration::from_millis(1500));
        assert!(!config.cache_listings);
        assert_eq!(config.content, KeptContent::ByAttributes);
        configure(&mut config, &plan("ro,valid=0"));
        assert!(!config.no_open, "of each file the kernel keeps nothing");
        assert_eq!(config.content, KeptContent::Mapped);
    }

    #[test]
    fn files_are_passed_through_where_they_are_opened_and_changes_are_seen() {
        let passthrough = |options: &str| {
            let mut config = Config {
                no_open: true,
                ..Config::default()
            };
            configure(&mut config, &plan(options));
            assert!(!config.no_open || config.passthrough == Passthrough::Off);
            config.passthrough
        };
        for (options, expected) in [
            ("", Passthrough::Auto),
            ("valid=0", Passthrough::Auto),
            ("ro,valid=0", Passthrough::Auto),
            ("ro", Passthrough::Auto),
            ("ro,opens=local", Passthrough::Off),
            ("ro,exclusive", Passthrough::Off),
            ("sync", Passthrough::Off),
            ("dirsync", Passthrough::Auto),
            ("ro,sync,passthrough=on", Passthrough::All),
            ("exclusive", Passthrough::Off),
            ("passthrough=off", Passthrough::Off),
            ("passthrough=on", Passthrough::All),
            ("ro,passthrough=on", Passthrough::All),
            ("ro,exclusive,passthrough=on", Passthrough::All),
        ] {
            assert_eq!(passthrough(options), expected, "{options}");
        }
        let dir = tempfile::tempdir().unwrap();
        for options in [
            "exclusive,passthrough=on",
            "ro,opens=local,passthrough=on",
            "sync,passthrough=on",
        ] {
            assert!(open(dir.path(), &plan(options)).is_err(), "{options}");
        }
    }
}
