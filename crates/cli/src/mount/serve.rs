//! From a plan to a live mount, and to its end.

use super::{
    options::Plan,
    point::MountPoint,
    refusal::mount_failure,
    reporter::{Reporter, transport_name},
    signals::Caught,
    watcher::Watched,
};
use crate::{
    message::{Failure, Result},
    source::Source,
};
use holdfast::FileSystem;
use holdfast_fuse::{Config, serve::mount};
use std::{io, sync::Arc};

/// Mounts, calls `live` with the transport's name, and returns when the mount has ended.
///
/// # Errors
/// Whatever kept the mount from being live; nothing stays mounted then.
pub(super) fn serve(
    source: Source,
    plan: Plan,
    point: &MountPoint,
    live: impl FnOnce(&str) -> io::Result<()>,
) -> Result<()> {
    let start = |error: io::Error| Failure::new(format!("the daemon cannot start: {error}"));
    let signals = Caught::begin().map_err(start)?;
    let fs = match source {
        Source::Memory => FileSystem::builder()
            .limits(plan.limits)
            .options(plan.core)
            .build(),
    };
    let reporter = Arc::new(Reporter::new(source.to_string(), &plan, fs.core().clone()));
    let config = config(&source, &plan);
    let reports = reporter.clone();
    let info = Arc::new(move |detail| reports.json(detail));
    let session = mount(fs.core(), &point.path, &config, Some(info))
        .map_err(|error| mount_failure(&error))?;
    let session = Arc::new(session);
    reporter.attach(Arc::downgrade(&session));
    // From here on an error drops the session, which unmounts.
    let watched = plan
        .auto_unmount
        .then(|| Watched::start(&point.path))
        .transpose();
    let watched = watched.map_err(start)?;
    let watch = signals.watch(session.clone()).map_err(start)?;
    let transport = transport_name(session.info().transport);
    tracing::info!(dir = ?point.path, transport, "live");
    let told = live(transport);
    if told.is_ok() {
        session.wait();
    }
    watch.end();
    drop(session);
    if let Some(watched) = watched {
        watched.dismiss();
    }
    told.map_err(|error| Failure::new(format!("nobody waits for this mount: {error}")))
}

fn config(source: &Source, plan: &Plan) -> Config {
    let mut mount = plan.mount.clone();
    if !plan.given.iter().any(|item| item.starts_with("fsname=")) {
        mount.fsname = source.to_string();
    }
    Config {
        transport: plan.transport,
        mount,
        ..Config::default()
    }
}
