"""Many calls leave neither memory nor descriptors behind.

HOLDFAST_CALLS is the number of calls of each test, 20000 without it.
"""

from __future__ import annotations

import gc
import os
import pathlib
import subprocess
import time
from collections.abc import Callable
from typing import Any

import holdfast

CALLS = int(os.environ.get("HOLDFAST_CALLS", "20000"))
# Memory that the allocator may keep besides.
SLACK = 2 << 20


def resident(process: int | str) -> int:
    fields = pathlib.Path(f"/proc/{process}/statm").read_text().split()
    return int(fields[1]) * os.sysconf("SC_PAGE_SIZE")


def descriptors(process: int | str) -> int:
    return len(os.listdir(f"/proc/{process}/fd"))


def check(
    volume: Any, calls: list[Callable[[Any], object]], process: int | str = "self"
) -> None:
    """Makes calls in turn; compares the end with what was after the first twentieth."""
    rounds = max(20, CALLS // len(calls))

    def some(count: int) -> tuple[int, int, int, int]:
        for _ in range(count):
            for call in calls:
                call(volume)
        gc.collect()
        return (
            resident("self"),
            descriptors("self"),
            resident(process),
            descriptors(process),
        )

    begun = time.monotonic()
    memory, files, theirs, their_files = some(rounds // 20)
    memory_after, files_after, theirs_after, their_files_after = some(rounds - rounds // 20)
    print(
        f"{rounds * len(calls)} calls in {time.monotonic() - begun:.1f} s: "
        f"{memory_after - memory:+} bytes, {files_after - files:+} descriptors; "
        f"daemon {theirs_after - theirs:+} bytes, {their_files_after - their_files:+} descriptors"
    )
    assert files_after == files and their_files_after <= their_files + 1
    assert memory_after <= memory + SLACK
    # What the daemon has read may be in its cache, and each of its threads has a heap that grows in
    # steps: by 0 to 6 MiB, for 20,000 calls as for 60,000.
    assert theirs_after <= theirs + 6 * SLACK


def missing(volume: Any) -> None:
    try:
        volume.stat("/none")
    except FileNotFoundError:
        pass


PATHS = [f"/{n}" for n in range(20)]
COMMON: list[Callable[[Any], object]] = [
    lambda volume: volume.stat("/7"),
    lambda volume: volume.open("/7", "rb").close(),
    lambda volume: volume.read_many(["/7", "/11", "/none"], errors="return"),
    lambda volume: volume.stat_many(["/7", "/11", "/none"], errors="return"),
    lambda volume: volume.read_ranges([("/19", 1, -1)]),
    missing,
]


def read(volume: Any) -> None:
    with volume.open("/7", "rb", 0) as file:
        file.read()


def fill(volume: Any) -> None:
    volume.write_many({path: path.encode() * 500 for path in PATHS})


def test_calls_in_process_leak_nothing(image: str) -> None:
    with holdfast.Volume(image, create=True, size=64 << 20, memory=64 << 20) as volume:
        fill(volume)
        more: list[Callable[[Any], object]] = [
            lambda volume: volume.write_bytes("/written", b"x"),
            lambda volume: volume.walk("/").columns(),
            lambda volume: [entry.stat() for entry in volume.scandir("/")],
        ]
        check(volume, [*COMMON, read, *more])


def test_calls_of_a_mount_leak_nothing(program: str, image: str, tmp_path: pathlib.Path) -> None:
    point = tmp_path / "point"
    point.mkdir()
    holdfast.Volume(image, create=True, size=64 << 20).close()
    served = subprocess.Popen([program, "mount", "--foreground", image, str(point)])
    try:
        until = time.monotonic() + 60
        while not os.path.ismount(point) and time.monotonic() < until:
            time.sleep(0.05)
        mount = holdfast.Mount(point)
        fill(mount)
        more: list[Callable[[Any], object]] = [
            lambda mount: mount.write_many({"/written": b"x"}),
            lambda mount: mount.walk("/").columns(),
            lambda mount: [entry.stat() for entry in mount.scandir("/")],
        ]
        check(mount, [*COMMON, read, *more], served.pid)
        assert not mount._daemon._unanswered
    finally:
        served.terminate()
        assert served.wait(60) == 0
