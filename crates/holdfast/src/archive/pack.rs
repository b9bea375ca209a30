//! Packing a tree into an archive.

use std::ffi::OsStr;
use std::io::{self, Write};
use std::ops::Range;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use std::collections::HashMap;

use tar::{EntryType, Header};

use super::acl_text;
use super::header::time_text;
use super::owners::Named;
use super::{PackOptions, sparse};
use crate::copy::tree::{About, Tree};
use crate::copy::walk::{INTO_ITSELF, split};
use crate::copy::{Copied, CopyError, CopyEvent, Side};
use crate::stop::check_stop;
use crate::types::FileType;

const CHUNK: usize = 1 << 20;
const BLOCK: usize = 512;
/// Most bytes of a name in a header; longer ones are in a PAX record.
const NAME_LEN: usize = 100;
/// The largest numbers that seven and eleven octal digits hold.
const ID_MAX: u64 = 0o7_777_777;
const SIZE_MAX: u64 = 0o77_777_777_777;
const SELF: &str = ".";

/// Packs a tree: see [`FileSystem::pack`](crate::FileSystem::pack).
pub(super) fn pack<T: Tree>(
    tree: &T,
    from: &Path,
    archive: &mut dyn Write,
    options: &PackOptions,
    watch: &mut dyn FnMut(CopyEvent<'_>),
) -> Result<Copied, CopyError> {
    let pack = Pack {
        tree,
        top: from,
        out: archive,
        options,
        watch,
        below: PathBuf::new(),
        copied: Copied::default(),
        met: HashMap::new(),
        buffer: vec![0; CHUNK],
    };
    pack.all()
}

struct Pack<'p, T> {
    tree: &'p T,
    top: &'p Path,
    out: &'p mut dyn Write,
    options: &'p PackOptions,
    watch: &'p mut dyn FnMut(CopyEvent<'_>),
    /// The path below the top.
    below: PathBuf,
    copied: Copied,
    /// Files with several names: the first name, and the number of names not met yet.
    met: HashMap<(u64, u64), (PathBuf, u64)>,
    buffer: Vec<u8>,
}

/// An open directory, and the names of it that are to be packed.
type Opened<T> = (<T as Tree>::Dir, <T as Tree>::Names);

/// Keys and values of PAX records.
type Pairs = Vec<(Vec<u8>, Vec<u8>)>;

/// The header of a member, and its records.
struct Draft<'o> {
    kind: EntryType,
    about: &'o About,
    path: &'o [u8],
    target: &'o [u8],
    size: u64,
    records: Pairs,
}

/// Why a name is not packed.
enum Trouble {
    /// The archive cannot be written further.
    Archive(io::Error),
    /// An error of this name alone.
    Name(io::Error),
}

impl From<io::Error> for Trouble {
    fn from(error: io::Error) -> Self {
        Self::Name(error)
    }
}

impl<T: Tree> Pack<'_, T> {
    fn all(mut self) -> Result<Copied, CopyError> {
        let top = self.top;
        let from = |error| CopyError::new(Side::From, top, error);
        let is_followed = top.as_os_str().as_bytes().last() == Some(&b'/');
        if let Some((above, name)) = split(top).filter(|_| !is_followed) {
            let dir = self.tree.open_dir(above).map_err(from)?;
            if !self.tree.about(&dir, &name).map_err(from)?.kind.is_dir() {
                self.below.push(self.options.name.as_ref().unwrap_or(&name));
                let packed = self.one(&dir, &name).map(drop);
                self.after(packed)?;
                return self.end();
            }
        }
        let dir = self.tree.open_dir(self.top).map_err(from)?;
        let packed = self.one(&dir, OsStr::new(SELF));
        let mut levels: Vec<Opened<T>> = self.after(packed)?.flatten().into_iter().collect();
        while let Some((dir, mut names)) = levels.pop() {
            check_stop(&self.options.stop).map_err(of_archive)?;
            // A directory that cannot be listed further ends as one that is done.
            let next = names.next().transpose().map_err(Trouble::Name);
            let Some(name) = self.after(next)?.flatten() else {
                self.below.pop();
                continue;
            };
            self.below.push(&name);
            let packed = self.one(&dir, &name);
            levels.push((dir, names));
            match self.after(packed)?.flatten() {
                Some(deeper) => levels.push(deeper),
                None => drop(self.below.pop()),
            }
            (self.watch)(CopyEvent::Progress(&self.copied));
        }
        self.end()
    }

    /// Two blocks of zeros.
    fn end(self) -> Result<Copied, CopyError> {
        let ended = self
            .out
            .write_all(&[0; 2 * BLOCK])
            .and_then(|()| self.out.flush());
        ended.map_err(of_archive)?;
        Ok(self.copied)
    }

    /// Reports an error of one name, and goes on; passes an error of the archive on.
    fn after<R>(&mut self, packed: Result<R, Trouble>) -> Result<Option<R>, CopyError> {
        match packed {
            Ok(done) => Ok(Some(done)),
            Err(Trouble::Archive(error)) => Err(of_archive(error)),
            Err(Trouble::Name(error)) => {
                let failed = CopyError::below(Side::From, self.top, &self.below, error);
                self.copied.failed += 1;
                (self.watch)(CopyEvent::Failed(&failed));
                Ok(None)
            }
        }
    }

    /// Packs one name; returns a directory to descend into.
    fn one(&mut self, dir: &T::Dir, name: &OsStr) -> Result<Option<Opened<T>>, Trouble> {
        let about = self.tree.about(dir, name)?;
        if self.options.skip == Some(about.id) {
            return Err(io::Error::other(INTO_ITSELF).into());
        }
        let path = self.below.as_os_str().as_bytes().to_vec();
        if let Some((first, left)) = self.met.get_mut(&about.id) {
            let first = first.clone();
            *left -= 1;
            if *left == 0 {
                self.met.remove(&about.id);
            }
            let target = first.as_os_str().as_bytes();
            self.header(EntryType::Link, &about, &path, target, 0, Vec::new())?;
            self.copied.links += 1;
            return Ok(None);
        }
        if about.kind == FileType::Socket {
            (self.watch)(CopyEvent::Skipped(&self.below));
            return Ok(None);
        }
        let records = self.xattrs(dir, name)?;
        let mut deeper = None;
        match about.kind {
            FileType::Directory => {
                let inner = self.tree.enter(dir, name)?;
                let names = self.tree.names(&inner)?;
                let path = [if path.is_empty() { b"." } else { &path[..] }, b"/"].concat();
                self.header(EntryType::Directory, &about, &path, b"", 0, records)?;
                self.copied.directories += 1;
                deeper = Some((inner, names));
            }
            FileType::Regular => {
                self.regular(dir, name, &about, &path, records)?;
                self.copied.files += 1;
            }
            FileType::Symlink => {
                let target = self.tree.target(dir, name)?;
                self.header(
                    EntryType::Symlink,
                    &about,
                    &path,
                    target.as_bytes(),
                    0,
                    records,
                )?;
                self.copied.symlinks += 1;
            }
            kind => {
                let kind = match kind {
                    FileType::CharDevice => EntryType::Char,
                    FileType::BlockDevice => EntryType::Block,
                    _ => EntryType::Fifo,
                };
                self.header(kind, &about, &path, b"", 0, records)?;
                self.copied.special += 1;
            }
        }
        if about.nlink > 1 && deeper.is_none() {
            self.met
                .insert(about.id, (self.below.clone(), about.nlink - 1));
        }
        Ok(deeper)
    }

    fn xattrs(&self, dir: &T::Dir, name: &OsStr) -> io::Result<Pairs> {
        let mut records = Vec::new();
        for (name, value) in self.tree.xattrs(dir, name)? {
            let acl = acl_text::KEYS
                .iter()
                .find(|(_, attribute)| name == *attribute);
            let text = acl.and_then(|(key, _)| Some((*key, acl_text::to_text(&value)?)));
            records.push(match text {
                Some((key, text)) => (key.into(), text),
                None => (
                    [&b"SCHILY.xattr."[..], &escaped(name.as_bytes())].concat(),
                    value,
                ),
            });
        }
        Ok(records)
    }

    fn regular(
        &mut self,
        dir: &T::Dir,
        name: &OsStr,
        about: &About,
        path: &[u8],
        mut records: Pairs,
    ) -> Result<(), Trouble> {
        let file = self.tree.open(dir, name)?;
        let whole = 0..about.size;
        let mut runs: Vec<Range<u64>> = Vec::new();
        let mut at = 0;
        while about.sparse
            && let Some(run) = self.tree.next_data(&file, at)?
            && run.start < about.size
        {
            at = run.end.min(about.size);
            runs.push(run.start..at);
        }
        if about.size == 0 || !about.sparse || runs.first() == Some(&whole) {
            self.header(EntryType::Regular, about, path, b"", about.size, records)?;
            return self.content(&file, &[whole], about.size);
        }
        // As in GNU tar, an empty run marks the end of the file.
        runs.push(about.size..about.size);
        let map = sparse::to_data(&runs);
        let data: u64 = runs.iter().map(|run| run.end - run.start).sum();
        let size = map.len() as u64 + data;
        for (key, value) in [
            ("GNU.sparse.major", b"1".to_vec()),
            ("GNU.sparse.minor", b"0".to_vec()),
            ("GNU.sparse.name", path.to_vec()),
            ("GNU.sparse.realsize", about.size.to_string().into_bytes()),
        ] {
            records.push((key.into(), value));
        }
        let shown = [
            b"GNUSparseFile.0/",
            &path[path.len().saturating_sub(NAME_LEN / 2)..],
        ]
        .concat();
        self.header(EntryType::Regular, about, &shown, b"", size, records)?;
        self.write(&map)?;
        self.content(&file, &runs, size)
    }

    /// Writes runs of a file, and pads the last block. The header with the size is written already,
    /// so unreadable or truncated parts are replaced by zeros. The error is returned after all data
    /// is written.
    fn content(&mut self, file: &T::File, runs: &[Range<u64>], size: u64) -> Result<(), Trouble> {
        let mut missing = None;
        for run in runs {
            let mut at = run.start;
            while at < run.end {
                check_stop(&self.options.stop).map_err(Trouble::Archive)?;
                let most = usize::try_from(run.end - at).map_or(CHUNK, |left| left.min(CHUNK));
                let read = self.tree.read_at(file, &mut self.buffer[..most], at);
                let read = match read {
                    Ok(read @ 1..) => read,
                    ended => {
                        // Only the first error of a file is reported.
                        missing.get_or_insert(ended.err());
                        self.buffer[..most].fill(0);
                        most
                    }
                };
                let written = self.out.write_all(&self.buffer[..read]);
                written.map_err(Trouble::Archive)?;
                at += read as u64;
                self.copied.bytes += read as u64;
            }
        }
        self.fill_block(size)?;
        match missing {
            None => Ok(()),
            Some(None) => Err(io::Error::other(
                "became shorter meanwhile: zeros in place of what it had",
            )
            .into()),
            Some(Some(error)) => Err(io::Error::new(
                error.kind(),
                format!("could not be read: {error}: zeros in its place"),
            )
            .into()),
        }
    }

    fn fill_block(&mut self, size: u64) -> Result<(), Trouble> {
        let over = (size % BLOCK as u64) as usize;
        match over {
            0 => Ok(()),
            over => self.write(&[0; BLOCK][over..]),
        }
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), Trouble> {
        self.out.write_all(bytes).map_err(Trouble::Archive)
    }

    fn header(
        &mut self,
        kind: EntryType,
        about: &About,
        path: &[u8],
        target: &[u8],
        size: u64,
        records: Pairs,
    ) -> Result<(), Trouble> {
        let mut draft = Draft {
            kind,
            about,
            path,
            target,
            size,
            records,
        };
        let header = draft.header(self.options).map_err(Trouble::Name)?;
        if !draft.records.is_empty() {
            let mut content = Vec::new();
            let names = [&b"path"[..], b"linkpath", b"GNU.sparse.name"];
            let mut records = draft.records.iter();
            // Records are UTF-8 unless `hdrcharset` says otherwise.
            if records.any(|(key, value)| {
                names.contains(&&key[..]) && std::str::from_utf8(value).is_err()
            }) {
                record(&mut content, b"hdrcharset", b"BINARY");
            }
            for (key, value) in &draft.records {
                record(&mut content, key, value);
            }
            let mut before = Header::new_ustar();
            before.set_entry_type(EntryType::XHeader);
            before.set_size(content.len() as u64);
            before.set_mode(0o644);
            before.set_mtime(0);
            before.set_uid(0);
            before.set_gid(0);
            let name = &mut before.as_old_mut().name;
            name[..b"PaxHeaders".len()].copy_from_slice(b"PaxHeaders");
            before.set_cksum();
            self.write(before.as_bytes())?;
            self.write(&content)?;
            self.fill_block(content.len() as u64)?;
        }
        self.write(header.as_bytes())
    }
}

/// An error of the archive itself.
fn of_archive(error: io::Error) -> CopyError {
    CopyError::new(Side::To, Path::new(""), error)
}

impl Draft<'_> {
    /// The header; values that do not fit are added to the records.
    fn header(&mut self, options: &PackOptions) -> io::Result<Header> {
        let about = self.about;
        let mut header = Header::new_ustar();
        header.set_entry_type(self.kind);
        header.set_mode(u32::from(about.perm));
        let uid = self.number("uid", u64::from(about.uid), ID_MAX);
        let gid = self.number("gid", u64::from(about.gid), ID_MAX);
        let size = self.number("size", self.size, SIZE_MAX);
        header.set_uid(uid);
        header.set_gid(gid);
        header.set_size(size);
        let seconds = u64::try_from(about.mtime.secs()).unwrap_or(0).min(SIZE_MAX);
        header.set_mtime(seconds);
        if about.mtime.subsec_nanos() != 0 || about.mtime.secs() != seconds.cast_signed() {
            self.records
                .push(("mtime".into(), time_text(about.mtime).into_bytes()));
        }
        if options.access_times {
            let text = time_text(about.atime).into_bytes();
            self.records.push(("atime".into(), text));
        }
        if matches!(self.kind, EntryType::Char | EntryType::Block) {
            header.set_device_major(rustix::fs::major(about.rdev))?;
            header.set_device_minor(rustix::fs::minor(about.rdev))?;
        }
        let (path, target) = (self.path, self.target);
        let old = header.as_old_mut();
        self.name("path", path, &mut old.name);
        self.name("linkpath", target, &mut old.linkname);
        if let (Some(names), Some(ustar)) = (&options.names, header.as_ustar_mut()) {
            for (kind, number, field) in [
                (Named::User, about.uid, &mut ustar.uname),
                (Named::Group, about.gid, &mut ustar.gname),
            ] {
                // A name that does not fit is left out; the number remains.
                let name = names
                    .name(kind, number)
                    .filter(|name| name.len() < field.len());
                if let Some(name) = name {
                    field[..name.len()].copy_from_slice(&name);
                }
            }
        }
        header.set_cksum();
        Ok(header)
    }

    fn number(&mut self, key: &str, number: u64, most: u64) -> u64 {
        if number <= most {
            return number;
        }
        self.records
            .push((key.into(), number.to_string().into_bytes()));
        0
    }

    fn name(&mut self, key: &str, name: &[u8], field: &mut [u8; NAME_LEN]) {
        let fits = name.len().min(NAME_LEN);
        field[..fits].copy_from_slice(&name[..fits]);
        let is_sparse = self
            .records
            .iter()
            .any(|(key, _)| key == b"GNU.sparse.name");
        if name.len() > NAME_LEN && !(key == "path" && is_sparse) {
            self.records.push((key.into(), name.to_vec()));
        }
    }
}

/// Escapes the name of an attribute for the key of a record, which ends at a `=`, as GNU tar does.
fn escaped(name: &[u8]) -> Vec<u8> {
    let mut found = Vec::with_capacity(name.len());
    for byte in name {
        match byte {
            b'=' => found.extend(b"%3D"),
            b'%' => found.extend(b"%25"),
            byte => found.push(*byte),
        }
    }
    found
}

/// Adds a PAX record; the length includes its own digits.
fn record(content: &mut Vec<u8>, key: &[u8], value: &[u8]) {
    let rest = key.len() + value.len() + b" =\n".len();
    let mut length = rest + 1;
    while length != rest + length.to_string().len() {
        length = rest + length.to_string().len();
    }
    content.extend(length.to_string().as_bytes());
    content.push(b' ');
    content.extend(key);
    content.push(b'=');
    content.extend(value);
    content.push(b'\n');
}
