"""A data set of files for data loaders. Nothing here imports torch."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar, overload

from holdfast._mount import Mount
from holdfast._volume import Volume

__all__ = ["FileDataset"]

_Sample = TypeVar("_Sample")


class FileDataset(Generic[_Sample]):
    """The files of a volume as a map-style data set.

        dataset = FileDataset("data.hf", transform=decode)
        loader = torch.utils.data.DataLoader(dataset, batch_size=256, num_workers=8)

    A loader that asks for a batch at once (`__getitems__`, as that of torch does) gets it by one
    call. The volume is opened read-only: each worker opens it for itself, whatever the workers are
    started by. Its processes may share a mount instead.

    volume     the path of an image file or block device, a `Volume`, or a `Mount`
    paths      the files; by default all below `root`, in the order of their paths
    transform  makes a sample of the path and the content; by default the content is the sample
    threads    threads that read a batch; by default as many as pay
    """

    paths: Sequence[str]

    @overload
    def __init__(
        self: FileDataset[bytes],
        volume: str | os.PathLike[str] | Volume | Mount,
        paths: Sequence[str] | None = None,
        *,
        root: str = "/",
        transform: None = None,
        threads: int | None = None,
    ) -> None: ...

    @overload
    def __init__(
        self,
        volume: str | os.PathLike[str] | Volume | Mount,
        paths: Sequence[str] | None = None,
        *,
        root: str = "/",
        transform: Callable[[str, bytes], _Sample],
        threads: int | None = None,
    ) -> None: ...

    def __init__(
        self,
        volume: str | os.PathLike[str] | Volume | Mount,
        paths: Sequence[str] | None = None,
        *,
        root: str = "/",
        transform: Callable[[str, bytes], Any] | None = None,
        threads: int | None = None,
    ) -> None:
        if not isinstance(volume, (Volume, Mount)):
            volume = Volume(volume, read_only=True)
        self._volume = volume
        self._transform = transform
        self._threads = threads
        self.paths = self._all(root) if paths is None else paths

    def _all(self, root: str) -> list[str]:
        entries: Sequence[Any] = self._volume.find(root)
        return sorted(entry.path for entry in entries if entry.is_file(follow_symlinks=False))

    @property
    def volume(self) -> Volume | Mount:
        """The volume, opened anew in a worker that was forked."""
        if self._volume.forked:
            self._volume = copy.copy(self._volume)
        return self._volume

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: int) -> _Sample:
        return self.__getitems__([index])[0]

    def __getitems__(self, indices: Sequence[int]) -> list[_Sample]:
        """The samples of a batch."""
        paths = [self.paths[index] for index in indices]
        contents: list[Any] = self.volume.read_many(paths, threads=self._threads)
        if self._transform is None:
            return contents
        return [self._transform(path, content) for path, content in zip(paths, contents)]
