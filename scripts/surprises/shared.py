"""A mounted directory of the host that others change: what is open stays, what is changed is seen.

Others change `at.below`, which the mount shows as `at.dir`.
"""

import errno
import mmap
import os
import shutil
import stat
import time
import traceback

from harness import ALL, SOON, Skipped, call, on, until
from programs import write

SIZES = (100, 2 << 20)


def remove(base):
    os.unlink(f"{base}/file")


def replace(base):
    write(f"{base}/new", b"another")
    os.rename(f"{base}/new", f"{base}/file")


def move(base):
    os.rename(f"{base}/file", f"{base}/moved")


def move_directory(base):
    os.rename(base, f"{base}.moved")


def check_reader(reader, inode, size):
    """"" if a descriptor reads as before the change of the name."""
    if os.pread(reader, size, 0) != b"7" * size:
        return "read: other bytes"
    return "" if os.fstat(reader).st_ino == inode else "another inode"


def check_writer(reader, writer, size):
    """"" if what one descriptor changes the other shows."""
    os.pwrite(writer, b"8" * 50, 0)
    os.ftruncate(writer, 60)
    os.fchmod(writer, 0o600)
    os.fsync(writer)
    if os.pread(reader, size, 0) != b"8" * 50 + b"7" * 10:
        return "what was written is not read"
    found = os.fstat(reader)
    return "" if found.st_size == 60 and found.st_mode & 0o777 == 0o600 else "other attributes"


@on("host")
def open_files_outlive_their_names(at):
    "a file that is open stays the same when others remove, replace or move its name or its directory"
    return names_change(at.dir, at.below, at.below)


@on(ALL)
def replaced_in_the_mount(at):
    "a file that is open stays the same when its name is removed, replaced or moved in the mount"
    if wrong := names_change(at.dir, at.below or at.dir, at.dir):
        return wrong
    if at.name != "host":
        return ""
    source = at.source()
    point = at.mount(source, "valid=0")
    return names_change(point, source.removeprefix("dir:"), point)


def names_change(dir, made, changed):
    """As `name_changes`, of all kinds of change and of files."""
    for change in (remove, replace, move, move_directory):
        for size in SIZES:
            for also_writes in (False, True):
                case = f"{change.__name__}-{size}-{'rw' if also_writes else 'r'}"
                if wrong := name_changes((dir, made, changed), case, change, size, also_writes):
                    return f"{case}: {wrong}"
    return ""


def name_changes(where, base, change, size, also_writes):
    """Opens a file in one place that was made in another, and changes its name in a third one."""
    dir, made, changed = where
    os.mkdir(f"{made}/{base}")
    write(f"{made}/{base}/file", b"7" * size)
    path = f"{dir}/{base}/file"
    if not until(lambda: os.path.exists(path)):
        return f"not seen in {SOON} s"
    reader = os.open(path, os.O_RDONLY)
    writer = os.open(path, os.O_WRONLY) if also_writes else None
    inode = os.fstat(reader).st_ino
    change(f"{changed}/{base}")
    # What tells the mount of the change may arrive before or after the reads.
    for pause in (0, 0.03):
        time.sleep(pause)
        try:
            wrong = check_reader(reader, inode, size)
        except OSError as error:
            wrong = errno.errorcode[error.errno]
        if wrong:
            return wrong
    if also_writes:
        try:
            wrong = check_writer(reader, writer, size)
        except OSError as error:
            wrong = f"write: {errno.errorcode[error.errno]}"
        os.close(writer)
    os.close(reader)
    return wrong


def beside(work):
    """Calls this in a process of its own until it is stopped; gives how to stop it."""
    parent = os.getpid()
    child = os.fork()
    if child == 0:
        try:
            round = 0
            while os.getppid() == parent:
                work(round)
                round += 1
        finally:
            os._exit(1)

    def stop():
        os.kill(child, 15)
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -15

    return stop


@on("host")
def names_that_are_replaced_all_the_time(at):
    "a name that others replace without a pause is never stale, and what is read is one version"

    def change(round):
        write(f"{at.below}/new", b"%c" % (97 + round % 26) * 5000)
        os.rename(f"{at.below}/new", f"{at.below}/file")
        time.sleep(0.0005)

    write(f"{at.below}/file", b"a" * 5000)
    if not until(lambda: os.path.exists(f"{at.dir}/file")):
        return "not seen"
    stop, stale, mixed, end = beside(change), 0, 0, time.monotonic() + 3
    rounds = 0
    while rounds < 500 or time.monotonic() < end:
        rounds += 1
        try:
            with open(f"{at.dir}/file", "rb") as file:
                found = file.read()
                os.fstat(file.fileno())
            mixed += found != found[:1] * 5000
        except OSError as error:
            stale += error.errno == errno.ESTALE
            if error.errno != errno.ESTALE:
                return f"round {rounds}: {errno.errorcode[error.errno]}"
    stop()
    return f"{stale} ESTALE, {mixed} mixed of {rounds}" if stale or mixed else ""


def seen_as(path):
    """Kind and version of what a name is: each version has its own."""
    mode = os.lstat(path).st_mode
    if stat.S_ISLNK(mode):
        return os.readlink(path)
    if stat.S_ISDIR(mode):
        return "directory " + ",".join(os.listdir(path))
    if stat.S_ISFIFO(mode):
        return f"pipe {os.lstat(path).st_mtime_ns // 10**9}"
    with open(path) as file:
        return file.read()


def calls_of(error):
    """The line in which a call failed."""
    return traceback.extract_tb(error.__traceback__)[-1].line


def make(path, number):
    """Makes a name into the next kind; gives what it is seen as."""
    kind = number % 4
    if kind == 0:
        with open(f"{path}.new", "w") as file:
            file.write(f"file {number}")
    elif kind == 1:
        os.symlink(f"link {number}", f"{path}.new")
    elif kind == 2:
        os.makedirs(f"{path}.new/{number}")
    else:
        os.mkfifo(f"{path}.new")
        os.utime(f"{path}.new", (number, number))
    try:
        os.rename(f"{path}.new", path)
    except OSError:
        if os.path.isdir(path) and not os.path.islink(path):
            shutil.rmtree(path)
        else:
            os.unlink(path)
        os.rename(f"{path}.new", path)
    return [f"file {number}", f"link {number}", f"directory {number}", f"pipe {number}"][kind]


@on("host")
def names_that_change_their_kind(at):
    "a name that others make a file, link, directory and pipe in turns is seen as it is, and never stale"

    def look(_):
        for how in (os.lstat, os.stat, os.readlink, os.listdir):
            try:
                how(f"{at.dir}/name")
            except OSError as error:
                if error.errno == errno.ESTALE:
                    os._exit(7)

    def is_seen(version):
        try:
            return seen_as(f"{at.dir}/name") == version
        except OSError as error:
            if error.errno == errno.ESTALE:
                raise RuntimeError(f"change {number}, {version!r}: ESTALE of {calls_of(error)}")
            return False

    version, number, end = make(f"{at.below}/name", 0), 0, time.monotonic() + 5
    looks = [beside(look), beside(look)]
    while number < 200 or time.monotonic() < end:
        number += 1
        version = make(f"{at.below}/name", number)
        if not until(lambda: is_seen(version)):
            try:
                found = seen_as(f"{at.dir}/name")
            except OSError as error:
                found = errno.errorcode[error.errno]
            return f"change {number}: {version!r} is {found!r} for {SOON} s"
    looked = [stop() for stop in looks]
    return "" if all(looked) else "ESTALE in a program beside"


@on("host")
def append_only_files(at):
    "a file with the flag `a` of chattr(1) is appended to"
    path = f"{at.below}/log"
    write(path, b"one")
    if call("chattr", "+a", path).code != 0:
        raise Skipped("needs chattr(1), and a host that has its flags")
    try:
        if not until(lambda: os.path.exists(f"{at.dir}/log")):
            return "not seen"
        with open(f"{at.dir}/log", "ab", buffering=0) as log:
            log.write(b", two")
        with open(path, "rb") as log:
            found = log.read()
    finally:
        call("chattr", "-a", path)
    return "" if found == b"one, two" else repr(found)


@on("host")
def files_without_a_size(at):
    "files of /proc, whose size says 0, are read to their end"
    point = at.mount("dir:/proc/sys", "ro")
    with open(f"{point}/kernel/ostype") as file:
        found = file.read()
    return "" if found == "Linux\n" else repr(found)


@on("host")
def appended_records_are_whole(at):
    "records that two mounts and the host append to one file at the same time are whole"
    second = at.mount(f"dir:{at.below}")
    write(f"{at.below}/log", b"")
    if not until(lambda: os.path.exists(f"{at.dir}/log") and os.path.exists(f"{second}/log")):
        return "not seen"
    sizes = [700, 4700, 8700, 1500]
    records = [bytes([97 + writer]) * size for writer, size in enumerate(sizes)]
    writers = []
    for record, base in zip(records, (at.dir, second, at.below, second)):
        writers.append(os.fork())
        if writers[-1] == 0:
            try:
                log = os.open(f"{base}/log", os.O_WRONLY | os.O_APPEND)
                for _ in range(300):
                    if os.write(log, record) != len(record):
                        os._exit(1)
                os._exit(0)
            finally:
                os._exit(1)
    failed = [os.waitpid(writer, 0)[1] for writer in writers]
    with open(f"{at.below}/log", "rb") as log:
        rest = log.read()
    whole = 0
    while rest:
        record = records[(rest[0] - 97) % 4]
        if not rest.startswith(record):
            return f"torn after {whole} of 1200"
        rest, whole = rest[len(record) :], whole + 1
    return "" if whole == 1200 and not any(failed) else f"{whole} of 1200"


@on("host")
def mappings_see_what_others_write(at):
    "a mapping that is only read shows what others write, also through a name that nobody watches"
    path, aside = f"{at.below}/mapped", f"{os.path.dirname(at.below)}.aside"
    write(path, b"one")
    if not until(lambda: os.path.exists(f"{at.dir}/mapped")):
        return "not seen"

    def store(path, content):
        fd = os.open(path, os.O_WRONLY)
        os.pwrite(fd, content, 0)
        os.close(fd)

    with open(f"{at.dir}/mapped", "rb") as file:
        pages = mmap.mmap(file.fileno(), 3, prot=mmap.PROT_READ)
        for content in (b"two", b"abc"):
            if pages[:] == content:
                return "nothing"
            store(path, content)
            if not until(lambda: pages[:] == content):
                return f"{pages[:]!r} for {content!r} after {SOON} s"
        for content in (b"ten", b"xyz"):
            os.link(path, aside)
            store(aside, content)
            os.unlink(aside)
            if not until(lambda: pages[:] == content):
                return f"by another name: {pages[:]!r} for {content!r} after {SOON} s"
        pages.close()
    os.link(path, aside)
    store(aside, b"end")
    os.unlink(aside)
    time.sleep(1.1)
    with open(f"{at.dir}/mapped", "rb") as file:
        found = file.read()
    return "" if found == b"end" else f"read 1.1 s later: {found!r}"
