//! Lines of fstab(5), which `--update-fstab` writes and removes.
//!
//! The file is replaced as a whole by rename(2): a reader finds the old lines or the new ones. All
//! lines of others stay as they are, byte by byte.

use crate::message::{Failure, Result};
use rustix::fs::{Access, Gid, Uid};
use std::{
    ffi::OsStr,
    fs::{self, File, OpenOptions},
    io::{self, Write},
    os::unix::{
        ffi::OsStrExt,
        fs::{MetadataExt, OpenOptionsExt, PermissionsExt},
    },
    path::{Path, PathBuf},
};

/// Where the system keeps it.
pub(crate) const SYSTEMS: &str = "/etc/fstab";

/// The type of our lines, and the types that mean the same.
const TYPE: &str = "holdfast";
const OTHER_TYPES: [&[u8]; 2] = [b"fuse.holdfast", b"fuseblk.holdfast"];

/// Where mount(8) looks for the helper of the type.
const HELPERS: [&str; 2] = ["/sbin/mount.holdfast", "/usr/sbin/mount.holdfast"];

/// The mode of a file that was not there.
const MODE: u32 = 0o644;

/// A file of such lines, as it was read.
pub(crate) struct Fstab {
    /// Without symbolic links.
    path: PathBuf,
    content: Vec<u8>,
}

impl Fstab {
    /// Reads the file, which need not exist. It must be possible to replace it.
    ///
    /// # Errors
    /// Those of reading, or that this user may not write there.
    pub(crate) fn read(path: &Path) -> Result<Self> {
        let failed = |error: io::Error| unchanged(path, &error);
        let content = match fs::read(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            content => content.map_err(failed)?,
        };
        let path = match fs::canonicalize(path) {
            Ok(path) => path,
            Err(_) => std::path::absolute(path).map_err(failed)?,
        };
        rustix::fs::access(folder(&path), Access::WRITE_OK)
            .map_err(|code| unchanged(&path, &code.into()))?;
        Ok(Self { path, content })
    }

    /// Adds the line that mounts this source at this directory, or changes the one there is.
    ///
    /// # Errors
    /// If another file system is to be mounted at the directory.
    pub(crate) fn add(&mut self, source: &OsStr, dir: &Path, options: &[String]) -> Result<()> {
        let dir = dir.as_os_str().as_bytes();
        let fields = self.lines().filter_map(Fields::of);
        let mut foreign = fields.filter(|line| line.dir == dir && !line.is_ours());
        if let Some(line) = foreign.next() {
            return Err(Failure::new(format!(
                "has a line for {} already, of type {}",
                OsStr::from_bytes(dir).display(),
                String::from_utf8_lossy(&line.fs_type)
            ))
            .at(&self.path)
            .hint("remove that line, or choose another directory"));
        }
        drop(foreign);
        let options = match options {
            [] => "defaults".to_owned(),
            some => some.join(","),
        };
        let source = escaped(source.as_bytes());
        let mut line = [
            &source,
            &escaped(dir),
            TYPE.as_bytes(),
            &escaped(options.as_bytes()),
        ]
        .join(&b' ');
        line.extend_from_slice(b" 0 0\n");
        let mut line = Some(line);
        let mut content = Vec::new();
        for old in self.lines() {
            match Fields::of(old) {
                // Of several, the first is changed.
                Some(fields) if fields.dir == dir => {
                    content.extend(line.take().unwrap_or_default())
                }
                _ => content.extend_from_slice(old),
            }
        }
        if let Some(line) = line {
            if content.last().is_some_and(|&byte| byte != b'\n') {
                content.push(b'\n');
            }
            content.extend(line);
        }
        self.content = content;
        Ok(())
    }

    /// Removes our lines for this directory; returns whether there was one.
    pub(crate) fn remove(&mut self, dir: &Path) -> bool {
        let dir = dir.as_os_str().as_bytes();
        let is_of = |line: &Fields| line.dir == dir && line.is_ours();
        let stays = |line: &&[u8]| !Fields::of(line).is_some_and(|line| is_of(&line));
        let content = self.lines().filter(stays).collect::<Vec<_>>().concat();
        let removed = content.len() < self.content.len();
        self.content = content;
        removed
    }

    /// Replaces the file, unless it has this content already.
    ///
    /// # Errors
    /// Those of writing; the old file stays.
    pub(crate) fn write(&self) -> Result<()> {
        if fs::read(&self.path).is_ok_and(|content| content == self.content) {
            return Ok(());
        }
        let mut name = self.path.as_os_str().to_owned();
        name.push(format!(".holdfast-{}", std::process::id()));
        let new = Path::new(&name);
        self.write_to(new)
            .inspect_err(|_| {
                // It may not have been made.
                let _ = fs::remove_file(new);
            })
            .map_err(|error| unchanged(&self.path, &error))
    }

    fn write_to(&self, new: &Path) -> io::Result<()> {
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(new)?;
        file.write_all(&self.content)?;
        let mode = match fs::metadata(&self.path) {
            Ok(old) => {
                let owner = (Uid::from_raw(old.uid()), Gid::from_raw(old.gid()));
                rustix::fs::fchown(&file, Some(owner.0), Some(owner.1))?;
                old.permissions().mode()
            }
            Err(_) => MODE,
        };
        file.set_permissions(fs::Permissions::from_mode(mode))?;
        file.sync_all()?;
        fs::rename(new, &self.path)?;
        File::open(folder(&self.path))?.sync_all()
    }

    /// The lines, each with its end.
    fn lines(&self) -> impl Iterator<Item = &[u8]> {
        self.content.split_inclusive(|&byte| byte == b'\n')
    }
}

/// Says so if mount(8) cannot mount the line.
pub(crate) fn warn_without_helper() {
    if !HELPERS.iter().any(|helper| Path::new(helper).exists()) {
        anstream::eprintln!(
            "holdfast: mount(8) finds no {}: `holdfast mount --help` tells how to link it",
            HELPERS[0]
        );
    }
}

/// What matters of a line: directory and type.
struct Fields {
    dir: Vec<u8>,
    fs_type: Vec<u8>,
}

impl Fields {
    /// `None`: it is empty or a comment.
    fn of(line: &[u8]) -> Option<Self> {
        let words = line.split(|byte| byte.is_ascii_whitespace());
        let mut words = words.filter(|word| !word.is_empty());
        let source = words.next()?;
        let (dir, fs_type) = (words.next()?, words.next()?);
        (source[0] != b'#').then(|| Self {
            dir: unescaped(dir),
            fs_type: fs_type.to_owned(),
        })
    }

    fn is_ours(&self) -> bool {
        self.fs_type == TYPE.as_bytes() || OTHER_TYPES.contains(&&self.fs_type[..])
    }
}

/// A field, with octal escapes for what would end it, and for `#`, which begins a comment.
fn escaped(field: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(field.len());
    for &byte in field {
        match byte {
            b' ' | b'\t' | b'\n' | b'\r' | b'\\' | b'#' => {
                out.extend(format!("\\{byte:03o}").into_bytes())
            }
            _ => out.push(byte),
        }
    }
    out
}

fn unescaped(field: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((&first, behind)) = rest.split_first() {
        rest = behind;
        match (first, behind) {
            (
                b'\\',
                [
                    a @ b'0'..=b'3',
                    b @ b'0'..=b'7',
                    c @ b'0'..=b'7',
                    after @ ..,
                ],
            ) => {
                out.push((a - b'0') * 64 + (b - b'0') * 8 + (c - b'0'));
                rest = after;
            }
            _ => out.push(first),
        }
    }
    out
}

fn folder(path: &Path) -> &Path {
    path.parent().unwrap_or(path)
}

fn unchanged(path: &Path, error: &io::Error) -> Failure {
    let failure = Failure::new(format!("cannot be changed: {error}")).at(path);
    match error.kind() {
        io::ErrorKind::PermissionDenied => failure.hint("run as root, or leave out --update-fstab"),
        io::ErrorKind::ResourceBusy => {
            failure.hint("it is a mount point itself, as in a container: change it outside")
        }
        _ => failure,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    const OTHERS: &str = "# <fs> <dir> <type>\nUUID=1  /  ext4\terrors=remount-ro 0 1\n\n/dev/sdb /mnt/a\\040b xfs\n#/x.hf /mnt holdfast x 0 0";

    fn fstab(content: &str) -> Fstab {
        Fstab {
            path: "/etc/fstab".into(),
            content: content.into(),
        }
    }

    fn text(fstab: &Fstab) -> &str {
        std::str::from_utf8(&fstab.content).unwrap()
    }

    fn add(fstab: &mut Fstab, dir: &str, options: &[&str]) -> Result<()> {
        let options: Vec<String> = options.iter().map(ToString::to_string).collect();
        fstab.add(OsStr::new("/srv/da ta.hf"), Path::new(dir), &options)
    }

    #[test]
    fn a_line_is_added_changed_in_its_place_and_removed_and_others_stay() {
        let mut fstab = fstab(OTHERS);
        add(&mut fstab, "/mnt/b\tc\\#", &[]).unwrap();
        let first = "/srv/da\\040ta.hf /mnt/b\\011c\\134\\043 holdfast defaults 0 0\n";
        assert_eq!(text(&fstab), format!("{OTHERS}\n{first}"));
        add(&mut fstab, "/mnt", &["ro", "memory=2g", "nofail"]).unwrap();
        let second = "/srv/da\\040ta.hf /mnt holdfast ro,memory=2g,nofail 0 0\n";
        assert_eq!(text(&fstab), format!("{OTHERS}\n{first}{second}"));
        add(&mut fstab, "/mnt/b\tc\\#", &["fsname=x y"]).unwrap();
        let changed = "/srv/da\\040ta.hf /mnt/b\\011c\\134\\043 holdfast fsname=x\\040y 0 0\n";
        assert_eq!(text(&fstab), format!("{OTHERS}\n{changed}{second}"));
        assert!(fstab.remove(Path::new("/mnt/b\tc\\#")));
        assert!(fstab.remove(Path::new("/mnt")));
        assert_eq!(text(&fstab), format!("{OTHERS}\n"));
        assert!(!fstab.remove(Path::new("/mnt")));
    }

    #[test]
    fn a_line_of_another_file_system_is_neither_changed_nor_removed() {
        let mut fstab = fstab(OTHERS);
        let failure = add(&mut fstab, "/mnt/a b", &[]).unwrap_err().to_string();
        assert!(
            failure.contains("xfs") && failure.contains("/mnt/a b"),
            "{failure}"
        );
        assert!(!fstab.remove(Path::new("/mnt/a b")));
        assert_eq!(text(&fstab), OTHERS);
    }

    #[test]
    fn of_several_lines_for_one_directory_one_stays() {
        let mut fstab = fstab("a /m fuse.holdfast x\nb /n holdfast\nc /m fuseblk.holdfast y\n");
        add(&mut fstab, "/m", &[]).unwrap();
        assert_eq!(
            text(&fstab),
            "/srv/da\\040ta.hf /m holdfast defaults 0 0\nb /n holdfast\n"
        );
    }

    #[test]
    fn the_file_keeps_its_mode_and_its_place_and_is_left_alone_if_nothing_changes() {
        let temp = tempfile::tempdir().unwrap();
        let (real, link) = (temp.path().join("real"), temp.path().join("fstab"));
        fs::write(&real, OTHERS).unwrap();
        fs::set_permissions(&real, fs::Permissions::from_mode(0o640)).unwrap();
        symlink("real", &link).unwrap();
        for _ in 0..2 {
            let mut fstab = Fstab::read(&link).unwrap();
            add(&mut fstab, "/mnt", &[]).unwrap();
            let before = fs::metadata(&real).unwrap().ino();
            let is_there = fs::read(&real).unwrap() == fstab.content;
            fstab.write().unwrap();
            let after = fs::metadata(&real).unwrap();
            assert_eq!(after.ino() == before, is_there);
            assert_eq!(after.permissions().mode() & 0o7777, 0o640);
            assert_eq!(fs::read(&link).unwrap(), fstab.content);
        }
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(
            fs::read_dir(temp.path()).unwrap().count(),
            2,
            "a file is left"
        );
    }

    #[test]
    fn a_missing_file_is_made_and_a_missing_folder_is_named() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("fstab");
        let mut fstab = Fstab::read(&path).unwrap();
        add(&mut fstab, "/mnt", &[]).unwrap();
        fstab.write().unwrap();
        assert_eq!(
            fs::metadata(&path).unwrap().permissions().mode() & 0o7777,
            MODE
        );
        let failure = Fstab::read(Path::new("/no/such/fstab"))
            .err()
            .unwrap()
            .to_string();
        assert!(failure.contains("/no/such/fstab"), "{failure}");
    }

    #[test]
    fn malformed_escapes_are_themselves() {
        for field in ["\\", "a\\04", "\\999", "\\400"] {
            assert_eq!(unescaped(field.as_bytes()), field.as_bytes());
        }
        assert_eq!(unescaped(b"\\040\\134"), b" \\");
    }
}
