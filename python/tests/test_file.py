"""Files: as the builtin `open` makes them."""

import errno
import io
import os
import pathlib
import signal
import threading
import time
from typing import Any

import pytest

import holdfast
from holdfast import Volume

MODES = ["r", "w", "x", "a", "r+", "w+", "x+", "a+"]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("exists", [True, False])
def test_each_mode_does_what_the_builtin_open_does(
    volume: Volume, tmp_path: pathlib.Path, mode: str, exists: bool
) -> None:
    def tried(opened: Any, path: str) -> list[Any]:
        seen: list[Any] = []
        for text in ("", "b"):
            end = "\n" if text == "" else b"\n"
            for step in ("open", "read", "write", "seek", "truncate", "tell"):
                try:
                    if step == "open":
                        file = opened(path, mode + text)
                        seen.append((type(file), file.mode, file.readable(), file.writable()))
                    elif step == "read":
                        seen.append(file.readline())
                    elif step == "write":
                        seen.append(file.write(end * 3))
                    elif step == "seek":
                        seen.append((file.seek(0), file.read()))
                    elif step == "truncate":
                        seen.append(file.truncate(2))
                    else:
                        seen.append(file.tell())
                        file.close()
                except (OSError, ValueError) as error:
                    seen.append((type(error), getattr(error, "errno", None)))
                    if step == "open":
                        break
        return seen

    real = str(tmp_path / "file")
    if exists:
        pathlib.Path(real).write_text("one\ntwo\n")
        volume.write_text("/file", "one\ntwo\n")
    kernel = tried(open, real)
    assert tried(volume.open, "/file") == kernel
    ours = volume.read_bytes("/file") if volume.exists("/file") else None
    theirs = pathlib.Path(real).read_bytes() if os.path.exists(real) else None
    assert ours == theirs


def test_wrong_modes_are_refused(volume: Volume) -> None:
    for mode in ["", "z", "rw", "r++", "tb", "rbb", "U"]:
        with pytest.raises(ValueError):
            volume.open("/file", mode)
    with pytest.raises(ValueError):
        volume.open("/file", "rb", encoding="utf-8")
    with pytest.raises(ValueError):
        volume.open("/file", "r", 0)


def test_text_has_encodings_and_newlines(volume: Volume) -> None:
    with volume.open("/file", "w", encoding="latin-1", newline="\r\n") as file:
        print("Grüße", file=file)
    assert volume.read_bytes("/file") == b"Gr\xfc\xdfe\r\n"
    with volume.open("/file", encoding="latin-1") as file:
        assert list(file) == ["Grüße\n"]
    with volume.open("/file", encoding="utf-8") as file, pytest.raises(UnicodeDecodeError):
        file.read()


def test_a_read_fills_the_callers_memory(volume: Volume) -> None:
    volume.write_bytes("/file", bytes(range(256)) * 16)
    with volume.open("/file", "rb", 0) as file:
        assert isinstance(file, holdfast.File) and isinstance(file, io.RawIOBase)
        memory = bytearray(300)
        assert file.readinto(memoryview(memory)[10:20]) == 10
        assert memory[10:20] == bytes(range(10)) and not any(memory[:10] + memory[20:])
        assert file.tell() == 10
        assert file.pread(4, 254) == bytes([254, 255, 0, 1]) and file.tell() == 10
        assert file.preadinto(memory, 4096 - 5) == 5
        assert file.pread(10, 1 << 40) == b""
        assert file.readall() == (bytes(range(256)) * 16)[10:]
        assert file.read() == b"" and file.readall() == b""
        with pytest.raises((BufferError, TypeError)):
            file.readinto(b"read-only")
        with pytest.raises(BufferError):
            file.readinto(memoryview(memory)[::2])
        with pytest.raises(io.UnsupportedOperation):
            file.write(b"")
        with pytest.raises(io.UnsupportedOperation):
            file.fileno()
    with pytest.raises(ValueError):
        file.readinto(memory)
    assert repr(file) == "<holdfast.File name='/file' mode='rb' [closed]>"


def test_writes_take_any_buffer_and_appends_follow_each_other(volume: Volume) -> None:
    import array

    with volume.open("/file", "wb") as file:
        file.write(memoryview(b"abcdef")[1:3])
        file.write(array.array("H", [0x4141]))
        file.write(bytearray(b"!"))
    assert volume.read_bytes("/file") == b"bcAA!"
    one, two = volume.open("/file", "ab", 0), volume.open("/file", "ab", 0)
    for _ in range(3):
        one.write(b"1")
        two.write(b"2")
    assert volume.read_bytes("/file") == b"bcAA!121212"
    assert one.tell() == 10 and one.stat().st_size == 11
    with volume.open("/file", "r+b", 0) as file:
        assert file.pwrite(b"zz", 2) == 2 and file.tell() == 0
        file.sync()
        file.sync(data_only=True)
    assert volume.read_bytes("/file").startswith(b"bczz")


def test_seeks(volume: Volume) -> None:
    volume.write_bytes("/file", b"0123456789")
    with volume.open("/file", "rb", 0) as file:
        assert file.seek(-3, os.SEEK_END) == 7 and file.read(1) == b"7"
        assert file.seek(-2, os.SEEK_CUR) == 6
        for offset, whence in [(-1, 0), (0, 9)]:
            with pytest.raises(ValueError):
                file.seek(offset, whence)
        with pytest.raises(OSError) as far:
            file.seek(-100, os.SEEK_CUR)
        assert far.value.errno == errno.EINVAL


def test_further_flags_of_open(volume: Volume) -> None:
    volume.write_bytes("/file", b"")
    volume.symlink("file", "/link")
    with pytest.raises(OSError) as link:
        volume.open("/link", flags=os.O_NOFOLLOW)
    assert link.value.errno == errno.ELOOP
    old = os.umask(0)
    os.umask(old)
    volume.open("/secret", "w", perm=0o600).close()
    assert volume.stat("/secret").st_mode & 0o777 == 0o600 & ~old


def test_a_file_outlives_its_name_and_its_volume_object(image: str) -> None:
    with holdfast.memory() as fs:
        fs.write_bytes("/file", b"content")
        file = fs.open("/file", "rb")
        fs.unlink("/file")
        assert file.read() == b"content"
    with pytest.raises(ValueError, match="closed volume"):
        file.seek(0)
        file.read()
    file.close()
    made = Volume(image, create=True, size=64 << 20).open("/file", "w+b")
    made.write(b"content")
    made.seek(0)
    assert made.read() == b"content"
    volume = made.raw._volume  # type: ignore[attr-defined]
    made.close()
    volume.close()


def test_threads_share_a_file(volume: Volume) -> None:
    size, count = 1000, 40
    volume.write_bytes("/file", b"")
    with volume.open("/file", "r+b", 0) as file:

        def work(number: int) -> None:
            for part in range(number, count, 4):
                file.pwrite(bytes([part]) * size, part * size)
        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for part in range(count):
            assert file.pread(size, part * size) == bytes([part]) * size


def test_a_signal_interrupts_a_long_call(volume: Volume) -> None:
    class Interrupted(Exception):
        pass

    def interrupt(_number: int, _frame: object) -> None:
        raise Interrupted

    paths = [f"/dir/{number}" for number in range(2000)]
    volume.write_many([(path, b"content") for path in paths], makedirs=True)
    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        begun = time.monotonic()
        with pytest.raises(Interrupted):
            signal.setitimer(signal.ITIMER_REAL, 0.05)
            volume.read_many(paths * 2000)
        assert time.monotonic() - begun < 20
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert volume.read_many(paths) == [b"content"] * len(paths)


def test_other_threads_run_during_a_long_call(volume: Volume) -> None:
    volume.write_bytes("/file", bytes(64 << 10))
    counted = 0
    stop = threading.Event()

    def count() -> None:
        nonlocal counted
        while not stop.is_set():
            counted += 1
            time.sleep(0.0005)

    thread = threading.Thread(target=count)
    thread.start()
    volume.read_many(["/file"] * 5000, threads=1)
    stop.set()
    thread.join()
    assert counted > 3
