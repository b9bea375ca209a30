"""Several processes: forks, pickles, and workers that share a volume."""

import copy
import multiprocessing
import os
import pathlib
import pickle
import signal
import sys
import threading
import time
from collections.abc import Callable
from multiprocessing.connection import Connection

import pytest

import holdfast
from holdfast import ForkError, Volume

FILES = 500
WORKERS = 8


def content(number: int) -> bytes:
    return number.to_bytes(4, "big") * (number % 700)


@pytest.fixture
def filled(image: str) -> str:
    """An image file with numbered files."""
    with Volume(image, create=True, size=64 << 20) as made:
        items = {f"/{number % 7}/{number}": content(number) for number in range(FILES)}
        made.write_many(items, makedirs=True)
    return image


def in_child(work: Callable[[], None], seconds: float = 20) -> int:
    """The exit code of a child that does this, or minus the number of the signal that ended it."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            work()
            code = 0
        finally:
            os._exit(code)
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    pytest.fail("the child hangs")


def test_handles_of_the_parent_say_so_in_a_child(volume: Volume) -> None:
    volume.makedirs("/dir/below")
    volume.symlink("dir", "/dir/link")
    writer = volume.open("/file", "w")
    writer.write("not flushed by the child")
    reader = volume.open("/file", "rb", 0)
    entries = {entry.name: entry for entry in volume.scandir("/dir")}
    scan = volume.scandir("/dir")
    next(scan)

    def work() -> None:
        calls: list[Callable[[], object]] = [
            lambda: volume.stat("/"),
            volume.sync,
            lambda: volume.read_many(["/file"]),
            lambda: volume.write_bytes("/new", b""),
            lambda: volume.find("/"),
            lambda: volume.rmtree("/dir"),
            volume.bulkstat,
            lambda: volume.walk("/").columns(),
            lambda: reader.read(1),
            reader.stat,
            lambda: next(scan),
            lambda: entries["link"].stat(),
            writer.flush,
        ]
        for call in calls:
            with pytest.raises(ForkError, match=f"process {os.getppid()}.*fork of it"):
                call()
        assert volume.forked
        volume.close()
        reader.close()
        scan.close()

    assert in_child(work) == 0
    assert not volume.forked
    writer.close()
    assert volume.read_text("/file") == "not flushed by the child"


def test_a_child_that_ends_in_the_ordinary_way_neither_hangs_nor_writes(image: str) -> None:
    program = (
        "import os, sys, holdfast\n"
        "volume = holdfast.Volume(sys.argv[1], create=True, size=64 << 20)\n"
        "file = volume.open('/file', 'w')\n"
        "file.write('once')\n"
        "scan = volume.scandir('/')\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    del scan\n"
        "    sys.exit(7)\n"
        "assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7\n"
        "file.close()\n"
    )
    done = multiprocessing.get_context("spawn").Process(target=_run, args=(program, image))
    done.start()
    done.join(30)
    assert done.exitcode == 0
    with Volume(image) as again:
        assert again.read_text("/file") == "once"


def _run(program: str, image: str) -> None:
    sys.argv = ["program", image]
    exec(compile(program, "program", "exec"), {"__name__": "__main__"})


def test_a_child_opens_anew_between_the_calls_of_other_threads(filled: str) -> None:
    with Volume(filled, read_only=True) as volume, holdfast.memory() as other:
        stop = threading.Event()
        # No thread is in a call when a child is made: it could hold what the child needs.
        calls = threading.Lock()

        def busy() -> None:
            number = 0
            while not stop.is_set():
                number += 1
                with calls:
                    other.write_bytes(f"/{number % 50}", b"x" * 5000)
                    volume.read_many([f"/{n % 7}/{n}" for n in range(FILES)], threads=1)

        threads = [threading.Thread(target=busy) for _ in range(2)]
        for thread in threads:
            thread.start()

        def work() -> None:
            with Volume(filled, read_only=True) as mine:
                for number in range(FILES):
                    assert mine.read_bytes(f"/{number % 7}/{number}") == content(number)
                assert len(mine.find("/")) == FILES + 7

        codes = []
        try:
            for _ in range(10):
                with calls:
                    codes.append(in_child(work))
        finally:
            stop.set()
            for thread in threads:
                thread.join()
        assert codes == [0] * 10


def test_a_volume_pickles_as_its_path(filled: str) -> None:
    with Volume(filled, read_only=True, memory=256 << 20) as volume:
        twin = pickle.loads(pickle.dumps(volume))
        assert twin.path == volume.path and twin.read_only and twin is not volume
        assert twin.read_bytes("/0/7") == content(7)
        twin.close()
        file = volume.open("/0/7", "rb", 0)
        file.seek(2)
        with pickle.loads(pickle.dumps(file)) as same:
            assert same.read() == content(7)[2:] and same.name == "/0/7"
        file.close()
        with copy.copy(volume) as third:
            assert third.exists("/0/7")
    with Volume(filled) as volume:
        with pytest.raises(OSError, match="already"):
            pickle.loads(pickle.dumps(volume))
        with volume.open("/new", "wb", 0) as written:
            with pytest.raises(TypeError, match="open for writing"):
                pickle.dumps(written)


def test_a_file_system_in_memory_does_not_pickle() -> None:
    with holdfast.memory() as memory, pytest.raises(TypeError, match="in memory"):
        pickle.dumps(memory)


def compare(volume: Volume, number: int, results: Connection) -> None:
    """Reads every file, and compares each byte."""
    if volume.forked:
        volume = copy.copy(volume)
    wrong = 0
    for round in range(3):
        paths = [f"/{n % 7}/{n}" for n in range(FILES)]
        for n, found in enumerate(volume.read_many(paths, threads=1 + round % 2)):
            wrong += found != content(n)
    results.send((number, wrong))
    results.close()


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_workers_share_a_volume(filled: str, method: str) -> None:
    context = multiprocessing.get_context(method)
    with Volume(filled, read_only=True) as volume:
        volume.read_bytes("/0/0")
        workers, ends = [], []
        for number in range(WORKERS):
            end, results = context.Pipe(duplex=False)
            worker = context.Process(target=compare, args=(volume, number, results))  # type: ignore[attr-defined]
            worker.start()
            results.close()
            workers.append(worker)
            ends.append(end)
        found = [end.recv() for end in ends]
        for worker in workers:
            worker.join(30)
        assert [worker.exitcode for worker in workers] == [0] * WORKERS
        assert found == [(number, 0) for number in range(WORKERS)]


def test_a_killed_worker_harms_nobody(filled: str, tmp_path: pathlib.Path) -> None:
    ready = tmp_path / "ready"

    def read_for_ever() -> None:
        with Volume(filled, read_only=True) as mine:
            while True:
                mine.read_many([f"/{n % 7}/{n}" for n in range(FILES)])
                ready.touch()

    with Volume(filled, read_only=True) as volume:
        child = os.fork()
        if child == 0:
            try:
                read_for_ever()
            finally:
                os._exit(1)
        until = time.monotonic() + 20
        while not ready.exists() and time.monotonic() < until:
            time.sleep(0.01)
        os.kill(child, signal.SIGKILL)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
        assert volume.read_bytes("/3/10") == content(10)
    # No lock is left behind.
    with Volume(filled) as volume:
        volume.write_bytes("/new", b"")


def test_a_killed_writer_leaves_a_volume_that_opens(filled: str) -> None:
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            mine = Volume(filled)
            mine.write_bytes("/synced", b"content")
            mine.sync()
            os.write(writing, b"1")
            while True:
                mine.write_many([(f"/more/{n}", b"x") for n in range(100)], makedirs=True)
        finally:
            os._exit(1)
    os.close(writing)
    assert os.read(reading, 1) == b"1"
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    os.close(reading)
    # What was not closed is replayed, also in memory for readers.
    with Volume(filled, read_only=True) as one, Volume(filled, read_only=True) as two:
        assert one.read_bytes("/synced") == two.read_bytes("/synced") == b"content"
    with Volume(filled) as volume:
        assert volume.read_bytes("/synced") == b"content"


def test_a_closed_volume_is_free_while_a_child_lives(filled: str) -> None:
    with Volume(filled, read_only=True) as volume:
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(writing)
            os.read(reading, 1)
            os._exit(0)
        os.close(reading)
        volume.stat("/")
    try:
        Volume(filled).close()
    finally:
        os.close(writing)
        os.waitpid(child, 0)
