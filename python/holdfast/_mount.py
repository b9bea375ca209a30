"""Mounted volumes: the calls of `Volume` on a directory of the kernel."""

from __future__ import annotations

import os
import shutil
import stat
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import IO, TYPE_CHECKING, Any, Literal, TypeVar

from holdfast import _holdfast
from holdfast._daemon import (
    BATCH,
    CONTENTS_MAX,
    ROW,
    Daemon,
    NotAnswered,
    kind_of,
    number_of,
    record_of,
    records,
)
from holdfast._volume import Walk

if TYPE_CHECKING:
    from types import TracebackType

    from _typeshed import ReadableBuffer

__all__ = ["Mount", "MountEntry", "MountScan"]

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


class Mount:
    """A mounted volume. Paths start at the mount point, which no path leaves by "..".

    It has those methods of `Volume` that data loaders and `holdfast.spec` use. Calls for many files
    are done by the daemon of the mount, with the rights of this process: `read_many`,
    `read_ranges`, `write_many`, `stat_many`, `scandir`, `find`, `walk`, `bulkstat`. What the daemon
    does not answer is left to the kernel. Other calls are those of the kernel. It pickles as its path, and can be
    used after `os.fork` and after the volume was mounted anew.
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

    def scandir(self, path: str = "/") -> MountScan:
        """The entries of a directory with their attributes."""
        return MountScan(self.find(path, maxdepth=1))

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
        self,
        top: str = "/",
        *,
        maxdepth: int | None = None,
        progress: Callable[[int], object] | None = None,
    ) -> list[MountEntry]:
        """All entries below a directory with their attributes, as `Volume.find`."""
        device = self.stat(top).st_dev

        def entries(chunks: Iterator[bytes]) -> list[MountEntry]:
            found = []
            for path, row in records(chunks):
                found.append(
                    MountEntry(self, os.path.join(top, os.fsdecode(path)), row, device)
                )
            return found

        entries_found = self._listed(entries, top, maxdepth)
        if progress is not None:
            progress(len(entries_found))
        return entries_found

    def walk(
        self,
        top: str = "/",
        topdown: bool = True,
        onerror: Callable[[OSError], object] | None = None,
        followlinks: bool = False,
    ) -> Walk[str]:
        """The tree below a directory: an iterator or columns, as `Volume.walk`."""
        return Walk(self, top, topdown, onerror, followlinks)

    def walk_columns(
        self,
        top: str | None = None,
        *,
        maxdepth: int | None = None,
        paths: Literal["str", "bytes"] = "str",
        progress: Callable[[int], object] | None = None,
    ) -> _holdfast.Columns:
        """All entries below a directory as columns, as `Volume.walk_columns`.

        Without the daemon the time of birth is that of the last change.
        """
        top = "/" if top is None else top

        def columns(chunks: Iterator[bytes]) -> _holdfast.Columns:
            return _holdfast.columns_of(chunks, os.fsencode(top), paths, progress)

        return self._listed(columns, top, maxdepth)

    def bulkstat(
        self,
        *,
        paths: Literal["str", "bytes"] | None = None,
        progress: Callable[[int], object] | None = None,
    ) -> _holdfast.Columns:
        """All inodes of the volume as columns, as `Volume.bulkstat`.

        Only root and the user that mounted the volume may ask for them. Paths begin at the root of
        the mount.
        """
        names: dict[int, bytes] = {}

        def named(chunks: Iterator[bytes]) -> None:
            for path, row in records(chunks):
                names.setdefault(number_of(row), path)

        def chunks() -> Iterator[bytes]:
            for rows in self._daemon.inodes():
                found = []
                for place in range(0, len(rows), ROW):
                    row = rows[place : place + ROW]
                    path = names.get(number_of(row))
                    length = 0xFFFFFFFF if path is None else len(path)
                    found += [struct.pack("<I", length), row, path or b""]
                yield b"".join(found)

        if paths is not None:
            named(self._daemon.tree(b"/", None))
            names[os.stat(self._daemon.root).st_ino] = b""
        try:
            return _holdfast.columns_of(chunks(), b"/", paths, progress)
        except OSError as error:
            if error.filename is None:
                error.filename = self.path
            raise

    def _listed(
        self, take: Callable[[Iterator[bytes]], _Result], top: str, maxdepth: int | None
    ) -> _Result:
        """What is made of the records of a tree: those of the daemon, or of the kernel."""
        if maxdepth == 0:
            return take(iter(()))
        inside = self._daemon.resolve(self._at(top))
        if inside is not None:
            try:
                return take(self._daemon.tree(inside, maxdepth))
            except NotAnswered:
                pass
        return take(self._walked(self._at(top), maxdepth))

    def _walked(self, top: str, maxdepth: int | None) -> Iterator[bytes]:
        """The records that the kernel's calls give."""
        levels = [(top, b"", 1)]
        while levels:
            directory, above, depth = levels.pop()
            with os.scandir(directory) as entries:
                for entry in entries:
                    path = above + os.fsencode(entry.name)
                    yield record_of(path, entry.stat(follow_symlinks=False))
                    deeper = maxdepth is None or depth < maxdepth
                    if deeper and entry.is_dir(follow_symlinks=False):
                        levels.append((entry.path, path + b"/", depth + 1))

    def read_many(
        self,
        paths: Iterable[str],
        *,
        errors: str = "raise",
        threads: int | None = None,
        progress: Callable[[int], object] | None = None,
    ) -> list[Any]:
        """The contents of files, as `Volume.read_many`."""
        if isinstance(paths, str):
            raise TypeError("paths: a list or another iterable of paths, not a single one")
        ranges = [(path, None, None) for path in paths]
        asked: Callable[[list[Any]], list[bytes | None]] = lambda items: self._daemon.read(
            [path for path, _, _ in items]
        )
        return self._batches(asked, bytes, self._read, ranges, errors, threads, progress)

    def _batches(
        self,
        ask: Callable[[list[tuple[Any, ...]]], list[Any]],
        made_of: Callable[[Any], Any],
        ordinary: Callable[[Any], Any],
        items: list[Any],
        errors: str,
        threads: int | None,
        progress: Callable[[int], object] | None,
    ) -> list[Any]:
        """Does items, tuples that begin with a path, by the daemon; those it leaves by the kernel.

        `made_of` makes the result of its answer.
        """
        if errors not in ("raise", "return"):
            raise ValueError(f'errors: "raise" or "return", not {errors!r}')
        directories: dict[str, bytes | None] = {}

        def some(piece: list[Any]) -> list[Any]:
            inside = [self._inside(item[0], directories) for item in piece]
            asked = [
                (path, *item[1:]) for path, item in zip(inside, piece) if path is not None
            ]
            found = iter(ask(asked))
            answers = [None if path is None else next(found) for path in inside]
            results: list[Any] = []
            for item, answer in zip(piece, answers):
                result = None if answer is None else made_of(answer)
                if result is None:
                    try:
                        result = ordinary(item)
                    except OSError as error:
                        if errors == "raise":
                            raise
                        result = error
                results.append(result)
            return results

        return _in_pieces(some, items, BATCH, threads, progress)

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
        return self._batches(
            self._daemon.read_ranges, bytes, self._read, list(ranges), errors, threads, progress
        )

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

        def write(item: tuple[str, memoryview]) -> int:
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

        made: set[str] = set()

        def ask(asked: list[tuple[Any, ...]]) -> list[int | None]:
            room, some = CONTENTS_MAX, []
            for path, content in asked:
                if content.nbytes > room:
                    break
                room -= content.nbytes
                some.append((path, content))
            written = self._daemon.write(some)
            lengths = [content.nbytes for _, content in some]
            found = [length if done else None for length, done in zip(lengths, written)]
            return [*found, *[None] * (len(asked) - len(some))]

        pairs = []
        for path, content in items.items() if isinstance(items, Mapping) else items:
            directory = os.path.dirname(path)
            if makedirs and directory not in made:
                os.makedirs(self._at(directory), exist_ok=True)
                made.add(directory)
            pairs.append((path, memoryview(content)))
        return sum(self._batches(ask, int, write, pairs, "raise", threads, progress))

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

        if isinstance(paths, str):
            raise TypeError("paths: a list or another iterable of paths, not a single one")
        try:
            device = self._daemon.device()
        except OSError:
            # The mount is broken, and each path says how.
            device = 0

        def made_of(row: bytes) -> os.stat_result | None:
            if follow_symlinks and kind_of(row) == stat.S_IFLNK:
                return None
            return _holdfast.stat_result(row, device)

        def ordinary(item: tuple[str]) -> os.stat_result:
            return os.stat(self._at(item[0]), follow_symlinks=follow_symlinks)

        def ask(asked: list[tuple[Any, ...]]) -> list[bytes | None]:
            return self._daemon.stat([path for (path,) in asked])

        items = [(path,) for path in paths]
        return self._batches(ask, made_of, ordinary, items, errors, threads, progress)

    def __enter__(self) -> Mount:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<holdfast.Mount {self.path!r}>"


class MountEntry:
    """An entry of a directory in a mount, with the attributes that were read with it."""

    __slots__ = ("_device", "_mount", "_row", "name", "path")

    def __init__(self, mount: Mount, path: str, row: bytes, device: int) -> None:
        self._mount = mount
        self.path = path
        self.name = os.path.basename(path)
        self._row = row
        self._device = device

    def inode(self) -> int:
        return number_of(self._row)

    def is_dir(self, *, follow_symlinks: bool = True) -> bool:
        return self._is_kind(stat.S_IFDIR, follow_symlinks)

    def is_file(self, *, follow_symlinks: bool = True) -> bool:
        return self._is_kind(stat.S_IFREG, follow_symlinks)

    def is_symlink(self) -> bool:
        return kind_of(self._row) == stat.S_IFLNK

    def stat(self, *, follow_symlinks: bool = True) -> os.stat_result:
        found = _holdfast.stat_result(self._row, self._device)
        if found.st_nlink == 0 or (follow_symlinks and self.is_symlink()):
            return self._mount.stat(self.path, follow_symlinks=follow_symlinks)
        return found

    def _is_kind(self, kind: int, follow_symlinks: bool) -> bool:
        if follow_symlinks and self.is_symlink():
            return stat.S_IFMT(self._mount.mode(self.path)) == kind
        return kind_of(self._row) == kind

    def __fspath__(self) -> str:
        return self.path

    def __repr__(self) -> str:
        return f"<MountEntry {self.name!r}>"


class MountScan:
    """The entries of a directory in a mount: an iterator, and a context manager as `os.scandir`."""

    def __init__(self, entries: list[MountEntry]) -> None:
        self._entries = iter(entries)

    def __iter__(self) -> MountScan:
        return self

    def __next__(self) -> MountEntry:
        return next(self._entries)

    def close(self) -> None:
        self._entries = iter(())

    def __enter__(self) -> MountScan:
        return self

    def __exit__(
        self,
        _class: type[BaseException] | None,
        _error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        self.close()


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
