//! A directory of the host as what is mounted: which options it has, and how it is opened.

use super::options::{Choice, Plan, TOLD};
use crate::message::{Failure, Result};
use holdfast::{FileSystem, core, core::store::Coherence};
use holdfast_fuse::{Config, KeptContent, ListingChoice, Passthrough, Session};
use holdfast_hostdir::{HostDirectory, Options};
use rustix::fs::Mode;
use std::{
    io,
    path::Path,
    sync::{Arc, mpsc},
    thread,
    time::Duration,
};

/// So often it is looked whether a mount has ended.
const LOOK: Duration = Duration::from_secs(1);
/// So long a host may take to answer what was asked before the mount ended.
const END_WAIT_MAX: Duration = Duration::from_secs(3);

/// Opens a directory before anything is mounted: so it may be the mount point itself.
///
/// # Errors
/// Names an option that does not go with another one, or says why it cannot be opened.
pub(super) fn open(path: &Path, plan: &Plan) -> Result<FileSystem> {
    if plan.serve_opens == Some(false) && opens_have_to_be_served(plan) {
        let (reason, remedy) = match plan.core.read_only {
            true if plan.passthrough == Choice::On => (
                "which file of the host it is has to be told when it is opened",
                "passthrough=off",
            ),
            true => (
                "what is seen is never old only if each read is asked for",
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
    if plan.passthrough == Choice::On && !sees_what_kernels_write(plan) {
        return Err(Failure::new(
            "what the kernel writes by itself is seen only if the directory is looked at again",
        )
        .about("option passthrough=on")
        .hint("leave out exclusive, or mount the directory read-only: -o ro"));
    }
    if plan.passthrough == Choice::On && waits_for_writes(plan) {
        return Err(Failure::new(
            "what the kernel writes by itself is not durable when the call returns",
        )
        .about("option passthrough=on")
        .hint("leave out sync, or mount the directory read-only: -o ro"));
    }
    if !plan.core.read_only {
        refuse_half_of_writing(plan)?;
        // The host takes a caller's own from what it makes, and nothing else.
        rustix::process::umask(Mode::empty());
    }
    let options = Options {
        coherence: match coherence(plan) {
            Coherence::Exclusive => Coherence::Exclusive,
            Coherence::For(valid) => Coherence::For(valid / 2),
            Coherence::Told { valid, heard } => Coherence::Told {
                valid: valid / 2,
                heard: heard / 2,
            },
        },
        xattrs: plan.xattrs,
        ..Options::default()
    };
    let failed = |error| not_opened(path, &io::Error::from(error));
    let store = HostDirectory::open(path, options).map_err(failed)?;
    if matches!(plan.coherence, Some(Coherence::Told { .. })) && !store.hears() {
        return Err(Failure::new(
            "nobody tells what others change there: its file system is another machine's or program's, or inotify(7) has no instance left",
        )
        .about("option told")
        .hint("leave it out; valid=SECONDS says how old may be what is seen"));
    }
    let fs = core::FileSystem::new(Arc::new(store), plan.core).map_err(failed)?;
    Ok(FileSystem::from_core(fs))
}

fn not_opened(path: &Path, error: &io::Error) -> Failure {
    let failure = Failure::new(error.to_string()).at(path);
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => {
            failure.hint("check SOURCE: dir:PATH takes a directory that is there")
        }
        io::ErrorKind::PermissionDenied => {
            failure.hint("run as root, or as a user who may list it")
        }
        _ => failure,
    }
}

/// Refuses what does not go together with writing.
///
/// # Errors
/// Names the option.
fn refuse_half_of_writing(plan: &Plan) -> Result<()> {
    if plan.mount.allow_other == Some(true) && !rustix::process::geteuid().is_root() {
        return Err(Failure::new(
            "what other users make would be this user's: only root acts as others",
        )
        .about("option allow_other")
        .hint("leave it out, or mount the directory read-only: -o ro"));
    }
    Ok(())
}

/// Are files opened by this side? Only those that it knows to be open it can hold while others remove or replace their names.
fn opens_are_served(plan: &Plan) -> bool {
    let others_change_it = validity(plan).is_some();
    opens_have_to_be_served(plan) || others_change_it && plan.serve_opens != Some(false)
}

/// Can it not be otherwise? A host has to know which ones are open for writing; and only of a file that was opened here the kernel
/// keeps nothing, not even how long it is: what it is told of a change while it asks for that makes it believe in the old length.
fn opens_have_to_be_served(plan: &Plan) -> bool {
    !plan.core.read_only
        || plan.passthrough == Choice::On
        || validity(plan).is_some_and(|valid| valid.is_zero())
}

/// Would be seen what became of a file that a kernel has written by itself?
fn sees_what_kernels_write(plan: &Plan) -> bool {
    plan.core.read_only || validity(plan).is_some()
}

/// Is each write durable when its call returns? The kernel does not do so with what it writes by
/// itself.
fn waits_for_writes(plan: &Plan) -> bool {
    plan.core.sync && !plan.core.read_only
}

/// What is known of changes by others. They are told, where that can be.
fn coherence(plan: &Plan) -> Coherence {
    plan.coherence.unwrap_or(TOLD)
}

/// How old at most may be what is seen and not told of? `None`: nobody changes it.
fn validity(plan: &Plan) -> Option<Duration> {
    match coherence(plan) {
        Coherence::Exclusive => None,
        Coherence::For(valid) | Coherence::Told { valid, .. } => Some(valid),
    }
}

/// The kernel keeps what it was told for one half of the time, and this side for the other.
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
        // The kernel would not believe them when it has them.
        config.listing = ListingChoice::Plain;
    }
    if let Coherence::Told { heard, .. } = coherence(plan) {
        config.heard_timeout = Some(heard / 2);
    }
    let valid = valid / 2;
    config.entry_timeout = valid;
    config.attr_timeout = valid;
    config.negative_timeout = valid;
    config.cache_listings = false;
}

/// Are files passed through if they have to be?
///
/// # Errors
/// Why not.
pub(super) fn check_passthrough(session: &Session, plan: &Plan) -> Result<()> {
    match (plan.passthrough, session.info().no_passthrough) {
        (Choice::On, Some(reason)) => Err(Failure::new(format!(
            "files cannot be passed through: {reason}"
        ))
        .about("option passthrough=on")
        .hint("passthrough=auto does it where it can be had")),
        _ => Ok(()),
    }
}

/// Waits until the mount has ended; for what the host has not answered by then only for a while, since nothing is written but by a caller that waits. Was all
/// answered?
pub(super) fn wait(session: &Arc<Session>) -> bool {
    let waiting = Arc::clone(session);
    let (sender, end) = mpsc::channel();
    let waiter = thread::Builder::new()
        .name("holdfast-end".into())
        .spawn(move || {
            waiting.wait();
            // Nothing listens any more if it took too long.
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
        assert_eq!(config.content, KeptContent::Told);
        assert!(!config.no_open);
        config.no_open = true;
        configure(&mut config, &plan("ro"));
        assert_eq!(config.attr_timeout, Duration::from_millis(500));
        assert_eq!(config.heard_timeout, Some(Duration::from_secs(30)));
        config.heard_timeout = None;
        configure(&mut config, &plan("ro,valid=3"));
        assert_eq!(config.heard_timeout, None);
        assert!(!config.no_open, "others may remove what is open");
        config.no_open = true;
        configure(&mut config, &plan("ro,valid=3,opens=local"));
        assert!(config.no_open);
        configure(&mut config, &plan("ro,exclusive"));
        assert!(config.no_open, "nobody removes it");
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
