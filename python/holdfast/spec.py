"""Holdfast for fsspec: the file system `holdfast`.

    fsspec.open("holdfast:///path/in/it?volume=data.hf")   a volume, opened in this process
    fsspec.open("holdfast://mem/path")                     memory, one for the process
    fsspec.open("holdfast://%2Fmnt%2Fdata/path")           the volume mounted at /mnt/data
    fsspec.open("holdfast:///path?mount=/mnt/data")        the same

The query may have `read_only=1`, `create=1` and `superuser=1` as well. Without volume and mount it
is memory.
"""

from __future__ import annotations

import copy
import errno
import os
import re
import stat
import uuid
import weakref
from datetime import datetime, timezone
from typing import IO, Any
from urllib.parse import parse_qsl, quote, unquote

from fsspec.spec import AbstractFileSystem  # type: ignore[import-untyped]

from holdfast._mount import Mount
from holdfast._volume import Volume, memory

__all__ = ["HoldfastFileSystem"]

_SCHEME = "holdfast://"
_MEMORY = "mem"
_SWITCHES = ("read_only", "create", "superuser")
# Only a query of these keys is one: a name may have a question mark.
_QUERY = re.compile(r"\?(?=(?:volume|mount|read_only|create|superuser)=)[^?]*$")

# Volumes that are open for a file system of fsspec, by path and kind: file systems that differ in
# other options share them.
_volumes: weakref.WeakValueDictionary[tuple[str, bool, bool], Volume] = (
    weakref.WeakValueDictionary()
)
_memories: list[Volume] = []


class HoldfastFileSystem(AbstractFileSystem):  # type: ignore[misc]
    """A volume, a mounted volume, or memory.

    volume      the path of an image file or block device, or an open `holdfast.Volume`
    mount       a mount point, or a `holdfast.Mount`
    read_only   many processes may have the volume open so
    create      make the image file if there is none
    superuser   act on files of any owner
    auto_mkdir  make missing parents of what is written
    """

    protocol = "holdfast"
    root_marker = "/"
    cachable = True

    def __init__(
        self,
        volume: str | os.PathLike[str] | Volume | None = None,
        mount: str | os.PathLike[str] | Mount | None = None,
        read_only: bool = False,
        create: bool = False,
        superuser: bool = False,
        auto_mkdir: bool = True,
        **storage_options: Any,
    ) -> None:
        super().__init__(**storage_options)
        if volume is not None and mount is not None:
            raise ValueError("volume and mount exclude each other")
        self.auto_mkdir = auto_mkdir
        self._inside: Any
        if mount is not None:
            self._inside = mount if isinstance(mount, Mount) else Mount(mount)
        elif isinstance(volume, Volume):
            self._inside = volume
        elif volume is not None:
            self._inside = _opened(os.fspath(volume), read_only, create, superuser)
        else:
            self._inside = _memory()

    @property
    def inside(self) -> Any:
        """The `Volume` or `Mount` below. A read-only volume is opened anew after a fork."""
        if self._inside.forked and self._inside.read_only:
            self._inside = copy.copy(self._inside)
        return self._inside

    @property
    def fsid(self) -> str:
        return f"holdfast_{self._inside.path or _MEMORY}"

    def __reduce__(self) -> Any:
        if self._inside.path is None:
            raise TypeError(
                "cannot pickle a file system in memory, which belongs to its process; "
                "give it a volume"
            )
        return super().__reduce__()

    @classmethod
    def _strip_protocol(cls, path: Any) -> Any:
        if isinstance(path, list):
            return [cls._strip_protocol(one) for one in path]
        path = os.fspath(path)
        if path.startswith(_SCHEME):
            path = _QUERY.sub("", path[len(_SCHEME) :])
            # What is before the first slash says where, not what.
            _, slash, path = path.partition("/")
            path = slash + path
        return "/" + path.strip("/")

    @staticmethod
    def _get_kwargs_from_urls(path: str) -> dict[str, Any]:
        if not path.startswith(_SCHEME):
            return {}
        found: dict[str, Any] = {}
        query = _QUERY.search(path)
        if query:
            for key, value in parse_qsl(query.group()[1:], keep_blank_values=True):
                if key in _SWITCHES:
                    found[key] = value.lower() in ("1", "true", "yes")
                elif key in ("volume", "mount"):
                    found[key] = value
                else:
                    raise ValueError(f"{path}: no option is called {key!r}")
            path = path[: query.start()]
        place = unquote(path[len(_SCHEME) :].partition("/")[0])
        if place.startswith("/"):
            found["mount"] = place
        elif place not in ("", _MEMORY):
            raise ValueError(
                f"{path}: {place!r} is neither {_MEMORY!r} nor a mount point; "
                f"write {_SCHEME}/{place}/... for a path, or the mount point with %2F for each slash"
            )
        return found

    def unstrip_protocol(self, name: str) -> str:
        path = self._strip_protocol(name)
        where = self._inside.path
        if where is None:
            return f"{_SCHEME}{_MEMORY}{path}"
        if isinstance(self._inside, Mount):
            return f"{_SCHEME}{quote(where, safe='')}{path}"
        switch = "&read_only=1" if self._inside.read_only else ""
        return f"{_SCHEME}{path}?volume={quote(where)}{switch}"

    def _info(self, path: str, found: os.stat_result) -> dict[str, Any]:
        info = {
            "name": path,
            "size": found.st_size,
            "type": _kind(found.st_mode),
            "created": found.st_ctime,
            "islink": False,
            "mode": found.st_mode,
            "uid": found.st_uid,
            "gid": found.st_gid,
            "mtime": found.st_mtime,
            "ino": found.st_ino,
            "nlink": found.st_nlink,
        }
        if stat.S_ISLNK(found.st_mode):
            info["islink"] = True
            info["destination"] = self.inside.readlink(path)
            try:
                target = self.inside.stat(path)
                info["size"], info["type"] = target.st_size, _kind(target.st_mode)
            except OSError:
                info["size"] = 0
        return info

    def info(self, path: str, **kwargs: Any) -> dict[str, Any]:
        path = self._strip_protocol(path)
        return self._info(path, self.inside.lstat(path))

    def exists(self, path: str, **kwargs: Any) -> bool:
        return bool(self.inside.exists(self._strip_protocol(path)))

    def lexists(self, path: str, **kwargs: Any) -> bool:
        return bool(self.inside.exists(self._strip_protocol(path), follow_symlinks=False))

    def isfile(self, path: str) -> bool:
        return bool(self.inside.isfile(self._strip_protocol(path)))

    def isdir(self, path: str) -> bool:
        return bool(self.inside.isdir(self._strip_protocol(path)))

    def islink(self, path: str) -> bool:
        return bool(self.inside.islink(self._strip_protocol(path)))

    def _below(self, path: str, maxdepth: int | None) -> list[tuple[str, os.stat_result]]:
        found = self.inside.find(path, maxdepth=maxdepth)
        return [(entry.path, entry.stat(follow_symlinks=False)) for entry in found]

    def ls(self, path: str, detail: bool = True, **kwargs: Any) -> list[Any]:
        path = self._strip_protocol(path)
        if not self.isdir(path):
            infos = [self.info(path)]
        else:
            infos = [self._info(name, found) for name, found in self._below(path, 1)]
        return infos if detail else [info["name"] for info in infos]

    def find(
        self,
        path: str,
        maxdepth: int | None = None,
        withdirs: bool = False,
        detail: bool = False,
        **kwargs: Any,
    ) -> Any:
        if maxdepth is not None and maxdepth < 1:
            raise ValueError("maxdepth must be at least 1")
        path = self._strip_protocol(path)
        out = {}
        if self.isdir(path):
            if withdirs:
                out[path] = self.info(path)
            for name, found in self._below(path, maxdepth):
                if withdirs or not stat.S_ISDIR(found.st_mode):
                    out[name] = self._info(name, found)
        elif self.exists(path):
            out[path] = self.info(path)
        out = dict(sorted(out.items()))
        return out if detail else list(out)

    def du(
        self,
        path: str,
        total: bool = True,
        maxdepth: int | None = None,
        withdirs: bool = False,
        **kwargs: Any,
    ) -> Any:
        found = self.find(path, maxdepth, withdirs, detail=True)
        sizes = {name: info["size"] for name, info in found.items()}
        return sum(sizes.values()) if total else sizes

    def mkdir(self, path: str, create_parents: bool = True, **kwargs: Any) -> None:
        path = self._strip_protocol(path)
        if create_parents:
            self.inside.makedirs(path)
        else:
            self.inside.mkdir(path)

    def makedirs(self, path: str, exist_ok: bool = False) -> None:
        self.inside.makedirs(self._strip_protocol(path), exist_ok=exist_ok)

    def rmdir(self, path: str) -> None:
        self.inside.rmdir(self._strip_protocol(path))

    def rm_file(self, path: str) -> None:
        self.inside.unlink(self._strip_protocol(path))

    _rm = rm_file

    def rm(self, path: Any, recursive: bool = False, maxdepth: int | None = None) -> None:
        for one in path if isinstance(path, list) else [path]:
            one = self._strip_protocol(one)
            if not self.isdir(one) or self.islink(one):
                self.rm_file(one)
            elif not recursive:
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), one)
            elif maxdepth is not None:
                super().rm(one, recursive=True, maxdepth=maxdepth)
            elif one == "/":
                for below in self.ls("/", detail=False):
                    self.rm(below, recursive=True)
            else:
                self.inside.rmtree(one)

    def _make_parent(self, path: str) -> None:
        if self.auto_mkdir:
            self.inside.makedirs(self._parent(path), exist_ok=True)

    def cp_file(self, path1: str, path2: str, **kwargs: Any) -> None:
        path1, path2 = self._strip_protocol(path1), self._strip_protocol(path2)
        if self.isdir(path1):
            self.inside.makedirs(path2, exist_ok=True)
        else:
            self._make_parent(path2)
            self.inside.copyfile(path1, path2)

    def mv(
        self,
        path1: str,
        path2: str,
        recursive: bool = True,
        maxdepth: int | None = None,
        **kwargs: Any,
    ) -> None:
        """Renames; into `path2` if that is a directory."""
        path1, path2 = self._strip_protocol(path1), self._strip_protocol(path2)
        if path1 == path2:
            return
        if self.isdir(path2):
            path2 = path2.rstrip("/") + "/" + path1.rpartition("/")[2]
        self.inside.rename(path1, path2)

    def link(self, src: str, dst: str, **kwargs: Any) -> None:
        self.inside.link(self._strip_protocol(src), self._strip_protocol(dst))

    def symlink(self, src: str, dst: str, **kwargs: Any) -> None:
        self.inside.symlink(self._strip_protocol(src), self._strip_protocol(dst))

    def chmod(self, path: str, mode: int) -> None:
        self.inside.chmod(self._strip_protocol(path), mode)

    def touch(self, path: str, truncate: bool = True, **kwargs: Any) -> None:
        path = self._strip_protocol(path)
        self._make_parent(path)
        self.inside.open(path, "wb" if truncate else "ab").close()
        self.inside.utime(path)

    def created(self, path: str) -> datetime:
        nanoseconds = self.inside.birthtime_ns(self._strip_protocol(path))
        return datetime.fromtimestamp(nanoseconds / 1e9, tz=timezone.utc)

    def modified(self, path: str) -> datetime:
        found = self.inside.stat(self._strip_protocol(path))
        return datetime.fromtimestamp(found.st_mtime, tz=timezone.utc)

    def cat_file(
        self, path: str, start: int | None = None, end: int | None = None, **kwargs: Any
    ) -> bytes:
        content: bytes = self.inside.read_ranges([(self._strip_protocol(path), start, end)])[0]
        return content

    def cat(
        self, path: Any, recursive: bool = False, on_error: str = "raise", **kwargs: Any
    ) -> Any:
        paths = self.expand_path(path, recursive=recursive)
        if len(paths) == 1 and not isinstance(path, list) and paths[0] == self._strip_protocol(path):
            return self.cat_file(paths[0], **kwargs)
        if recursive:
            paths = [one for one in paths if not self.isdir(one)]
        errors = "raise" if on_error == "raise" else "return"
        part = (kwargs.get("start"), kwargs.get("end"))
        contents = self.inside.read_ranges([(one, *part) for one in paths], errors=errors)
        return {
            one: content
            for one, content in zip(paths, contents)
            if on_error != "omit" or not isinstance(content, OSError)
        }

    def cat_ranges(
        self,
        paths: list[str],
        starts: Any,
        ends: Any,
        max_gap: int | None = None,
        on_error: str = "return",
        **kwargs: Any,
    ) -> list[Any]:
        if not isinstance(paths, list):
            raise TypeError("paths: a list")
        starts = starts if isinstance(starts, list) else [starts] * len(paths)
        ends = ends if isinstance(ends, list) else [ends] * len(paths)
        if not len(paths) == len(starts) == len(ends):
            raise ValueError("paths, starts and ends have different lengths")
        ranges = zip(map(self._strip_protocol, paths), starts, ends)
        errors = "raise" if on_error == "raise" else "return"
        contents: list[Any] = self.inside.read_ranges(list(ranges), errors=errors)
        return contents

    def pipe_file(self, path: str, value: Any, mode: str = "overwrite", **kwargs: Any) -> None:
        if mode != "create" and not self._intrans:
            self.inside.write_many([(self._strip_protocol(path), value)], makedirs=self.auto_mkdir)
            return
        with self.open(path, "xb" if mode == "create" else "wb") as file:
            file.write(value)

    def pipe(self, path: Any, value: Any = None, **kwargs: Any) -> None:
        if isinstance(path, dict) and not kwargs and not self._intrans:
            items = [(self._strip_protocol(name), content) for name, content in path.items()]
            self.inside.write_many(items, makedirs=self.auto_mkdir)
        else:
            super().pipe(path, value, **kwargs)

    def _open(
        self,
        path: str,
        mode: str = "rb",
        block_size: Any = None,
        autocommit: bool = True,
        cache_options: Any = None,
        **kwargs: Any,
    ) -> Any:
        writes = mode.rstrip("b+t") != "r"
        if writes:
            self._make_parent(path)
        if writes and not autocommit:
            return _Draft(self.inside, path, mode)
        return self.inside.open(path, mode)


class _Draft:
    """A file of a transaction: it has another name until the transaction ends."""

    def __init__(self, inside: Any, path: str, mode: str) -> None:
        self._inside = inside
        self.path = path
        directory, _, name = path.rpartition("/")
        self._draft = f"{directory}/.{name[:200]}.{uuid.uuid4().hex}"
        if "x" in mode and inside.exists(path, follow_symlinks=False):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)
        if "a" in mode and inside.exists(path):
            inside.copyfile(path, self._draft)
        self._exclusive = "x" in mode
        self._file: IO[Any] = inside.open(self._draft, mode)

    def commit(self) -> None:
        """Gives the file its name."""
        self._file.close()
        if self._exclusive:
            self._inside.link(self._draft, self.path)
            self._inside.unlink(self._draft)
        else:
            self._inside.rename(self._draft, self.path)

    def discard(self) -> None:
        """Removes what was written."""
        self._file.close()
        self._inside.unlink(self._draft)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def __iter__(self) -> Any:
        return iter(self._file)

    def __enter__(self) -> _Draft:
        return self

    def __exit__(self, *_error: object) -> None:
        self._file.close()


def _kind(mode: int) -> str:
    if stat.S_ISDIR(mode):
        return "directory"
    if stat.S_ISREG(mode):
        return "file"
    return "link" if stat.S_ISLNK(mode) else "other"


def _opened(path: str, read_only: bool, create: bool, superuser: bool) -> Volume:
    key = (os.path.realpath(path), read_only, superuser)
    volume = _volumes.get(key)
    if volume is None or volume.closed or volume.forked:
        volume = Volume(path, read_only=read_only, create=create, superuser=superuser)
        _volumes[key] = volume
    return volume


def _memory() -> Volume:
    """The file system in memory of this process."""
    if not _memories or _memories[0].closed or _memories[0].forked:
        _memories[:] = [memory()]
    return _memories[0]
