//! A volume that fails while it is mounted: the log has the reason, and the mount becomes read-only.

use super::remount;
use crate::message::Failure;
use holdfast_fuse::Session;
use holdfast_volume::VolumeStore;
use std::{path::Path, sync::Weak, thread, time::Duration};

/// How long a mount that cannot be made read-only, because files are open for writing, is left alone.
const PAUSE: Duration = Duration::from_millis(500);

/// Acts when the volume that this session serves fails.
pub(super) fn watch(store: &VolumeStore, dir: &Path, session: Weak<Session>) {
    let dir = dir.to_owned();
    store.notify_failure(move |reason| {
        tracing::error!(
            ?dir,
            reason,
            "the volume failed: nothing is written any more, and what was not durable is lost; \
             unmount it and mount it again"
        );
        let thread = thread::Builder::new().name("holdfast-failed".to_owned());
        if let Err(error) = thread.spawn(move || make_read_only(&dir, &session)) {
            tracing::warn!(%error, "the mount is not marked read-only");
        }
    });
}

/// Marks the mount as what it is, for statfs(2) and the mount table, as soon as no file is open for writing.
fn make_read_only(dir: &Path, session: &Weak<Session>) {
    let mut told: Option<Failure> = None;
    while session.strong_count() > 0 {
        let Err(failure) = remount::make_read_only(dir) else {
            return;
        };
        if told.as_ref() != Some(&failure) {
            tracing::info!(%failure, "the mount is not marked read-only yet");
            told = Some(failure);
        }
        thread::sleep(PAUSE);
    }
}
