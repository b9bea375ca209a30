"""First contact with the command: as an ordinary user, with a typing error, into a pipe."""

import os
import subprocess

from harness import HOLDFAST, MIB, as_user, call, holdfast, on, well
from programs import write

SEVERAL = "volume mem host"


@on(SEVERAL)
def ordinary_user(at):
    "what an ordinary user makes and mounts has a root directory that is that user's, who works in it"
    mount = f"holdfast mount -o transport={at.transport}"
    makes = {
        "volume": [
            f"{mount} --create --size 64m data.hf ./mnt",
            f"holdfast mkfs --quiet --size 64m other.hf; {mount} other.hf ./mnt",
        ],
        "mem": [f"{mount} mem: ./mnt"],
        "host": [f"mkdir dir; {mount} ./dir ./mnt"],
    }
    for make in makes[at.name]:
        work = "mkdir mnt/dir; echo x >mnt/dir/file; stat -c '%u:%g %a' mnt; holdfast umount ./mnt"
        run = as_user(at.scratch, f"{make}; {work}")
        if run.code != 0 or run.out != "1000:1000 755\n":
            return f"{make}: {run}"
    return ""


@on("mem")
def device_of_fuse_is_closed(at):
    "a user without permission for /dev/fuse is told of it by name, and what helps"
    run = as_user(at.scratch, "holdfast mount mem: ./mnt", fuse_mode=0o600)
    return run.fails(1, "/dev/fuse", "chmod 666")


@on("volume")
def mkfs_of_a_typing_error(at):
    "mkfs of a name below /dev that is not there is refused, and makes nothing"
    path = f"/dev/holdfast-typo-{os.getpid()}"
    try:
        run = holdfast("mkfs", "--size", "8m", path)
        made = os.path.exists(path)
    finally:
        if os.path.exists(path):
            os.unlink(path)
    return f"it is made, {run}" if made else run.fails(1, path)


@on("volume")
def mkfs_without_room(at):
    "mkfs that fails for want of room says so and leaves no image; one that is there stays as it was"
    store = f"{at.scratch}/store"
    os.mkdir(store)
    well(call("mount", "-t", "tmpfs", "-o", "size=400k", "tmpfs", store))
    run = holdfast("mkfs", "--size", "256m", f"{store}/new.hf")
    if run.code != 1 or os.path.exists(f"{store}/new.hf"):
        return f"left {os.listdir(store)}, {run}"
    write(f"{store}/old", b"content" * 1000)
    run = holdfast("mkfs", "--force", "--size", "256m", f"{store}/old")
    with open(f"{store}/old", "rb") as file:
        same = file.read(100_000) == b"content" * 1000
    return "" if run.code == 1 and same else f"the old content is lost, {run}"


@on("volume")
def fsck_of_another_file(at):
    "fsck of what never was a volume says that, with exit code 8"
    for name, content in {"empty": b"", "zeros": bytes(4 * MIB), "text": b"words\n" * 700_000}.items():
        write(f"{at.scratch}/{name}", content)
        run = holdfast("fsck", f"{at.scratch}/{name}")
        if wrong := run.fails(8, "holds no Holdfast volume", name):
            return f"{name}: {wrong}"
    return ""


@on(SEVERAL)
def missing_names_are_named(at):
    "rm, chmod and chown of a missing name name it and say what is wrong; so does rm -r of a mount point"
    places = [f"{at.dir}/missing"]
    if at.name == "volume":
        places.append(f"{at.source()}:/missing")
    for place in places:
        for words in (["rm"], ["rm", "-r"], ["chmod", "644"], ["chown", "0"], ["chown", "-R", "0"]):
            run = holdfast(*words, place)
            if wrong := run.fails(1, place, "No such file or directory"):
                return f"{' '.join(words)} {os.path.basename(place)}: {wrong}"
    run = holdfast("rm", "-r", at.top)
    return run.fails(1, at.top, "mount point")


@on("mem")
def mount_of_a_missing_name(at):
    "mount of a path that is not there names it, and says more than how to make an image"
    run = at.try_mount(f"{at.scratch}/missing", f"{at.scratch}/mnt")
    return run.fails(1, f"{at.scratch}/missing: No such file or directory", "--create", "a directory")


@on(SEVERAL)
def readers_that_go_away(at):
    "`top --json | head` and `pack | head` end without a word"
    write(f"{at.dir}/large", os.urandom(MIB))
    for words, read in ((["top", "--json", "--interval", "0.1", at.top], 10), (["pack", at.dir], 100)):
        command = subprocess.Popen([HOLDFAST, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        command.stdout.read(read)
        command.stdout.close()
        said = command.stderr.read().decode()
        command.wait(10)
        if said:
            return f"{words[0]}: {said.strip()}"
    return ""
