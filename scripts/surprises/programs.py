"""Small programs, each after a report about some file system. They use system calls alone."""

import ctypes
import errno
import fcntl
import mmap
import os
import struct
import time

from harness import ALL, MIB, on

LIBC = ctypes.CDLL(None, use_errno=True)


def write(path, data):
    with open(path, "wb") as file:
        file.write(data)


def free(path):
    found = os.statvfs(path)
    return found.f_bavail * found.f_frsize


@on(ALL)
def room_comes_back_at_once(at):
    "what an open file took that was unlinked and closed is there for the next writer"
    dir = at.dir
    path, rounds = dir + "/big", 0
    size = free(dir) * 6 // 10
    chunk = bytes(MIB)
    for _ in range(3):
        fd = os.open(path, os.O_CREAT | os.O_WRONLY)
        try:
            for _ in range(size // MIB):
                os.write(fd, chunk)
        except OSError as error:
            return f"round {rounds}: {errno.errorcode[error.errno]}"
        finally:
            os.unlink(path)
            os.close(fd)
        rounds += 1
    return ""


@on(ALL)
def times_move(at):
    "a change after a stat moves the times of a file and of its directory"
    dir = at.dir
    path, same = dir + "/file", 0
    fd = os.open(path, os.O_CREAT | os.O_RDWR)
    for round in range(200):
        os.pwrite(fd, b"x", 0)
        one, above = os.stat(path), os.stat(dir)
        os.pwrite(fd, b"y", 0)
        open(f"{dir}/{round}", "w").close()
        two, after = os.stat(path), os.stat(dir)
        same += (one.st_mtime_ns == two.st_mtime_ns or one.st_ctime_ns == two.st_ctime_ns)
        same += above.st_mtime_ns == after.st_mtime_ns
    os.close(fd)
    return f"{same} of 400 not seen" if same else ""


@on(ALL)
def times_are_in_order(at):
    "what is made later has no earlier time than what was changed before"
    dir = at.dir
    wrong = 0
    for round in range(200):
        one, two = f"{dir}/one", f"{dir}/two{round}"
        write(one, b"1")
        os.stat(one)
        write(one, b"2")
        write(two, b"3")
        wrong += os.stat(two).st_mtime_ns < os.stat(one).st_mtime_ns
    return f"{wrong} of 200 before" if wrong else ""


@on(ALL)
def chown_to_nobody(at):
    "chown(-1, -1) takes set-id bits and moves the time of change"
    dir = at.dir
    path = dir + "/lent"
    write(path, b"x")
    os.chmod(path, 0o4755)
    before = os.stat(path)
    time.sleep(0.02)
    os.chown(path, -1, -1)
    after = os.stat(path)
    seen = []
    if after.st_mode & 0o7777 != 0o755:
        seen.append(oct(after.st_mode & 0o7777))
    if after.st_ctime_ns <= before.st_ctime_ns:
        seen.append("ctime stays")
    return ", ".join(seen)


@on(ALL)
def set_times_stay(at):
    "times that are set after a store through a mapping are kept by msync"
    dir = at.dir
    path = dir + "/mapped"
    write(path, bytes(4096))
    fd = os.open(path, os.O_RDWR)
    with mmap.mmap(fd, 4096) as pages:
        pages[0] = 1
        os.utime(fd, (1000, 1000))
        pages.flush()
        found = os.fstat(fd).st_mtime
    os.close(fd)
    return "" if found == 1000 else f"mtime {found}"


def flags(path, value=None):
    GET, SET = 0x80086601, 0x40086602
    fd = os.open(path, os.O_RDONLY)
    try:
        if value is not None:
            fcntl.ioctl(fd, SET, struct.pack("l", value))
        return struct.unpack("l", fcntl.ioctl(fd, GET, bytes(8)))[0]
    finally:
        os.close(fd)


@on(ALL)
def file_flags(at):
    "chattr +i and +a are kept, told and obeyed"
    dir = at.dir
    APPEND, IMMUTABLE = 0x20, 0x10
    path = dir + "/kept"
    write(path, b"x")
    try:
        if flags(path, IMMUTABLE) & IMMUTABLE == 0:
            return "not told"
        for change in (lambda: write(path, b"y"), lambda: os.unlink(path), lambda: os.chmod(path, 0)):
            try:
                change()
                return "changed"
            except PermissionError:
                pass
        before = os.stat(path).st_ctime_ns
        flags(path, APPEND)
        if os.stat(path).st_ctime_ns == before:
            return "ctime stays"
        with open(path, "ab") as file:
            file.write(b"z")
        try:
            write(path, b"")
            return "cut"
        except PermissionError:
            pass
        return "" if os.path.getsize(path) == 2 else "lost"
    except OSError as error:
        return errno.errorcode[error.errno]
    finally:
        try:
            flags(path, 0)
        except OSError:
            pass


@on(ALL)
def file_handles(at):
    "a file is opened by its handle"
    dir = at.dir

    class Handle(ctypes.Structure):
        _fields_ = [("bytes", ctypes.c_uint), ("kind", ctypes.c_int), ("data", ctypes.c_ubyte * 128)]

    write(dir + "/file", b"x")
    handle, mount = Handle(), ctypes.c_int()
    handle.bytes = 128
    if LIBC.name_to_handle_at(-100, (dir + "/file").encode(), ctypes.byref(handle), ctypes.byref(mount), 0):
        return "name: " + errno.errorcode[ctypes.get_errno()]
    top = os.open(dir, os.O_RDONLY)
    fd = LIBC.open_by_handle_at(top, ctypes.byref(handle), os.O_RDONLY)
    code = ctypes.get_errno()
    os.close(top)
    if fd < 0:
        return "open: " + errno.errorcode[code]
    os.close(fd)
    return ""


@on(ALL)
def late_times(at):
    "times until 2446 are kept"
    dir = at.dir
    path = dir + "/late"
    write(path, b"x")
    for seconds in (4_000_000_000, 10_000_000_000, 15_000_000_000):
        os.utime(path, (seconds, seconds))
        if int(os.stat(path).st_mtime) != seconds:
            return f"{seconds}: {int(os.stat(path).st_mtime)}"
    return ""


@on(ALL)
def empty_is_empty(at):
    "of an empty file system less than a hundredth is used"
    dir = at.dir
    found = os.statvfs(dir)
    used = (found.f_blocks - found.f_bfree) / found.f_blocks
    return "" if used < 0.01 else f"{used:.1%} used"


@on(ALL)
def all_of_what_is_free(at):
    "fallocate gets about as much at once as in steps"
    dir = at.dir
    path = dir + "/all"
    fd = os.open(path, os.O_CREAT | os.O_RDWR)
    left = free(dir)
    try:
        os.posix_fallocate(fd, 0, left * 98 // 100)
        return ""
    except OSError as error:
        return errno.errorcode[error.errno]
    finally:
        os.close(fd)
        os.unlink(path)


@on(ALL)
def trim_ranges(at):
    "FITRIM refuses what makes no sense, and works on any file (where blocks can be given back at all)"
    dir = at.dir
    TRIM = 0xC0185879
    write(dir + "/file", b"x")
    fd = os.open(dir + "/file", os.O_RDONLY)

    def trim(start, length):
        try:
            fcntl.ioctl(fd, TRIM, struct.pack("QQQ", start, length, 0))
            return 0
        except OSError as error:
            return error.errno

    try:
        whole = trim(0, (1 << 64) - 1)
        if whole in (errno.ENOTTY, errno.EOPNOTSUPP):
            return ""
        answers = [whole, trim(1 << 60, 4096), trim(0, 0), trim(0, 100)]
        right = [0, errno.EINVAL, errno.EINVAL, errno.EINVAL]
        return "" if answers == right else str(answers)
    finally:
        os.close(fd)


@on(ALL)
def refused_locks(at):
    "a lock that another process holds is refused at once, also after a fork"
    dir = at.dir
    path = dir + "/lock"
    fd = os.open(path, os.O_CREAT | os.O_RDWR)
    fcntl.flock(fd, fcntl.LOCK_EX)
    if os.fork() == 0:
        os._exit(0)
    os.wait()
    other = os.open(path, os.O_RDWR)
    took = []
    # The fastest counts: the machine may be busy.
    for _ in range(5):
        begun = time.monotonic()
        try:
            fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return "granted"
        except BlockingIOError:
            took.append(time.monotonic() - begun)
    os.close(other)
    os.close(fd)
    return "" if min(took) < 0.05 else f"{min(took) * 1000:.0f} ms"


@on(ALL)
def readers_see_direct_writes(at):
    "what a direct write changed is not read from old pages"
    dir = at.dir
    path = dir + "/direct"
    write(path, bytes(8192))
    fd = os.open(path, os.O_RDWR)
    try:
        direct = os.open(path, os.O_RDWR | os.O_DIRECT)
    except OSError:
        os.close(fd)
        return ""
    page = mmap.mmap(-1, 4096)
    wrong = 0
    for round in range(1, 100):
        os.pread(fd, 8192, 0)
        page[:] = bytes([round]) * 4096
        os.pwritev(direct, [page], 0)
        wrong += os.pread(fd, 1, 0) != bytes([round])
    os.close(direct)
    os.close(fd)
    return f"{wrong} old" if wrong else ""


@on(ALL)
def cookies_are_small(at):
    "offsets in a directory fit 32 bits"
    dir = at.dir

    class Entry(ctypes.Structure):
        _fields_ = [("ino", ctypes.c_uint64), ("offset", ctypes.c_int64)]

    for number in range(100):
        open(f"{dir}/{number}", "w").close()
    LIBC.opendir.restype = ctypes.c_void_p
    LIBC.readdir.restype = ctypes.POINTER(Entry)
    LIBC.readdir.argtypes = LIBC.closedir.argtypes = [ctypes.c_void_p]
    stream, found = LIBC.opendir(dir.encode()), []
    while entry := LIBC.readdir(stream):
        found.append(entry.contents.offset)
    LIBC.closedir(stream)
    # The last one need not lead anywhere.
    greatest = max(found[:-1])
    return "" if len(found) == 102 and greatest < 1 << 31 else f"{len(found)} names, {greatest:#x}"
