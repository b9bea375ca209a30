//! The class `_holdfast.Volume`: the calls of `os` on one file system.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyDict, PyList, PyTuple};

use holdfast::types::Errno;
use holdfast::{
    Access, Caller, Caps, DirBuilder, FileSystem, FileTimes, Metadata, OpenOptions, Options,
    Permissions, VolumeBuilder, VolumeError, XattrSet,
};

use crate::columns::Columns;
use crate::entry::{DirEntry, Scan};
use crate::error::{os_error, volume_error};
use crate::file::FileHandle;
use crate::many;
use crate::open::Open;
use crate::path::{self, PathArg};
use crate::remove;
use crate::stat::{nanoseconds, stat_result};
use crate::sys::Memory;
use crate::tree;

/// A file system on an image file or a block device, or in memory.
#[pyclass(subclass, frozen, module = "holdfast._holdfast")]
pub(crate) struct Volume {
    open: Arc<Open>,
}

/// How a volume is opened, as Python says it.
struct Opening {
    create: bool,
    read_only: bool,
    builder: VolumeBuilder,
}

impl Opening {
    fn at(self, path: &Path) -> Result<holdfast::Volume, VolumeError> {
        match (self.read_only, self.create) {
            (true, _) => self.builder.open_read_only(path),
            (false, true) => self.builder.open_or_create(path),
            (false, false) => self.builder.open(path),
        }
    }
}

/// The device number of the next file system in memory.
static MEMORIES: AtomicU64 = AtomicU64::new(1);

#[pymethods]
impl Volume {
    #[new]
    #[pyo3(signature = (path, *, create=false, read_only=false, size=None, inodes=None, label=None,
                        commit_every=None, memory=None, superuser=false))]
    #[expect(clippy::too_many_arguments, reason = "keywords of Python")]
    fn new(
        py: Python<'_>,
        path: Option<PathArg<'_>>,
        create: bool,
        read_only: bool,
        size: Option<u64>,
        inodes: Option<u64>,
        label: Option<&str>,
        commit_every: Option<f64>,
        memory: Option<u64>,
        superuser: bool,
    ) -> PyResult<Self> {
        let mut who = Caller::current();
        if superuser {
            who.caps = Caps::all();
        }
        let options = Options {
            read_only,
            memory,
            ..Options::default()
        };
        let Some(path) = path else {
            let mut builder = FileSystem::builder().options(options).caller(who);
            if let Some(size) = size {
                builder = builder.bytes_max(size);
            }
            if let Some(inodes) = inodes {
                builder = builder.inodes_max(inodes);
            }
            let device = MEMORIES.fetch_add(1, Ordering::Relaxed);
            let open = Open::new(builder.build(), None, "memory".to_owned(), device);
            let open = Arc::new(open);
            return Ok(Self { open });
        };
        if create && read_only {
            let text = "create=True and read_only=True exclude each other";
            return Err(PyValueError::new_err(text));
        }
        let address = path.path().display().to_string();
        let failed = |error: VolumeError| volume_error(py, &error, Some(&path.object));
        let mut builder = holdfast::Volume::builder().options(options).caller(who);
        if let Some(size) = size {
            builder = builder.size(size);
        }
        if let Some(label) = label {
            builder = builder.label(label).map_err(failed)?;
        }
        if let Some(seconds) = commit_every {
            let interval = Duration::try_from_secs_f64(seconds)
                .map_err(|error| PyValueError::new_err(format!("commit_every: {error}")))?;
            builder = builder.commit_every(interval);
        }
        let opening = Opening {
            create,
            read_only,
            builder,
        };
        let place = path.path();
        let volume = py.detach(|| opening.at(place)).map_err(failed)?;
        let device = device_number(&volume.info().uuid);
        let fs = volume.file_system().clone();
        let open = Arc::new(Open::new(fs, Some(volume), address, device));
        Ok(Self { open })
    }

    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.open.close(py)
    }

    #[getter]
    fn closed(&self) -> bool {
        self.open.is_closed()
    }

    /// Does it belong to the parent of this process?
    #[getter]
    fn forked(&self) -> bool {
        self.open.is_foreign()
    }

    fn sync(&self, py: Python<'_>) -> PyResult<()> {
        let fs = self.open.fs(py)?;
        py.detach(move || fs.sync())
            .map_err(|error| os_error(py, &error, None, None))
    }

    #[pyo3(signature = (path, *, follow_symlinks=true))]
    fn stat<'py>(
        &self,
        py: Python<'py>,
        path: PathArg<'py>,
        follow_symlinks: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let metadata = self.run(py, &path, |fs, path| attributes(fs, path, follow_symlinks))?;
        stat_result(py, &metadata, self.open.device)
    }

    fn lstat<'py>(&self, py: Python<'py>, path: PathArg<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.stat(py, path, false)
    }

    /// Nanoseconds since 1970 at which the file was made.
    fn birthtime_ns(&self, py: Python<'_>, path: PathArg<'_>) -> PyResult<i128> {
        let metadata = self.run(py, &path, |fs, path| fs.metadata(path))?;
        let time = metadata.attr().btime;
        Ok(nanoseconds((time.secs(), time.subsec_nanos().into())))
    }

    /// The mode of what a path leads to, or 0 if it leads to nothing.
    #[pyo3(signature = (path, *, follow_symlinks=true))]
    fn mode(&self, py: Python<'_>, path: PathArg<'_>, follow_symlinks: bool) -> PyResult<u32> {
        let (fs, place) = (self.open.fs(py)?, path.path());
        let found = py.detach(move || attributes(&fs, place, follow_symlinks));
        Ok(found.map_or(0, |metadata| metadata.mode()))
    }

    fn access(&self, py: Python<'_>, path: PathArg<'_>, mode: u8) -> PyResult<bool> {
        let want = Access::from_bits(mode)
            .ok_or_else(|| PyValueError::new_err("mode: a sum of os.R_OK, os.W_OK, os.X_OK"))?;
        let (fs, place) = (self.open.fs(py)?, path.path());
        Ok(py.detach(move || fs.access(place, want)).is_ok())
    }

    #[pyo3(signature = (path=None))]
    fn scandir(&self, py: Python<'_>, path: Option<PathArg<'_>>) -> PyResult<Scan> {
        let path = root_if_none(py, path)?;
        let listing = self.run(py, &path, |fs, path| fs.read_dir(path))?;
        let open = Arc::clone(&self.open);
        Ok(Scan::new(open, listing, path.bytes().into(), path.is_bytes))
    }

    #[pyo3(signature = (path=None))]
    fn listdir<'py>(
        &self,
        py: Python<'py>,
        path: Option<PathArg<'py>>,
    ) -> PyResult<Bound<'py, PyList>> {
        let path = root_if_none(py, path)?;
        let names = self.run(py, &path, |fs, path| {
            fs.read_dir(path)?
                .map(|entry| Ok(entry?.file_name()))
                .collect::<io::Result<Vec<_>>>()
        })?;
        let list = PyList::empty(py);
        for name in names {
            list.append(path::to_python(py, name.as_encoded_bytes(), path.is_bytes)?)?;
        }
        Ok(list)
    }

    #[pyo3(signature = (path, mode=0o777))]
    fn mkdir(&self, py: Python<'_>, path: PathArg<'_>, mode: u32) -> PyResult<()> {
        self.run(py, &path, |fs, path| {
            fs.create_dir_with(path, DirBuilder::new().mode(mode))
        })
    }

    #[pyo3(signature = (path, mode=0o777, exist_ok=false))]
    fn makedirs(
        &self,
        py: Python<'_>,
        path: PathArg<'_>,
        mode: u32,
        exist_ok: bool,
    ) -> PyResult<()> {
        self.run(py, &path, |fs, path| {
            if !exist_ok {
                if let Some(above) = path.parent().filter(|above| *above != Path::new("")) {
                    fs.create_dir_all(above)?;
                }
                return fs.create_dir_with(path, DirBuilder::new().mode(mode));
            }
            fs.create_dir_with(path, DirBuilder::new().recursive(true).mode(mode))
        })
    }

    fn rename(&self, py: Python<'_>, src: PathArg<'_>, dst: PathArg<'_>) -> PyResult<()> {
        self.run_two(py, &src, &dst, |fs, from, to| fs.rename(from, to))
    }

    fn replace(&self, py: Python<'_>, src: PathArg<'_>, dst: PathArg<'_>) -> PyResult<()> {
        self.rename(py, src, dst)
    }

    fn link(&self, py: Python<'_>, src: PathArg<'_>, dst: PathArg<'_>) -> PyResult<()> {
        self.run_two(py, &src, &dst, |fs, from, to| fs.hard_link(from, to))
    }

    fn symlink(&self, py: Python<'_>, src: PathArg<'_>, dst: PathArg<'_>) -> PyResult<()> {
        self.run_two(py, &src, &dst, |fs, target, link| fs.symlink(target, link))
    }

    /// Copies content and mode of a file; on a volume both share their blocks where possible.
    fn copyfile(&self, py: Python<'_>, src: PathArg<'_>, dst: PathArg<'_>) -> PyResult<u64> {
        self.run_two(py, &src, &dst, |fs, from, to| fs.copy(from, to))
    }

    fn readlink<'py>(&self, py: Python<'py>, path: PathArg<'py>) -> PyResult<Bound<'py, PyAny>> {
        let target = self.run(py, &path, |fs, path| fs.read_link(path))?;
        path::to_python(py, target.as_os_str().as_encoded_bytes(), path.is_bytes)
    }

    fn unlink(&self, py: Python<'_>, path: PathArg<'_>) -> PyResult<()> {
        self.run(py, &path, |fs, path| fs.remove_file(path))
    }

    fn remove(&self, py: Python<'_>, path: PathArg<'_>) -> PyResult<()> {
        self.unlink(py, path)
    }

    fn rmdir(&self, py: Python<'_>, path: PathArg<'_>) -> PyResult<()> {
        self.run(py, &path, |fs, path| fs.remove_dir(path))
    }

    /// Removes a name and all below it; returns the number of names.
    #[pyo3(signature = (path, *, ignore_errors=false, progress=None))]
    fn remove_tree<'py>(
        &self,
        py: Python<'py>,
        path: PathArg<'py>,
        ignore_errors: bool,
        progress: Option<Bound<'py, PyAny>>,
    ) -> PyResult<u64> {
        remove::remove_tree(py, &self.open, &path, ignore_errors, progress.as_ref())
    }

    #[pyo3(signature = (path, mode=0o666))]
    fn mkfifo(&self, py: Python<'_>, path: PathArg<'_>, mode: u32) -> PyResult<()> {
        self.run(py, &path, |fs, path| fs.mkfifo(path, mode))
    }

    fn chmod(&self, py: Python<'_>, path: PathArg<'_>, mode: u32) -> PyResult<()> {
        let permissions = Permissions::from_mode(mode);
        self.run(py, &path, |fs, path| fs.set_permissions(path, permissions))
    }

    /// Changes owner and group; -1 leaves one as it is.
    #[pyo3(signature = (path, uid, gid, *, follow_symlinks=true))]
    fn chown(
        &self,
        py: Python<'_>,
        path: PathArg<'_>,
        uid: i64,
        gid: i64,
        follow_symlinks: bool,
    ) -> PyResult<()> {
        let (uid, gid) = (identity(uid)?, identity(gid)?);
        self.run(py, &path, |fs, path| match follow_symlinks {
            true => fs.chown(path, uid, gid),
            false => fs.lchown(path, uid, gid),
        })
    }

    #[pyo3(signature = (path, times=None, *, ns=None, follow_symlinks=true))]
    fn utime(
        &self,
        py: Python<'_>,
        path: PathArg<'_>,
        times: Option<(f64, f64)>,
        ns: Option<(i64, i64)>,
        follow_symlinks: bool,
    ) -> PyResult<()> {
        let times = match (times, ns) {
            (None, None) => FileTimes::now(),
            (Some((accessed, modified)), None) => FileTimes::new()
                .set_accessed(from_seconds(accessed)?)
                .set_modified(from_seconds(modified)?),
            (None, Some((accessed, modified))) => FileTimes::new()
                .set_accessed(from_nanoseconds(accessed))
                .set_modified(from_nanoseconds(modified)),
            (Some(_), Some(_)) => {
                let text = "utime: specify either times or ns, not both";
                return Err(PyValueError::new_err(text));
            }
        };
        self.run(py, &path, |fs, path| match follow_symlinks {
            true => fs.set_times(path, times),
            false => fs.set_times_nofollow(path, times),
        })
    }

    fn truncate(&self, py: Python<'_>, path: PathArg<'_>, length: u64) -> PyResult<()> {
        self.run(py, &path, |fs, path| {
            fs.open_with(path, OpenOptions::new().write(true))?
                .set_len(length)
        })
    }

    fn getxattr<'py>(
        &self,
        py: Python<'py>,
        path: PathArg<'py>,
        attribute: PathArg<'py>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let name = attribute.path();
        let value = self.run(py, &path, |fs, path| {
            let value = fs.get_xattr(path, name)?;
            value.ok_or_else(|| Errno::ENODATA.into())
        })?;
        Ok(PyBytes::new(py, &value))
    }

    #[pyo3(signature = (path, attribute, value, flags=0))]
    fn setxattr(
        &self,
        py: Python<'_>,
        path: PathArg<'_>,
        attribute: PathArg<'_>,
        value: &Bound<'_, PyAny>,
        flags: u8,
    ) -> PyResult<()> {
        let how = match flags {
            0 => XattrSet::Any,
            1 => XattrSet::Create,
            2 => XattrSet::Replace,
            _ => {
                let text = "flags: 0, os.XATTR_CREATE or os.XATTR_REPLACE";
                return Err(PyValueError::new_err(text));
            }
        };
        let value = Memory::of(value)?;
        let (name, value) = (attribute.path(), value.bytes());
        self.run(py, &path, |fs, path| fs.set_xattr(path, name, value, how))
    }

    fn listxattr<'py>(&self, py: Python<'py>, path: PathArg<'py>) -> PyResult<Bound<'py, PyList>> {
        let names = self.run(py, &path, |fs, path| fs.list_xattr(path))?;
        let list = PyList::empty(py);
        for name in names {
            list.append(path::to_python(py, name.as_encoded_bytes(), false)?)?;
        }
        Ok(list)
    }

    fn removexattr(
        &self,
        py: Python<'_>,
        path: PathArg<'_>,
        attribute: PathArg<'_>,
    ) -> PyResult<()> {
        let name = attribute.path();
        self.run(py, &path, |fs, path| fs.remove_xattr(path, name))
    }

    fn statvfs<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        static CLASS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        let fs = self.open.fs(py)?;
        let space = py
            .detach(move || fs.space())
            .map_err(|error| os_error(py, &error, None, None))?;
        let block = u64::from(space.block_size);
        let fields = [
            block,
            block,
            space.blocks,
            space.blocks_free,
            space.blocks_available,
            space.files,
            space.files_free,
            space.files_free,
            0,
            space.name_max.into(),
        ];
        let class = CLASS.import(py, "os", "statvfs_result")?;
        class.call1((PyTuple::new(py, fields)?,))
    }

    /// Opens a file without buffers.
    #[pyo3(signature = (path, *, read=false, write=false, append=false, truncate=false,
                        create=false, exclusive=false, mode=0o666, flags=0))]
    #[expect(clippy::too_many_arguments, reason = "keywords of Python")]
    fn open_handle(
        &self,
        py: Python<'_>,
        path: PathArg<'_>,
        read: bool,
        write: bool,
        append: bool,
        truncate: bool,
        create: bool,
        exclusive: bool,
        mode: u32,
        flags: i32,
    ) -> PyResult<FileHandle> {
        let mut options = OpenOptions::new();
        options.read(read).write(write).append(append);
        options.truncate(truncate).create(create);
        options.create_new(exclusive).mode(mode);
        options.custom_flags(flags);
        let file = self.run(py, &path, |fs, path| fs.open_with(path, &options))?;
        Ok(FileHandle::new(Arc::clone(&self.open), file))
    }

    /// What is known of the volume; `None` for a file system in memory.
    fn info<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let Some(info) = self.open.with_volume(py, |volume| Ok(volume.info()))? else {
            return Ok(None);
        };
        let dict = PyDict::new(py);
        dict.set_item("uuid", info.uuid)?;
        dict.set_item("label", info.label)?;
        dict.set_item("size", info.size)?;
        dict.set_item("capacity", info.capacity)?;
        dict.set_item("free", info.free)?;
        dict.set_item("inodes", info.inodes)?;
        Ok(Some(dict))
    }

    /// Grows the volume to so many bytes; returns its size.
    fn grow(&self, py: Python<'_>, size: u64) -> PyResult<u64> {
        let grown = self.open.with_volume(py, |volume| volume.grow(size))?;
        grown.ok_or_else(|| PyValueError::new_err("a file system in memory does not grow"))
    }

    #[pyo3(signature = (paths, *, errors="raise", threads=None, progress=None))]
    fn read_many<'py>(
        &self,
        paths: &Bound<'py, PyAny>,
        errors: &str,
        threads: Option<usize>,
        progress: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyList>> {
        let how = many::How::new(errors, threads, progress)?;
        many::read::read_many(&self.open, paths, &how)
    }

    #[pyo3(signature = (ranges, *, errors="raise", threads=None, progress=None))]
    fn read_ranges<'py>(
        &self,
        ranges: &Bound<'py, PyAny>,
        errors: &str,
        threads: Option<usize>,
        progress: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyList>> {
        let how = many::How::new(errors, threads, progress)?;
        many::read::read_ranges(&self.open, ranges, &how)
    }

    #[pyo3(signature = (items, *, makedirs=false, threads=None, progress=None))]
    fn write_many(
        &self,
        items: &Bound<'_, PyAny>,
        makedirs: bool,
        threads: Option<usize>,
        progress: Option<Bound<'_, PyAny>>,
    ) -> PyResult<u64> {
        let how = many::How::new("raise", threads, progress)?;
        many::write::write_many(&self.open, items, makedirs, &how)
    }

    #[pyo3(signature = (paths, *, follow_symlinks=true, errors="raise", threads=None,
                        progress=None))]
    fn stat_many<'py>(
        &self,
        paths: &Bound<'py, PyAny>,
        follow_symlinks: bool,
        errors: &str,
        threads: Option<usize>,
        progress: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyList>> {
        let how = many::How::new(errors, threads, progress)?;
        many::stat::stat_many(&self.open, paths, follow_symlinks, &how)
    }

    /// All entries below a directory, each directory before what it holds.
    #[pyo3(signature = (top=None, *, maxdepth=None, progress=None))]
    fn find<'py>(
        &self,
        py: Python<'py>,
        top: Option<PathArg<'py>>,
        maxdepth: Option<usize>,
        progress: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Vec<DirEntry>> {
        let top = root_if_none(py, top)?;
        tree::find(py, &self.open, &top, maxdepth, progress.as_ref())
    }

    /// All entries below a directory as columns.
    #[pyo3(signature = (top=None, *, maxdepth=None, paths="str", progress=None))]
    fn walk_columns<'py>(
        &self,
        py: Python<'py>,
        top: Option<PathArg<'py>>,
        maxdepth: Option<usize>,
        paths: &str,
        progress: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Columns> {
        let top = root_if_none(py, top)?;
        tree::columns(py, &self.open, &top, maxdepth, paths, progress.as_ref())
    }

    /// All inodes in the order of their numbers, as columns; with a path each if that is asked for.
    #[pyo3(signature = (*, paths=None, progress=None))]
    fn bulkstat(
        &self,
        py: Python<'_>,
        paths: Option<&str>,
        progress: Option<Bound<'_, PyAny>>,
    ) -> PyResult<Columns> {
        crate::bulkstat::bulkstat(py, &self.open, paths, progress.as_ref())
    }
}

impl Volume {
    /// Calls `work` without the interpreter; an error names the path.
    fn run<R: Send>(
        &self,
        py: Python<'_>,
        path: &PathArg<'_>,
        work: impl FnOnce(&FileSystem, &Path) -> io::Result<R> + Send,
    ) -> PyResult<R> {
        let (fs, place) = (self.open.fs(py)?, path.path());
        py.detach(move || work(&fs, place))
            .map_err(|error| os_error(py, &error, Some(&path.object), None))
    }

    /// As [`Volume::run`], for two paths.
    fn run_two<R: Send>(
        &self,
        py: Python<'_>,
        from: &PathArg<'_>,
        to: &PathArg<'_>,
        work: impl FnOnce(&FileSystem, &Path, &Path) -> io::Result<R> + Send,
    ) -> PyResult<R> {
        let (fs, source, target) = (self.open.fs(py)?, from.path(), to.path());
        py.detach(move || work(&fs, source, target))
            .map_err(|error| os_error(py, &error, Some(&from.object), Some(&to.object)))
    }
}

/// The attributes of what a path leads to.
pub(crate) fn attributes(fs: &FileSystem, path: &Path, follow: bool) -> io::Result<Metadata> {
    match follow {
        true => fs.metadata(path),
        false => fs.symlink_metadata(path),
    }
}

/// The root for a path that was left out.
fn root_if_none<'py>(py: Python<'py>, path: Option<PathArg<'py>>) -> PyResult<PathArg<'py>> {
    match path {
        Some(path) => Ok(path),
        None => path::to_python(py, b"/", false)?.extract(),
    }
}

/// A user or group for chown; -1 is none.
fn identity(id: i64) -> PyResult<Option<u32>> {
    match id {
        -1 => Ok(None),
        _ => u32::try_from(id)
            .map(Some)
            .map_err(|_| PyValueError::new_err(format!("{id} is no user or group"))),
    }
}

fn from_seconds(seconds: f64) -> PyResult<SystemTime> {
    // Rounded towards the past, as Python does.
    let nanos = (seconds * 1e9).floor();
    if !nanos.is_finite() || nanos.abs() >= i64::MAX as f64 {
        return Err(PyValueError::new_err(format!("{seconds} is no time")));
    }
    Ok(from_nanoseconds(nanos as i64))
}

fn from_nanoseconds(nanos: i64) -> SystemTime {
    let distance = Duration::from_nanos(nanos.unsigned_abs());
    match nanos < 0 {
        true => UNIX_EPOCH - distance,
        false => UNIX_EPOCH + distance,
    }
}

/// The first half of a volume's identity, as `st_dev` shows it.
fn device_number(uuid: &str) -> u64 {
    let digits: String = uuid
        .chars()
        .filter(char::is_ascii_hexdigit)
        .take(16)
        .collect();
    u64::from_str_radix(&digits, 16).unwrap_or_default()
}
