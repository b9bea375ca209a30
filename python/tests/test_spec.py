"""The file system of fsspec, on memory, on a volume and on a mount."""

import datetime
import os
import pathlib
import pickle
import shutil
from collections.abc import Iterator
from typing import Any

import fsspec  # type: ignore[import-untyped]
import fsspec.tests.abstract as abstract  # type: ignore[import-untyped]
import pytest

import holdfast
from holdfast.spec import HoldfastFileSystem

KINDS = ["memory", "volume", "directory", "mount"]


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
