//! `holdfast info`: the report of a mount or of a volume.

mod activity;
pub(crate) mod report;
pub(crate) mod table;
pub(crate) mod units;
mod volume;

use crate::{
    complete, control,
    message::{Failure, Result},
    mount::point::stale,
    target::Target,
};
use clap_complete::ArgValueCompleter;
use holdfast_fuse::serve::{INFO_XATTR, INODES_XATTR};
use report::Report;
use rustix::io::Errno as Code;
use std::{
    io::{self, Write},
    path::{Path, PathBuf},
};
use table::Table;

/// The largest value that an extended attribute can have.
const VALUE_MAX: usize = 1 << 16;

/// Show the state of a mounted file system or of a volume
///
/// Of a volume that is not mounted: identity, label, size, free space, groups, whether it was
/// closed, counts. The volume is not changed. For a mounted volume, its mount is asked. Of a mount:
/// transport and the reason for it, FUSE protocol, options, limits, counts of inodes, names, pages
/// and bytes, memory of the daemon, and requests so far by kind. Without an argument: the list of
/// all mounts, as `holdfast list` prints it.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The mount point, or anything below it; an image file or a block device; or pg://...
    #[arg(value_name = "DIR|VOLUME|URL", add = ArgValueCompleter::new(complete::targets))]
    dir: Option<PathBuf>,

    /// Also count inodes by state and by type, which visits each one: of a mount those in memory,
    /// of a volume all, without states
    ///
    /// States: used by an open file, the kernel or a request; unused; orphans, without a name and
    /// freed with their last use; being freed.
    #[arg(long, requires = "dir")]
    inodes: bool,

    /// Print one line of JSON
    #[arg(long)]
    json: bool,
}

impl Arguments {
    /// Is neither a mount nor a volume named?
    pub(crate) fn names_nothing(&self) -> bool {
        self.dir.is_none()
    }

    pub(crate) fn is_json(&self) -> bool {
        self.json
    }
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let Some(dir) = &arguments.dir else {
        return Ok(());
    };
    let attribute = if arguments.inodes {
        INODES_XATTR
    } else {
        INFO_XATTR
    };
    #[cfg(feature = "cluster")]
    if let Some(address) = crate::cluster::named(dir.as_os_str())? {
        crate::message::refuse([(
            arguments.inodes,
            "the count of all is in the report already",
            "--inodes",
            "leave it out",
        )])?;
        return crate::cluster::report::print(&address, arguments.json);
    }
    let mut out = anstream::stdout();
    let root = match Target::of(dir)? {
        Target::Mounted(root) => root,
        Target::Volume(image) => {
            volume::print(&mut out, &image, arguments.inodes, arguments.json)?;
            return Ok(out.flush()?);
        }
    };
    let text = read(&root, attribute)?;
    if arguments.json {
        writeln!(out, "{text}")?;
    } else {
        let report: Report = serde_json::from_str(&text)?;
        write!(out, "{}", Table(&report))?;
    }
    out.flush()?;
    Ok(())
}

/// The report of the daemon that serves the mount at `root`, as JSON.
pub(crate) fn read(root: &Path, attribute: &str) -> Result<String> {
    let mut value = vec![0; VALUE_MAX];
    let length = match rustix::fs::getxattr(root, attribute, &mut value[..]) {
        // Mounted with `noxattr`, or not a mount of holdfast.
        Err(Code::NOTSUP) => match read_without_xattrs(root, attribute == INODES_XATTR) {
            Ok(answer) => {
                value = answer;
                Ok(value.len())
            }
            Err(_) => Err(Code::NOTSUP),
        },
        length => length,
    };
    let length = length.map_err(|code| match code {
        Code::NODATA if attribute != INFO_XATTR && read(root, INFO_XATTR).is_ok() => {
            Failure::new("its daemon is of a version that cannot count inodes")
                .at(root)
                .hint("mount it again with this version")
        }
        Code::NODATA | Code::NOTSUP | Code::NOSYS | Code::NOENT => {
            Failure::new("is a FUSE file system, but not one of holdfast")
                .at(root)
                .hint("a directory in a mount of holdfast")
        }
        Code::IO => Failure::new("was revoked: it answers no requests any more")
            .at(root)
            .hint(format!("holdfast umount {}", root.display())),
        Code::NOTCONN | Code::CONNABORTED | Code::CANCELED => stale(root),
        code => {
            let failure = Failure::new(format!("cannot be asked: {}", io::Error::from(code)));
            failure.at(root)
        }
    })?;
    value.truncate(length);
    String::from_utf8(value).map_err(|_| control::other_answer(root))
}

fn read_without_xattrs(root: &Path, inodes: bool) -> Result<Vec<u8>> {
    control::rows(
        &control::open(root)?,
        root,
        &control::Request::Info { inodes },
    )
}

/// The process that serves the mount at `root`, if it answers.
pub(crate) fn daemon_of(root: &Path) -> Option<u32> {
    let report: Report = serde_json::from_str(&read(root, INFO_XATTR).ok()?).ok()?;
    (report.pid != 0).then_some(report.pid)
}
