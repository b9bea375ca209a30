"""What was promised holds: names and content after a kill, allocated room, access times, listings."""

import ctypes
import errno
import os
import signal
import time

from harness import ALL, MIB, holdfast, info, on
from programs import write

LIBC = ctypes.CDLL(None, use_errno=True)
KEEP_SIZE = 1


def kill_daemon(at, point):
    """Kills the daemon of a mount at once, and clears the mount point."""
    daemon = info(point)["pid"]
    return lambda: (os.kill(daemon, signal.SIGKILL), holdfast("umount", point))


def refused(at, option):
    """"" if `mem:` refuses an option that can have no effect there, by name."""
    answer = at.try_mount("mem:", f"{at.scratch}/mnt", option)
    return answer.fails(1, option)


@on("volume mem host")
def dirsync_keeps_names(at):
    "with dirsync, names that were made, linked, moved or removed outlive a kill of the daemon; mem: refuses it"
    if at.name == "mem":
        return refused(at, "dirsync")
    source = at.source()
    for round in range(3):
        point = at.mount(source, "dirsync")
        kill, base = kill_daemon(at, point), f"{point}/{round}"
        os.mkdir(base)
        for name in ("file", "gone", "old"):
            open(f"{base}/{name}", "w").close()
        os.mkdir(f"{base}/dir")
        os.link(f"{base}/file", f"{base}/link")
        os.symlink("file", f"{base}/symlink")
        os.rename(f"{base}/old", f"{base}/new")
        os.unlink(f"{base}/gone")
        kill()
        at.mount(source)
        if not os.path.isdir(base):
            return f"round {round}: nothing is there"
        found = sorted(os.listdir(base))
        if found != ["dir", "file", "link", "new", "symlink"]:
            return f"round {round}: {' '.join(found)}"
        at.umount(point)
    return ""


@on("volume mem host")
def sync_keeps_content(at):
    "with sync, what was written outlives a kill of the daemon; mem: refuses it"
    if at.name == "mem":
        return refused(at, "sync")
    source = at.source()
    point = at.mount(source, "sync")
    kill = kill_daemon(at, point)
    fd = os.open(f"{point}/file", os.O_CREAT | os.O_WRONLY)
    for number in range(5):
        os.write(fd, bytes([number]) * 10_000)
    kill()
    try:
        os.close(fd)
    except OSError:
        pass
    at.mount(source)
    with open(f"{point}/file", "rb") as file:
        found = file.read()
    whole = b"".join(bytes([number]) * 10_000 for number in range(5))
    return "" if found == whole else f"{len(found)} bytes of {len(whole)}"


def fill(path):
    """Takes all room that is left."""
    fd = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    for size in (MIB, 4096, 1):
        chunk = bytes([7]) * size
        try:
            while True:
                os.write(fd, chunk)
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise
    try:
        os.fsync(fd)
    except OSError:
        pass
    os.close(fd)


@on(ALL)
def allocated_room_is_there(at):
    "room that fallocate gave is written to in a full file system, whatever the size of the calls"
    room = 3 * MIB
    if at.name == "tmpfs":
        point = at.mount(None, f"size={64 * MIB}")
    else:
        point = at.mount(at.source(), f"size={64 * MIB}" if at.name == "mem" else "")
    sizes, files = {"large": 256 << 10, "pages": 4096, "few": 100}, {}
    for name in sizes:
        files[name] = os.open(f"{point}/{name}", os.O_CREAT | os.O_RDWR)
        if LIBC.fallocate(files[name], KEEP_SIZE, ctypes.c_long(0), ctypes.c_long(room)):
            return f"fallocate: {errno.errorcode[ctypes.get_errno()]}"
    fill(f"{point}/filler")
    for name, size in sizes.items():
        end = 20_000 if size == 100 else room
        for position in range(0, end, size):
            try:
                os.pwrite(files[name], bytes([size % 251]) * size, position)
            except OSError as error:
                return f"{size} bytes at {position}: {errno.errorcode[error.errno]}"
        os.fsync(files[name])
        if os.pread(files[name], end, 0) != bytes([size % 251]) * end:
            return f"{name}: other bytes"
    return ""


def moves(path, look, stat=os.lstat):
    """Whether looking at it moves its access time."""
    before = stat(path).st_atime_ns
    # More than a tick of the clock.
    time.sleep(0.02)
    look(path)
    return stat(path).st_atime_ns != before


def read(path):
    with open(path, "rb") as file:
        return file.read()


@on(ALL)
def strictatime_moves_each_time(at):
    "with strictatime each read, readlink and listing moves the access time, also of what is cached (or it is refused)"
    if at.name == "host":
        return at.try_mount(at.source(), f"{at.scratch}/mnt", "strictatime").fails(1, "strictatime", "the host's")
    point = at.mount(None if at.name == "tmpfs" else at.source(), "strictatime")
    os.mkdir(f"{point}/dir")
    write(f"{point}/file", b"content")
    os.symlink("file", f"{point}/link")
    looks = {"file": read, "link": os.readlink, "dir": os.listdir}
    wrong = [
        f"{name} {round}" for round in range(3) for name, look in looks.items() if not moves(f"{point}/{name}", look)
    ]
    return f"not seen: {', '.join(wrong)}" if wrong else ""


# Of a directory of the host, docs/book/reference/host-directories.md says that reads from memory
# move no access time.
@on("volume mem tmpfs")
def relatime_sees_cached_reads(at):
    "with relatime a read after a write moves the access time, also where the content is cached"
    options = "relatime" if at.name == "tmpfs" else "relatime,opens=served"
    point = at.mount(None if at.name == "tmpfs" else at.source(), options)
    path, wrong = f"{point}/file", 0
    write(path, bytes(10_000))
    for _ in range(3):
        read(path)
        read(path)
        time.sleep(0.02)
        fd = os.open(path, os.O_WRONLY)
        os.pwrite(fd, b"x", 5)
        os.close(fd)
        wrong += not moves(path, read)
        wrong += moves(path, read)
    return f"{wrong} of 6 otherwise" if wrong else ""


@on("volume")
def mounting_reads_little(at):
    "a clean volume of 1 GiB is mounted with at most 10 reads of the device"
    source = at.source(1024 * MIB)
    point = at.mount(source)
    write(f"{point}/file", bytes(100_000))
    at.umount(point)
    at.mount(source)
    reads = info(point)["volume"]["device_reads"]
    return "" if reads["count"] <= 10 else f"{reads['count']} reads, {reads['bytes']} bytes"


class Entry(ctypes.Structure):
    _fields_ = [
        ("ino", ctypes.c_uint64),
        ("offset", ctypes.c_int64),
        ("length", ctypes.c_ushort),
        ("kind", ctypes.c_ubyte),
        ("name", ctypes.c_char * 256),
    ]


def names_from(path, position):
    """Names in a directory that is opened now, from a position on, each with the one behind it."""
    LIBC.opendir.restype = ctypes.c_void_p
    LIBC.readdir.restype = ctypes.POINTER(Entry)
    LIBC.readdir.argtypes = LIBC.closedir.argtypes = [ctypes.c_void_p]
    LIBC.seekdir.argtypes = [ctypes.c_void_p, ctypes.c_long]
    stream, names = LIBC.opendir(path.encode()), []
    LIBC.seekdir(stream, position)
    while entry := LIBC.readdir(stream):
        names.append((entry.contents.name.decode(), entry.contents.offset))
    LIBC.closedir(stream)
    return names


@on(ALL)
def positions_list_no_removed_names(at):
    "from a remembered position of a directory on, what is listed is there and all that is there is listed"
    for number in range(57):
        open(f"{at.dir}/{number}", "w").close()
    names_from(at.dir, 0)
    positions = names_from(at.dir, 0)
    gone = {name for name, _ in positions[10:40] if name not in (".", "..")}
    for name in gone:
        os.unlink(f"{at.dir}/{name}")
    for number in range(8, 50):
        found = {name for name, _ in names_from(at.dir, positions[number][1])}
        right = {name for name, _ in positions[number + 1 :]} - gone
        if found != right:
            removed, missing = len(found & gone), len(right - found)
            return f"behind entry {number}: {removed} of {len(found)} are removed ones, {missing} are missing"
    return ""
