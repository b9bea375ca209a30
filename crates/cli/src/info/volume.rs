//! The report of a volume that is not mounted.

use super::report::InodeTypes;
use super::table::{by_type, write_rows};
use super::units::{bytes, number};
use crate::message::{Failure, Result};
use crate::volume::{open_read_only, volume_failure};
use holdfast::engine::Bulkstat;
use holdfast::types::FileType;
use holdfast::{Visit, Volume, VolumeInfo};
use serde::Serialize;
use std::io::{self, Write};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// The fields are an interface: fields may be added, never renamed.
#[derive(Serialize)]
struct Report<'r> {
    volume: String,
    uuid: &'r str,
    label: &'r str,
    size_bytes: u64,
    capacity_bytes: u64,
    free_bytes: u64,
    groups: u64,
    group_bytes: u64,
    journal_bytes: u64,
    generation: u64,
    inodes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    inode_types: Option<InodeTypes>,
    /// Was it closed cleanly? If not, mounting replays its journal.
    clean: bool,
    features_incompatible: u64,
    features_read_only_compatible: u64,
    features_compatible: u64,
    created_seconds: i64,
    written_seconds: i64,
}

/// Prints the report. `inodes`: also count inodes by type.
pub(super) fn print(out: &mut impl Write, image: &Path, inodes: bool, json: bool) -> Result<()> {
    let said = Volume::inspect(image).map_err(|error| volume_failure(image, &error))?;
    // An unclean volume is opened so that its journal counts too. Counting inodes needs an open
    // volume as well.
    let (info, types) = if said.clean && !inodes {
        (said.clone(), None)
    } else {
        let volume = open_read_only(image)?;
        let types = inodes.then(|| count(&volume)).transpose();
        let types = types.map_err(|error| Failure::new(error).at(image))?;
        let now = volume.info();
        let info = VolumeInfo {
            clean: said.clean,
            generation: said.generation,
            written: said.written,
            ..now
        };
        (info, types)
    };
    if json {
        serde_json::to_writer(&mut *out, &report(image, &info, types))?;
        writeln!(out)?;
    } else {
        write!(out, "{}", table(image, &info, types.as_ref()))?;
    }
    Ok(())
}

fn count(volume: &Volume) -> io::Result<InodeTypes> {
    let mut types = InodeTypes::default();
    volume
        .core()
        .bulkstat_attributes(&mut Bulkstat::new(), |attr| {
            *match attr.kind {
                FileType::Regular => &mut types.regular,
                FileType::Directory => &mut types.directories,
                FileType::Symlink => &mut types.symlinks,
                _ => &mut types.special,
            } += 1;
            Ok(Visit::Continue)
        })?;
    Ok(types)
}

fn report<'r>(image: &Path, info: &'r VolumeInfo, types: Option<InodeTypes>) -> Report<'r> {
    Report {
        volume: image.display().to_string(),
        uuid: &info.uuid,
        label: &info.label,
        size_bytes: info.size,
        capacity_bytes: info.capacity,
        free_bytes: info.free,
        groups: info.groups,
        group_bytes: info.group_size,
        journal_bytes: info.journal_size,
        generation: info.generation,
        inodes: info.inodes,
        inode_types: types,
        clean: info.clean,
        features_incompatible: info.features[0],
        features_read_only_compatible: info.features[1],
        features_compatible: info.features[2],
        created_seconds: seconds(info.created),
        written_seconds: seconds(info.written),
    }
}

fn seconds(time: SystemTime) -> i64 {
    match time.duration_since(UNIX_EPOCH) {
        Ok(after) => after.as_secs().cast_signed(),
        Err(before) => -before.duration().as_secs().cast_signed(),
    }
}

fn table(image: &Path, info: &VolumeInfo, types: Option<&InodeTypes>) -> String {
    let groups = format!(
        "{} of up to {}, a journal of {}",
        number(info.groups),
        bytes(info.group_size),
        bytes(info.journal_size)
    );
    let state = if info.clean {
        "clean"
    } else {
        "not closed: the next to open it replays its journal"
    };
    let mut rows = vec![
        ("volume", image.display().to_string()),
        ("uuid", info.uuid.clone()),
        ("label", info.label.clone()),
        ("state", state.to_owned()),
        ("size", bytes(info.size)),
        (
            "space",
            format!("{} free of {}", bytes(info.free), bytes(info.capacity)),
        ),
        ("groups", groups),
        ("checkpoints", number(info.generation)),
        ("inodes", number(info.inodes)),
    ];
    rows.extend(types.map(|types| ("by type", by_type(types))));
    let [needed, needed_to_write, other] = info.features;
    rows.push((
        "features",
        format!("{needed:#x} incompatible, {needed_to_write:#x} read-only compatible, {other:#x} compatible"),
    ));
    let mut text = String::new();
    // Writing to a string does not fail.
    let _ = write_rows(&mut text, &rows);
    text
}
