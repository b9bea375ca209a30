"""Open files."""

from __future__ import annotations

import io
import os
from typing import TYPE_CHECKING, Any, NoReturn

from holdfast import _holdfast

if TYPE_CHECKING:
    from collections.abc import Callable

    from _typeshed import ReadableBuffer, WriteableBuffer

    from holdfast._volume import Volume

__all__ = ["File"]

# The letters of a mode, and what each makes of the options of an open.
_KINDS = {
    "r": {"read": True},
    "w": {"write": True, "truncate": True, "create": True},
    "x": {"write": True, "exclusive": True},
    "a": {"append": True, "create": True},
}


class File(io.RawIOBase):
    """An open file without buffers, as `io.FileIO`; `Volume.open` puts buffers over it.

    It keeps its volume open. `pread` and `pwrite` leave the position as it is, and can be called
    from many threads at once.
    """

    name: str | bytes
    mode: str
    # `None` until it is open, and when it is closed.
    _handle: _holdfast.FileHandle | None = None
    _volume: Volume | None = None

    def __init__(
        self,
        volume: Volume,
        path: str | bytes | os.PathLike[str] | os.PathLike[bytes],
        mode: str = "r",
        perm: int = 0o666,
        flags: int = 0,
    ) -> None:
        self.name, self.mode = os.fspath(path), mode
        letters = mode.replace("b", "")
        kind, update = letters[:1], letters[1:]
        if kind not in _KINDS or update not in ("", "+") or mode.count("b") > 1:
            raise ValueError(f"invalid mode: {mode!r}")
        options = dict(_KINDS[kind])
        if update:
            options["read"] = True
            if kind == "r":
                options["write"] = True
        self._readable = "read" in options
        self._writable = kind != "r" or bool(update)
        handle = volume.open_handle(path, mode=perm, flags=flags, **options)
        self._volume, self._handle = volume, handle
        # As `io.FileIO` has it.
        self.mode = "rb+" if kind == "w" and update else kind + "b" + update
        if kind == "a":
            handle.seek(0, os.SEEK_END)

    def _check(self) -> _holdfast.FileHandle:
        if self._handle is None:
            raise ValueError("I/O operation on closed file")
        return self._handle

    def readable(self) -> bool:
        self._check()
        return self._readable

    def writable(self) -> bool:
        self._check()
        return self._writable

    def seekable(self) -> bool:
        self._check()
        return True

    def _refuse(self, what: str) -> NoReturn:
        raise io.UnsupportedOperation(f"File not open for {what}")

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        handle = self._check()
        if not self._readable:
            self._refuse("reading")
        return handle.readinto(buffer)

    def readall(self) -> bytes:
        # One byte more than there should be, so that one call finds the end.
        handle = self._check()
        if not self._readable:
            self._refuse("reading")
        left = max(0, handle.stat().st_size - self.tell())
        content = bytearray(left + 1)
        filled = 0
        while read := handle.readinto(memoryview(content)[filled:]):
            filled += read
            if filled == len(content):
                content.extend(bytes(max(len(content), 8192)))
        del content[filled:]
        return bytes(content)

    def write(self, buffer: ReadableBuffer, /) -> int:
        handle = self._check()
        if not self._writable:
            self._refuse("writing")
        return handle.write(buffer)

    def pread(self, size: int, offset: int) -> bytes:
        """Up to `size` bytes from `offset`."""
        content = bytearray(size)
        read = self.preadinto(content, offset)
        return bytes(memoryview(content)[:read])

    def preadinto(self, buffer: WriteableBuffer, offset: int) -> int:
        """Reads from `offset` into a buffer; returns the number of bytes."""
        handle = self._check()
        if not self._readable:
            self._refuse("reading")
        return handle.readinto(buffer, offset)

    def pwrite(self, buffer: ReadableBuffer, offset: int) -> int:
        """Writes at `offset`; returns the number of bytes."""
        handle = self._check()
        if not self._writable:
            self._refuse("writing")
        return handle.write(buffer, offset)

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        return self._check().seek(offset, whence)

    def tell(self) -> int:
        return self._check().seek(0, os.SEEK_CUR)

    def truncate(self, size: int | None = None, /) -> int:
        handle = self._check()
        if not self._writable:
            self._refuse("writing")
        if size is None:
            size = self.tell()
        handle.truncate(size)
        return size

    def stat(self) -> os.stat_result:
        """The attributes, also after the file's names were removed."""
        return self._check().stat()

    def sync(self, *, data_only: bool = False) -> None:
        """Makes the content durable, as `os.fsync` or `os.fdatasync`."""
        self._check().sync(data_only=data_only)

    def close(self) -> None:
        try:
            super().close()
        finally:
            handle = self._handle
            # A volume that only this file keeps open ends with it.
            self._handle = self._volume = None
            if handle is not None:
                handle.close()

    def __reduce__(self) -> tuple[Callable[..., File], tuple[Any, ...]]:
        self._check()
        if self.mode != "rb":
            raise TypeError(
                f"cannot pickle a file that is open for writing: {self.name!r}; "
                "pickle its path and open it there"
            )
        return _reopen, (self._volume, self.name, self.tell())

    def __repr__(self) -> str:
        state = " [closed]" if self.closed or self._handle is None else ""
        return f"<holdfast.File name={self.name!r} mode={self.mode!r}{state}>"


def _reopen(volume: Volume, name: str | bytes, position: int) -> File:
    file = File(volume, name)
    file.seek(position)
    return file
