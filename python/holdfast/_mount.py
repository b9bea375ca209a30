"""Mounted volumes: the calls of `Volume` on a directory of the kernel."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import IO, TYPE_CHECKING, Any, TypeVar

from holdfast._daemon import BATCH, Daemon

if TYPE_CHECKING:
    from collections.abc import Iterator

    from _typeshed import ReadableBuffer

__all__ = ["Mount"]

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")

# Files that a thread does at once.
_PIECE = 64


class Mount:
    """A mounted volume. Paths start at the mount point, which no path leaves by "..".

    It has those methods of `Volume` that data loaders and `holdfast.spec` use. `read_many` has the
    daemon of the mount read the files. Other calls are those of the kernel, for many files on
    several threads. It pickles as its path, and can be used after `os.fork`.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.path.abspath(path)
        if not os.path.isdir(self.path):
            raise NotADirectoryError(
                f"{self.path}: a mount point is a directory; mount the volume there first"
            )
        self._daemon = Daemon(self.path)

    closed = False
    forked = False
    read_only = False

    def close(self) -> None:
        """Does nothing: the mount stays."""

    def _at(self, path: str) -> str:
        return self.path + os.path.normpath("/" + path.lstrip("/"))

    def open(self, path: str, mode: str = "r", buffering: int = -1) -> IO[Any]:
        return open(self._at(path), mode, buffering)

    def stat(self, path: str, *, follow_symlinks: bool = True) -> os.stat_result:
        return os.stat(self._at(path), follow_symlinks=follow_symlinks)

    def lstat(self, path: str) -> os.stat_result:
        return os.lstat(self._at(path))

    def mode(self, path: str, *, follow_symlinks: bool = True) -> int:
        try:
            return self.stat(path, follow_symlinks=follow_symlinks).st_mode
        except OSError:
            return 0

    def exists(self, path: str, *, follow_symlinks: bool = True) -> bool:
        return self.mode(path, follow_symlinks=follow_symlinks) != 0

    def isfile(self, path: str) -> bool:
        return stat.S_ISREG(self.mode(path))

    def isdir(self, path: str) -> bool:
        return stat.S_ISDIR(self.mode(path))

    def islink(self, path: str) -> bool:
        return os.path.islink(self._at(path))

    def listdir(self, path: str = "/") -> list[str]:
        return os.listdir(self._at(path))

    def scandir(self, path: str = "/") -> Iterator[os.DirEntry[str]]:
        return os.scandir(self._at(path))

    def mkdir(self, path: str, mode: int = 0o777) -> None:
        os.mkdir(self._at(path), mode)

    def makedirs(self, path: str, mode: int = 0o777, exist_ok: bool = False) -> None:
        os.makedirs(self._at(path), mode, exist_ok)

    def rename(self, src: str, dst: str) -> None:
        os.rename(self._at(src), self._at(dst))

    def link(self, src: str, dst: str) -> None:
        os.link(self._at(src), self._at(dst))

    def symlink(self, src: str, dst: str) -> None:
        os.symlink(src, self._at(dst))

    def readlink(self, path: str) -> str:
        return os.readlink(self._at(path))

    def unlink(self, path: str) -> None:
        os.unlink(self._at(path))

    def rmdir(self, path: str) -> None:
        os.rmdir(self._at(path))

    def rmtree(self, path: str) -> None:
        shutil.rmtree(self._at(path))

    def chmod(self, path: str, mode: int) -> None:
        os.chmod(self._at(path), mode)

    def utime(self, path: str, times: tuple[float, float] | None = None) -> None:
        os.utime(self._at(path), times)

    def truncate(self, path: str, length: int) -> None:
        os.truncate(self._at(path), length)

    def copyfile(self, src: str, dst: str) -> int:
        shutil.copy(self._at(src), self._at(dst))
        return self.stat(dst).st_size

    def statvfs(self) -> os.statvfs_result:
        return os.statvfs(self.path)

    def sync(self) -> None:
        """Makes everything durable that was written to this mount."""
        point = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(point)
        finally:
            os.close(point)

    def birthtime_ns(self, path: str) -> int:
        """The time of the last change: Python does not ask the kernel for that of creation."""
        return self.stat(path).st_ctime_ns

    def find(
        self, top: str = "/", *, maxdepth: int | None = None
    ) -> list[tuple[str, os.stat_result]]:
        """All entries below a directory with their attributes."""
        found = []
        levels = [(self._at(top), 1)]
        while levels:
            directory, depth = levels.pop()
            with os.scandir(directory) as entries:
                for entry in entries:
                    found.append((entry.path[len(self.path) :], entry.stat(follow_symlinks=False)))
                    deeper = maxdepth is None or depth < maxdepth
                    if deeper and entry.is_dir(follow_symlinks=False):
                        levels.append((entry.path, depth + 1))
        return found

    def read_many(
        self,
        paths: Iterable[str],
        *,
        errors: str = "raise",
        threads: int | None = None,
        progress: Callable[[int], object] | None = None,
    ) -> list[Any]:
        """The contents of files, as `Volume.read_many`."""
        if errors not in ("raise", "return"):
            raise ValueError(f'errors: "raise" or "return", not {errors!r}')
        if isinstance(paths, str):
            raise TypeError("paths: a list or another iterable of paths, not a single one")
        paths = list(paths)
        directories: dict[str, bytes | None] = {}

        def some(piece: list[str]) -> list[Any]:
            inside = [self._inside(path, directories) for path in piece]
            asked = [path for path in inside if path is not None]
            found = iter(self._daemon.read(asked))
            contents: list[Any] = [None if path is None else next(found) for path in inside]
            for index, content in enumerate(contents):
                if content is None:
                    try:
                        contents[index] = self._read((piece[index], None, None))
                    except OSError as error:
                        if errors == "raise":
                            raise
                        contents[index] = error
            return contents

        return _in_pieces(some, paths, BATCH, threads, progress)

    def _inside(self, path: str, directories: dict[str, bytes | None]) -> bytes | None:
        """The path from the root of the mount, if its daemon can follow it as the kernel does."""
        directory, _, name = path.rpartition("/")
        if name in ("", ".", ".."):
            return None
        if directory not in directories:
            directories[directory] = self._daemon.resolve(self._at(directory))
        resolved = directories[directory]
        return None if resolved is None else resolved + os.fsencode(name)

    def read_ranges(
        self,
        ranges: Iterable[tuple[str, int | None, int | None]],
        *,
        errors: str = "raise",
        threads: int | None = None,
        progress: Callable[[int], object] | None = None,
    ) -> list[Any]:
        """Parts of files, as `Volume.read_ranges`."""
        return _many(self._read, list(ranges), errors, threads, progress)

    def _read(self, item: tuple[str, int | None, int | None]) -> bytes:
        path, start, end = item
        with open(self._at(path), "rb", 0) as file:
            if start is None and end is None:
                return file.read()
            size = os.fstat(file.fileno()).st_size
            first, last, _ = slice(start, end).indices(size)
            file.seek(first)
            content = file.read(max(0, last - first))
            return content or b""

    def write_many(
        self,
        items: Mapping[str, ReadableBuffer] | Iterable[tuple[str, ReadableBuffer]],
        *,
        makedirs: bool = False,
        threads: int | None = None,
        progress: Callable[[int], object] | None = None,
    ) -> int:
        """Makes or replaces files, as `Volume.write_many`."""

        def write(item: tuple[str, ReadableBuffer]) -> int:
            path = self._at(item[0])
            try:
                file = open(path, "wb")
            except FileNotFoundError:
                if not makedirs:
                    raise
                os.makedirs(os.path.dirname(path), exist_ok=True)
                file = open(path, "wb")
            with file:
                return file.write(item[1])

        pairs = list(items.items() if isinstance(items, Mapping) else items)
        written = _many(write, pairs, "raise", threads, progress)
        return sum(size for size in written if isinstance(size, int))

    def stat_many(
        self,
        paths: Iterable[str],
        *,
        follow_symlinks: bool = True,
        errors: str = "raise",
        threads: int | None = None,
        progress: Callable[[int], object] | None = None,
    ) -> list[Any]:
        """The attributes of many paths, as `Volume.stat_many`."""

        def found(path: str) -> os.stat_result:
            return os.stat(self._at(path), follow_symlinks=follow_symlinks)

        return _many(found, list(paths), errors, threads, progress)

    def __enter__(self) -> Mount:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<holdfast.Mount {self.path!r}>"


def _many(
    work: Callable[[_Item], _Result],
    items: list[_Item],
    errors: str,
    threads: int | None,
    progress: Callable[[int], object] | None,
) -> list[_Result | OSError]:
    """Does many items on several threads; an error is raised, or returned in its place."""
    if errors not in ("raise", "return"):
        raise ValueError(f'errors: "raise" or "return", not {errors!r}')

    def some(piece: list[_Item]) -> list[_Result | OSError]:
        done: list[_Result | OSError] = []
        for item in piece:
            try:
                done.append(work(item))
            except OSError as error:
                if errors == "raise":
                    raise
                done.append(error)
        return done

    return _in_pieces(some, items, _PIECE, threads, progress)


def _in_pieces(
    some: Callable[[list[_Item]], list[_Result]],
    items: list[_Item],
    size: int,
    threads: int | None,
    progress: Callable[[int], object] | None,
) -> list[_Result]:
    """Does items in pieces of this size, on several threads if there are several pieces."""
    pieces = [items[start : start + size] for start in range(0, len(items), size)]
    results: list[_Result] = []
    if threads == 1 or len(pieces) < 2:
        for piece in pieces:
            results += some(piece)
            if progress is not None:
                progress(len(piece))
        return results
    with ThreadPoolExecutor(threads or min(8, 2 * (os.cpu_count() or 1))) as pool:
        try:
            for done in pool.map(some, pieces):
                results += done
                if progress is not None:
                    progress(len(done))
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    return results
