"""The file system of fsspec, on memory, on a volume and on a mount."""

import datetime
import os
import pathlib
import pickle
import shutil
import subprocess
import time
from collections.abc import Iterator
from typing import Any

import fsspec  # type: ignore[import-untyped]
import fsspec.tests.abstract as abstract  # type: ignore[import-untyped]
import pytest

import holdfast
from holdfast.spec import HoldfastFileSystem

KINDS = ["memory", "volume", "directory", "mount"]
PROGRAM = os.environ.get("HOLDFAST", "")


@pytest.fixture(scope="module")
def mounted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The mount point of a volume."""
    if not os.access("/dev/fuse", os.W_OK):
        pytest.skip("no /dev/fuse that this user may open")
    if not os.access(PROGRAM, os.X_OK):
        pytest.skip("HOLDFAST names no program that mounts")
    top = tmp_path_factory.mktemp("mounted")
    point = top / "point"
    point.mkdir()
    subprocess.run(
        [PROGRAM, "mount", "--create", "--size", "64M", str(top / "data.hf"), str(point)],
        check=True,
        timeout=60,
    )
    try:
        yield str(point)
    finally:
        subprocess.run([PROGRAM, "umount", str(point)], check=True, timeout=60)


class Fixtures(abstract.AbstractFixtures):  # type: ignore[misc]
    @pytest.fixture(params=KINDS)
    def fs(
        self, request: pytest.FixtureRequest, tmp_path: pathlib.Path
    ) -> Iterator[HoldfastFileSystem]:
        if request.param == "memory":
            with holdfast.memory() as inside:
                yield HoldfastFileSystem(volume=inside, skip_instance_cache=True)
        elif request.param == "volume":
            path = str(tmp_path / "data.hf")
            with holdfast.Volume(path, create=True, size=64 << 20) as inside:
                yield HoldfastFileSystem(volume=inside, skip_instance_cache=True)
        else:
            directory = tmp_path / "inside"
            if request.param == "mount":
                directory = pathlib.Path(request.getfixturevalue("mounted")) / "inside"
            directory.mkdir()
            yield HoldfastFileSystem(mount=directory, skip_instance_cache=True)
            shutil.rmtree(directory)

    @pytest.fixture
    def fs_path(self, fs: HoldfastFileSystem) -> str:
        fs.makedirs("/base", exist_ok=True)
        return "/base"


class TestCopy(abstract.AbstractCopyTests, Fixtures):  # type: ignore[misc]
    pass


class TestGet(abstract.AbstractGetTests, Fixtures):  # type: ignore[misc]
    pass


class TestOpen(abstract.AbstractOpenTests, Fixtures):  # type: ignore[misc]
    pass


class TestPipe(abstract.AbstractPipeTests, Fixtures):  # type: ignore[misc]
    pass


class TestPut(abstract.AbstractPutTests, Fixtures):  # type: ignore[misc]
    pass


class TestOwn(Fixtures):
    def test_move(self, fs: Any) -> None:
        fs.pipe_file("/base/source", b"content")
        with pytest.raises(FileNotFoundError):
            fs.mv("/base/source", "/base/missing/target")
        fs.mv("/base/source", "/base/target")
        assert fs.cat("/base/target") == b"content" and not fs.exists("/base/source")
        fs.mkdir("/base/dir")
        fs.mv("/base/target", "/base/dir")
        fs.mv("/base/dir", "/base/other", recursive=True)
        assert fs.find("/base") == ["/base/other/target"]

    def test_listings(self, fs: Any) -> None:
        fs.pipe({f"/base/{n}/{m}": b"x" * m for n in range(3) for m in range(4)})
        assert sorted(fs.ls("/base/1", detail=False)) == [f"/base/1/{m}" for m in range(4)]
        detail = fs.find("/base/1", detail=True)
        assert [info["size"] for info in detail.values()] == [0, 1, 2, 3]
        assert all(info["type"] == "file" and info["name"] == name for name, info in detail.items())
        assert fs.find("/base/1", withdirs=True)[0] == "/base/1"
        assert fs.find("/base/1/2") == ["/base/1/2"] and fs.find("/gone") == []
        assert fs.du("/base/2") == 6 and fs.du("/base/2", total=False)["/base/2/3"] == 3
        walked = {top: (sorted(dirs), sorted(files)) for top, dirs, files in fs.walk("/base")}
        assert walked["/base/0"] == ([], ["0", "1", "2", "3"])
        assert fs.glob("/base/*/3") == [f"/base/{n}/3" for n in range(3)]
        assert fs.info("/base")["type"] == "directory"
        with pytest.raises(FileNotFoundError):
            fs.info("/gone")
        with pytest.raises(FileNotFoundError):
            fs.ls("/gone")

    def test_contents(self, fs: Any) -> None:
        fs.pipe({"/base/a": b"0123456789", "/base/b": b"abc"})
        assert fs.cat_file("/base/a", 2, -3) == b"23456"
        assert fs.cat(["/base/a", "/base/b"]) == {"/base/a": b"0123456789", "/base/b": b"abc"}
        assert fs.cat("/base", recursive=True)["/base/b"] == b"abc"
        found = fs.cat(["/base/a", "/base/gone"], on_error="return")
        assert isinstance(found["/base/gone"], FileNotFoundError)
        assert list(fs.cat(["/base/a", "/base/gone"], on_error="omit")) == ["/base/a"]
        with pytest.raises(FileNotFoundError):
            fs.cat(["/base/a", "/base/gone"])
        paths = ["/base/a", "/base/a", "/base/b", "/base/gone"]
        ranges = fs.cat_ranges(paths, [0, -3, 1, 0], [2, None, 100, 1])
        assert ranges[:3] == [b"01", b"789", b"bc"] and isinstance(ranges[3], FileNotFoundError)
        assert fs.head("/base/a", 3) == b"012" and fs.tail("/base/a", 3) == b"789"

    def test_times(self, fs: Any) -> None:
        before = datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(seconds=2)
        fs.touch("/base/file")
        assert before < fs.created("/base/file") and before < fs.modified("/base/file")
        fs.inside.utime("/base/file", (10, 20))
        assert fs.modified("/base/file").timestamp() == 20
        if not isinstance(fs.inside, holdfast.Mount):
            assert before < fs.created("/base/file")

    def test_transactions(self, fs: Any) -> None:
        fs.pipe_file("/base/old", b"old")
        with fs.transaction:
            with fs.open("/base/new", "wb") as file:
                file.write(b"new")
            fs.pipe_file("/base/old", b"changed")
            assert not fs.exists("/base/new") and fs.cat("/base/old") == b"old"
        assert fs.cat("/base/new") == b"new" and fs.cat("/base/old") == b"changed"
        with pytest.raises(RuntimeError):
            with fs.transaction:
                with fs.open("/base/old", "wb") as file:
                    file.write(b"lost")
                with fs.open("/base/other/deep", "ab") as file:
                    file.write(b"lost")
                raise RuntimeError
        assert fs.cat("/base/old") == b"changed"
        assert fs.find("/base") == ["/base/new", "/base/old"]

    def test_removal(self, fs: Any) -> None:
        fs.pipe({"/base/dir/a": b"", "/base/dir/b": b"", "/base/c": b""})
        with pytest.raises(IsADirectoryError):
            fs.rm("/base/dir")
        fs.rm(["/base/dir", "/base/c"], recursive=True)
        assert fs.ls("/base") == []
        fs.pipe({"/x": b"1", "/y/z": b"2"})
        fs.rm("/", recursive=True)
        assert fs.ls("/") == []

    def test_text_and_links(self, fs: Any) -> None:
        with fs.open("/base/text", "w", encoding="utf-8") as file:
            file.write("Grüße\n")
        with fs.open("/base/text", "r", encoding="utf-8") as file:
            assert file.read() == "Grüße\n"
        fs.link("/base/text", "/base/twin")
        assert fs.info("/base/twin")["nlink"] == 2
        fs.inside.symlink("text", "/base/link")
        info = fs.info("/base/link")
        assert (info["type"], info["islink"], info["size"]) == ("file", True, 8)
        assert info["destination"] == "text"
        fs.chmod("/base/text", 0o600)
        assert fs.info("/base/text")["mode"] & 0o777 == 0o600


def test_without_address_it_is_memory() -> None:
    fs = fsspec.filesystem("holdfast")
    assert isinstance(fs.ls("/"), list)
    with fsspec.open("holdfast://mem/dir/file", "wb") as file:
        file.write(b"content")
    assert fs.cat("/dir/file") == b"content"
    assert fs.unstrip_protocol("/dir/file") == "holdfast://mem/dir/file"
    with pytest.raises(TypeError, match="in memory"):
        pickle.dumps(fs)
    fs.rm("/dir", recursive=True)


def test_urls_name_volumes(image: str) -> None:
    url = f"holdfast:///dir/what?.txt?volume={image}&create=1"
    with fsspec.open(url, "wb") as file:
        file.write(b"content")
    fs, path = fsspec.url_to_fs(url)
    assert path == "/dir/what?.txt" and fs.inside.path == image
    assert fs.cat(path) == b"content"
    again = fs.unstrip_protocol(path)
    assert again == f"holdfast:///dir/what?.txt?volume={image}"
    assert fsspec.open(again).open().read() == b"content"
    assert fsspec.open_files(f"holdfast:///dir/*?volume={image}")[0].open().read() == b"content"
    fs.inside.close()
    HoldfastFileSystem.clear_instance_cache()
    reader, _ = fsspec.url_to_fs(f"holdfast:///?volume={image}&read_only=1")
    with pytest.raises(OSError):
        reader.pipe_file("/new", b"")
    twin = pickle.loads(pickle.dumps(reader))
    assert twin.cat("/dir/what?.txt") == b"content"
    child = os.fork()
    if child == 0:
        try:
            os._exit(reader.cat("/dir/what?.txt") != b"content")
        finally:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    reader.inside.close()
    HoldfastFileSystem.clear_instance_cache()


def test_urls_name_mounts(tmp_path: pathlib.Path) -> None:
    (tmp_path / "file").write_bytes(b"content")
    escaped = str(tmp_path).replace("/", "%2F")
    for url in (f"holdfast://{escaped}/file", f"holdfast:///file?mount={tmp_path}"):
        fs, path = fsspec.url_to_fs(url)
        assert path == "/file" and fs.cat(path) == b"content"
        assert fs.unstrip_protocol(path) == f"holdfast://{escaped}/file"
        assert pickle.loads(pickle.dumps(fs)).cat(path) == b"content"
    assert fs.inside.stat("/../../file").st_size == 7


def test_wrong_addresses_are_refused(tmp_path: pathlib.Path) -> None:
    with pytest.raises(ValueError, match="neither"):
        fsspec.url_to_fs("holdfast://dir/file")
    with pytest.raises(ValueError, match="no option"):
        fsspec.url_to_fs("holdfast:///file?volume=a&colour=red")
    with pytest.raises(ValueError, match="exclude"):
        HoldfastFileSystem(volume="a", mount="b")
    with pytest.raises(NotADirectoryError, match="mount point"):
        HoldfastFileSystem(mount=str(tmp_path / "none"))
    with pytest.raises(FileNotFoundError):
        HoldfastFileSystem(volume=str(tmp_path / "none"))


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

    def counted(paths: list[bytes]) -> list[bytes | None]:
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
            code = int(daemon.read([b"/secret"]) != [None])
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    secret.unlink()
