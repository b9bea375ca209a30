//! The inspector's look at the host: superuser, `O_NOATIME`, nothing left behind.

use super::errno;
use crate::diff::op::Bytes;
use crate::diff::view::{BLOCK, Blocks, Content, Detail, Times, View};
use holdfast_types::{Errno, FileType, Result, Time};
use rustix::fs::{AtFlags, CWD, Mode, OFlags, RawDir, SeekFrom, Statx, StatxFlags, StatxTimestamp};
use std::collections::BTreeMap;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};

/// Most bytes of one extended attribute, or of a list of their names (`XATTR_SIZE_MAX`).
pub(super) const XATTR_MAX: usize = 65_536;

/// Where the last page of the longest file begins.
pub(in crate::diff) const LAST_PAGE: u64 = i64::MAX as u64 / 4096 * 4096;

/// Looks at what `path` names; the calling thread's root and directory are the mount's.
pub(super) fn look(path: &Bytes, follow: bool, detail: Detail) -> Result<View> {
    let flags = if follow {
        AtFlags::empty()
    } else {
        AtFlags::SYMLINK_NOFOLLOW
    };
    let wanted = StatxFlags::BASIC_STATS | StatxFlags::BTIME;
    let stat = rustix::fs::statx(CWD, &path.0[..], flags, wanted).map_err(errno)?;
    let mut view = view(&stat)?;
    if detail.content {
        view.content = match view.kind {
            FileType::Regular => Content::Bytes(read_blocks(&open_quietly(path)?, view.size)?),
            FileType::Directory => Content::Names(read_names(&open_quietly(path)?)?),
            _ => Content::Unseen,
        };
    }
    if detail.target && view.kind == FileType::Symlink {
        let target = rustix::fs::readlinkat(CWD, &path.0[..], Vec::new()).map_err(errno)?;
        view.content = Content::Target(Bytes(target.into_bytes()));
    }
    if detail.xattrs {
        view.xattrs = Some(xattrs(path, follow)?);
    }
    Ok(view)
}

/// Looks at the attributes of an open file.
pub(super) fn look_open(file: &OwnedFd) -> Result<View> {
    let wanted = StatxFlags::BASIC_STATS | StatxFlags::BTIME;
    let stat = rustix::fs::statx(file, "", AtFlags::EMPTY_PATH, wanted).map_err(errno)?;
    view(&stat)
}

fn view(stat: &Statx) -> Result<View> {
    Ok(View {
        ino: stat.stx_ino,
        kind: FileType::from_mode(stat.stx_mode.into()).ok_or(Errno::EUCLEAN)?,
        perm: stat.stx_mode & 0o7777,
        nlink: stat.stx_nlink,
        uid: stat.stx_uid,
        gid: stat.stx_gid,
        rdev: rustix::fs::makedev(stat.stx_rdev_major, stat.stx_rdev_minor),
        size: stat.stx_size,
        blocks: stat.stx_blocks,
        times: Times {
            atime: time(stat.stx_atime),
            mtime: time(stat.stx_mtime),
            ctime: time(stat.stx_ctime),
            btime: time(stat.stx_btime),
        },
        content: Content::Unseen,
        xattrs: None,
    })
}

fn time(lsn: StatxTimestamp) -> Time {
    Time::new(lsn.tv_sec, lsn.tv_nsec)
}

fn open_quietly(path: &Bytes) -> Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::NOATIME | OFlags::NONBLOCK | OFlags::CLOEXEC;
    rustix::fs::openat(CWD, &path.0[..], flags, Mode::empty()).map_err(errno)
}

fn read_blocks(file: &OwnedFd, size: u64) -> Result<Blocks> {
    let mut blocks = Blocks::default();
    let mut buffer = vec![0; 32 * BLOCK];
    let mut offset = 0_u64;
    loop {
        offset = match rustix::fs::seek(file, SeekFrom::Data(offset)) {
            Ok(data) => data / BLOCK as u64 * BLOCK as u64,
            // tmpfs does not find data in the last page that offsets can name.
            Err(rustix::io::Errno::NXIO) if size > LAST_PAGE && offset < size => {
                offset.max(LAST_PAGE)
            }
            Err(rustix::io::Errno::NXIO) => return Ok(blocks),
            Err(error) => return Err(errno(error)),
        };
        // The kernel refuses a range that ends beyond the largest offset.
        let room = (i64::MAX as u64 - offset).min(buffer.len() as u64) as usize;
        let got = rustix::io::pread(file, &mut buffer[..room], offset).map_err(errno)?;
        if got == 0 {
            return Ok(blocks);
        }
        for (nth, chunk) in buffer[..got].chunks(BLOCK).enumerate() {
            blocks.add(offset / BLOCK as u64 + nth as u64, chunk);
        }
        offset += got as u64;
    }
}

/// One entry of a listing: name, `d_type`, and the cookie behind it.
pub(super) type Entry = (Bytes, u8, u64);

/// The next run of entries of an open directory, as many as `room` bytes hold.
pub(super) fn read_run(dir: impl AsFd, room: usize) -> Result<Vec<Entry>> {
    let mut buffer = [MaybeUninit::uninit(); 8192];
    let room = room.clamp(320, buffer.len());
    let mut raw = RawDir::new(dir, &mut buffer[..room]);
    let mut run = Vec::new();
    while let Some(entry) = raw.next() {
        let entry = entry.map_err(errno)?;
        let kind = entry.file_type().as_raw_mode() >> 12;
        let name = Bytes(entry.file_name().to_bytes().to_vec());
        run.push((name, kind as u8, entry.next_entry_cookie()));
        if raw.is_buffer_empty() {
            break;
        }
    }
    Ok(run)
}

fn read_names(dir: &OwnedFd) -> Result<BTreeMap<Bytes, u8>> {
    let mut names = BTreeMap::new();
    loop {
        let run = read_run(dir, usize::MAX)?;
        if run.is_empty() {
            names.remove(&Bytes(b".".to_vec()));
            names.remove(&Bytes(b"..".to_vec()));
            return Ok(names);
        }
        names.extend(run.into_iter().map(|(name, kind, _)| (name, kind)));
    }
}

fn xattrs(path: &Bytes, follow: bool) -> Result<BTreeMap<Bytes, Bytes>> {
    let mut all = BTreeMap::new();
    for name in list_xattrs(path, follow)? {
        let value = get_xattr(path, follow, &name)?;
        all.insert(name, Bytes(value));
    }
    Ok(all)
}

/// The names of a path's extended attributes, sorted.
pub(super) fn list_xattrs(path: &Bytes, follow: bool) -> Result<Vec<Bytes>> {
    let path = &path.0[..];
    let mut list = Vec::with_capacity(XATTR_MAX);
    let spare = rustix::buffer::spare_capacity(&mut list);
    if follow {
        rustix::fs::listxattr(path, spare).map_err(errno)?;
    } else {
        rustix::fs::llistxattr(path, spare).map_err(errno)?;
    }
    Ok(split_names(&list))
}

/// The names in a NUL-terminated list, sorted.
pub(super) fn split_names(list: &[u8]) -> Vec<Bytes> {
    let names = list
        .split(|&byte| byte == 0)
        .filter(|name| !name.is_empty());
    let mut names: Vec<Bytes> = names.map(Bytes::from).collect();
    names.sort();
    names
}

/// The value of one extended attribute of a path.
pub(super) fn get_xattr(path: &Bytes, follow: bool, name: &Bytes) -> Result<Vec<u8>> {
    let (path, name) = (&path.0[..], &name.0[..]);
    let mut value = Vec::with_capacity(XATTR_MAX);
    let spare = rustix::buffer::spare_capacity(&mut value);
    if follow {
        rustix::fs::getxattr(path, name, spare).map_err(errno)?;
    } else {
        rustix::fs::lgetxattr(path, name, spare).map_err(errno)?;
    }
    Ok(value)
}
