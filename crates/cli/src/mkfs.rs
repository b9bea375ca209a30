//! `holdfast mkfs`: makes volumes, empty or filled from a directory of the host.

#[cfg(feature = "cluster")]
use crate::cluster::{self, mkfs::ClusterOptions};
use crate::copy::{meter::Meter, place::Place, skip};
use crate::engine::names::parse_owner;
use crate::info::units::{bytes, number};
use crate::message::{Failure, Result, unless_failed};
use crate::mount::size::amount;
use crate::output::{Output, counts};
use crate::volume::{DEVICES_HINT, close_after};
use holdfast::{Copied, CopyOptions, Options, Volume, VolumeError, VolumeInfo};
use serde_json::json;
use std::io;
use std::path::{Path, PathBuf};

/// Make a volume in an image file or on a block device
///
/// Without --force nothing is overwritten: no volume, other file system, swap space, LUKS
/// container, partition table, and in an image file nothing but zeros. A device that is mounted or
/// in use is always refused.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The image file, made if it is not there, or block device; or a file system of several
    /// machines: pg://USER@HOST/DATABASE?fs=NAME&bucket=s3://NAME/PREFIX, with endpoint= and
    /// region= if its bucket is not Amazon's
    #[arg(value_name = "VOLUME|URL")]
    pub(crate) volume: PathBuf,

    /// Bytes of the image file (512m, 8g, 1t), which is sparse. Without this, an existing file
    /// keeps its size, and a new one gets the free space of its file system, 1t at most
    #[arg(short, long, value_name = "AMOUNT", value_parser = amount)]
    size: Option<u64>,

    /// The volume's name, of up to 63 bytes
    #[arg(short = 'L', long, value_name = "TEXT")]
    label: Option<String>,

    /// Approximate number of allocation groups; without this, groups have 126 MiB each
    #[arg(short, long, value_name = "NUMBER")]
    groups: Option<u64>,

    /// Bytes of the journal (64m), which limits the changes between two checkpoints. Without this,
    /// a 64th of the volume, 128m at most
    #[arg(short = 'J', short_alias = 'j', long, value_name = "AMOUNT", value_parser = amount)]
    journal: Option<u64>,

    /// Owner of the root directory, by names or numbers: USER, USER:GROUP or :GROUP. Without this,
    /// the user and the group that run the command
    #[arg(long, value_name = "OWNER", conflicts_with = "from")]
    owner: Option<String>,

    /// Overwrite existing content
    #[arg(short, long)]
    force: bool,

    /// Fill the volume with the content of this directory
    ///
    /// The directory's own attributes become those of the root. Kept is what `holdfast cp` keeps. A
    /// name that cannot be copied is printed, and the exit code is 1.
    #[arg(long, value_name = "DIR")]
    from: Option<PathBuf>,

    #[cfg(feature = "cluster")]
    #[command(flatten)]
    cluster: ClusterOptions,

    #[command(flatten)]
    output: Output,
}

#[cfg(feature = "cluster")]
impl Arguments {
    /// An option that was given, and that only volumes have.
    fn of_volumes(&self) -> Option<&'static str> {
        let all = [
            (self.size.is_some(), "--size"),
            (self.label.is_some(), "--label"),
            (self.groups.is_some(), "--groups"),
            (self.journal.is_some(), "--journal"),
            (self.from.is_some(), "--from"),
        ];
        let mut given = all.into_iter();
        given.find_map(|(is_given, name)| is_given.then_some(name))
    }
}

/// Makes a file system of several machines; `None`: it is a volume.
#[cfg(feature = "cluster")]
fn make_by_address(arguments: &Arguments, owner: (Option<u32>, Option<u32>)) -> Option<Result<()>> {
    let address = match cluster::named(arguments.volume.as_os_str()) {
        Ok(Some(address)) => address,
        Ok(None) => {
            let option = arguments.cluster.given()?;
            let failure = Failure::new("it is for file systems of several machines: pg://...")
                .about(format!("option {option}"))
                .hint("leave it out");
            return Some(Err(failure));
        }
        Err(failure) => return Some(Err(failure)),
    };
    let make = cluster::mkfs::Make {
        options: &arguments.cluster,
        of_volumes: arguments.of_volumes(),
        owner,
        force: arguments.force,
        output: &arguments.output,
    };
    Some(cluster::mkfs::run(&address, &make))
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let path = &arguments.volume;
    if let Some(dir) = &arguments.from {
        let hint = "--from takes a directory; its content is copied into the volume";
        match std::fs::metadata(dir) {
            Ok(meta) if meta.is_dir() => {}
            Ok(_) => return Err(Failure::new("is not a directory").at(dir).hint(hint)),
            Err(error) => return Err(Failure::new(error).at(dir).hint(hint)),
        }
    }
    let (uid, gid) = match &arguments.owner {
        Some(owner) => parse_owner(owner)?,
        None => (None, None),
    };
    #[cfg(feature = "cluster")]
    if let Some(made) = make_by_address(arguments, (uid, gid)) {
        return made;
    }
    let options = Options {
        root_uid: uid,
        root_gid: gid,
        ..Options::default()
    };
    let builder = Volume::builder().options(options);
    let mut builder = builder.force(arguments.force);
    if let Some(size) = arguments.size {
        builder = builder.size(size);
    }
    if let Some(groups) = arguments.groups {
        builder = builder.groups(groups);
    }
    if let Some(journal) = arguments.journal {
        builder = builder.journal(journal);
    }
    if let Some(label) = &arguments.label {
        let long = |_| {
            let failure = Failure::new("is too long for a label, or has a zero byte").about(label);
            failure.hint("-L takes up to 63 bytes")
        };
        builder = builder.label(label).map_err(long)?;
    }
    let is_new = std::fs::symlink_metadata(path).is_err();
    let volume = builder
        .format(path)
        .map_err(|error| refusal(path, &error))?;
    let copied = match &arguments.from {
        Some(dir) => fill(&volume, path, dir, is_new).map(Some),
        None => Ok(None),
    };
    let info = volume.info();
    let copied = close_after(volume, path, copied).inspect_err(|_| {
        if is_new {
            // The failure to report is the first one; a leftover file does no harm.
            let _ = std::fs::remove_file(path);
        }
    })?;
    report(arguments, &info, is_new, copied.as_ref())
}

/// Reports the volume that was made, and what was copied into it.
fn report(
    arguments: &Arguments,
    info: &VolumeInfo,
    is_new: bool,
    copied: Option<&Copied>,
) -> Result<()> {
    let path = &arguments.volume;
    let mut made = json!({
        "volume": path.display().to_string(),
        "uuid": info.uuid,
        "label": info.label,
        "size_bytes": info.size,
        "groups": info.groups,
        "journal_bytes": info.journal_size,
        "image_made": is_new,
    });
    if let Some(copied) = copied {
        made["copied"] = counts(copied);
    }
    let mut text = format!(
        "{}: a volume of {}, {} groups, a journal of {}, {}\n",
        path.display(),
        bytes(info.size),
        number(info.groups),
        bytes(info.journal_size),
        info.uuid
    );
    if is_new && arguments.size.is_none() {
        text.push_str(&format!(
            "{}: a new, sparse image file, as large as the free space of its file system, 1t at \
             most; --size takes another size\n",
            path.display()
        ));
    }
    arguments.output.print(&made, text)?;
    let Some(copied) = copied else {
        return Ok(());
    };
    let done = match arguments.output.json {
        true => unless_failed(copied.failed, "copied"),
        false => arguments.output.copied(path, copied, "copied"),
    };
    done.map_err(|failure| failure.at(path))
}

/// Copies the content of a directory of the host into the root.
fn fill(volume: &Volume, image: &Path, dir: &Path, is_new: bool) -> Result<Copied> {
    let from = Place::Host(dir.to_owned());
    let to = Place::Volume {
        image: image.to_owned(),
        path: "/".into(),
    };
    let meter = Meter::new(&from, &to);
    // The trailing slash makes the copy follow a link.
    let source = dir.join("");
    let options = CopyOptions {
        skip: skip(&to),
        ..CopyOptions::default()
    };
    let copied = volume.copy_in(source, "/", &options, &mut |event| meter.note(&event));
    let copied = copied.map_err(|error| {
        let (is_full, failure) = (error.error.kind(), meter.failure(&error));
        failure.hint(match (is_full, is_new) {
            (io::ErrorKind::StorageFull, true) => {
                "no image is left: it takes a larger --size, or more room where it lies"
            }
            (_, true) => "no image is left",
            (_, false) => "the volume holds what was copied before",
        })
    });
    meter.end();
    copied
}

fn refusal(path: &Path, error: &VolumeError) -> Failure {
    let failure = Failure::new(error).at(path);
    match error.kind() {
        io::ErrorKind::AlreadyExists => failure.hint("--force overwrites it"),
        io::ErrorKind::StorageFull => {
            failure.hint("make room there, or take less: a smaller --size, or --journal")
        }
        io::ErrorKind::IsADirectory => failure.hint("name a file in it: mkfs makes it"),
        io::ErrorKind::NotFound => {
            failure.hint("the directory of an image file has to be there: mkdir -p")
        }
        io::ErrorKind::PermissionDenied => {
            failure.hint("run as a user with write permission: root, for most devices")
        }
        io::ErrorKind::ResourceBusy => failure.hint("unmount it, or end what has it open"),
        _ if error.raw_os_error() == Some(libc::ENODEV) => failure.hint(DEVICES_HINT),
        _ => failure,
    }
}
