"""Holdfast: a POSIX file system in your process, for trees of very many small files.

    with holdfast.Volume("data.hf", create=True) as volume:
        volume.makedirs("/mail/new", exist_ok=True)
        with volume.open("/mail/new/1", "w") as letter:
            letter.write("Dear ...")

See `Volume`; `memory()` makes a file system without an image file, and `Mount` has the same calls
on a mounted volume. `holdfast.spec` is the file
system for fsspec, `holdfast.torch` has a data set for data loaders.
"""

from holdfast._errors import ForkError
from holdfast._file import File
from holdfast._holdfast import Columns, DirEntry, memory_usage
from holdfast._mount import Mount
from holdfast._volume import Volume, Walk, memory

__all__ = [
    "Columns",
    "DirEntry",
    "File",
    "ForkError",
    "Mount",
    "Volume",
    "Walk",
    "memory",
    "memory_usage",
]
