"""The file systems that tests run on."""

from __future__ import annotations

import os
import pathlib
import subprocess
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


PROGRAM = os.environ.get("HOLDFAST", "")


@pytest.fixture(scope="session")
def program() -> str:
    """The program that mounts a volume."""
    if not os.access("/dev/fuse", os.W_OK):
        pytest.skip("no /dev/fuse that this user may open")
    if not os.access(PROGRAM, os.X_OK):
        pytest.skip("HOLDFAST names no program that mounts")
    return PROGRAM


@pytest.fixture(scope="module")
def mounted(program: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The mount point of a volume."""
    top = tmp_path_factory.mktemp("mounted")
    point = top / "point"
    point.mkdir()
    subprocess.run(
        [program, "mount", "--create", "--size", "256M", str(top / "data.hf"), str(point)],
        check=True,
        timeout=60,
    )
    try:
        yield str(point)
    finally:
        subprocess.run([program, "umount", str(point)], check=True, timeout=60)
