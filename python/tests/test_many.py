"""Many files in one call, and attributes as columns."""

import array
import gc
import os
import pathlib
import stat
import threading

import nanoarrow  # type: ignore[import-untyped]
import pytest

import holdfast
from holdfast import Volume

# Python's times have no nanoseconds.
pytestmark = pytest.mark.filterwarnings("ignore:.*nanoseconds discarded")


def test_contents_come_in_the_order_of_paths(volume: Volume) -> None:
    sizes = [0, 1, 4095, 4096, 4097, 262_144, 262_145, 1_000_000]
    items = {f"/dir/{n}": os.urandom(sizes[n % len(sizes)]) for n in range(200)}
    assert volume.write_many(items, makedirs=True) == sum(map(len, items.values()))
    for threads in (None, 1, 3, 16):
        told: list[int] = []
        found = volume.read_many(iter(items), threads=threads, progress=told.append)
        assert found == list(items.values())
        assert sum(told) == len(items)
    mixed: list[str | bytes | os.PathLike[str]] = [pathlib.PurePosixPath("/dir/1"), b"/dir/1", "dir/1"]
    assert volume.read_many(mixed) == [items["/dir/1"]] * 3
    assert volume.read_many([]) == []


def test_errors_are_raised_or_returned_in_their_place(volume: Volume) -> None:
    volume.write_many([("/a", b"1"), (b"/b", memoryview(b"22")), ("/c", array.array("B", [3]))])
    volume.mkdir("/dir")
    paths = ["/a", "/gone", "/b", "/dir", "/c"]
    with pytest.raises(FileNotFoundError) as missing:
        volume.read_many(paths)
    assert missing.value.filename == "/gone"
    one, two, three, four, five = volume.read_many(paths, errors="return")
    assert (one, three, five) == (b"1", b"22", b"\x03")
    assert isinstance(two, FileNotFoundError) and two.filename == "/gone"
    assert isinstance(four, IsADirectoryError)
    found = volume.stat_many(paths, errors="return")
    assert [stat.st_size for stat in found if not isinstance(stat, OSError)][:2] == [1, 2]
    assert isinstance(found[1], FileNotFoundError)
    with pytest.raises(FileNotFoundError):
        volume.stat_many(paths)
    with pytest.raises(FileNotFoundError) as parent:
        volume.write_many({"/none/file": b""})
    assert parent.value.filename == "/none/file"


def test_wrong_arguments_are_refused(volume: Volume) -> None:
    with pytest.raises(TypeError, match="not a single one"):
        volume.read_many("/path")
    with pytest.raises(ValueError, match="errors"):
        volume.read_many(["/a"], errors="omit")
    with pytest.raises(ValueError, match="threads"):
        volume.read_many(["/a"], threads=0)
    with pytest.raises(TypeError):
        volume.write_many({"/a": "text"})  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="tuple"):
        volume.write_many(["/a"])  # type: ignore[list-item]


def test_an_exception_of_the_callback_ends_the_call(volume: Volume) -> None:
    paths = [f"/dir/{n}" for n in range(5000)]
    volume.write_many([(path, b"x") for path in paths], makedirs=True)

    def refuse(_done: int) -> None:
        raise RuntimeError("enough")

    for threads in (1, 4):
        with pytest.raises(RuntimeError, match="enough"):
            volume.read_many(paths, threads=threads, progress=refuse)
        with pytest.raises(RuntimeError, match="enough"):
            volume.write_many([(path, b"y") for path in paths], threads=threads, progress=refuse)
    with pytest.raises(RuntimeError, match="enough"):
        volume.find("/", progress=refuse)
    with pytest.raises(RuntimeError, match="enough"):
        volume.bulkstat(progress=refuse)
    with pytest.raises(RuntimeError, match="enough"):
        volume.remove_tree("/dir", progress=refuse)


def test_a_callback_may_use_the_volume_and_close_it(volume: Volume) -> None:
    paths = [f"/{n}" for n in range(2000)]
    volume.write_many((path, b"x") for path in paths)
    seen: list[int] = []
    volume.read_many(paths, progress=lambda _: seen.append(volume.stat("/0").st_size))
    assert set(seen) == {1}
    with pytest.raises((OSError, ValueError)):
        volume.read_many(paths * 10, progress=lambda _: volume.close())
        volume.stat("/")


def test_ranges_are_slices(volume: Volume) -> None:
    text = bytes(range(256)) * 2000
    volume.write_bytes("/file", text)
    volume.write_bytes("/empty", b"")
    ends = [None, 0, 1, -1, 255, -300_000, 400_000, 10**15, -(10**15), 2**63 - 1, -(2**63)]
    ranges = [("/file", start, end) for start in ends for end in ends]
    assert volume.read_ranges(ranges) == [text[start:end] for _, start, end in ranges]
    assert volume.read_ranges([("/empty", -5, None)]) == [b""]
    with pytest.raises(FileNotFoundError):
        volume.read_ranges([("/gone", 0, 1)])


def test_find_lists_a_tree_with_attributes(volume: Volume) -> None:
    volume.write_many({f"/a/{n % 3}/{n}": b"x" * n for n in range(30)}, makedirs=True)
    volume.symlink("a", "/link")
    found = {entry.path: entry for entry in volume.find("/")}
    assert len(found) == 30 + 4 + 1
    assert found["/a/1/4"].stat().st_size == 4 and found["/a/1"].is_dir()
    assert {entry.path for entry in volume.find("/", maxdepth=1)} == {"/a", "/link"}
    assert {entry.path for entry in volume.find("a", maxdepth=1)} == {"a/0", "a/1", "a/2"}
    assert volume.find("/", maxdepth=0) == []
    assert all(isinstance(entry.path, bytes) for entry in volume.find(b"/a"))
    with pytest.raises(FileNotFoundError):
        volume.find("/gone")
    with pytest.raises(NotADirectoryError):
        volume.find("/a/1/4")


def test_a_tree_deeper_than_the_longest_path(volume: Volume) -> None:
    name = "d" * 200
    for _ in range(30):
        volume.mkdir("/new")
        if volume.exists("/" + name):
            volume.rename("/" + name, "/new/" + name)
        volume.rename("/new", "/" + name)
    deepest = max(volume.find("/"), key=lambda entry: len(entry.path))
    assert len(deepest.path) > 4096
    assert volume.walk("/").columns().num_rows == 30
    volume.rmtree("/" + name)


def test_a_walk_as_columns_has_what_stat_has(volume: Volume) -> None:
    volume.write_many({f"/a/{n % 3}/{n}": b"x" * n for n in range(300)}, makedirs=True)
    volume.symlink("a", "/link")
    volume.mkfifo("/pipe")
    volume.utime("/pipe", ns=(-5, 2**62))
    walk = volume.walk("/")
    rows = nanoarrow.ArrayStream(walk).read_all().to_pylist()
    assert len(rows) == 300 + 4 + 2
    for row in rows:
        found = volume.lstat(row["path"])
        assert (row["ino"], row["mode"], row["nlink"]) == (
            found.st_ino,
            found.st_mode,
            found.st_nlink,
        )
        assert (row["size"], row["blocks"], row["uid"]) == (
            found.st_size,
            found.st_blocks,
            found.st_uid,
        )
    by_path = {row["path"]: row for row in rows}
    assert by_path["/link"]["type"] == "symlink" and by_path["/a"]["type"] == "directory"
    assert by_path["/pipe"]["type"] == "fifo" and by_path["/a/1/1"]["type"] == "file"
    columns = walk.columns(maxdepth=1)
    assert len(columns) == 3 and "mtime" in columns.column_names
    schema = nanoarrow.Schema(columns)
    kinds = {field.name: field.type for field in schema.fields}
    assert kinds["mtime"] == nanoarrow.Type.TIMESTAMP and kinds["path"] == nanoarrow.Type.STRING
    assert kinds["type"] == nanoarrow.Type.DICTIONARY


def test_paths_that_are_not_utf8_need_bytes(volume: Volume) -> None:
    volume.write_bytes(b"/na\xefve", b"")
    with pytest.raises(ValueError, match='paths="bytes"'):
        volume.walk("/").columns()
    stream = nanoarrow.ArrayStream(volume.walk("/").columns(paths="bytes"))
    assert [row["path"] for row in stream.read_all().to_pylist()] == [b"/na\xefve"]
    with pytest.raises(ValueError, match="paths"):
        volume.walk("/").columns(paths="latin-1")  # type: ignore[arg-type]


def test_bulkstat_shows_each_inode_once(volume: Volume) -> None:
    volume.write_many({f"/dir/{n}": b"x" * (n % 10) for n in range(10_000)}, makedirs=True)
    volume.link("/dir/7", "/other")
    orphan = volume.open("/orphan", "wb")
    volume.unlink("/orphan")
    told: list[int] = []
    rows = nanoarrow.ArrayStream(volume.bulkstat(paths="str", progress=told.append)).read_all()
    found = rows.to_pylist()
    numbers = [row["ino"] for row in found]
    assert numbers == sorted(set(numbers)) and len(numbers) == sum(told)
    by_path = {row["path"]: row for row in found if row["path"] is not None}
    assert len(by_path) == 10_002 and by_path["/"]["type"] == "directory"
    assert by_path["/dir/9"]["size"] == 9
    linked = by_path.get("/dir/7") or by_path["/other"]
    assert linked["nlink"] == 2
    assert "path" not in volume.bulkstat().column_names
    orphan.close()


def test_batches_end_at_a_limit(volume: Volume) -> None:
    count = 70_000
    volume.write_many((f"/{n}", b"") for n in range(count))
    stream = nanoarrow.ArrayStream(volume.walk("/"))
    sizes = [len(batch) for batch in stream]
    assert sum(sizes) == count and max(sizes) <= 65_536


def test_columns_outlive_the_volume(volume: Volume) -> None:
    volume.write_bytes("/file", b"123")
    columns = volume.walk("/").columns()
    volume.close()
    assert nanoarrow.ArrayStream(columns).read_all().to_pylist()[0]["size"] == 3
    assert nanoarrow.ArrayStream(columns).read_all().to_pylist()[0]["path"] == "/file"


def resident() -> int:
    fields = pathlib.Path("/proc/self/statm").read_text().split()
    return int(fields[1]) * os.sysconf("SC_PAGESIZE")


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def test_nothing_leaks_in_100_000_calls(volume: Volume) -> None:
    paths = [f"/{n}" for n in range(1000)]
    volume.write_many((path, b"x" * 100) for path in paths)

    def some_calls() -> None:
        for path in paths[:500]:
            volume.stat(path)
            with volume.open(path, "rb") as file:
                file.read()
            volume.exists("/gone")
        volume.read_many(paths)
        volume.stat_many([*paths, "/gone"], errors="return")
        volume.find("/")
        volume.walk("/").__arrow_c_stream__()
        for entry in volume.scandir("/"):
            entry.stat()
        volume.scandir("/")

    for _ in range(3):
        some_calls()
    gc.collect()
    before, open_before = resident(), descriptors()
    threads = threading.active_count()
    for _ in range(25):
        some_calls()
    gc.collect()
    assert resident() - before < 8 << 20
    assert descriptors() == open_before and threading.active_count() == threads


def test_volumes_leave_no_descriptors_behind(image: str) -> None:
    with Volume(image, create=True, size=64 << 20) as made:
        made.mkdir("/dir")
    before, threads = descriptors(), len(os.listdir("/proc/self/task"))
    for _ in range(20):
        Volume(image, read_only=True).stat("/dir")
        with Volume(image) as opened:
            opened.stat("/dir")
        holdfast.memory().mkdir("/dir")
    gc.collect()
    assert descriptors() == before and len(os.listdir("/proc/self/task")) <= threads


def test_modes_of_new_files_heed_the_umask(volume: Volume) -> None:
    volume.write_many({"/file": b""})
    old = os.umask(0)
    os.umask(old)
    assert stat.S_IMODE(volume.stat("/file").st_mode) == 0o666 & ~old
