"""Work on many files by the daemon of a mount, without a request of the kernel for each.

The daemon is asked by an ioctl on the root of the mount, which names a socket for one job of this
process. The paths go there in a memory file, and the contents come back in it. A list of a tree
comes through a pipe. The job has the rights of this process.

What the daemon does not answer is left to the kernel: the callers then make the ordinary calls.
"""

from __future__ import annotations

import errno
import fcntl
import json
import mmap
import os
import socket
import stat
import struct
from collections.abc import Iterator, Sequence
from typing import Any

__all__ = ["Daemon", "NotAnswered"]

# The ioctl, a frame of which begins with the length of its content.
_FRAME = 16376
_CONTROL = 3 << 30 | _FRAME << 16 | ord("h") << 8 | 0xF6
_MESSAGE = 64 << 10
# Paths of a job, and bytes of its request, at most.
BATCH = 1024
_REQUEST_MAX = 4 << 20
# Bytes of contents that are written by a job, at most.
CONTENTS_MAX = 16 << 20
# Bytes of an inode's attributes. Its number is first, and the mode is here.
ROW = 88
MODE = 64
_PIPE = 1 << 20
_PLACE_MAX = (1 << 63) - 1


class NotAnswered(Exception):
    """The daemon does not answer, or not to the end."""


class Daemon:
    """The daemon of the mount that a directory is in."""

    def __init__(self, directory: str) -> None:
        root = os.path.realpath(directory)
        device = os.stat(root).st_dev
        while root != "/" and os.stat(os.path.dirname(root)).st_dev == device:
            root = os.path.dirname(root)
        self._root = root
        # What is not answered, by the number of the file system: another may be mounted later.
        self._unanswered: set[tuple[int, str]] = set()

    def resolve(self, directory: str) -> bytes | None:
        """The path of a directory from the root of the mount; `None` if it is not in it."""
        real = os.path.realpath(directory)
        if real != self._root and not real.startswith(self._root.rstrip("/") + "/"):
            return None
        try:
            if os.stat(real).st_dev != os.stat(self._root).st_dev:
                return None
        except OSError:
            return None
        return os.fsencode(real[len(self._root) :].rstrip("/")) + b"/"

    @property
    def root(self) -> str:
        """The root of the mount."""
        return self._root

    def device(self) -> int:
        """The number of the file system in `os.stat`."""
        return os.stat(self._root).st_dev

    def read(self, paths: Sequence[bytes]) -> list[bytes | None]:
        """The contents of regular files at paths from the root of the mount.

        `None` stands for one that the kernel has to read: it has no room, or there is an error.
        """
        return self._ask("read", [struct.pack("<H", len(path)) + path for path in paths])

    def read_ranges(
        self, ranges: Sequence[tuple[bytes, int | None, int | None]]
    ) -> list[bytes | None]:
        """Parts of files, as `read`."""

        def item(path: bytes, start: int | None, end: int | None) -> bytes:
            places = [0 if start is None else start, _PLACE_MAX if end is None else end]
            places = [max(-_PLACE_MAX, min(place, _PLACE_MAX)) for place in places]
            return struct.pack("<H", len(path)) + path + struct.pack("<2q", *places)

        return self._ask("read_ranges", [item(*part) for part in ranges])

    def stat(self, paths: Sequence[bytes]) -> list[bytes | None]:
        """The rows of attributes, as `read`. No link is followed."""
        return self._ask("stat", [struct.pack("<H", len(path)) + path for path in paths])

    def write(self, items: Sequence[tuple[bytes, memoryview]]) -> list[bool]:
        """Makes or replaces regular files; returns which of them."""
        files = [struct.pack("<H", len(path)) + path for path, _ in items]
        request = struct.pack("<I", len(files)) + b"".join(files)
        if not items or len(request) > _REQUEST_MAX:
            return [False] * len(items)
        table = -len(request) % 8 + len(request)
        lengths = struct.pack(f"<{len(items)}q", *(content.nbytes for _, content in items))
        padding = bytes(table - len(request))
        with _Memory(b"".join([request, padding, lengths, *(content for _, content in items)])) as (
            memory
        ):
            try:
                self._job("write", {"write": {"request": len(request)}}, memory, _umask())
            except NotAnswered:
                return [False] * len(items)
            numbers = struct.unpack(f"<{len(items)}q", os.pread(memory, len(lengths), table))
            return [number >= 0 for number in numbers]

    def tree(self, top: bytes, depth: int | None) -> Iterator[bytes]:
        """The records of what is below a directory, in chunks of any length.

        Raises `NotAnswered`, also after some records.
        """
        reading, writing = os.pipe2(os.O_CLOEXEC)
        try:
            with self._peer("list") as peer:
                try:
                    fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, _PIPE)
                except OSError:
                    # The user has pipes enough: it has its usual size.
                    pass
                order = {"list": {"top": [*top], "depth": depth}}
                _send(peer, order, writing, 0o22)
                os.close(writing)
                writing = -1
                while chunk := os.read(reading, _PIPE):
                    yield chunk
                self._end(peer, "list")
        finally:
            os.close(reading)
            if writing >= 0:
                os.close(writing)

    def inodes(self) -> Iterator[bytes]:
        """The rows of all inodes, some at a time. Only root and the owner of the mount may ask."""
        after = 0
        while True:
            rows = self._call({"inodes": {"after": after, "upto": (1 << 64) - 1}})
            if not rows:
                return
            yield rows
            (after,) = struct.unpack_from("<Q", rows, len(rows) - ROW)

    def _ask(self, kind: str, files: list[bytes]) -> list[bytes | None]:
        """Has contents put into a memory file that begins with these files."""
        request = struct.pack("<I", len(files)) + b"".join(files)
        if not files or len(request) > _REQUEST_MAX:
            return [None] * len(files)
        with _Memory(request) as memory:
            try:
                self._job(kind, kind, memory, 0o22)
            except NotAnswered:
                return [None] * len(files)
            with mmap.mmap(memory, 0, prot=mmap.PROT_READ) as content:
                place = -len(request) % 8 + len(request)
                numbers = struct.unpack_from(f"<{len(files)}q", content, place)
                place += 8 * len(files)
                found: list[bytes | None] = []
                for number in numbers:
                    if number < 0:
                        found.append(None)
                    else:
                        found.append(content[place : place + number])
                        place += number
                return found

    def _job(self, kind: str, job: Any, memory: int, umask: int) -> None:
        """Has a job done with a memory file."""
        with self._peer(kind) as peer:
            _send(peer, job, memory, umask)
            self._end(peer, kind)

    def _peer(self, kind: str) -> socket.socket:
        """A connection for one job."""
        try:
            if (self.device(), kind) in self._unanswered:
                raise NotAnswered
            answer = json.loads(self._call("job"))
        except OSError as error:
            if error.errno in (errno.ENOTTY, errno.EINVAL, errno.ENOSYS):
                self._leave(kind)
            raise NotAnswered from error
        if "job" not in answer:
            # It does as much as it can do at a time.
            raise NotAnswered
        peer = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            peer.connect(b"\0" + bytes(answer["job"]))
        except OSError as error:
            peer.close()
            # Another network namespace, or the daemon ended just now.
            raise NotAnswered from error
        return peer

    def _end(self, peer: socket.socket, kind: str) -> None:
        """Waits until a job is done."""
        try:
            while event := peer.recv(_MESSAGE):
                what = json.loads(event)
                if "done" in what:
                    return
                if "ended" in what:
                    raise NotAnswered
            # The connection ended without an answer: if the daemon lives, it is older than this
            # job.
            self._call({"info": {"inodes": False}})
        except OSError as error:
            raise NotAnswered from error
        self._leave(kind)
        raise NotAnswered

    def _leave(self, kind: str) -> None:
        """Notes that this job is left to the kernel."""
        try:
            self._unanswered.add((self.device(), kind))
        except OSError:
            # The mount is broken, and the kernel says how.
            pass

    def _call(self, request: Any) -> bytes:
        """Sends a request by the ioctl; returns the answer."""
        content = json.dumps(request).encode()
        frame = bytearray(_FRAME)
        struct.pack_into(f"<I{len(content)}s", frame, 0, len(content), content)
        root = os.open(self._root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.ioctl(root, _CONTROL, frame, True)
        finally:
            os.close(root)
        (length,) = struct.unpack_from("<I", frame)
        return bytes(frame[4 : 4 + length])


class _Memory:
    """A memory file with a content, as a descriptor that is closed at the end."""

    def __init__(self, content: bytes) -> None:
        self._content = content

    def __enter__(self) -> int:
        self._memory = os.memfd_create("holdfast", os.MFD_CLOEXEC)
        rest = memoryview(self._content)
        try:
            while rest:
                rest = rest[os.write(self._memory, rest) :]
        except BaseException:
            os.close(self._memory)
            raise
        return self._memory

    def __exit__(self, *_error: object) -> None:
        os.close(self._memory)


def _send(peer: socket.socket, job: Any, descriptor: int, umask: int) -> None:
    order = json.dumps({"job": job, "umask": umask}).encode()
    try:
        socket.send_fds(peer, [order], [descriptor])
    except OSError as error:
        raise NotAnswered from error


def _umask() -> int:
    """The umask of this process, which os.umask can only tell by setting it."""
    with open("/proc/self/status", "rb") as status:
        for line in status:
            if line.startswith(b"Umask:"):
                return int(line.split()[1], 8)
    raise NotAnswered


def record_of(path: bytes, found: os.stat_result) -> bytes:
    """What a daemon would send of this path. The time of birth is not known to `os.stat`."""
    times = [found.st_atime_ns, found.st_mtime_ns, found.st_ctime_ns, found.st_ctime_ns]
    wide = [found.st_ino, found.st_size, found.st_blocks, found.st_rdev]
    narrow = [found.st_mode, found.st_nlink, found.st_uid, found.st_gid, 0, 0]
    return struct.pack("<I4Q4q6I", len(path), *wide, *times, *narrow) + path


def records(chunks: Iterator[bytes]) -> Iterator[tuple[bytes, bytes]]:
    """The paths and rows of a list."""
    rest = b""
    for chunk in chunks:
        rest += chunk
        place = 0
        while place + 4 + ROW <= len(rest):
            (length,) = struct.unpack_from("<I", rest, place)
            path = place + 4 + ROW
            if path + length > len(rest):
                break
            yield rest[path : path + length], rest[place + 4 : path]
            place = path + length
        rest = rest[place:]


def kind_of(row: bytes) -> int:
    """The type in a row, as `stat.S_IFMT` answers it."""
    (mode,) = struct.unpack_from("<I", row, MODE)
    return stat.S_IFMT(mode)


def number_of(row: bytes) -> int:
    """The inode's number in a row."""
    return int.from_bytes(row[:8], "little")
