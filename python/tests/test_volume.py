"""Volumes: the calls of `os`, and how a volume opens and ends."""

import ast
import errno
import os
import pathlib
import stat
import subprocess
import sys
import time
from collections.abc import Iterable

import pytest

import holdfast
from holdfast import Volume


def test_errors_are_subclasses_with_number_and_names(volume: Volume) -> None:
    with pytest.raises(FileNotFoundError) as missing:
        volume.stat(pathlib.PurePosixPath("/no/where"))
    assert (missing.value.errno, missing.value.filename) == (errno.ENOENT, "/no/where")
    volume.mkdir("/dir")
    with pytest.raises(FileExistsError):
        volume.mkdir("/dir")
    with pytest.raises(IsADirectoryError):
        volume.unlink("/dir")
    volume.write_bytes("/dir/file", b"x")
    with pytest.raises(OSError) as full:
        volume.rmdir("/dir")
    assert full.value.errno == errno.ENOTEMPTY
    with pytest.raises(FileNotFoundError) as both:
        volume.rename("/gone", b"/there")
    assert (both.value.filename, both.value.filename2) == ("/gone", b"/there")
    with pytest.raises(NotADirectoryError):
        volume.listdir("/dir/file")
    assert str(both.value) == "[Errno 2] No such file or directory: '/gone' -> b'/there'"


def test_paths_are_text_bytes_or_path_objects_also_not_utf8(volume: Volume) -> None:
    name = b"na\xefve-\xff"
    text = os.fsdecode(name)
    volume.write_bytes(b"/" + name, b"1")
    assert volume.listdir("/") == [text]
    assert volume.listdir(b"/") == [name]
    assert volume.read_bytes("/" + text) == b"1"
    assert volume.read_bytes(pathlib.PurePosixPath("/") / text) == b"1"
    with volume.scandir(b"/") as entries:
        (entry,) = entries
    assert (entry.name, entry.path) == (name, b"/" + name)
    volume.symlink(b"to/\xfe", "/link")
    assert volume.readlink("/link") == "to/\udcfe"
    assert volume.readlink(b"/link") == b"to/\xfe"
    with pytest.raises(UnicodeEncodeError):
        volume.stat("/\ud800")
    with pytest.raises(TypeError):
        volume.stat(3)  # type: ignore[arg-type]


def test_a_stat_has_what_the_kernel_has(volume: Volume) -> None:
    before = time.time_ns()
    volume.write_bytes("/file", bytes(5000))
    found = volume.stat("/file")
    assert stat.S_ISREG(found.st_mode) and found.st_size == 5000
    assert found.st_uid == os.geteuid() and found.st_nlink == 1
    assert found.st_blksize == 4096
    assert before - 10**9 < found.st_mtime_ns <= time.time_ns()
    assert found.st_mtime == pytest.approx(found.st_mtime_ns / 1e9)
    assert int(found.st_mtime) == found[stat.ST_MTIME]
    assert found.st_dev == volume.stat("/").st_dev != 0
    volume.utime("/file", ns=(-1, 2**40))
    assert (volume.stat("/file").st_atime_ns, volume.stat("/file").st_mtime_ns) == (-1, 2**40)
    volume.utime("/file", (1.5, 2.25))
    assert volume.stat("/file").st_mtime_ns == 2_250_000_000
    volume.utime("/file")
    assert volume.stat("/file").st_mtime_ns >= before - 10**9
    with pytest.raises(ValueError):
        volume.utime("/file", (1, 2), ns=(1, 2))
    with pytest.raises(ValueError):
        volume.utime("/file", (float("nan"), 2))


def test_names_are_made_linked_moved_and_removed(volume: Volume) -> None:
    volume.makedirs("/a/b/c")
    with pytest.raises(FileExistsError):
        volume.makedirs("/a/b/c")
    volume.makedirs("/a/b/c", exist_ok=True)
    volume.makedirs("relative/to/the/root", 0o700)
    assert stat.S_IMODE(volume.stat("/relative/to/the/root").st_mode) == 0o700
    volume.write_text("/a/file", "content")
    volume.link("/a/file", "/a/other")
    assert volume.stat("/a/other").st_nlink == 2
    volume.symlink("file", "/a/link")
    assert volume.islink("/a/link") and volume.isfile("/a/link")
    assert stat.S_ISLNK(volume.lstat("/a/link").st_mode)
    volume.symlink("gone", "/a/dangling")
    assert not volume.exists("/a/dangling") and volume.exists("/a/dangling", follow_symlinks=False)
    volume.replace("/a/other", "/a/b/moved")
    volume.remove("/a/file")
    assert volume.read_text("/a/b/moved") == "content"
    assert volume.copyfile("/a/b/moved", "/a/copy") == 7
    volume.mkfifo("/a/pipe")
    assert stat.S_ISFIFO(volume.stat("/a/pipe").st_mode)
    volume.chmod("/a/copy", 0o640)
    assert stat.S_IMODE(volume.stat("/a/copy").st_mode) == 0o640
    volume.truncate("/a/copy", 3)
    assert volume.getsize("/a/copy") == 3
    assert volume.access("/a/copy", os.R_OK | os.W_OK) and not volume.access("/no", os.F_OK)
    volume.touch("/a/new")
    with pytest.raises(FileExistsError):
        volume.touch("/a/new", exist_ok=False)
    with pytest.raises(NotADirectoryError):
        volume.rmtree("/a/copy")
    told: list[int] = []
    volume.rmtree("/a", progress=told.append)
    assert not volume.exists("/a")
    with pytest.raises(FileNotFoundError):
        volume.rmtree("/a")
    volume.rmtree("/a", ignore_errors=True)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_owners_are_changed(volume: Volume) -> None:
    volume.write_bytes("/file", b"")
    volume.symlink("file", "/link")
    volume.chown("/link", 7, -1)
    volume.chown("/link", 8, 9, follow_symlinks=False)
    assert (volume.stat("/file").st_uid, volume.stat("/file").st_gid) == (7, os.getegid())
    assert (volume.lstat("/link").st_uid, volume.lstat("/link").st_gid) == (8, 9)
    with pytest.raises(ValueError):
        volume.chown("/file", -2, 0)


def test_extended_attributes(volume: Volume) -> None:
    volume.write_bytes("/file", b"")
    volume.setxattr("/file", "user.kind", bytearray(b"letter"))
    assert volume.getxattr("/file", b"user.kind") == b"letter"
    assert volume.listxattr("/file") == ["user.kind"]
    with pytest.raises(FileExistsError):
        volume.setxattr("/file", "user.kind", b"", os.XATTR_CREATE)
    volume.setxattr("/file", "user.kind", b"note", os.XATTR_REPLACE)
    volume.removexattr("/file", "user.kind")
    with pytest.raises(OSError) as none:
        volume.getxattr("/file", "user.kind")
    assert none.value.errno == errno.ENODATA
    with pytest.raises(ValueError):
        volume.setxattr("/file", "user.kind", b"", 9)


def test_a_walk_is_that_of_os(volume: Volume, tmp_path: pathlib.Path) -> None:
    for base in (str(tmp_path), None):
        make = volume.makedirs if base is None else os.makedirs
        touch = volume.touch if base is None else lambda path: open(path, "w").close()
        link = volume.symlink if base is None else os.symlink
        top = base or ""
        make(f"{top}/tree/one/two")
        make(f"{top}/tree/three")
        touch(f"{top}/tree/one/file")
        touch(f"{top}/tree/one/two/file")
        link("one", f"{top}/tree/link")

    def walked(
        walk: Iterable[tuple[str, list[str], list[str]]], strip: int
    ) -> list[tuple[str, list[str], list[str]]]:
        return [(top[strip:], sorted(dirs), sorted(files)) for top, dirs, files in walk]
    for topdown in (True, False):
        for links in (True, False):
            kernel = os.walk(f"{tmp_path}/tree", topdown, followlinks=links)
            ours = volume.walk("/tree", topdown, followlinks=links)
            expected = walked(kernel, len(str(tmp_path)))
            assert sorted(walked(ours, 0)) == sorted(expected)
    pruned = []
    for top, dirs, _files in volume.walk("/tree"):
        pruned.append(top)
        dirs[:] = [name for name in dirs if name != "one"]
    assert sorted(pruned) == ["/tree", "/tree/three"]
    errors: list[OSError] = []
    assert list(volume.walk("/none", onerror=errors.append)) == []
    assert errors[0].filename == "/none"
    assert b"/tree/three" in [top for top, _, _ in volume.walk(b"/tree")]


def test_entries_of_a_scan(volume: Volume) -> None:
    volume.mkdir("/dir")
    volume.write_bytes("/dir/file", b"123")
    volume.symlink("file", "/dir/link")
    volume.symlink("gone", "/dir/dangling")
    found = {entry.name: entry for entry in volume.scandir("/dir")}
    assert found["file"].stat().st_size == 3 and found["file"].is_file()
    assert found["link"].is_symlink() and found["link"].is_file()
    assert not found["link"].is_file(follow_symlinks=False)
    assert found["link"].stat().st_ino == found["file"].inode()
    assert found["link"].stat(follow_symlinks=False).st_ino == found["link"].inode()
    assert not found["dangling"].is_file()
    with pytest.raises(FileNotFoundError) as gone:
        found["dangling"].stat()
    assert gone.value.filename == "/dir/dangling"
    assert os.fspath(found["file"]) == "/dir/file"
    assert repr(found["file"]) == "<DirEntry 'file'>"
    with volume.scandir() as entries:
        assert [entry.path for entry in entries] == ["/dir"]


def test_space_and_what_is_known_of_a_volume(volume: Volume) -> None:
    space = volume.statvfs()
    assert space.f_bsize == 4096 and space.f_bavail > 0 and space.f_namemax == 255
    info = volume.info()
    if volume.path is None:
        assert info is None
        with pytest.raises(ValueError):
            volume.grow(1 << 30)
    else:
        assert info is not None and info["size"] == 64 << 20
        assert volume.grow(96 << 20) == 96 << 20
    assert holdfast.memory_usage()["limit"] >= 32 << 20


def test_a_file_system_in_memory_has_limits() -> None:
    with holdfast.memory(size=1 << 20, inodes=10) as small:
        with pytest.raises(OSError) as full:
            small.write_bytes("/large", bytes(2 << 20))
        assert full.value.errno == errno.ENOSPC


def test_a_volume_keeps_its_content(image: str) -> None:
    with Volume(image, create=True, size=64 << 20, label="mine") as made:
        made.write_text("/letter", "Dear ...")
    with Volume(image) as again:
        assert again.read_text("/letter") == "Dear ..."
        info = again.info()
        assert info is not None and info["label"] == "mine"
    assert again.closed and repr(again).endswith("(closed)>")
    with pytest.raises(ValueError, match="closed volume"):
        again.stat("/")
    again.close()
    # An image that is there is opened, not made anew.
    with Volume(image, create=True) as again:
        assert again.exists("/letter")


def test_wrong_openings_say_what_is_wrong(image: str) -> None:
    with pytest.raises(FileNotFoundError) as missing:
        Volume(image)
    assert missing.value.filename == image
    with pytest.raises(ValueError, match="exclude"):
        Volume(image, create=True, read_only=True)
    with pytest.raises(ValueError, match="commit_every"):
        Volume(image, create=True, commit_every=-1)
    with pytest.raises(OSError) as small:
        Volume(image, create=True, size=1000)
    assert small.value.errno == errno.EINVAL
    with open(image, "wb") as file:
        file.write(b"something else" * 100_000)
    with pytest.raises(OSError, match="holds no Holdfast volume") as foreign:
        Volume(image)
    assert foreign.value.errno == errno.EUCLEAN
    os.remove(image)
    with Volume(image, create=True, size=64 << 20):
        with pytest.raises(OSError, match="has it open already") as busy:
            Volume(image)
        assert busy.value.errno in (errno.EBUSY, errno.EAGAIN)


def test_read_only_refuses_changes_and_is_shared(image: str) -> None:
    with Volume(image, create=True, size=64 << 20) as made:
        made.write_text("/letter", "Dear ...")
    with Volume(image, read_only=True) as one, Volume(image, read_only=True) as two:
        assert one.read_text("/letter") == two.read_text("/letter") == "Dear ..."
        with pytest.raises(OSError) as refused:
            one.write_text("/letter", "")
        assert refused.value.errno == errno.EROFS
        with pytest.raises(OSError):
            Volume(image)


def test_a_program_that_forgets_to_close_loses_nothing(image: str) -> None:
    program = (
        "import sys, holdfast\n"
        "volume = holdfast.Volume(sys.argv[1], create=True, size=64 << 20, commit_every=1000)\n"
        "file = volume.open('/letter', 'w')\n"
        "file.write('Dear ...')\n"
        "file.flush()\n"
        "volume.myself = volume\n"
    )
    subprocess.run([sys.executable, "-c", program, image], check=True)
    with Volume(image) as again:
        assert again.read_text("/letter") == "Dear ..."


@pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes another user")
def test_permissions_are_those_of_the_user(image: str) -> None:
    with Volume(image, create=True, size=64 << 20) as made:
        made.write_text("/letter", "Dear ...")
        made.chmod("/letter", 0o600)
        made.mkdir("/open")
        made.chmod("/open", 0o777)
    os.chmod(image, 0o666)
    for folder in pathlib.Path(image).parents:
        if str(folder) != "/":
            folder.chmod(folder.stat().st_mode | 0o011)

    def as_user(superuser: bool) -> list[object]:
        """What another user finds, in a child of this process."""
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            code = 1
            try:
                os.setgroups([])
                os.setresgid(4712, 4712, 4712)
                os.setresuid(4711, 4711, 4711)
                found: list[object] = []
                with Volume(image, superuser=superuser) as theirs:
                    name = f"/open/{superuser}"
                    theirs.write_text(name, "")
                    found += [theirs.stat(name).st_uid, theirs.stat(name).st_gid]
                    for call in (lambda: theirs.read_text("/letter"), theirs.bulkstat):
                        try:
                            found.append(str(call())[:8])
                        except PermissionError as error:
                            found.append(error.filename or "superuser=True" in str(error))
                os.write(writing, repr(found).encode())
                code = 0
            finally:
                os._exit(code)
        os.close(writing)
        with open(reading) as pipe:
            text = pipe.read()
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        return list(ast.literal_eval(text))

    assert as_user(False) == [4711, 4712, "/letter", True]
    assert as_user(True) == [4711, 4712, "Dear ...", "<Columns"]
