"""The data set under a DataLoader of torch, with workers of each kind."""

from __future__ import annotations

import os
import pathlib
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest

import holdfast
from holdfast.torch import FileDataset

torch = pytest.importorskip("torch", reason="torch is not installed: HOLDFAST_TORCH=1 installs it")

FILES = 500
WORKERS = 2
CONTENTS = {f"/{n % 7}/{n:04}": bytes([n % 251]) * (n * 37 % 5000) for n in range(FILES)}


def named(path: str, content: bytes) -> tuple[str, bytes]:
    return path, content


def tensor(path: str, content: bytes) -> Any:
    """The number in the path, the length and the sum of the content."""
    return torch.tensor([int(path[-4:]), len(content), sum(content)])


@pytest.fixture(params=["volume", "mount"])
def data(request: pytest.FixtureRequest, tmp_path: pathlib.Path) -> Iterator[Any]:
    """What a data set is made of: the path of a volume, or a mount."""
    image, point = tmp_path / "data.hf", tmp_path / "point"
    with holdfast.Volume(image, create=True, size=64 << 20) as made:
        made.write_many(CONTENTS, makedirs=True)
    if request.param == "volume":
        yield str(image)
        return
    program = os.environ.get("HOLDFAST", "")
    if not os.access("/dev/fuse", os.W_OK) or not os.access(program, os.X_OK):
        pytest.skip("no /dev/fuse, or HOLDFAST names no program that mounts")
    point.mkdir()
    subprocess.run([program, "mount", str(image), str(point)], check=True, timeout=60)
    try:
        yield holdfast.Mount(point)
    finally:
        subprocess.run([program, "umount", str(point)], check=True, timeout=60)


def loader(dataset: Any, method: str, **options: Any) -> Any:
    return torch.utils.data.DataLoader(
        dataset, batch_size=32, num_workers=WORKERS, multiprocessing_context=method, **options
    )


def same(batch: Any) -> Any:
    return batch


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_each_byte_comes_through_workers(data: Any, method: str) -> None:
    dataset = FileDataset(data, transform=named)
    # The parent has read before it forks.
    assert dataset[0] == ("/0/0000", b"")
    batches = loader(dataset, method, collate_fn=same, shuffle=True, persistent_workers=True)
    for _ in range(2):
        found = {path: content for batch in batches for path, content in batch}
        assert found == CONTENTS
    del batches
    assert dataset[1] == ("/0/0007", CONTENTS["/0/0007"])


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_tensors_come_through_workers(data: Any, method: str) -> None:
    batches = loader(FileDataset(data, transform=tensor), method)
    rows = torch.cat(list(batches))
    expected = [[int(path[-4:]), len(c), sum(c)] for path, c in sorted(CONTENTS.items())]
    assert rows.tolist() == expected
