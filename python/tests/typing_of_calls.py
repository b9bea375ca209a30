"""What type checkers find for calls of this package; mypy reads it, nothing runs it."""

import io
import os
from typing import BinaryIO, assert_type

import holdfast


def calls(volume: holdfast.Volume) -> None:
    assert_type(holdfast.memory(), holdfast.Volume)
    assert_type(volume.open("/a"), io.TextIOWrapper)
    assert_type(volume.open(b"/a", "rb"), BinaryIO)
    assert_type(volume.open("/a", "wb", 0), holdfast.File)
    assert_type(volume.stat("/a"), os.stat_result)
    assert_type(volume.listdir("/"), list[str])
    assert_type(volume.listdir(b"/"), list[bytes])
    assert_type(volume.read_many(["/a", b"/b"]), list[bytes])
    assert_type(volume.read_many(["/a"], errors="return"), list[bytes | OSError])
    assert_type(volume.find("/"), list[holdfast.DirEntry[str]])
    for entry in volume.scandir(b"/"):
        assert_type(entry.name, bytes)
    for top, directories, files in volume.walk("/"):
        assert_type((top, directories, files), tuple[str, list[str], list[str]])
    with volume as same:
        assert_type(same, holdfast.Volume)
