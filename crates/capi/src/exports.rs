//! The table of the functions that C calls. cbindgen reads it for `holdfast.h`, comments included.

use std::ffi::{c_char, c_int, c_void};

use holdfast::types::{Access, Errno, RenameFlags, SetAttr};
use holdfast::{Caller, DirBuilder, File, OpenOptions, Permissions};
use libc::ssize_t;

use crate::sys::{border, null};
use crate::types::{
    hf_content, hf_dir, hf_dirent, hf_file, hf_fs, hf_memory_options, hf_stat, hf_statvfs,
    hf_timespec, hf_volume_options,
};
use crate::{attributes, bulk, failure, files, listing, open, warm, xattr};

border! {
    /// Makes a file system in memory, which hf_close frees. `options` may be NULL.
    fn hf_memory(options: *const hf_memory_options, fs: *mut *mut hf_fs) -> c_int {
        fs.put(|| open::memory(options.read()?))
    }

    /// Opens the volume in an image file or on a block device. `options` may be NULL.
    fn hf_open_volume(
        path: *const c_char,
        options: *const hf_volume_options,
        fs: *mut *mut hf_fs,
    ) -> c_int {
        fs.put(|| open::open_volume(path.path()?, options.read()?))
    }

    /// Makes an empty volume in a new image file or on a block device, and opens it. Content is
    /// overwritten only with HF_FORCE; else it is EEXIST. `options` may be NULL.
    fn hf_create_volume(
        path: *const c_char,
        options: *const hf_volume_options,
        fs: *mut *mut hf_fs,
    ) -> c_int {
        fs.put(|| open::create_volume(path.path()?, options.read()?))
    }

    /// Closes a handle of a file system. That of hf_memory, hf_open_volume or hf_create_volume ends
    /// the file system with all its handles: everything is made durable, and a volume is marked as
    /// closed. The handle ends also when the result is an error.
    fn hf_close(fs: *mut hf_fs) -> c_int {
        open::close(&fs.take()?)
    }

    /// Makes every earlier change durable.
    fn hf_sync(fs: *mut hf_fs) -> c_int {
        open::sync(&*fs.get()?)
    }

    /// Space and inodes, used and free.
    fn hf_statvfs(fs: *mut hf_fs, space: *mut hf_statvfs) -> c_int {
        space.put(open::statvfs(&*fs.get()?)?)
    }

    /// Makes a handle for paths relative to a directory, as openat(2) has them. It stays the same
    /// directory when that is renamed. Absolute paths start at the file system's root.
    fn hf_subdir(fs: *mut hf_fs, path: *const c_char, dir: *mut *mut hf_fs) -> c_int {
        dir.put(|| open::subdir(&*fs.get()?, path.path()?))
    }

    /// Makes a handle of the same directory for another user, without capabilities. `groups` are
    /// `ngroups` supplementary groups. Files that it opens keep that user.
    fn hf_as_user(
        fs: *mut hf_fs,
        uid: u32,
        gid: u32,
        groups: *const u32,
        ngroups: usize,
        umask: u32,
        user: *mut *mut hf_fs,
    ) -> c_int {
        user.put(|| {
            let groups = groups.slice(ngroups)?;
            let caller = Caller::user(uid, gid).with_groups(groups);
            Ok(open::as_caller(&*fs.get()?, caller.with_umask(umask as u16)))
        })
    }

    /// Makes a handle of the same directory for the superuser, which needs no privilege of this
    /// process.
    fn hf_as_root(fs: *mut hf_fs, root: *mut *mut hf_fs) -> c_int {
        root.put(|| Ok(open::as_caller(&*fs.get()?, Caller::root())))
    }

    /// Opens a file as open(2): `flags` are its O_RDONLY, O_CREAT, ..., `mode` that of a new file.
    fn hf_open(
        fs: *mut hf_fs,
        path: *const c_char,
        flags: c_int,
        mode: u32,
        file: *mut *mut hf_file,
    ) -> c_int {
        file.put(|| files::open(&*fs.get()?, path.path()?, flags, mode))
    }

    /// Closes a file. It makes nothing durable: see hf_fsync.
    fn hf_close_file(file: *mut hf_file) -> c_int {
        file.take()?.shared.alive()
    }

    /// Reads at an offset, as pread(2). Fewer bytes than `size` only at the end of the file.
    fn hf_pread(file: *mut hf_file, buffer: *mut c_void, size: usize, offset: i64) -> ssize_t {
        let buffer = buffer.bytes(size)?;
        file.with(|file| file.read_at(buffer, offset.cast_unsigned()))
    }

    /// Writes at an offset, as pwrite(2); with O_APPEND at the end of the file.
    fn hf_pwrite(file: *mut hf_file, buffer: *const c_void, size: usize, offset: i64) -> ssize_t {
        let buffer = buffer.slice(size)?;
        file.with(|file| file.write_at(buffer, offset.cast_unsigned()))
    }

    /// Makes content and attributes durable.
    fn hf_fsync(file: *mut hf_file) -> c_int {
        file.with(File::sync_all)
    }

    /// Makes the content durable, and as much as reading it back needs.
    fn hf_fdatasync(file: *mut hf_file) -> c_int {
        file.with(File::sync_data)
    }

    /// Cuts a file, or extends it with a hole.
    fn hf_ftruncate(file: *mut hf_file, length: i64) -> c_int {
        file.with(|file| file.set_len(length.cast_unsigned()))
    }

    /// The attributes of an open file.
    fn hf_fstat(file: *mut hf_file, attr: *mut hf_stat) -> c_int {
        attr.put(file.with(File::metadata)?)
    }

    /// The attributes of what a path leads to.
    fn hf_stat(fs: *mut hf_fs, path: *const c_char, attr: *mut hf_stat) -> c_int {
        attr.put(fs.at(path, |dir, path| dir.metadata(path))?)
    }

    /// As hf_stat, of a symbolic link itself.
    fn hf_lstat(fs: *mut hf_fs, path: *const c_char, attr: *mut hf_stat) -> c_int {
        attr.put(fs.at(path, |dir, path| dir.symlink_metadata(path))?)
    }

    /// May the user of the handle do this, as access(2): R_OK, W_OK, X_OK, F_OK?
    fn hf_access(fs: *mut hf_fs, path: *const c_char, mode: c_int) -> c_int {
        let want = u8::try_from(mode).ok().and_then(Access::from_bits);
        fs.at(path, |dir, path| dir.access(path, want.ok_or(Errno::EINVAL)?))
    }

    /// Changes permission bits.
    fn hf_chmod(fs: *mut hf_fs, path: *const c_char, mode: u32) -> c_int {
        let permissions = Permissions::from_mode(mode);
        fs.at(path, |dir, path| dir.set_permissions(path, permissions))
    }

    /// Changes owner and group; (uint32_t)-1 leaves one. `flags` is 0 or HF_NOFOLLOW.
    fn hf_chown(fs: *mut hf_fs, path: *const c_char, uid: u32, gid: u32, flags: u32) -> c_int {
        let [uid, gid] = [uid, gid].map(|id| (id != u32::MAX).then_some(id));
        let change = SetAttr { uid, gid, ..SetAttr::default() };
        attributes::change(&*fs.get()?, path.path()?, &change, flags)
    }

    /// Sets the times of last access and modification, as utimensat(2): `times` has both of them;
    /// NULL: now. `flags` is 0 or HF_NOFOLLOW.
    fn hf_utimens(
        fs: *mut hf_fs,
        path: *const c_char,
        times: *const hf_timespec,
        flags: u32,
    ) -> c_int {
        let change = attributes::times(times.times()?)?;
        attributes::change(&*fs.get()?, path.path()?, &change, flags)
    }

    /// As hf_ftruncate, by path.
    fn hf_truncate(fs: *mut hf_fs, path: *const c_char, length: i64) -> c_int {
        fs.at(path, |dir, path| {
            let file = dir.open_with(path, OpenOptions::new().write(true))?;
            file.set_len(length.cast_unsigned())
        })
    }

    /// Makes a directory.
    fn hf_mkdir(fs: *mut hf_fs, path: *const c_char, mode: u32) -> c_int {
        fs.at(path, |dir, path| dir.create_dir_with(path, DirBuilder::new().mode(mode)))
    }

    /// Removes a name that is not that of a directory.
    fn hf_unlink(fs: *mut hf_fs, path: *const c_char) -> c_int {
        fs.at(path, |dir, path| dir.remove_file(path))
    }

    /// Removes an empty directory.
    fn hf_rmdir(fs: *mut hf_fs, path: *const c_char) -> c_int {
        fs.at(path, |dir, path| dir.remove_dir(path))
    }

    /// Renames, as renameat2(2): `from` is relative to `from_dir`, `to` to `to_dir`, which may be
    /// the same handle. `flags` is 0 or HF_RENAME_*.
    fn hf_rename(
        from_dir: *mut hf_fs,
        from: *const c_char,
        to_dir: *mut hf_fs,
        to: *const c_char,
        flags: u32,
    ) -> c_int {
        let flags = RenameFlags::from_bits(flags).ok_or(Errno::EINVAL);
        from_dir.both(from, to_dir, to, |dir, from, to_dir, to| {
            dir.rename_to(from, to_dir, to, flags?)
        })
    }

    /// Makes another name of a file, as linkat(2). A symbolic link is not followed.
    fn hf_link(
        from_dir: *mut hf_fs,
        from: *const c_char,
        to_dir: *mut hf_fs,
        to: *const c_char,
    ) -> c_int {
        from_dir.both(from, to_dir, to, |dir, from, to_dir, to| {
            dir.hard_link_to(from, to_dir, to)
        })
    }

    /// Makes a symbolic link.
    fn hf_symlink(fs: *mut hf_fs, target: *const c_char, path: *const c_char) -> c_int {
        let target = target.path()?;
        fs.at(path, |dir, path| dir.symlink(target, path))
    }

    /// The target of a symbolic link, as readlink(2): without a NUL, cut to `size` bytes.
    fn hf_readlink(
        fs: *mut hf_fs,
        path: *const c_char,
        buffer: *mut c_char,
        size: usize,
    ) -> ssize_t {
        let buffer = buffer.bytes(size)?;
        let target = fs.at(path, |dir, path| dir.read_link(path))?;
        let target = target.as_os_str().as_encoded_bytes();
        let length = target.len().min(buffer.len());
        buffer[..length].copy_from_slice(&target[..length]);
        Ok(length)
    }

    /// The value of an extended attribute, as getxattr(2); `size` 0 asks for its length.
    fn hf_getxattr(
        fs: *mut hf_fs,
        path: *const c_char,
        name: *const c_char,
        value: *mut c_void,
        size: usize,
    ) -> ssize_t {
        let (name, value) = (name.bytes()?, value.bytes(size)?);
        fs.at(path, |dir, path| {
            let found = dir.get_xattr(path, name)?.ok_or(Errno::ENODATA)?;
            xattr::put(&found, value)
        })
    }

    /// Sets an extended attribute. `flags` is 0 or HF_XATTR_*.
    fn hf_setxattr(
        fs: *mut hf_fs,
        path: *const c_char,
        name: *const c_char,
        value: *const c_void,
        size: usize,
        flags: u32,
    ) -> c_int {
        let (name, value, how) = (name.bytes()?, value.slice(size)?, xattr::how(flags)?);
        fs.at(path, |dir, path| dir.set_xattr(path, name, value, how))
    }

    /// The names of the extended attributes, a NUL behind each, as listxattr(2); `size` 0 asks for
    /// their length.
    fn hf_listxattr(
        fs: *mut hf_fs,
        path: *const c_char,
        list: *mut c_char,
        size: usize,
    ) -> ssize_t {
        let list = list.bytes(size)?;
        fs.at(path, |dir, path| xattr::put(&xattr::names(dir.list_xattr(path)?), list))
    }

    /// Removes an extended attribute.
    fn hf_removexattr(fs: *mut hf_fs, path: *const c_char, name: *const c_char) -> c_int {
        let name = name.bytes()?;
        fs.at(path, |dir, path| dir.remove_xattr(path, name))
    }

    /// Begins a listing of a directory.
    fn hf_opendir(fs: *mut hf_fs, path: *const c_char, dir: *mut *mut hf_dir) -> c_int {
        dir.put(|| listing::open(&*fs.get()?, path.path()?))
    }

    /// The next entry of a listing, without `.` and `..`, and its attributes unless `attr` is NULL.
    /// Returns 1, or 0 at the end. If `entry->error` is not 0, the attributes could not be read,
    /// and `attr` is unchanged.
    fn hf_readdirplus(dir: *mut hf_dir, entry: *mut hf_dirent, attr: *mut hf_stat) -> c_int {
        let attr = match attr.is_null() {
            true => None,
            false => Some(attr.one()?),
        };
        listing::next(&*dir.get()?, entry.one()?, attr)
    }

    /// Ends a listing.
    fn hf_closedir(dir: *mut hf_dir) -> c_int {
        dir.take()?.shared.alive()
    }

    /// The attributes of up to `count` inodes of the whole file system, in the order of numbers,
    /// from the one behind `*cursor`: 0 at first. `attrs` has `count` structs, and the `size` of
    /// the first one is that of each. Returns their number, 0 at the end. Only for the superuser.
    fn hf_bulkstat(
        fs: *mut hf_fs,
        cursor: *mut u64,
        attrs: *mut hf_stat,
        count: usize,
    ) -> ssize_t {
        bulk::bulkstat(&*fs.get()?, cursor.ok_or_else(|| null("the cursor"))?, attrs.array(count)?)
    }

    /// Reads whole files, one behind the other into `buffer`. `contents` has `count` structs, and
    /// the `size` of the first one is that of each: path by path an error, or where the content is.
    /// Returns how many paths have an answer; the others did not fit, and are for the next call. A
    /// file that is longer than the buffer has the error ERANGE, and its length.
    fn hf_read_many(
        fs: *mut hf_fs,
        paths: *const *const c_char,
        count: usize,
        buffer: *mut c_void,
        size: usize,
        contents: *mut hf_content,
    ) -> ssize_t {
        let (paths, contents) = (paths.texts(count)?, contents.array(count)?);
        bulk::read_many(&*fs.get()?, paths, buffer.bytes(size)?, contents)
    }

    /// Reads the attributes of all below a directory into memory and, with HF_WARM_CONTENT in
    /// `flags`, the content of files. Returns the number of names. A name that cannot be read is
    /// skipped; the result is then an error.
    fn hf_warm(fs: *mut hf_fs, path: *const c_char, flags: u32) -> ssize_t {
        warm::warm(&*fs.get()?, path.path()?, flags)
    }

    /// Reads the inodes of at most `names` names of a directory into memory, in few reads of the
    /// device; 0: as many as are read at once. It goes on behind `*cursor`: 0 at first. Returns the
    /// number of names, 0 at the end.
    fn hf_prefetch(fs: *mut hf_fs, path: *const c_char, cursor: *mut u64, names: u64) -> ssize_t {
        warm::prefetch(&*fs.get()?, path.path()?, cursor.ok_or_else(|| null("the cursor"))?, names)
    }

    /// Why the last call that failed on this thread did: what it was about, and a remedy. Empty if
    /// none did. The text is valid until the next failure on this thread.
    fn hf_last_error() -> *const c_char {
        Ok(failure::last())
    }

    /// The version of the library, such as "0.2.0".
    fn hf_version() -> *const c_char {
        Ok(concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast())
    }
}
