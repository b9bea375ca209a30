"""Mounted volumes: what the daemon does for `Mount`, compared with a volume of this process."""

from __future__ import annotations

import errno
import os
import pathlib
import pickle
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import nanoarrow  # type: ignore[import-untyped]
import pytest

import holdfast
from holdfast._daemon import NotAnswered, _send


@pytest.fixture(params=["directory", "mount"])
def mount(request: pytest.FixtureRequest, tmp_path: pathlib.Path) -> Iterator[holdfast.Mount]:
    """A directory, of which no daemon reads, and a mount."""
    if request.param == "directory":
        yield holdfast.Mount(tmp_path)
        return
    mounted: str = request.getfixturevalue("mounted")
    yield holdfast.Mount(mounted)
    for name in os.listdir(mounted):
        shutil.rmtree(os.path.join(mounted, name))


def test_a_mount_reads_and_writes_many(mount: holdfast.Mount) -> None:
    items = {f"/dir/{n % 3}/{n}": os.urandom(n) for n in range(500)}
    told: list[int] = []
    assert mount.write_many(items, makedirs=True, progress=told.append) == sum(range(500))
    assert sum(told) == 500
    assert mount.read_many(items) == list(items.values())
    assert mount.read_many(items, threads=1) == list(items.values())
    assert [found.st_size for found in mount.stat_many(items)] == list(range(500))
    assert isinstance(mount.read_many(["/gone"], errors="return")[0], FileNotFoundError)
    with pytest.raises(FileNotFoundError):
        mount.read_many([*items, "/gone"])
    with pytest.raises(ValueError):
        mount.read_many([], errors="omit")
    with pytest.raises(TypeError, match="not a single one"):
        mount.read_many("/dir")
    assert len(mount.find("/")) == 504 and len(mount.find("/", maxdepth=2)) == 4
    twin = pickle.loads(pickle.dumps(mount))
    assert twin.read_many(list(items)[:70]) == list(items.values())[:70]
    begun = time.monotonic()
    mount.sync()
    assert time.monotonic() - begun < 60


def test_the_daemon_reads_for_a_mount(mounted: str) -> None:
    mount = holdfast.Mount(mounted)
    items = {f"/many/{n % 7}/{n}": os.urandom(n % 1500) for n in range(5000)}
    items["/many/large"] = os.urandom(33 << 20)
    mount.write_many(items, makedirs=True)
    daemon = mount._daemon
    asked: list[int] = []
    read = daemon.read

    def counted(paths: Sequence[bytes]) -> list[bytes | None]:
        found = read(paths)
        asked.append(sum(content is not None for content in found))
        return found

    daemon.read = counted  # type: ignore[method-assign]
    assert mount.read_many(items) == list(items.values())
    # All but the one that is longer than an answer.
    assert sum(asked) == 5000 and len(asked) == 5

    # What the kernel resolves in another way is left to it.
    pathlib.Path(mounted, "many", "outside").symlink_to("/etc")
    pathlib.Path(mounted, "many", "link").symlink_to("1/1")
    pathlib.Path(mounted, "etc").mkdir()
    pathlib.Path(mounted, "etc", "passwd").write_text("not this")
    odd = ["/many/outside/passwd", "/many/link", "/many/1/../1/8", "many/1/8", "/many/gone"]
    found = mount.read_many(odd, errors="return")
    assert found[0] == pathlib.Path("/etc/passwd").read_bytes()
    assert found[1] == items["/many/1/1"] and found[2] == found[3] == items["/many/1/8"]
    assert isinstance(found[4], FileNotFoundError)
    below = holdfast.Mount(os.path.join(mounted, "many", "3"))
    assert below.read_many(["3", "/10"]) == [items["/many/3/3"], items["/many/3/10"]]
    for name in os.listdir(mounted):
        shutil.rmtree(os.path.join(mounted, name))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes another user")
def test_the_daemon_reads_with_the_rights_of_its_caller(mounted: str) -> None:
    secret = pathlib.Path(mounted, "secret")
    secret.write_bytes(b"secret")
    secret.chmod(0o600)
    daemon = holdfast.Mount(mounted)._daemon
    assert daemon.read([b"/secret"]) == [b"secret"]

    def is_refused() -> None:
        assert daemon.read([b"/secret"]) == [None]

    other_user(mounted, is_refused)
    secret.unlink()


def other_user(mounted: str, work: Callable[[], None]) -> None:
    """Does this as an ordinary user, in a child."""
    for folder in pathlib.Path(mounted).parents:
        if str(folder) != "/":
            folder.chmod(folder.stat().st_mode | 0o011)
    child = os.fork()
    if child == 0:
        code = 2
        try:
            os.setgroups([])
            os.setresgid(4712, 4712, 4712)
            os.setresuid(4711, 4711, 4711)
            work()
            code = 0
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.fixture
def image_and_mount(
    program: str, image: str, tmp_path: pathlib.Path
) -> Iterator[tuple[str, Callable[[], holdfast.Mount], Callable[[], None]]]:
    """A volume with a tree, and calls that mount and unmount it."""
    with holdfast.Volume(image, create=True, size=64 << 20, superuser=True) as made:
        made.write_many({f"/dir/{n % 3}/{n}": bytes(n) for n in range(3000)}, makedirs=True)
        made.write_bytes("/nul\udcff", b"x")
        made.symlink("dir/1/1", "/link")
        made.symlink("/etc", "/outside")
        made.symlink("nowhere", "/dangling")
        made.link("/dir/2/2", "/twin")
        made.mkfifo("/pipe")
        made.chmod("/dir/0/3", 0o4711)
        made.utime("/dir/0/6", ns=(-5, 2**62))
    point = tmp_path / "point"
    point.mkdir()

    def mount() -> holdfast.Mount:
        subprocess.run([program, "mount", image, str(point)], check=True, timeout=60)
        return holdfast.Mount(point)

    def unmount() -> None:
        subprocess.run([program, "umount", str(point)], check=True, timeout=60)

    yield image, mount, unmount
    if os.path.ismount(point):
        unmount()


# All of `os.stat_result` but the number of the file system and the time of access: the kernel
# learns late of reads by the daemon.
FIELDS = [
    name
    for name in dir(os.stat_result)
    if name.startswith("st_") and name != "st_dev" and not name.startswith("st_atime")
]


def attributes(found: os.stat_result) -> list[object]:
    return [getattr(found, name) for name in FIELDS]


def rows(columns: holdfast.Columns) -> list[Any]:
    """The rows of columns, without the time of access."""
    keep = [name for name in columns.column_names if name != "atime"]
    table = nanoarrow.Array(columns)
    names = columns.column_names
    found = [tuple(row[name] for name in keep) for row in table.to_pylist()]
    assert len(found) == len(columns) and "path" in names
    return sorted(found, key=str)


def test_answers_are_those_of_a_volume_in_process(
    image_and_mount: tuple[str, Callable[[], holdfast.Mount], Callable[[], None]],
) -> None:
    image, mount, unmount = image_and_mount
    paths = [f"/dir/{n % 3}/{n}" for n in range(3000)]
    odd = ["/link", "/dangling", "/pipe", "/twin", "/nul\udcff", "/dir", "/", "/gone"]
    parts: list[tuple[str, int | None, int | None]] = [
        (path, start, end)
        for path in paths[::97]
        for start, end in [(None, None), (1, 5), (-7, None), (None, -3), (5, 2), (10**15, None)]
    ]

    def answers(volume: Any) -> dict[str, object]:
        def shown(entries: Any) -> list[Any]:
            return sorted(
                (
                    entry.path,
                    entry.name,
                    entry.inode(),
                    entry.is_dir(),
                    entry.is_file(),
                    entry.is_file(follow_symlinks=False),
                    entry.is_symlink(),
                    os.fspath(entry),
                    attributes(entry.stat(follow_symlinks=False)),
                )
                for entry in entries
                if entry.name not in ("outside", "dangling")
            )

        def stats(follow: bool) -> list[object]:
            found = volume.stat_many(paths + odd, follow_symlinks=follow, errors="return")
            return [
                (type(one), one.errno) if isinstance(one, OSError) else attributes(one)
                for one in found
            ]

        with volume.scandir("/dir/1") as scan:
            listed = shown(scan)
        # The link leads to a directory of the host, and in process to nothing.
        walk = sorted(
            (top, sorted({*dirs} - {"outside"}), sorted({*files} - {"outside"}))
            for top, dirs, files in volume.walk()
        )
        return {
            "stat": stats(True),
            "lstat": stats(False),
            "ranges": volume.read_ranges(parts),
            "contents": volume.read_many(paths),
            "listed": listed,
            "found": shown(volume.find("/")),
            "shallow": shown(volume.find("/dir", maxdepth=1)),
            "none": volume.find("/", maxdepth=0),
            "walk": walk,
            "columns": rows(volume.walk("/").columns(paths="bytes")),
            "below": rows(volume.walk("/dir/2").columns(maxdepth=1)),
            "bulkstat": rows(volume.bulkstat(paths="bytes")),
        }

    mounted = mount()
    daemon = mounted._daemon
    from_mount = answers(mounted)
    assert not daemon._unanswered
    # The daemon answers it all, and what the kernel says is the same.
    inside = [os.fsencode(path) for path in paths]
    assert None not in daemon.stat(inside) and None not in daemon.read(inside)
    for path, found in zip(paths, mounted.stat_many(paths, follow_symlinks=False)):
        kernel = os.lstat(mounted.path + path)
        assert attributes(found) == attributes(kernel) and found.st_dev == kernel.st_dev
    found = mounted.stat_many(["/link"])[0]
    assert attributes(found) == attributes(os.stat(mounted.path + "/link"))
    without = holdfast.Mount(mounted.path)
    without._daemon._unanswered = {(daemon.device(), "list")}
    assert sorted(entry.path for entry in without.find("/")) == sorted(
        entry.path for entry in mounted.find("/")
    )
    unmount()
    with holdfast.Volume(image, read_only=True, superuser=True) as volume:
        in_process = answers(volume)
    for name, expected in in_process.items():
        assert from_mount[name] == expected, name


def test_the_daemon_writes_many(mounted: str) -> None:
    mount = holdfast.Mount(mounted)
    daemon = mount._daemon
    counts: list[int] = []
    write = daemon.write

    def counted(items: Any) -> list[bool]:
        done = write(items)
        counts.append(sum(done))
        return done

    daemon.write = counted  # type: ignore[method-assign]
    point = pathlib.Path(mounted, "writes")
    point.mkdir()
    # What the kernel knows of the names is out of date after the writes.
    (point / "old").write_bytes(b"the old content, which is longer")
    assert (point / "old").read_bytes().startswith(b"the old")
    assert not (point / "new").exists()
    (point / "link").symlink_to("old")
    before = os.umask(0o027)
    try:
        items: dict[str, Any] = {f"/writes/{n % 7}/{n}": os.urandom(n) for n in range(3000)}
        items |= {"/writes/old": b"old", "/writes/new": bytearray(b"new")}
        assert mount.write_many(items, makedirs=True) == sum(map(len, items.values()))
    finally:
        os.umask(before)
    assert sum(counts) == len(items)
    for path, content in items.items():
        found = pathlib.Path(mounted + path)
        assert found.read_bytes() == content
    assert (point / "new").stat().st_mode & 0o7777 == 0o640
    assert (point / "7").exists() is False and (point / "6").stat().st_mode & 0o7777 == 0o750

    # What the daemon leaves is done by the kernel: a link, and more than a job takes.
    counts.clear()
    large = os.urandom(17 << 20)
    some: list[tuple[str, Any]] = [
        ("/writes/link", b"by a link"),
        ("/writes/large", large),
        ("/writes/after", memoryview(b"abcdef").cast("H")),
    ]
    assert mount.write_many(some) == 9 + len(large) + 6
    assert (point / "old").read_bytes() == b"by a link" and (point / "link").is_symlink()
    assert (point / "large").read_bytes() == large and (point / "after").read_bytes() == b"abcdef"
    assert sum(counts) < 3
    with pytest.raises(FileNotFoundError) as missing:
        mount.write_many({"/writes/none/a": b""})
    assert missing.value.filename == mounted + "/writes/none/a"
    with pytest.raises(IsADirectoryError):
        mount.write_many({"/writes/1": b""})
    with pytest.raises(TypeError):
        mount.write_many({"/writes/x": "text"})  # type: ignore[arg-type]
    shutil.rmtree(point)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes another user")
def test_an_ordinary_user_has_its_own_rights(
    image_and_mount: tuple[str, Callable[[], holdfast.Mount], Callable[[], None]],
) -> None:
    _, mount, _ = image_and_mount
    mounted = mount()
    point = pathlib.Path(mounted.path)
    private = point / "private"
    private.mkdir(0o700)
    (private / "secret").write_bytes(b"secret")
    (point / "read-only").write_bytes(b"x")
    shared = point / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    daemon = mounted._daemon

    def work() -> None:
        # The daemon answers this user, and not what is private.
        assert daemon.stat([b"/dir/1/1", b"/private/secret"])[1] is None
        assert daemon.stat([b"/dir/1/1"]) != [None]
        assert daemon.write([(b"/shared/mine", memoryview(b"mine"))]) == [True]
        assert daemon.write([(b"/read-only", memoryview(b"mine"))]) == [False]
        assert os.stat(shared / "mine").st_uid == 4711
        refused: list[tuple[str, Callable[[], object]]] = [
            ("private/secret", lambda: mounted.stat_many(["/private/secret"])),
            ("private/secret", lambda: mounted.read_many(["/dir/1/1", "/private/secret"])),
            ("private/secret", lambda: mounted.read_ranges([("/private/secret", 0, 1)])),
            ("read-only", lambda: mounted.write_many({"/read-only": b"mine"})),
            ("private", lambda: mounted.scandir("/private")),
            ("private", lambda: mounted.find("/")),
            ("private", lambda: mounted.walk("/").columns(paths="bytes")),
            ("", lambda: mounted.bulkstat()),
        ]
        for name, call in refused:
            with pytest.raises(PermissionError) as error:
                call()
            assert error.value.filename == str(point / name), name
        assert len(mounted.find("/dir")) == 3003

    other_user(mounted.path, work)
    assert (point / "read-only").read_bytes() == b"x"


def test_a_job_that_the_daemon_does_not_know_is_left_to_the_kernel(mounted: str) -> None:
    daemon = holdfast.Mount(mounted)._daemon
    pathlib.Path(mounted, "file").write_bytes(b"content")
    assert daemon._ask("a_job_of_tomorrow", [b"\x05\0/file"]) == [None]
    assert {kind for _, kind in daemon._unanswered} == {"a_job_of_tomorrow"}
    assert daemon.read([b"/file"]) == [b"content"]
    os.unlink(os.path.join(mounted, "file"))


def test_a_list_goes_into_a_pipe_alone(mounted: str) -> None:
    daemon = holdfast.Mount(mounted)._daemon
    target = pathlib.Path(mounted, "target")
    with open(target, "wb") as file, daemon._peer("list") as peer:
        _send(peer, {"list": {"top": [*b"/"], "depth": None}}, file.fileno(), 0)
        with pytest.raises(NotAnswered):
            daemon._end(peer, "list")
    assert target.read_bytes() == b"" and not daemon._unanswered
    target.unlink()


def test_another_mount_below_is_not_read_as_the_volume(mounted: str) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root mounts")
    below = pathlib.Path(mounted, "below")
    below.mkdir()
    (below / "file").write_bytes(b"hidden")
    if subprocess.run(["mount", "-t", "tmpfs", "none", str(below)]).returncode != 0:
        pytest.skip("no tmpfs can be mounted")
    try:
        (below / "file").write_bytes(b"shown")
        mount = holdfast.Mount(mounted)
        assert mount.read_many(["/below/file"]) == [b"shown"]
        assert mount.stat_many(["/below/file"])[0].st_size == 5
    finally:
        subprocess.run(["umount", str(below)], check=True)
    shutil.rmtree(below)


# What workers do all the time.
def busy(mount: holdfast.Mount, part: int) -> None:
    paths = [f"/dir/{n % 3}/{n}" for n in range(3000)]
    calls: list[Callable[[], object]] = [
        lambda: mount.read_many(paths),
        lambda: mount.stat_many(paths),
        lambda: mount.write_many({f"/mine/{part}/{n}": b"x" for n in range(100)}, makedirs=True),
        lambda: mount.find("/"),
    ]
    while True:
        calls[part]()


def test_a_killed_daemon_hangs_no_worker(
    program: str,
    image_and_mount: tuple[str, Callable[[], holdfast.Mount], Callable[[], None]],
) -> None:
    image, mount, unmount = image_and_mount
    mount()
    unmount()
    point = pathlib.Path(image).parent / "point"
    served = subprocess.Popen([program, "mount", "--foreground", image, str(point)])
    try:
        until = time.monotonic() + 60
        while not os.path.ismount(point) and time.monotonic() < until:
            time.sleep(0.05)
        mounted = holdfast.Mount(point)
        assert mounted.read_many(["/dir/1/1"]) == [b"\0"]
        workers = {}
        for part in range(4):
            child = os.fork()
            if child == 0:
                code = 1
                try:
                    busy(mounted, part)
                except OSError as error:
                    # Of the mount that broke. The kernel cancels what waits in the rings.
                    broken = (errno.ENOTCONN, errno.ECONNABORTED, errno.ECANCELED, errno.EIO)
                    code = 0 if error.errno in broken else error.errno or 2
                finally:
                    os._exit(code)
            workers[child] = part
        time.sleep(2)
        served.kill()
        served.wait(30)
        until = time.monotonic() + 20
        codes = {}
        while workers and time.monotonic() < until:
            for child, part in [*workers.items()]:
                done, status = os.waitpid(child, os.WNOHANG)
                if done:
                    codes[part] = os.waitstatus_to_exitcode(status)
                    del workers[child]
            time.sleep(0.05)
        hung = [*workers]
        for child in hung:
            os.kill(child, 9)
        assert not hung and codes == {part: 0 for part in range(4)}
        with pytest.raises(OSError):
            mounted.stat_many(["/dir/1/1"])
    finally:
        if served.poll() is None:
            served.kill()
            served.wait(30)
        subprocess.run([program, "umount", str(point)], timeout=60)
    # The same object works with what is mounted next.
    mount()
    asked = mounted._daemon
    paths = [f"/dir/{n % 3}/{n}" for n in range(3000)]
    assert mounted.read_many(paths) == [bytes(n) for n in range(3000)]
    assert None not in asked.read([os.fsencode(path) for path in paths])
    assert [found.st_size for found in mounted.stat_many(paths)] == [*range(3000)]
    assert not asked._unanswered
