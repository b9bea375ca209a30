//! The kernel's mount table, `/proc/self/mountinfo`.

use std::{
    collections::HashSet,
    ffi::OsString,
    fs, io,
    os::unix::ffi::OsStringExt,
    path::{Path, PathBuf},
};

/// A line of the mount table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mounted {
    /// Where.
    pub mount_point: PathBuf,
    /// The type, `fuse.holdfast` or `fuseblk.holdfast` for ours.
    pub fs_type: String,
    /// What stands in the first column of `mount`'s list.
    pub source: String,
    /// Options of the mount.
    pub options: String,
    /// Options of the file system, which all its mounts share.
    pub super_options: String,
    /// Major device number: 0, or that of the block device below.
    pub device_major: u32,
    /// Minor device number.
    pub device_minor: u32,
}

impl Mounted {
    /// Is it a FUSE file system?
    #[must_use]
    pub fn is_fuse(&self) -> bool {
        let kind = self.fs_type.split('.').next();
        matches!(kind, Some("fuse" | "fuseblk"))
    }

    /// Is it FUSE over a block device? Then umount(2) waits until the daemon has closed what it
    /// serves.
    #[must_use]
    pub fn is_on_a_device(&self) -> bool {
        self.fs_type.split('.').next() == Some("fuseblk")
    }

    /// Is it served by a daemon of the command `holdfast`?
    #[must_use]
    pub fn is_holdfast(&self) -> bool {
        matches!(self.fs_type.as_str(), "fuse.holdfast" | "fuseblk.holdfast")
    }

    /// The name of a FUSE connection in `/sys/fs/fuse/connections`: the kernel's form of its device
    /// number.
    #[must_use]
    pub fn connection(&self) -> u32 {
        (self.device_major << 20) | self.device_minor
    }
}

/// All mounts, in the order they were made.
///
/// # Errors
/// Those of reading `/proc`.
pub fn mounts() -> io::Result<Vec<Mounted>> {
    table("/proc/self/mountinfo".as_ref())
}

fn table(path: &Path) -> io::Result<Vec<Mounted>> {
    let bytes = fs::read(path).map_err(|error| {
        let hint = match error.kind() {
            io::ErrorKind::NotFound => " (mounts are listed there: mount -t proc proc /proc)",
            _ => "",
        };
        io::Error::new(error.kind(), format!("{}: {error}{hint}", path.display()))
    })?;
    Ok(bytes
        .split(|&byte| byte == b'\n')
        .filter_map(parse)
        .collect())
}

/// Where the file system of this [connection](Mounted::connection) is mounted: all mounts in this
/// mount namespace, and one in that of each other process, with its process id. Processes that this
/// user may not read are left out. The kernel reuses the number after the file system's end.
///
/// # Errors
/// Those of reading `/proc`.
pub fn mounts_of(connection: u32) -> io::Result<Vec<(Mounted, Option<u32>)>> {
    let of = |mounted: &Mounted| mounted.is_fuse() && mounted.connection() == connection;
    let own = mounts()?.into_iter().filter(of);
    let mut found: Vec<_> = own.map(|mounted| (mounted, None)).collect();
    let mut seen = HashSet::from([fs::read_link("/proc/self/ns/mnt")?]);
    for entry in fs::read_dir("/proc")? {
        let name = entry?.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse::<u32>().ok()) else {
            continue;
        };
        // A process may end meanwhile, or be another user's.
        let dir = Path::new("/proc").join(&name);
        let Ok(namespace) = fs::read_link(dir.join("ns/mnt")) else {
            continue;
        };
        if seen.insert(namespace)
            && let Ok(mounts) = table(&dir.join("mountinfo"))
            && let Some(mounted) = mounts.into_iter().find(of)
        {
            found.push((mounted, Some(pid)));
        }
    }
    Ok(found)
}

/// What is mounted at `dir` on top, if `dir` is a mount point.
///
/// # Errors
/// Those of reading `/proc`.
pub fn mounted_at(dir: &Path) -> io::Result<Option<Mounted>> {
    let path = absolute(dir)?;
    Ok(mounts()?
        .into_iter()
        .rev()
        .find(|mounted| mounted.mount_point == path))
}

/// The path without symbolic links and dots, even if what is mounted there is dead: only the
/// parent is looked at where the directory itself cannot be.
pub(super) fn absolute(dir: &Path) -> io::Result<PathBuf> {
    match fs::canonicalize(dir) {
        Ok(path) => Ok(path),
        Err(error) => {
            let whole = std::path::absolute(dir)?;
            let (Some(parent), Some(name)) = (whole.parent(), whole.file_name()) else {
                return Err(error);
            };
            Ok(fs::canonicalize(parent)?.join(name))
        }
    }
}

fn parse(line: &[u8]) -> Option<Mounted> {
    let fields: Vec<&[u8]> = line.split(|&byte| byte == b' ').collect();
    let dash = fields.iter().position(|field| *field == b"-")?;
    let text = |field: &[u8]| String::from_utf8_lossy(&unescape(field)).into_owned();
    let device = text(fields.get(2)?);
    let (major, minor) = device.split_once(':')?;
    Some(Mounted {
        mount_point: OsString::from_vec(unescape(fields.get(4)?)).into(),
        options: text(fields.get(5)?),
        fs_type: text(fields.get(dash + 1)?),
        source: text(fields.get(dash + 2)?),
        super_options: fields.get(dash + 3).map_or_else(String::new, |it| text(it)),
        device_major: major.parse().ok()?,
        device_minor: minor.parse().ok()?,
    })
}

/// Undoes the table's octal escapes (`\040` is a space).
fn unescape(field: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(field.len());
    let mut rest = field;
    while let [first, tail @ ..] = rest {
        if let (
            b'\\',
            [
                a @ b'0'..=b'3',
                b @ b'0'..=b'7',
                c @ b'0'..=b'7',
                after @ ..,
            ],
        ) = (first, tail)
        {
            out.push((a - b'0') * 64 + (b - b'0') * 8 + (c - b'0'));
            rest = after;
        } else {
            out.push(*first);
            rest = tail;
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_with_escapes_and_optional_fields_is_understood() {
        let line =
            br"61 29 0:52 / /mnt/a\040b\134c rw,nosuid shared:3 master:1 - fuse.holdfast mem: rw";
        let mounted = parse(line).unwrap();
        assert_eq!(mounted.mount_point, Path::new(r"/mnt/a b\c"));
        assert_eq!(
            (mounted.fs_type.as_str(), mounted.source.as_str()),
            ("fuse.holdfast", "mem:")
        );
        assert_eq!(
            (mounted.options.as_str(), mounted.super_options.as_str()),
            ("rw,nosuid", "rw")
        );
        assert_eq!(mounted.connection(), 52);
        assert!(mounted.is_fuse() && mounted.is_holdfast() && !mounted.is_on_a_device());
        let on_a_device = br"62 29 7:3 / /mnt rw - fuseblk.holdfast /dev/loop3 rw";
        let mounted = parse(on_a_device).unwrap();
        assert_eq!(mounted.connection(), (7 << 20) + 3);
        assert!(mounted.is_fuse() && mounted.is_holdfast() && mounted.is_on_a_device());
        assert!(
            !parse(br"63 29 8:1 / / rw - ext4 /dev/sda1 rw")
                .unwrap()
                .is_fuse()
        );
        assert_eq!(parse(b"61 29 x"), None);
        assert_eq!(parse(b""), None);
    }

    #[test]
    fn the_root_is_a_mount_point() {
        assert!(mounted_at(Path::new("/")).unwrap().is_some());
        assert_eq!(mounted_at(Path::new("/proc/self/fd")).unwrap(), None);
    }
}
