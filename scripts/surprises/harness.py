"""What the checks share: targets, time limits, the command under test, mounts and their end."""

import json
import os
import re
import shutil
import signal
import stat
import subprocess
import time
import traceback

HOLDFAST = os.environ.get("HOLDFAST", "holdfast")
ALL = "volume mem host tmpfs"
# Seconds that one check may take on one target.
LIMIT = 25
# Seconds after which a change below a mounted directory is stale. The promise is 1; the machine may
# be busy.
SOON = 6
MIB = 1 << 20
CHECKS = []


class Skipped(Exception):
    """The machine lacks what the check needs."""


def on(targets):
    """Registers a check for these targets; its first line of documentation says what is right."""

    def register(check):
        CHECKS.append((check, targets.split()))
        return check

    return register


class Run:
    """A command that has ended."""

    def __init__(self, done):
        self.code, self.out, self.err = done.returncode, done.stdout, done.stderr

    def __str__(self):
        return f"exit code {self.code}: {short(self.err or self.out)}"

    def says(self, *parts):
        return all(part in self.out + self.err for part in parts)

    def fails(self, code, *parts):
        """"" if it ended with this exit code and a message that has these parts."""
        return "" if self.code == code and self.says(*parts) else str(self)


def short(text, most=150):
    text = " ".join(text.split())
    return text if len(text) <= most else text[: most - 3] + "..."


def call(*words, timeout=20, **how):
    done = subprocess.run(
        words, capture_output=True, text=True, errors="replace", stdin=subprocess.DEVNULL, timeout=timeout, **how
    )
    return Run(done)


def holdfast(*words, **how):
    return call(HOLDFAST, *words, **how)


def well(run):
    """Raises unless the command succeeded."""
    if run.code != 0:
        raise RuntimeError(str(run))
    return run


class Target:
    """A file system under test, as one check sees it.

    `dir` is a new directory in its mount, `scratch` a new one outside of all mounts. Of a directory of
    the host, `below` is what `dir` is on the host; of others None.
    """

    def __init__(self, name, top, work, transport, host):
        self.name, self.top, self.transport = name, top, transport
        self.work, self.host = work, host
        self.dir = self.below = self.scratch = None

    def prepare(self, number):
        self.dir = f"{self.top}/{number}"
        self.below = f"{self.host}/{number}" if self.name == "host" else None
        self.scratch = f"{self.work}/scratch/{self.name}-{number}"
        os.mkdir(self.dir)
        os.makedirs(self.scratch)

    def reset(self):
        """Ends what the check left mounted, and removes its files."""
        unmount_below(self.scratch)
        shutil.rmtree(self.scratch, ignore_errors=True)
        shutil.rmtree(self.dir, ignore_errors=True)

    def source(self, size=64 * MIB):
        """What a mount of its own is made of: a new volume or directory, or `mem:`."""
        if self.name == "mem":
            return "mem:"
        if self.name == "volume":
            image = f"{self.scratch}/image.hf"
            well(holdfast("mkfs", "--quiet", "--size", str(size), image))
            return image
        store = f"{self.scratch}/store"
        os.mkdir(store)
        call("mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", store)
        os.mkdir(f"{store}/dir")
        return f"dir:{store}/dir"

    def mount(self, source, options="", name="mnt", **how):
        """Mounts it; gives the mount point."""
        point = f"{self.scratch}/{name}"
        os.makedirs(point, exist_ok=True)
        if self.name == "tmpfs":
            well(call("mount", "-t", "tmpfs", "-o", options or "defaults", "tmpfs", point))
        else:
            well(self.try_mount(source, point, options, **how))
        return point

    def try_mount(self, source, point, options="", **how):
        options = ",".join(filter(None, [f"transport={self.transport}", options]))
        return holdfast("mount", "-o", options, source, point, **how)

    def umount(self, point):
        well(holdfast("umount", point))


def info(point):
    return json.loads(well(holdfast("info", "--json", point)).out)


def mount_points():
    with open("/proc/self/mounts", errors="replace") as table:
        points = [line.split(" ")[1] for line in table]
    return [re.sub(r"\\(\d{3})", lambda code: chr(int(code[1], 8)), point) for point in points]


def daemons_below(folder):
    """Processes of the command under test that serve something in this folder."""
    exe, found = os.path.realpath(HOLDFAST), []
    for process in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.readlink(f"/proc/{process}/exe") == exe:
                with open(f"/proc/{process}/cmdline") as words:
                    if f"{folder}/" in words.read():
                        found.append(int(process))
        except OSError:
            pass
    return found


def unmount_below(folder):
    """Unmounts all that is mounted in a folder, and ends the daemons that stay."""
    for point in reversed(mount_points()):
        if point.startswith(folder + "/"):
            try:
                gone = holdfast("umount", point, timeout=5).code == 0
            except subprocess.TimeoutExpired:
                gone = False
            if not gone:
                call("umount", "-l", point)
    for stop in (signal.SIGTERM, signal.SIGKILL):
        for daemon in daemons_below(folder):
            try:
                os.kill(daemon, stop)
            except ProcessLookupError:
                pass
        until(lambda: not daemons_below(folder), 3)


def until(holds, seconds=SOON):
    """Whether this holds within so many seconds."""
    end = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > end:
            return False
        time.sleep(0.005)
    return True


PRELUDE = """
set -e
awk '$3 ~ /^fuse/ { print $2 }' /proc/self/mounts | while read -r dir; do umount -l "$dir" || :; done
mount -t tmpfs tmpfs /usr/local/sbin
touch /usr/local/sbin/holdfast
mount --bind "$HOLDFAST" /usr/local/sbin/holdfast
PATH=/usr/local/sbin:$PATH
user() { setpriv --reuid=1000 --regid=1000 --clear-groups "$@"; }
"""


def in_namespace(scratch, script, *words):
    """Runs a shell script as root in a mount namespace of its own, in a new folder of user 1000.

    The command under test is `holdfast` there. `user` runs a command as that user. Copies of FUSE
    mounts are dropped, so that the namespace keeps none of them in use.
    """
    home = f"{scratch}/home"
    os.makedirs(home, exist_ok=True)
    os.chown(home, 1000, 1000)
    env = {**os.environ, "HOLDFAST": os.path.realpath(HOLDFAST), "HOME": home}
    shell = ["unshare", "--mount", "--propagation", "private", "sh", "-c", PRELUDE + script, "sh"]
    return call(*shell, *words, cwd=home, env=env)


def as_user(scratch, script, fuse_mode=0o666):
    """Runs a shell script as user 1000 where `/dev/fuse` has this mode."""
    if call("setpriv", "--version").code or not shutil.which("fusermount3"):
        raise Skipped("needs setpriv and fusermount3")
    node = f"{scratch}/fuse"
    if not os.path.exists(node):
        os.mknod(node, stat.S_IFCHR, os.stat("/dev/fuse").st_rdev)
    os.chmod(node, fuse_mode)
    return in_namespace(scratch, 'mount --bind "$1" /dev/fuse; user sh -ec "$2"', node, script)


class Started:
    """A check that runs in a process of its own, so that it can be ended whatever it waits for."""

    def __init__(self, check, target):
        self.check, self.target = check, target
        self.end = time.monotonic() + LIMIT
        self.reader, writer = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            os.setpgid(0, 0)
            os.write(writer, judge(check, target).encode(errors="replace")[:4000])
            os._exit(0)
        os.close(writer)

    def over(self):
        return os.waitpid(self.pid, os.WNOHANG)[0] != 0

    def stop(self):
        """Ends all processes that the check started and left."""
        try:
            os.killpg(self.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass

    def result(self):
        """"" if all is right, else what was seen; reasons for not looking begin with `skipped`."""
        in_time = until(self.over, max(0, self.end - time.monotonic()))
        self.stop()
        if not in_time and not until(self.over, 2):
            # A call that hangs in a mount ends with the mount.
            unmount_below(self.target.scratch)
            until(self.over, 5)
        os.set_blocking(self.reader, False)
        said = os.read(self.reader, 4000).decode(errors="replace") if in_time else f"=not over in {LIMIT} s"
        os.close(self.reader)
        return said[1:] if said else "ended without a word"


def judge(check, target):
    try:
        return "=" + (check(target) or "")
    except Skipped as reason:
        return f"=skipped: {reason}"
    except subprocess.TimeoutExpired as late:
        return f"=hangs: {short(' '.join(map(str, late.cmd)))}"
    except (RuntimeError, OSError) as error:
        where = traceback.extract_tb(error.__traceback__)
        line = next(frame for frame in reversed(where) if frame.filename != __file__)
        return f"={os.path.basename(line.filename)}:{line.lineno}: {short(str(error))}"
