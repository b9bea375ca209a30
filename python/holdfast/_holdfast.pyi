"""The native part of the package `holdfast`."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import GenericAlias, TracebackType
from typing import Any, Generic, Literal, TypedDict, TypeVar, final, overload
from typing_extensions import Buffer, CapsuleType, Self, TypeAlias, disjoint_base

__all__ = [
    "Columns",
    "DirEntry",
    "FileHandle",
    "Scan",
    "Volume",
    "columns_of",
    "memory_usage",
    "stat_result",
]

_StrPath: TypeAlias = str | os.PathLike[str]
_BytesPath: TypeAlias = bytes | os.PathLike[bytes]
_Path: TypeAlias = _StrPath | _BytesPath
_Progress: TypeAlias = Callable[[int], object]
_Name = TypeVar("_Name", str, bytes)

class _MemoryUsage(TypedDict):
    limit: int
    used: int

class _VolumeInfo(TypedDict):
    uuid: str
    label: str
    size: int
    capacity: int
    free: int
    inodes: int

def memory_usage() -> _MemoryUsage: ...
def stat_result(row: bytes, device: int) -> os.stat_result: ...
def columns_of(
    chunks: Iterable[bytes],
    top: bytes,
    paths: str | None = None,
    progress: _Progress | None = None,
) -> Columns: ...

@disjoint_base
class Volume:
    def __new__(
        cls,
        path: _Path | None,
        *,
        create: bool = False,
        read_only: bool = False,
        size: int | None = None,
        inodes: int | None = None,
        label: str | None = None,
        commit_every: float | None = None,
        memory: int | None = None,
        superuser: bool = False,
    ) -> Self: ...
    @property
    def closed(self) -> bool: ...
    @property
    def forked(self) -> bool: ...
    def close(self) -> None: ...
    def sync(self) -> None: ...
    def stat(self, path: _Path, *, follow_symlinks: bool = True) -> os.stat_result: ...
    def lstat(self, path: _Path) -> os.stat_result: ...
    def birthtime_ns(self, path: _Path) -> int: ...
    def mode(self, path: _Path, *, follow_symlinks: bool = True) -> int: ...
    def access(self, path: _Path, mode: int) -> bool: ...
    @overload
    def scandir(self, path: _BytesPath) -> Scan[bytes]: ...
    @overload
    def scandir(self, path: _StrPath | None = None) -> Scan[str]: ...
    @overload
    def listdir(self, path: _BytesPath) -> list[bytes]: ...
    @overload
    def listdir(self, path: _StrPath | None = None) -> list[str]: ...
    def mkdir(self, path: _Path, mode: int = 0o777) -> None: ...
    def makedirs(self, path: _Path, mode: int = 0o777, exist_ok: bool = False) -> None: ...
    def rename(self, src: _Path, dst: _Path) -> None: ...
    def replace(self, src: _Path, dst: _Path) -> None: ...
    def link(self, src: _Path, dst: _Path) -> None: ...
    def symlink(self, src: _Path, dst: _Path) -> None: ...
    def copyfile(self, src: _Path, dst: _Path) -> int: ...
    @overload
    def readlink(self, path: _BytesPath) -> bytes: ...
    @overload
    def readlink(self, path: _StrPath) -> str: ...
    def unlink(self, path: _Path) -> None: ...
    def remove(self, path: _Path) -> None: ...
    def rmdir(self, path: _Path) -> None: ...
    def remove_tree(
        self, path: _Path, *, ignore_errors: bool = False, progress: _Progress | None = None
    ) -> int: ...
    def mkfifo(self, path: _Path, mode: int = 0o666) -> None: ...
    def chmod(self, path: _Path, mode: int) -> None: ...
    def chown(
        self, path: _Path, uid: int, gid: int, *, follow_symlinks: bool = True
    ) -> None: ...
    def utime(
        self,
        path: _Path,
        times: tuple[float, float] | None = None,
        *,
        ns: tuple[int, int] | None = None,
        follow_symlinks: bool = True,
    ) -> None: ...
    def truncate(self, path: _Path, length: int) -> None: ...
    def getxattr(self, path: _Path, attribute: _Path) -> bytes: ...
    def setxattr(
        self, path: _Path, attribute: _Path, value: Buffer, flags: int = 0
    ) -> None: ...
    def listxattr(self, path: _Path) -> list[str]: ...
    def removexattr(self, path: _Path, attribute: _Path) -> None: ...
    def statvfs(self) -> os.statvfs_result: ...
    def open_handle(
        self,
        path: _Path,
        *,
        read: bool = False,
        write: bool = False,
        append: bool = False,
        truncate: bool = False,
        create: bool = False,
        exclusive: bool = False,
        mode: int = 0o666,
        flags: int = 0,
    ) -> FileHandle: ...
    def info(self) -> _VolumeInfo | None: ...
    def grow(self, size: int) -> int: ...
    @overload
    def read_many(
        self,
        paths: Iterable[_Path],
        *,
        errors: Literal["raise"] = "raise",
        threads: int | None = None,
        progress: _Progress | None = None,
    ) -> list[bytes]: ...
    @overload
    def read_many(
        self,
        paths: Iterable[_Path],
        *,
        errors: str,
        threads: int | None = None,
        progress: _Progress | None = None,
    ) -> list[bytes | OSError]: ...
    @overload
    def read_ranges(
        self,
        ranges: Iterable[tuple[_Path, int | None, int | None]],
        *,
        errors: Literal["raise"] = "raise",
        threads: int | None = None,
        progress: _Progress | None = None,
    ) -> list[bytes]: ...
    @overload
    def read_ranges(
        self,
        ranges: Iterable[tuple[_Path, int | None, int | None]],
        *,
        errors: str,
        threads: int | None = None,
        progress: _Progress | None = None,
    ) -> list[bytes | OSError]: ...
    def write_many(
        self,
        items: Mapping[Any, Buffer] | Iterable[tuple[_Path, Buffer]],
        *,
        makedirs: bool = False,
        threads: int | None = None,
        progress: _Progress | None = None,
    ) -> int: ...
    @overload
    def stat_many(
        self,
        paths: Iterable[_Path],
        *,
        follow_symlinks: bool = True,
        errors: Literal["raise"] = "raise",
        threads: int | None = None,
        progress: _Progress | None = None,
    ) -> list[os.stat_result]: ...
    @overload
    def stat_many(
        self,
        paths: Iterable[_Path],
        *,
        follow_symlinks: bool = True,
        errors: str,
        threads: int | None = None,
        progress: _Progress | None = None,
    ) -> list[os.stat_result | OSError]: ...
    @overload
    def find(
        self,
        top: _BytesPath,
        *,
        maxdepth: int | None = None,
        progress: _Progress | None = None,
    ) -> list[DirEntry[bytes]]: ...
    @overload
    def find(
        self,
        top: _StrPath | None = None,
        *,
        maxdepth: int | None = None,
        progress: _Progress | None = None,
    ) -> list[DirEntry[str]]: ...
    def walk_columns(
        self,
        top: _Path | None = None,
        *,
        maxdepth: int | None = None,
        paths: str = "str",
        progress: _Progress | None = None,
    ) -> Columns: ...
    def bulkstat(
        self, *, paths: str | None = None, progress: _Progress | None = None
    ) -> Columns: ...

@final
class FileHandle:
    def readinto(self, buffer: Buffer, offset: int | None = None) -> int: ...
    def write(self, buffer: Buffer, offset: int | None = None) -> int: ...
    def seek(self, offset: int, whence: int = 0) -> int: ...
    def truncate(self, length: int) -> None: ...
    def sync(self, *, data_only: bool = False) -> None: ...
    def stat(self) -> os.stat_result: ...
    def close(self) -> None: ...

@final
class DirEntry(Generic[_Name]):
    def __class_getitem__(cls, name: object) -> GenericAlias: ...
    @property
    def name(self) -> _Name: ...
    @property
    def path(self) -> _Name: ...
    def inode(self) -> int: ...
    def is_dir(self, *, follow_symlinks: bool = True) -> bool: ...
    def is_file(self, *, follow_symlinks: bool = True) -> bool: ...
    def is_symlink(self) -> bool: ...
    def stat(self, *, follow_symlinks: bool = True) -> os.stat_result: ...
    def __fspath__(self) -> _Name: ...

@final
class Scan(Generic[_Name]):
    def __iter__(self) -> Self: ...
    def __next__(self) -> DirEntry[_Name]: ...
    def close(self) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        _class: type[BaseException] | None,
        _error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None: ...

@final
class Columns:
    @property
    def num_rows(self) -> int: ...
    @property
    def column_names(self) -> list[str]: ...
    def __len__(self) -> int: ...
    def __arrow_c_schema__(self) -> CapsuleType: ...
    def __arrow_c_stream__(self, requested_schema: object = None) -> CapsuleType: ...
