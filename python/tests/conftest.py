"""The file systems that tests run on."""

from __future__ import annotations

import pathlib
from collections.abc import Iterator

import pytest

import holdfast


@pytest.fixture
def image(tmp_path: pathlib.Path) -> str:
    """The path of an image file that does not exist yet."""
    return str(tmp_path / "data.hf")


@pytest.fixture(params=["memory", "volume"])
def volume(request: pytest.FixtureRequest, image: str) -> Iterator[holdfast.Volume]:
    """An empty file system."""
    if request.param == "memory":
        made = holdfast.memory()
    else:
        made = holdfast.Volume(image, create=True, size=64 << 20)
    with made:
        yield made
