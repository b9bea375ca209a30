"""How long many small files take: in process, through a daemon, and on the host's file system.

    python python/benches/files.py HOST_DIRECTORY [--mount DIRECTORY] [--files 100000] [--rounds 5]

HOST_DIRECTORY lies on the file system to compare with: ext4 on a loop device, say. The volume is an
image file in it. DIRECTORY is a mount of another volume, for the rows of the daemon. What is compared
runs in turn, in one process, with warm caches; the medians are shown. Install the package from a
wheel that was built with `maturin build --release`.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import statistics
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import holdfast
from holdfast.torch import FileDataset

SIZE = 1024
DIRECTORIES = 100
BATCH = 256
THREADS = 8


def timed(work: Callable[[], object]) -> float:
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


def compare(
    title: str,
    goal: float,
    rounds: int,
    base: Callable[[], object],
    ours: Callable[[], object],
) -> None:
    """Prints the medians of both, and how many times faster ours is."""
    times: tuple[list[float], list[float]] = ([], [])
    base(), ours()
    for _ in range(rounds):
        times[0].append(timed(base))
        times[1].append(timed(ours))
    slow, fast = map(statistics.median, times)
    faster = f"{slow / fast:6.1f}x (goal {goal:g}x)"
    print(f"{title:<58} {slow:8.3f} s {fast:8.3f} s {faster}", flush=True)


def read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def walk(top: str) -> int:
    entries = 0
    for directory, directories, files in os.walk(top):
        for name in directories + files:
            os.stat(os.path.join(directory, name), follow_symlinks=False)
            entries += 1
    return entries


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("host")
    parser.add_argument("--mount")
    parser.add_argument("--files", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    top = os.path.join(arguments.host, "holdfast-bench")
    image = os.path.join(arguments.host, "holdfast-bench.hf")
    count, rounds = arguments.files, arguments.rounds
    content = random.Random(1).randbytes(SIZE)
    paths = [f"/{n % DIRECTORIES}/{n}" for n in range(count)]
    items = [(path, content) for path in paths]
    on_host = [top + path for path in paths]

    def loop() -> list[bytes]:
        return [read(path) for path in on_host]

    shutil.rmtree(top, ignore_errors=True)
    if os.path.exists(image):
        os.remove(image)
    os.mkdir(top)
    host = holdfast.Mount(top)
    print(f"{count} files of {SIZE} bytes, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    try:
        host.write_many(items, makedirs=True)
        with holdfast.Volume(image, create=True, size=4 * count * SIZE * 4 + (256 << 20)) as volume:
            volume.write_many(items, makedirs=True)
            volume.sync()
            assert volume.read_many(paths) == loop()
            compare("read_many | open().read() on the host", 8, rounds, loop,
                    lambda: volume.read_many(paths))
            assert len(volume.walk("/").columns()) == walk(top)
            compare("walk() as columns | os.walk and stat on the host", 10, rounds,
                    lambda: walk(top), lambda: volume.walk("/").columns())
        if arguments.mount:
            mount = holdfast.Mount(arguments.mount)
            mount.write_many(items, makedirs=True)
            mount.sync()
            assert mount.read_many(paths) == loop()
            compare("read_many by the daemon | open().read() on the host", 3, rounds, loop,
                    lambda: mount.read_many(paths))
            dataset = FileDataset(mount, paths)
            order = list(range(count))
            random.Random(2).shuffle(order)
            batches = [order[at : at + BATCH] for at in range(0, count, BATCH)]
            mounted = [arguments.mount.rstrip("/") + path for path in paths]
            with ThreadPoolExecutor(THREADS) as pool:
                compare(f"__getitems__ of {BATCH} | {THREADS} threads on the mount", 3, rounds,
                        lambda: [list(pool.map(read, [mounted[n] for n in batch]))
                                 for batch in batches],
                        lambda: [dataset.__getitems__(batch) for batch in batches])
    finally:
        shutil.rmtree(top, ignore_errors=True)
        if os.path.exists(image):
            os.remove(image)


if __name__ == "__main__":
    main()
