//! Serving a mount from start to end.

use super::{
    answers::Answers,
    directory,
    exit_report::ExitReport,
    failing, memory,
    metrics::Listening,
    opened::{Ending, Opened},
    options::{Choice, Plan},
    point::MountPoint,
    read_only::ReadOnly,
    refusal::mount_failure,
    reporter::{Reporter, transport_name},
    service_manager::{self, Watchdog},
    signals::Caught,
    watcher::Watched,
};
use crate::{
    message::{Failure, Result},
    source::Source,
};
use holdfast::Volume;
use holdfast_fuse::{
    Config, Session,
    mount::BlockMount,
    serve::{InfoDetail, InfoSource, mount_with_control},
};
use std::{io, path::Path, sync::Arc};

/// Mounts, calls `live` with the transport's name, and returns when the mount has ended. The result
/// is left for the process that unmounts.
///
/// # Errors
/// If the mount could not be made, and then nothing stays mounted; if the source could not be
/// closed cleanly.
pub(super) fn serve(
    source: Source,
    plan: Plan,
    point: &MountPoint,
    live: impl FnOnce(&str) -> io::Result<()>,
) -> Result<()> {
    let report =
        ExitReport::create(&point.path).map_err(|error| cannot_start(&point.path, &error))?;
    let served = serve_to_the_end(source, plan, point, live);
    if let Err(error) = report.write(&served) {
        tracing::error!("what unmounts is not told how the daemon ends: {error}");
    }
    served
}

fn cannot_start(dir: &Path, error: &io::Error) -> Failure {
    let failure = Failure::new(format!("the daemon cannot start: {error}")).at(dir);
    failure.hint("it takes /proc, and limits (ulimit -a) that allow more files and memory")
}

/// The process that started the daemon, and waits for the mount, does not take its report.
fn gone(dir: &Path, error: &io::Error) -> Failure {
    let text = format!("the process that waits for this mount is gone: {error}");
    Failure::new(text).at(dir).hint("mount it again")
}

fn serve_to_the_end(
    source: Source,
    plan: Plan,
    point: &MountPoint,
    live: impl FnOnce(&str) -> io::Result<()>,
) -> Result<()> {
    let start = |error: io::Error| cannot_start(&point.path, &error);
    let signals = Caught::begin().map_err(start)?;
    // Dropped after the volume is closed.
    let _keeper = memory::keep(&source, &plan).map_err(start)?;
    let opened = Opened::of(&source, &plan)?;
    // Before mounting, so that an unavailable address leaves no mount behind.
    let listening = plan.metrics.as_deref().map(Listening::at).transpose()?;
    let store = opened.volume().map(Volume::store);
    let fs = opened.file_system().clone();
    let (core, volume) = (fs.core().clone(), opened.volume());
    let url = listening.as_ref().map(Listening::url);
    let reporter = Reporter::new(&source, &plan, core.clone(), volume, url);
    let (config, reporter) = adapted(config(&source, &plan), reporter, &opened);
    let reporter = Arc::new(reporter);
    let read_only = ReadOnly::new(core.clone(), opened.is_fixed(), opened.shared());
    let read_only = Arc::new(read_only);
    let info = info(reporter.clone(), read_only.clone());
    let answers = Answers::new(core, volume, read_only.clone(), info.clone());
    let answers = Arc::new(answers);
    let ending = Arc::new(Ending::of(opened, &source));
    answers.end_by(&ending);
    let control = Some(Arc::clone(&answers) as _);
    let session = mount_with_control(fs.core(), &point.path, &config, Some(info), control)
        .map_err(|error| mount_failure(&error))?;
    let session = Arc::new(session);
    directory::check_passthrough(&session, &plan)?;
    reporter.attach(Arc::downgrade(&session));
    read_only.attach(&point.path);
    answers.jobs.attach(session.notifier());
    let report = Box::new(move || reporter.report(InfoDetail::Brief));
    let metrics = listening.map(|listening| listening.answer(report));
    let metrics = metrics.transpose().map_err(start)?;
    if let Some(store) = &store {
        failing::watch(store, &point.path);
    }
    // From here on an error drops the session, which unmounts.
    let watched = plan
        .auto_unmount
        .then(|| Watched::start(&point.path))
        .transpose();
    let watched = watched.map_err(start)?;
    let watch = signals.watch(session.clone(), store, ending.clone());
    let watch = watch.map_err(start)?;
    let transport = transport_name(session.info().transport);
    // Ends after the volume is closed.
    let liveness = session.liveness();
    let state = service_manager::live(&source, transport);
    let _watchdog = Watchdog::start(liveness, &point.path, state).map_err(start)?;
    tracing::info!(dir = ?point.path, transport, "live");
    let reported = live(transport);
    if reported.is_ok() && !wait(&source, &session) {
        // Calls to the host end with the process.
        tracing::warn!("the host of the directory does not answer");
        return Ok(());
    }
    service_manager::stopping(&source);
    watch.end();
    answers.jobs.end();
    drop(metrics);
    let failure = session.failure();
    drop(session);
    // A watcher that is not dismissed clears the dead mount.
    if failure.is_none()
        && let Some(watched) = watched
    {
        watched.dismiss();
    }
    drop(fs);
    ending.closed()?;
    if let Some(reason) = failure {
        return Err(Failure::new(format!("the mount could not go on: {reason}"))
            .at(&point.path)
            .hint("unmount it, and mount it again"));
    }
    reported.map_err(|error| gone(&point.path, &error))
}

/// The configuration and the report of a file system of several machines have more.
#[cfg(feature = "cluster")]
fn adapted(mut config: Config, mut reporter: Reporter, opened: &Opened) -> (Config, Reporter) {
    if let Opened::Cluster(mounted) = opened {
        mounted.configure(&mut config);
        reporter.add_cluster(mounted.reporter());
    }
    (config, reporter)
}

#[cfg(not(feature = "cluster"))]
const fn adapted(config: Config, reporter: Reporter, _: &Opened) -> (Config, Reporter) {
    (config, reporter)
}

/// Makes reports, with the read-only state of the kernel's mount table.
fn info(reports: Arc<Reporter>, read_only: Arc<ReadOnly>) -> InfoSource {
    Arc::new(move |detail| {
        read_only.follow();
        reports.json(detail)
    })
}

/// Waits for the end of the mount; `false`: the host of a directory does not answer.
fn wait(source: &Source, session: &Arc<Session>) -> bool {
    match source {
        Source::Directory(_) => directory::wait(session),
        #[cfg(feature = "cluster")]
        Source::Cluster(_) => {
            session.wait();
            true
        }
        Source::Memory | Source::Volume(_) => {
            session.wait();
            true
        }
    }
}

fn config(source: &Source, plan: &Plan) -> Config {
    let mut mount = plan.mount.clone();
    let has_name = plan.given.iter().any(|item| item.starts_with("fsname="));
    if !has_name {
        mount.fsname = source.to_string();
    }
    mount.block = block_mount(source, plan, has_name);
    let buffers = memory::buffers(source, plan);
    let mut config = Config {
        max_write: buffers.write_max,
        threads_max: buffers.threads_max,
        transport: plan.transport,
        serve_locks: plan.serve_locks,
        no_open: !plan.serves_opens(),
        cache_listings: !plan.sees_each_read() || plan.core.nodiratime,
        cache_links: !plan.sees_each_read(),
        xattrs: !plan.no_xattrs,
        mount,
        ..Config::default()
    };
    if let Source::Directory(_) = source {
        directory::configure(&mut config, plan);
    }
    config
}

/// A volume is mounted as `fuseblk` if possible, so that sync(1) and umount(8) work as they do for
/// others. Not if `fsname=` was given: the first column of the mount table would be the device.
fn block_mount(source: &Source, plan: &Plan, has_name: bool) -> BlockMount {
    match (source, plan.block) {
        (Source::Volume(path), Choice::On) => BlockMount::Required(path.clone()),
        (Source::Volume(path), Choice::Auto) if !has_name => BlockMount::IfPossible(path.clone()),
        _ => BlockMount::No,
    }
}
