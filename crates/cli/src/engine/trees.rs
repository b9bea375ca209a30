//! `holdfast rm`, `holdfast chown`, `holdfast chmod`: whole trees at a time.

use std::ffi::OsString;
use std::io;
use std::path::Component;

use clap_complete::ArgValueCompleter;
use serde_json::json;

use super::names::parse_owner;
use super::{Inside, Job, RawPath, perform};
use crate::complete;
use crate::copy::place::Place;
use crate::message::{Failure, Result, unless_failed};
use crate::output::print_json;
use crate::volume::open_read_only;

/// Remove files and trees inside a volume, mounted or not, as rm(1)
///
/// PATH is in a mount of holdfast, or is VOLUME:/PATH. In a mount the daemon does the work with
/// this user's rights, without a kernel request for each name: several times as fast as rm(1). A
/// name that cannot be removed is printed, the rest is removed, and the exit code is 1.
/// Interrupting the command stops the work.
#[derive(Debug, clap::Args)]
pub(crate) struct RemoveArguments {
    /// The names to remove
    #[arg(value_name = "PATH", required = true, add = ArgValueCompleter::new(complete::places))]
    paths: Vec<OsString>,

    /// Remove directories and their content
    #[arg(short, long, visible_short_alias = 'R')]
    recursive: bool,

    /// Ignore names that do not exist
    #[arg(short, long)]
    force: bool,

    /// Print one line of JSON
    #[arg(long)]
    json: bool,
}

/// Give files and trees inside a volume another owner, as chown(1)
///
/// PATH is in a mount of holdfast, or is VOLUME:/PATH. Symbolic links are not followed.
#[derive(Debug, clap::Args)]
pub(crate) struct OwnerArguments {
    /// Names or numbers: USER, USER:GROUP or :GROUP
    #[arg(value_name = "OWNER")]
    owner: String,

    #[command(flatten)]
    trees: Trees,
}

/// Change the modes of files and trees inside a volume, as chmod(1)
///
/// PATH is in a mount of holdfast, or is VOLUME:/PATH. Symbolic links are left alone.
#[derive(Debug, clap::Args)]
pub(crate) struct ModeArguments {
    /// As chmod(1) takes it: 755, u+rwX,go-w
    #[arg(value_name = "MODE", allow_hyphen_values = true)]
    mode: String,

    #[command(flatten)]
    trees: Trees,
}

/// Trees that are changed.
#[derive(Debug, clap::Args)]
struct Trees {
    /// What is changed
    #[arg(value_name = "PATH", required = true, add = ArgValueCompleter::new(complete::places))]
    paths: Vec<OsString>,

    /// Change directories with all below them
    #[arg(short = 'R', long)]
    recursive: bool,

    /// Print one line of JSON
    #[arg(long)]
    json: bool,
}

/// Prints the counts of names as JSON if asked to.
///
/// # Errors
/// If names were not `done`.
fn report((names, failed): (u64, u64), json: bool, done: &str) -> Result<()> {
    if json {
        print_json(&json!({ "names": names, "failed": failed }))?;
    }
    unless_failed(failed, done)
}

pub(crate) fn remove(arguments: &RemoveArguments) -> Result<()> {
    let mut done = (0, 0);
    for text in &arguments.paths {
        let place = Place::of(text);
        let inside = Inside::of(&place, "rm(1) removes it");
        if let Ok(inside) = &inside {
            refuse_root(&place, inside)?;
        }
        let Some(is_dir) = is_dir(&place, arguments.force)? else {
            continue;
        };
        refuse_tree(&place, is_dir, arguments.recursive, "-r removes it")?;
        let inside = inside?;
        let path = RawPath::from(&*inside.path);
        let counts = perform(&inside, Job::Remove { path }, None)?;
        done = (done.0 + counts.names, done.1 + counts.failed);
    }
    report(done, arguments.json, "removed")
}

pub(crate) fn owner(arguments: &OwnerArguments) -> Result<()> {
    let (uid, gid) = parse_owner(&arguments.owner)?;
    each(&arguments.trees, "chown(1) changes it", |path| Job::Owner {
        path,
        uid,
        gid,
    })
}

pub(crate) fn mode(arguments: &ModeArguments) -> Result<()> {
    let mode = &arguments.mode;
    mode.parse::<holdfast::ModeChange>().map_err(Failure::new)?;
    each(&arguments.trees, "chmod(1) changes it", |path| Job::Mode {
        path,
        mode: mode.clone(),
    })
}

fn each(trees: &Trees, instead: &str, job: impl Fn(RawPath) -> Job) -> Result<()> {
    let mut done = (0, 0);
    for text in &trees.paths {
        let place = Place::of(text);
        let is_dir = is_dir(&place, false)?;
        let hint = "-R changes it with all below it";
        refuse_tree(&place, is_dir == Some(true), trees.recursive, hint)?;
        let inside = Inside::of(&place, instead)?;
        let path = RawPath::from(&*inside.path);
        let counts = perform(&inside, job(path), None)?;
        done = (done.0 + counts.names, done.1 + counts.failed);
    }
    report(done, trees.json, "changed")
}

/// Is it a directory? Links are not followed. `None`: it does not exist, which is no error if
/// `may_miss`.
fn is_dir(place: &Place, may_miss: bool) -> Result<Option<bool>> {
    let found = match place.image() {
        None => std::fs::symlink_metadata(place.path()).map(|meta| meta.is_dir()),
        Some(image) => {
            let about = open_read_only(image)?.symlink_metadata(place.path());
            about.map(|about| about.is_dir())
        }
    };
    match found {
        Ok(is_dir) => Ok(Some(is_dir)),
        Err(error) if may_miss && error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Failure::of(&error).about(place)),
    }
}

/// Refuses to remove the root of a file system, which has no name in a directory.
fn refuse_root(place: &Place, inside: &Inside) -> Result<()> {
    let mut parts = inside.path.components();
    if parts.any(|part| !matches!(part, Component::RootDir | Component::CurDir)) {
        return Ok(());
    }
    let (what, hint) = match place.image() {
        None => (
            "is a mount point: the root of a file system cannot be removed",
            "holdfast umount ends the mount; to empty it, name what it holds",
        ),
        Some(_) => (
            "is the root of the volume, which cannot be removed",
            "name what it holds, or holdfast mkfs --force makes an empty volume",
        ),
    };
    Err(Failure::new(what).about(place).hint(hint))
}

fn refuse_tree(place: &Place, is_dir: bool, recursive: bool, hint: &str) -> Result<()> {
    if is_dir && !recursive {
        return Err(Failure::new("is a directory").about(place).hint(hint));
    }
    Ok(())
}
