"""Reads of many files by the daemon of a mount, without a request of the kernel for each.

The daemon is asked by an ioctl on the root of the mount, which names a socket for one job of this
process. The paths go there in a memory file, and the contents come back in it. The job has the
rights of this process.
"""

from __future__ import annotations

import fcntl
import json
import mmap
import os
import socket
import struct

__all__ = ["Daemon"]

# The ioctl, a frame of which begins with the length of its content.
_FRAME = 16376
_CONTROL = 3 << 30 | _FRAME << 16 | ord("h") << 8 | 0xF6
_MESSAGE = 64 << 10
# Paths of a job, and bytes of its request, at most.
BATCH = 1024
_REQUEST_MAX = 4 << 20


class Daemon:
    """The daemon of the mount that a directory is in."""

    def __init__(self, directory: str) -> None:
        root = os.path.realpath(directory)
        device = os.stat(root).st_dev
        while root != "/" and os.stat(os.path.dirname(root)).st_dev == device:
            root = os.path.dirname(root)
        self._root = root
        # Whether it answers is found out by the first batch.
        self._answers = True

    def resolve(self, directory: str) -> bytes | None:
        """The path of a directory from the root of the mount; `None` if it is not in it."""
        real = os.path.realpath(directory)
        if real != self._root and not real.startswith(self._root.rstrip("/") + "/"):
            return None
        return os.fsencode(real[len(self._root) :].rstrip("/")) + b"/"

    def read(self, paths: list[bytes]) -> list[bytes | None]:
        """The contents of regular files at paths from the root of the mount.

        `None` stands for one that the kernel has to read: it has no room, or there is an error.
        """
        nothing: list[bytes | None] = [None] * len(paths)
        request = struct.pack("<I", len(paths))
        request += b"".join(struct.pack("<H", len(path)) + path for path in paths)
        if not self._answers or len(request) > _REQUEST_MAX:
            return nothing
        memory = os.memfd_create("holdfast-read", os.MFD_CLOEXEC)
        try:
            os.write(memory, request)
            if not self._job(memory):
                return nothing
            with mmap.mmap(memory, 0, prot=mmap.PROT_READ) as content:
                place = (len(request) + 7) & ~7
                numbers = struct.unpack_from(f"<{len(paths)}q", content, place)
                place += 8 * len(paths)
                found: list[bytes | None] = []
                for number in numbers:
                    if number < 0:
                        found.append(None)
                    else:
                        found.append(content[place : place + number])
                        place += number
                return found
        finally:
            os.close(memory)

    def _job(self, memory: int) -> bool:
        """Has the daemon read into the memory file; `False` if it does not."""
        try:
            name = self._announce()
        except OSError:
            # Another file system, or a daemon that ended: the kernel says what is wrong.
            self._answers = False
            return False
        if name is None:
            return False
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as peer:
            try:
                peer.connect(b"\0" + name)
                order = json.dumps({"job": "read", "umask": 0o22}).encode()
                socket.send_fds(peer, [order], [memory])
                while event := peer.recv(_MESSAGE):
                    kind = json.loads(event)
                    if "done" in kind or "ended" in kind:
                        return "done" in kind
            except OSError:
                pass
        # The connection ended without an answer: the daemon is older than this job.
        self._answers = False
        return False

    def _announce(self) -> bytes | None:
        """The name of the socket for a job; `None` if the daemon takes none now."""
        request = b'"job"'
        frame = bytearray(_FRAME)
        struct.pack_into(f"<I{len(request)}s", frame, 0, len(request), request)
        root = os.open(self._root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.ioctl(root, _CONTROL, frame, True)
        finally:
            os.close(root)
        (length,) = struct.unpack_from("<I", frame)
        answer = json.loads(bytes(frame[4 : 4 + length]))
        return bytes(answer["job"]) if "job" in answer else None
