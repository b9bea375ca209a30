//! The kernel's mount table, `/proc/self/mountinfo`.

use std::{
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
    /// The type, `fuse.holdfast` for ours.
    pub fs_type: String,
    /// What stands in the first column of `mount`'s list.
    pub source: String,
    /// Options of the mount.
    pub options: String,
    /// Minor device number; FUSE connections have the same number below `/sys/fs/fuse`.
    pub device_minor: u32,
}

impl Mounted {
    /// Is it a FUSE file system?
    #[must_use]
    pub fn is_fuse(&self) -> bool {
        self.fs_type == "fuse" || self.fs_type == "fuseblk" || self.fs_type.starts_with("fuse.")
    }
}

/// All mounts, in the order they were made.
///
/// # Errors
/// Those of reading `/proc`.
pub fn mounts() -> io::Result<Vec<Mounted>> {
    let bytes = fs::read("/proc/self/mountinfo")?;
    Ok(bytes
        .split(|&byte| byte == b'\n')
        .filter_map(parse)
        .collect())
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
    Some(Mounted {
        mount_point: OsString::from_vec(unescape(fields.get(4)?)).into(),
        options: text(fields.get(5)?),
        fs_type: text(fields.get(dash + 1)?),
        source: text(fields.get(dash + 2)?),
        device_minor: device.split_once(':')?.1.parse().ok()?,
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
        assert_eq!(mounted.device_minor, 52);
        assert!(mounted.is_fuse());
        assert_eq!(parse(b"61 29 x"), None);
        assert_eq!(parse(b""), None);
    }

    #[test]
    fn the_root_is_a_mount_point() {
        assert!(mounted_at(Path::new("/")).unwrap().is_some());
        assert_eq!(mounted_at(Path::new("/proc/self/fd")).unwrap(), None);
    }
}
