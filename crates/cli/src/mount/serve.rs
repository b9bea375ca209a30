//! From a plan to a live mount, and to its end.

use super::{
    answers::Answers,
    exit_report::ExitReport,
    failing, memory,
    options::Plan,
    point::MountPoint,
    refusal::mount_failure,
    reporter::{Reporter, transport_name},
    signals::Caught,
    surroundings,
    watcher::Watched,
};
use crate::{
    message::{Failure, Result},
    source::Source,
    volume::close_failure,
};
use holdfast::{FileSystem, Volume, VolumeBuilder, VolumeError};
use holdfast_fuse::{
    Config,
    serve::{InfoSource, mount_with_control},
};
use std::{io, path::Path, sync::Arc};

/// Mounts, calls `live` with the transport's name, and returns when the mount has ended. How it ended is there for
/// the process that unmounts.
///
/// # Errors
/// What kept the mount from being live, and nothing stays mounted then; what kept it from being closed cleanly.
pub(super) fn serve(
    source: Source,
    plan: Plan,
    point: &MountPoint,
    live: impl FnOnce(&str) -> io::Result<()>,
) -> Result<()> {
    let report = ExitReport::create(&point.path)
        .map_err(|error| Failure::new(format!("the daemon cannot start: {error}")))?;
    let served = serve_to_the_end(source, plan, point, live);
    if let Err(error) = report.write(&served) {
        tracing::error!(%error, "what unmounts is not told how the daemon ends");
    }
    served
}

fn serve_to_the_end(
    source: Source,
    plan: Plan,
    point: &MountPoint,
    live: impl FnOnce(&str) -> io::Result<()>,
) -> Result<()> {
    let start = |error: io::Error| Failure::new(format!("the daemon cannot start: {error}"));
    let signals = Caught::begin().map_err(start)?;
    // Until the volume is closed.
    let _keeper = memory::keep(&source, &plan).map_err(start)?;
    let opened = Opened::of(&source, &plan)?;
    let fs = opened.file_system().clone();
    let reporter = Arc::new(Reporter::new(
        &source,
        &plan,
        fs.core().clone(),
        opened.volume(),
    ));
    let config = config(&source, &plan);
    let reports = reporter.clone();
    let info: InfoSource = Arc::new(move |detail| reports.json(detail));
    let answers = Answers::new(
        fs.core().clone(),
        opened.volume(),
        opened.is_fixed(),
        info.clone(),
    );
    let answers = Arc::new(answers);
    let control = Some(Arc::clone(&answers) as _);
    let session = mount_with_control(fs.core(), &point.path, &config, Some(info), control)
        .map_err(|error| mount_failure(&error))?;
    let session = Arc::new(session);
    reporter.attach(Arc::downgrade(&session));
    answers.jobs.attach(session.notifier());
    if let Some(volume) = opened.volume() {
        failing::watch(&volume.store(), &point.path);
    }
    // From here on an error drops the session, which unmounts.
    let watched = plan
        .auto_unmount
        .then(|| Watched::start(&point.path))
        .transpose();
    let watched = watched.map_err(start)?;
    let watch = signals
        .watch(session.clone(), opened.volume().map(Volume::store))
        .map_err(start)?;
    let transport = transport_name(session.info().transport);
    tracing::info!(dir = ?point.path, transport, "live");
    let told = live(transport);
    if told.is_ok() {
        session.wait();
    }
    watch.end();
    answers.jobs.end();
    let failure = session.failure();
    drop(session);
    // Left alone, the watcher clears the dead mount.
    if failure.is_none()
        && let Some(watched) = watched
    {
        watched.dismiss();
    }
    drop(fs);
    opened.close(&source)?;
    if let Some(reason) = failure {
        return Err(Failure::new(format!("the mount could not go on: {reason}"))
            .at(&point.path)
            .hint("unmount it, and mount it again"));
    }
    told.map_err(|error| Failure::new(format!("nobody waits for this mount: {error}")))
}

/// What is served.
enum Opened {
    Memory(FileSystem),
    Volume {
        volume: Box<Volume>,
        /// Is its device open for reading only?
        fixed: bool,
    },
}

impl Opened {
    fn of(source: &Source, plan: &Plan) -> Result<Self> {
        match source {
            Source::Memory => {
                let of_volumes = |name: &str| plan.given.iter().find(|item| item.starts_with(name));
                let in_memory = |item: &String| {
                    Failure::new("what `mem:` holds is in memory alone")
                        .about(format!("option {item}"))
                };
                if let Some(item) = of_volumes("memory=").or_else(|| of_volumes("cache=")) {
                    return Err(in_memory(item).hint("the most that it may hold: size=AMOUNT"));
                }
                if let Some(item) = of_volumes("commit=") {
                    return Err(in_memory(item).hint("what is to last belongs on a volume"));
                }
                let fs = FileSystem::builder().limits(plan.limits);
                Ok(Self::Memory(fs.options(plan.core).build()))
            }
            Source::Volume(path) => {
                let only_memory =
                    |item: &&String| item.starts_with("size=") || item.starts_with("nr_inodes=");
                if let Some(item) = plan.given.iter().find(only_memory) {
                    return Err(Failure::new("only `mem:` has such a limit")
                        .about(format!("option {item}"))
                        .hint("the size of a new image file: --create --size AMOUNT"));
                }
                let of_root = |item: &&String| {
                    let names = ["mode=", "uid=", "gid="];
                    names.iter().any(|name| item.starts_with(name))
                };
                if let Some(item) = plan.given.iter().find(of_root).filter(|_| !plan.create) {
                    return Err(Failure::new(
                        "the root directory of a volume that exists has its own",
                    )
                    .about(format!("option {item}"))
                    .hint("chmod or chown the mount point once it is mounted"));
                }
                if !plan.core.read_only {
                    surroundings::check_size(path)?;
                }
                if let Some(item) = plan.given.iter().find(|item| item.starts_with("cache=")) {
                    tracing::warn!(
                        "option {item} goes with the next release: memory= is what the daemon takes in all"
                    );
                }
                let mut builder = Volume::builder().options(plan.core);
                if let Some(every) = plan.commit {
                    builder = builder.commit_every(every);
                }
                if let Some(size) = plan.create_size {
                    builder = builder.size(size);
                }
                let opened = open_volume(builder, path, plan);
                let (volume, fixed) = opened.map_err(|error| volume_failure(path, &error))?;
                Ok(Self::Volume {
                    volume: Box::new(volume),
                    fixed,
                })
            }
        }
    }

    fn file_system(&self) -> &FileSystem {
        match self {
            Self::Memory(fs) => fs,
            Self::Volume { volume, .. } => volume.file_system(),
        }
    }

    fn volume(&self) -> Option<&Volume> {
        match self {
            Self::Memory(_) => None,
            Self::Volume { volume, .. } => Some(volume),
        }
    }

    fn is_fixed(&self) -> bool {
        matches!(self, Self::Volume { fixed: true, .. })
    }

    fn close(self, source: &Source) -> Result<()> {
        match self {
            Self::Memory(_) => Ok(()),
            Self::Volume { volume, .. } => {
                let closed = volume.close();
                closed.map_err(|error| close_failure(&error).about(source.to_string()))
            }
        }
    }
}

/// Opens a volume, and tells whether its device is open for reading only: with `norecovery`, and where `ro` is all
/// that the device lets this process do.
fn open_volume(
    builder: VolumeBuilder,
    path: &Path,
    plan: &Plan,
) -> std::result::Result<(Volume, bool), VolumeError> {
    if plan.no_recovery {
        return Ok((builder.open_read_only(path)?, true));
    }
    let opened = if plan.create {
        builder.clone().open_or_create(path)
    } else {
        builder.clone().open(path)
    };
    match opened {
        Err(error) if plan.core.read_only && is_refusal_to_write(&error) => {
            Ok((builder.open_read_only(path)?, true))
        }
        opened => Ok((opened?, false)),
    }
}

/// A file system or a device that is read-only, an immutable file, a file of others, a program that runs.
fn is_refusal_to_write(error: &VolumeError) -> bool {
    let refusals = [libc::EROFS, libc::EPERM, libc::EACCES, libc::ETXTBSY];
    let number = error.raw_os_error();
    number.is_some_and(|number| refusals.contains(&number))
}

fn volume_failure(path: &Path, error: &VolumeError) -> Failure {
    let failure = Failure::new(error.to_string()).at(path);
    match error.kind() {
        io::ErrorKind::ReadOnlyFilesystem => failure.hint("mount it read-only: -o ro"),
        io::ErrorKind::NotFound => {
            failure.hint("to make the image file, with an empty volume: --create")
        }
        _ => surroundings::hint_at_size(failure, error.raw_os_error()),
    }
}

fn config(source: &Source, plan: &Plan) -> Config {
    let mut mount = plan.mount.clone();
    if !plan.given.iter().any(|item| item.starts_with("fsname=")) {
        mount.fsname = source.to_string();
    }
    let buffers = memory::buffers(source, plan);
    Config {
        max_write: buffers.write_max,
        threads_max: buffers.threads_max,
        transport: plan.transport,
        serve_locks: plan.serve_locks,
        no_open: !plan.serves_opens(),
        xattrs: plan.xattrs,
        mount,
        ..Config::default()
    }
}
