"""What is accepted has its effect: remounts by mount(8), fstab's options, logs, metrics."""

import os
import socket
import time
import urllib.request

from harness import Skipped, in_namespace, info, on, well

SEVERAL = "volume mem host"


REMOUNTS = """
mkdir -p mnt
writes() { touch mnt/file 2>/dev/null && echo writes || echo refuses; }
holdfast mount -o "ro,transport=$2" "$1" mnt
writes
mount -o remount,rw "$PWD/mnt" 2>error || { cat error; umount mnt; holdfast mount -o "transport=$2" "$1" mnt; }
writes
mount -o remount,ro "$PWD/mnt"
writes
holdfast rm mnt/file 2>/dev/null || echo kept
umount mnt
"""
HELPERS = """
sbin=$(readlink -f /sbin)
mkdir -p links
for name in mount mount.fuse mount.fuseblk umount umount.fuse umount.fuseblk; do
    ln -sf /usr/local/sbin/holdfast links/$name.holdfast
done
mount -t overlay overlay -o "lowerdir=$PWD/links:$sbin" "$sbin" 2>/dev/null || exit 77
"""


@on(SEVERAL)
def remount_by_mount(at):
    "mount -o remount,rw and remount,ro have their effect, with and without links in /sbin, or say why not"
    source = at.source()
    for links in ("", HELPERS):
        run = in_namespace(at.scratch, links + REMOUNTS, source, at.transport)
        if links and run.code == 77:
            raise Skipped("links in /sbin: needs overlayfs")
        said = run.out.splitlines()
        # A directory that is mounted read-only is not open for writing.
        if at.name == "host" and len(said) > 1 and said[1].startswith("holdfast: ") and "without ro" in said[1]:
            del said[1]
        if run.code != 0 or said != ["refuses", "writes", "refuses", "kept"]:
            return f"{'with' if links else 'without'} links: {' '.join(said)}, {run}"
    return ""


@on("volume")
def options_of_fstab(at):
    "a volume is mounted with the options that lines of fstab have, discard among them"
    at.mount(at.source(), "defaults,discard,nofail,noatime,x-systemd.automount,_netdev")
    return ""


@on(SEVERAL)
def log_to_a_file(at):
    "-o log=FILE has the messages of the daemon"
    log = f"{at.scratch}/log"
    point = at.mount(at.source(), f"log={log}", env={**os.environ, "HOLDFAST_LOG": "info"})
    at.umount(point)
    with open(log) as file:
        said = file.read()
    return "" if "live" in said else f"it says {said!r}"


@on("mem")
def log_to_the_journal(at):
    "without a file the messages of the daemon go to the journal (or to syslog)"
    path = f"{at.scratch}/journal"
    journal = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    journal.bind(path)
    journal.settimeout(5)
    script = """
mount -t tmpfs tmpfs /run
mkdir -p /run/systemd/journal
ln -s "$1" /run/systemd/journal/socket
HOLDFAST_LOG=info holdfast mount -o "transport=$2" mem: mnt
holdfast umount mnt
"""
    well(in_namespace(at.scratch, script, path, at.transport))
    said = b""
    try:
        while b"live" not in said:
            said = journal.recv(65536)
    except TimeoutError:
        return "nothing came that says that the mount is live"
    return "" if b"holdfast" in said else repr(said)


def scrape(address, accept=None):
    """Asks for the metrics; gives the type of the answer, and the text."""
    asked = urllib.request.Request(f"http://{address}/metrics", headers={"Accept": accept} if accept else {})
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(asked, timeout=8) as answer:
        return answer.headers["Content-Type"], answer.read().decode()


@on(SEVERAL)
def silent_scrapers(at):
    "metrics are served beside eight silent connections, in the format that is asked for"
    point = at.mount(at.source(), "metrics=127.0.0.1:0")
    address = info(point)["metrics"].removeprefix("http://").split("/")[0]
    host, port = address.rsplit(":", 1)
    silent = [socket.create_connection((host, int(port))) for _ in range(8)]
    begun = time.monotonic()
    try:
        kind, text = scrape(address)
    except OSError as error:
        return f"a scrape fails after {time.monotonic() - begun:.1f} s: {error}"
    took = time.monotonic() - begun
    for one in silent:
        one.close()
    if took > 4:
        return f"a scrape takes {took:.1f} s"
    if "holdfast_uptime_seconds" not in text or not kind.startswith("text/plain; version=0.0.4"):
        return f"without Accept: {kind}"
    kind, text = scrape(address, "application/openmetrics-text; version=1.0.0")
    whole = text.endswith("# EOF\n")
    return "" if whole and kind.startswith("application/openmetrics-text") else f"OpenMetrics: {kind}"

