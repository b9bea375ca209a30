//! The command's side: finds the file system of a path, and has the job done there.

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use rustix::fs::Mode;
use rustix::io::Errno;

use super::job::{Counts, Event, Job, Order, Wrong};
use super::relay::Relay;
use super::run::run;
use super::shown::Shown;
use super::socket::Socket;
use crate::control::{self, Answer, Request};
use crate::copy::place::Place;
use crate::message::{Failure, Result};
use crate::target::root_of;
use crate::volume::{close_after, open, open_read_only, to_make_files_in};

/// A path from the root of a mount or of a volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Inside {
    root: Root,
    pub(crate) path: PathBuf,
}

/// A file system.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Root {
    /// A mount, at this directory.
    Mount(PathBuf),
    /// A volume that is not mounted.
    Volume(PathBuf),
}

impl Inside {
    /// Parses an argument: a path in a mount, or `VOLUME:/PATH`. A link as the last name is not
    /// followed unless the path ends with a slash.
    ///
    /// # Errors
    /// If the path is in no file system of holdfast; `instead` is the hint for that case.
    pub(crate) fn of(place: &Place, instead: &str) -> Result<Self> {
        if let Some(image) = place.image() {
            return Ok(Self {
                root: Root::Volume(image.to_owned()),
                path: place.path().to_owned(),
            });
        }
        Self::mounted(place.path()).map_err(|failure| match failure {
            Some(failure) => failure,
            None => Failure::new("is in no volume, mounted or not")
                .about(place)
                .hint(instead),
        })
    }

    /// A path of the host that is in a mount of holdfast.
    ///
    /// # Errors
    /// `None` for a path in another file system.
    pub(crate) fn mounted(path: &Path) -> std::result::Result<Self, Option<Failure>> {
        let missing = |error: io::Error| Some(Failure::of(&error).at(path));
        let bytes = path.as_os_str().as_encoded_bytes();
        let is_dir = [&b"/"[..], b"/.", b"/.."]
            .iter()
            .any(|end| bytes.ends_with(end))
            || matches!(bytes, b"." | b"..");
        let whole = match (path.parent(), path.file_name()) {
            (Some(parent), Some(name)) if !is_dir => {
                let parent = if parent.as_os_str().is_empty() {
                    Path::new(".")
                } else {
                    parent
                };
                std::fs::canonicalize(parent).map_err(missing)?.join(name)
            }
            _ => std::fs::canonicalize(path).map_err(missing)?,
        };
        let root = root_of(whole.parent().unwrap_or(&whole)).or_else(|_| root_of(&whole));
        let root = root_of(&whole).or(root).map_err(|_| None)?;
        let below = whole.strip_prefix(&root).map_err(|_| None)?;
        Ok(Self {
            path: Path::new("/").join(below),
            root: Root::Mount(root),
        })
    }

    /// Do both lie in the same file system?
    pub(crate) fn is_beside(&self, other: &Self) -> bool {
        self.root == other.root
    }
}

/// Has a job done in the file system of `inside`, and shows its progress. `archive` is the
/// descriptor of an archive and its name.
///
/// # Errors
/// If the job did not end properly. Names that failed are only counted.
pub(crate) fn perform(
    inside: &Inside,
    job: Job,
    archive: Option<(OwnedFd, &Path)>,
) -> Result<Counts> {
    let (archive, name) = archive.unzip();
    let is_source = matches!(job, Job::Unpack { .. });
    let name = name.map(|name| (name.display().to_string(), is_source));
    let mut shown = Shown::new(&inside.root.to_string(), name);
    let ended = match &inside.root {
        Root::Volume(image) => on_volume(image, &job, archive, &mut shown)?,
        Root::Mount(root) => on_mount(root, job, archive, &mut shown)?,
    };
    shown.end();
    match ended {
        Event::Done(counts) => Ok(counts),
        // A closed standard output is not reported.
        Event::Ended(wrong) if wrong.no_reader => {
            Err(io::Error::new(io::ErrorKind::BrokenPipe, wrong.text).into())
        }
        Event::Ended(wrong) => Err(shown.failure(&wrong)),
        _ => Err(Failure::new("its daemon ended before the work did")
            .about(&inside.root)
            .hint("the daemon's log has the reason")),
    }
}

impl std::fmt::Display for Root {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Mount(root) => write!(f, "{}", root.display()),
            Self::Volume(image) => write!(f, "{}:", image.display()),
        }
    }
}

fn on_volume(
    image: &Path,
    job: &Job,
    archive: Option<OwnedFd>,
    shown: &mut Shown,
) -> Result<Event> {
    let volume = match job {
        Job::Pack { .. } => open_read_only(image)?,
        _ => open(image)?,
    };
    let stop = Arc::new(AtomicBool::new(false));
    let fs = match job {
        Job::Unpack { .. } => to_make_files_in(&volume),
        _ => volume.file_system().clone(),
    };
    let event = run(&fs, job, archive, &stop, &mut |event| shown.note(&event));
    drop(fs);
    close_after(volume, image, Ok(event))
}

fn on_mount(root: &Path, job: Job, archive: Option<OwnedFd>, shown: &mut Shown) -> Result<Event> {
    // The open descriptor keeps the mount busy until the job is done.
    let mount = control::open(root)?;
    let Answer::Job(name) = control::ask(&mount, root, &Request::Job)? else {
        return Err(control::other_answer(root));
    };
    let socket = Socket::connect(&name).map_err(|error| {
        let failure = Failure::new(format!("its daemon cannot be reached: {error}")).at(root);
        match error.raw_os_error().map(Errno::from_raw_os_error) {
            Some(Errno::CONNREFUSED) => {
                failure.hint("run this in the network namespace of the process that mounted it")
            }
            _ => failure,
        }
    })?;
    let lost = |error: io::Error| {
        let failure = Failure::new(format!("its daemon is lost: {error}")).at(root);
        failure.hint("the daemon's log has the reason")
    };
    let (archive, relay) = Relay::of(archive, root, &job)?;
    let order = Order {
        job,
        umask: umask(),
    };
    let order = serde_json::to_vec(&order)?;
    socket.send(&order, archive.as_ref()).map_err(lost)?;
    // This process must hold no copy: the writer of a pipe must see its end once the daemon closes
    // it.
    drop(archive);
    while let Some((message, _)) = socket.receive().map_err(lost)? {
        match serde_json::from_slice(&message)? {
            event @ (Event::Done(_) | Event::Ended(_)) => {
                let carried = relay.end();
                return carried
                    .map(|()| event)
                    .map_err(|error| Failure::of(&error).about("the archive"));
            }
            event => shown.note(&event),
        }
    }
    let gone = Wrong {
        is_source: false,
        path: root.into(),
        text: "its daemon ended before the work did".to_owned(),
        no_reader: false,
    };
    Ok(Event::Ended(gone))
}

/// This process's umask, which can only be read by setting it.
fn umask() -> u16 {
    let mask = rustix::process::umask(Mode::empty());
    rustix::process::umask(mask);
    (mask.as_raw_mode() & 0o777) as u16
}
