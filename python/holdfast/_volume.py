"""Volumes: file systems in this process."""

from __future__ import annotations

import atexit
import errno
import io
import os
import stat
import weakref
from collections.abc import Callable
from typing import (
    IO,
    TYPE_CHECKING,
    Any,
    BinaryIO,
    Generic,
    Literal,
    TypeAlias,
    TypeVar,
    overload,
)

from holdfast import _holdfast
from holdfast._file import File

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType

    from _typeshed import ReadableBuffer

__all__ = ["Volume", "Walk", "memory"]

StrPath: TypeAlias = str | os.PathLike[str]
BytesPath: TypeAlias = bytes | os.PathLike[bytes]
AnyPath: TypeAlias = StrPath | BytesPath
Progress: TypeAlias = Callable[[int], object]

_Name = TypeVar("_Name", str, bytes)


class Volume(_holdfast.Volume):
    """A file system on an image file or a block device, opened in this process.

    Methods are named and behave as the functions of `os`. There is no current directory: a
    relative path starts at the root. Errors are `OSError` with number and file name. What is
    written is durable after `sync` or `close`, else a few seconds later.

    path          the image file or block device
    create        make the image file if there is none
    read_only     many processes can open it so at the same time; without it one can
    size          bytes of a new image file, which is sparse; by default the free space beside it
    label         the name of a new volume
    commit_every  seconds until changes are durable without a sync; 5 by default
    memory        bytes that the caches of this process may take; see `memory_usage`
    superuser     act with all capabilities, as root does, on files of any owner

    Files belong to the user of this process, and its permissions count. A volume pickles as its
    path, and opens anew where it is unpickled. After `os.fork` the child's copy raises `ForkError`.
    """

    path: str | None
    read_only: bool

    def __init__(
        self,
        path: AnyPath | None,
        *,
        create: bool = False,
        read_only: bool = False,
        size: int | None = None,
        inodes: int | None = None,
        label: str | None = None,
        commit_every: float | None = None,
        memory: int | None = None,
        superuser: bool = False,
    ) -> None:
        self.path = None if path is None else os.path.abspath(os.fsdecode(path))
        self.read_only = read_only
        self._options = {
            "read_only": read_only,
            "commit_every": commit_every,
            "memory": memory,
            "superuser": superuser,
        }
        _volumes.add(self)

    # Without buffers it is another class, which an integer of any value cannot tell.
    @overload
    def open(  # type: ignore[overload-overlap]
        self,
        path: AnyPath,
        mode: Literal["rb", "wb", "xb", "ab", "r+b", "rb+", "w+b", "wb+", "a+b", "ab+"],
        buffering: Literal[0],
        encoding: None = None,
        errors: None = None,
        newline: None = None,
        *,
        perm: int = ...,
        flags: int = ...,
    ) -> File: ...

    @overload
    def open(
        self,
        path: AnyPath,
        mode: Literal["rb", "wb", "xb", "ab", "r+b", "rb+", "w+b", "wb+", "a+b", "ab+"],
        buffering: int = -1,
        encoding: None = None,
        errors: None = None,
        newline: None = None,
        *,
        perm: int = ...,
        flags: int = ...,
    ) -> BinaryIO: ...

    @overload
    def open(
        self,
        path: AnyPath,
        mode: Literal["r", "w", "x", "a", "r+", "w+", "x+", "a+", "rt", "wt"] = "r",
        buffering: int = -1,
        encoding: str | None = None,
        errors: str | None = None,
        newline: str | None = None,
        *,
        perm: int = ...,
        flags: int = ...,
    ) -> io.TextIOWrapper: ...

    @overload
    def open(
        self,
        path: AnyPath,
        mode: str,
        buffering: int = -1,
        encoding: str | None = None,
        errors: str | None = None,
        newline: str | None = None,
        *,
        perm: int = ...,
        flags: int = ...,
    ) -> IO[Any]: ...

    def open(
        self,
        path: AnyPath,
        mode: str = "r",
        buffering: int = -1,
        encoding: str | None = None,
        errors: str | None = None,
        newline: str | None = None,
        *,
        perm: int = 0o666,
        flags: int = 0,
    ) -> IO[Any] | File:
        """Opens a file as the builtin `open` does: with buffers, and as text unless `mode` has "b".

        `perm` is the mode of a file that is made, before the umask. `flags` are further flags of
        open(2), such as `os.O_NOFOLLOW`.
        """
        binary = "b" in mode
        if binary and "t" in mode:
            raise ValueError("can't have text and binary mode at once")
        if binary and not (encoding is None and errors is None and newline is None):
            raise ValueError("binary mode doesn't take encoding, errors or newline")
        if buffering == 0 and not binary:
            raise ValueError("can't have unbuffered text I/O")
        raw = File(self, path, mode.replace("t", ""), perm, flags)
        if buffering == 0:
            return raw
        try:
            size = buffering if buffering > 1 else io.DEFAULT_BUFFER_SIZE
            buffered: io.BufferedRandom | io.BufferedReader | io.BufferedWriter
            if "+" in mode:
                buffered = io.BufferedRandom(raw, size)
            elif raw.readable():
                buffered = io.BufferedReader(raw, size)
            else:
                buffered = io.BufferedWriter(raw, size)
            if binary:
                return buffered
            text = io.TextIOWrapper(
                buffered, io.text_encoding(encoding), errors, newline, buffering == 1
            )
            text.mode = mode  # type: ignore[misc]
            return text
        except BaseException:
            raw.close()
            raise

    def read_bytes(self, path: AnyPath) -> bytes:
        """The whole content of a file."""
        return self.read_many([path])[0]

    def write_bytes(self, path: AnyPath, content: ReadableBuffer) -> int:
        """Makes or replaces a file; returns the bytes written."""
        return self.write_many([(path, content)])

    def read_text(
        self, path: AnyPath, encoding: str | None = None, errors: str | None = None
    ) -> str:
        """The whole content of a file as text."""
        with self.open(path, "r", -1, io.text_encoding(encoding), errors) as file:
            return file.read()

    def write_text(
        self,
        path: AnyPath,
        content: str,
        encoding: str | None = None,
        errors: str | None = None,
        newline: str | None = None,
    ) -> int:
        """Makes or replaces a file of text; returns the characters written."""
        with self.open(path, "w", -1, io.text_encoding(encoding), errors, newline) as file:
            return file.write(content)

    def exists(self, path: AnyPath, *, follow_symlinks: bool = True) -> bool:
        """Does the path lead to something?"""
        return self.mode(path, follow_symlinks=follow_symlinks) != 0

    def isfile(self, path: AnyPath) -> bool:
        """Does the path lead to a regular file?"""
        return stat.S_ISREG(self.mode(path))

    def isdir(self, path: AnyPath) -> bool:
        """Does the path lead to a directory?"""
        return stat.S_ISDIR(self.mode(path))

    def islink(self, path: AnyPath) -> bool:
        """Is it a symbolic link?"""
        return stat.S_ISLNK(self.mode(path, follow_symlinks=False))

    def getsize(self, path: AnyPath) -> int:
        """The length of a file in bytes."""
        return self.stat(path).st_size

    def touch(self, path: AnyPath, mode: int = 0o666, exist_ok: bool = True) -> None:
        """Makes an empty file, or sets the times of an existing one to now."""
        kind = "x" if not exist_ok else "a"
        File(self, path, kind, mode).close()
        if exist_ok:
            self.utime(path)

    def rmtree(
        self, path: AnyPath, ignore_errors: bool = False, *, progress: Progress | None = None
    ) -> None:
        """Removes a directory with all below it, as `shutil.rmtree`."""
        if self.exists(path, follow_symlinks=False) and not stat.S_ISDIR(
            self.mode(path, follow_symlinks=False)
        ):
            if ignore_errors:
                return
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), os.fspath(path))
        self.remove_tree(path, ignore_errors=ignore_errors, progress=progress)

    @overload
    def walk(
        self,
        top: BytesPath,
        topdown: bool = True,
        onerror: Callable[[OSError], object] | None = None,
        followlinks: bool = False,
    ) -> Walk[bytes]: ...

    @overload
    def walk(
        self,
        top: StrPath = "/",
        topdown: bool = True,
        onerror: Callable[[OSError], object] | None = None,
        followlinks: bool = False,
    ) -> Walk[str]: ...

    def walk(
        self,
        top: AnyPath = "/",
        topdown: bool = True,
        onerror: Callable[[OSError], object] | None = None,
        followlinks: bool = False,
    ) -> Walk[Any]:
        """The tree below a directory: an iterator as that of `os.walk`, or columns.

            for directory, directories, files in volume.walk("/"): ...
            table = pyarrow.table(volume.walk("/"))

        As columns it has a row for each entry, with path and attributes.
        """
        return Walk(self, top, topdown, onerror, followlinks)

    def __enter__(self) -> Volume:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def __reduce__(self) -> tuple[Callable[..., Volume], tuple[Any, ...]]:
        if self.path is None:
            raise TypeError(
                "cannot pickle a file system in memory, which belongs to its process; "
                "use a Volume on an image file"
            )
        return _reopen, (type(self), self.path, self._options)

    def __repr__(self) -> str:
        what = "in memory" if self.path is None else repr(self.path)
        state = " (closed)" if self.closed else ""
        return f"<holdfast.Volume {what}{state}>"


# All that are not freed. At the end of the process, each is closed: objects that a module holds may
# not be freed, and what was written last would be lost.
_volumes: weakref.WeakSet[Volume] = weakref.WeakSet()


def _close_all() -> None:
    for volume in list(_volumes):
        volume.close()


atexit.register(_close_all)


def _reopen(kind: type[Volume], path: str, options: dict[str, Any]) -> Volume:
    return kind(path, **options)


def memory(
    *, size: int | None = None, inodes: int | None = None, superuser: bool = False
) -> Volume:
    """A file system in memory: the same calls, without an image file. It ends with its process.

    size    bytes of content and names at most; `OSError` with `ENOSPC` beyond
    inodes  files and directories at most
    """
    return Volume(None, size=size, inodes=inodes, superuser=superuser)


class Walk(Generic[_Name]):
    """The tree below a directory; see `Volume.walk`."""

    def __init__(
        self,
        volume: Any,
        top: AnyPath,
        topdown: bool,
        onerror: Callable[[OSError], object] | None,
        followlinks: bool,
    ) -> None:
        self._volume = volume
        self._top = os.fspath(top)
        self._topdown = topdown
        self._onerror = onerror
        self._followlinks = followlinks

    def __iter__(self) -> Iterator[tuple[_Name, list[_Name], list[_Name]]]:
        # Directories to be listed, or lists to be shown.
        stack: list[Any] = [self._top]
        while stack:
            top = stack.pop()
            if isinstance(top, tuple):
                yield top
                continue
            directories, files, links = [], [], set()
            try:
                with self._volume.scandir(top) as entries:
                    for entry in entries:
                        name = entry.name
                        if entry.is_dir():
                            directories.append(name)
                            if entry.is_symlink():
                                links.add(name)
                        else:
                            files.append(name)
            except OSError as error:
                if self._onerror is not None:
                    self._onerror(error)
                continue
            if self._topdown:
                yield top, directories, files
            else:
                stack.append((top, directories, files))
            for name in reversed(directories):
                if self._followlinks or name not in links:
                    stack.append(os.path.join(top, name))

    def columns(
        self,
        *,
        maxdepth: int | None = None,
        paths: Literal["str", "bytes"] = "str",
        progress: Progress | None = None,
    ) -> _holdfast.Columns:
        """All entries as columns. Paths that are not UTF-8 need `paths="bytes"`."""
        columns: _holdfast.Columns = self._volume.walk_columns(
            self._top, maxdepth=maxdepth, paths=paths, progress=progress
        )
        return columns

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.columns().__arrow_c_stream__(requested_schema)
