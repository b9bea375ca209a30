"""The data set for data loaders."""

import multiprocessing
import os
import pathlib
import pickle

import pytest

import holdfast
from holdfast.torch import FileDataset

FILES = 300


@pytest.fixture
def filled(image: str) -> str:
    with holdfast.Volume(image, create=True, size=64 << 20) as made:
        items = {f"/{n % 5}/{n:04}": os.urandom(n) for n in range(FILES)}
        made.write_many(items, makedirs=True)
        made.symlink("/0/0000", "/link")
    return image


def length(path: str, content: bytes) -> tuple[str, int]:
    return path, len(content)


def some(dataset: "FileDataset[tuple[str, int]]", part: int) -> list[tuple[str, int]]:
    return dataset.__getitems__(range(part, len(dataset), 4))


def test_a_batch_is_one_call(filled: str) -> None:
    dataset = FileDataset(filled)
    assert len(dataset) == FILES and dataset.paths == sorted(dataset.paths)
    assert len(dataset[7]) == len(dataset.__getitems__([7])[0])
    assert dataset.__getitems__([3, 1, 3])[0] == dataset[3]
    with pytest.raises(IndexError):
        dataset[FILES]
    below = FileDataset(filled, root="/3", transform=length, threads=1)
    assert len(below) == FILES // 5 and below[0] == ("/3/0003", 3)
    named = FileDataset(dataset.volume, ["/1/0001"])
    assert len(named[0]) == 1


def test_a_mount_is_a_data_set_too(tmp_path: pathlib.Path) -> None:
    (tmp_path / "dir").mkdir()
    (tmp_path / "dir" / "file").write_bytes(b"123")
    dataset = FileDataset(holdfast.Mount(tmp_path), transform=length)
    assert dataset.__getitems__([0]) == [("/dir/file", 3)]


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_workers_open_the_volume_for_themselves(filled: str, method: str) -> None:
    dataset = FileDataset(filled, transform=length)
    assert dataset[0][1] == 0
    with multiprocessing.get_context(method).Pool(4) as pool:
        parts = pool.starmap(some, [(dataset, part) for part in range(4)])
    found = dict(sample for part in parts for sample in part)
    assert found == {f"/{n % 5}/{n:04}": n for n in range(FILES)}
    assert pickle.loads(pickle.dumps(dataset))[1] == dataset[1]
