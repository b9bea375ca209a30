"""Archives are unpacked as GNU tar does it, member by member, and no loss is silent.

On the reference tar(1) itself unpacks them.
"""

import gzip
import os
import random
import shutil
import struct
import tarfile

from harness import ALL, Skipped, call, holdfast, on, well

SEED = 47


def unpack(at, data, name):
    """Unpacks an archive with these bytes into `goal`; gives how that ended, and the goal."""
    archive, goal = f"{at.scratch}/{name}", f"{at.dir}/goal"
    with open(archive, "wb") as file:
        file.write(data)
    shutil.rmtree(goal, ignore_errors=True)
    os.mkdir(goal)
    if at.name == "tmpfs":
        return call("tar", "--xattrs", "--xattrs-include=*", "-xpf", archive, "-C", goal), goal
    return holdfast("unpack", "--quiet", archive, goal), goal


def header(name, kind=tarfile.REGTYPE, data=b"", **fields):
    member = tarfile.TarInfo(name)
    member.type, member.size = kind, len(data)
    for field, value in fields.items():
        setattr(member, field, value)
    return member


def archive(*members, form=tarfile.GNU_FORMAT, change=None):
    """The bytes of an archive of pairs of a header and data."""
    whole = b""
    for member, data in members:
        block = bytearray(member.tobuf(form))
        if change:
            change(member, block)
            block[148:156] = b" " * 8
            block[148:156] = b"%06o\0 " % sum(block[:512])
        whole += bytes(block) + data + bytes(-len(data) % 512)
    return whole + bytes(1024)


def plain(name, content):
    return header(name, data=content), content


@on(ALL)
def damaged_archives_are_told(at):
    "unpack of a .tgz with a flipped byte or a lost end exits with 1 and names the archive; of a lost end, the member"
    noise = random.Random(SEED)
    members = [plain(f"member-{n}", noise.randbytes(40_000)) for n in range(5)]
    good = gzip.compress(archive(*members), mtime=0)
    run, _ = unpack(at, good, "good.tgz")
    if run.code != 0:
        return f"undamaged: {run}"
    places = [len(good) - 6, len(good) // 2, len(good) // 3]
    for place in places:
        bad = bytearray(good)
        bad[place] ^= 0x10
        run, _ = unpack(at, bytes(bad), "flipped.tgz")
        if run.code == 0 or at.name != "tmpfs" and not run.fails(1, "flipped.tgz: ") == "":
            return f"byte {place}: {run}"
    run, goal = unpack(at, good[: len(good) // 2], "cut.tgz")
    if run.code == 0 or at.name != "tmpfs" and not run.fails(1, "cut.tgz: member-2") == "":
        return f"cut off: {run}"
    if run.code == 0 or not os.path.exists(f"{goal}/member-1"):
        return "the members before the damage are lost"
    return ""


@on(ALL)
def directory_twice(at):
    "of a directory that an archive has twice the attributes are the last member's"
    first = header("dir", tarfile.DIRTYPE, mode=0o700, mtime=1000)
    last = header("dir", tarfile.DIRTYPE, mode=0o751, mtime=2000)
    run, goal = unpack(at, archive((first, b""), plain("dir/file", b"x"), (last, b"")), "twice.tar")
    found = os.stat(f"{goal}/dir")
    seen = (run.code, oct(found.st_mode & 0o7777), int(found.st_mtime))
    return "" if seen == (0, "0o751", 2000) else str(seen)


@on(ALL)
def label_of_archive(at):
    "what `tar -V` writes is unpacked, without a file of the label's name"
    label = header("my label", b"V")
    run, goal = unpack(at, archive((label, b""), plain("file", b"content")), "label.tar")
    found = os.listdir(goal)
    return "" if run.code == 0 and found == ["file"] else f"{found}, {run}"


@on(ALL)
def hard_link_with_size(at):
    "a hard link whose header has a size has no data, and the members behind it are not lost"
    link = header("link", tarfile.LNKTYPE, linkname="file", size=7)
    run, goal = unpack(at, archive(plain("file", b"content"), (link, b""), plain("last", b"end")), "link.tar")
    found = sorted(os.listdir(goal))
    if run.code != 0 or found != ["file", "last", "link"]:
        return f"{found}, {run}"
    return "" if os.stat(f"{goal}/link").st_nlink == 2 else "no link"


@on(ALL)
def blank_numbers(at):
    "a header with blank owners, devices and time is unpacked"

    def blank(member, block):
        for start, end in ((108, 116), (116, 124), (136, 148), (329, 337), (337, 345)):
            block[start:end] = b" " * (end - start)

    run, goal = unpack(at, archive(plain("file", b"content"), plain("last", b"end"), change=blank), "blank.tar")
    found = sorted(os.listdir(goal))
    return "" if found == ["file", "last"] else f"{found}, {run}"


@on(ALL)
def attribute_names(at):
    "names of extended attributes with % and = are those that were packed"
    try:
        os.setxattr(at.dir, "user.a%b=c", b"v")
    except OSError:
        raise Skipped("no extended attributes here")
    # GNU tar writes % and = of a name so.
    member = header("file")
    member.pax_headers = {"SCHILY.xattr.user.a%25b%3Dc": "value", "SCHILY.xattr.user.plain": "v"}
    run, goal = unpack(at, archive((member, b""), form=tarfile.PAX_FORMAT), "attributes.tar")
    found = sorted(os.listxattr(f"{goal}/file"))
    if run.code != 0 or found != ["user.a%b=c", "user.plain"]:
        return f"{found}, {run}"
    if at.name == "tmpfs":
        return ""
    packed = f"{at.scratch}/packed.tar"
    run = holdfast("pack", "-o", packed, goal)
    with open(packed, "rb") as file:
        whole = file.read()
    return "" if b"SCHILY.xattr.user.a%25b%3Dc=value\n" in whole else f"not packed so: {run}"


@on(ALL)
def incremental_archives(at):
    "what `tar -g` writes is unpacked"
    tree, packed = f"{at.scratch}/tree", f"{at.scratch}/made.tar"
    os.makedirs(f"{tree}/dir")
    with open(f"{tree}/dir/file", "w") as file:
        file.write("content")
    well(call("tar", "-g", f"{at.scratch}/snapshot", "-cf", packed, "-C", tree, "."))
    with open(packed, "rb") as file:
        run, goal = unpack(at, file.read(), "incremental.tar")
    right = run.code == 0 and os.path.exists(f"{goal}/dir/file")
    return "" if right else f"{os.listdir(goal)}, {run}"


@on("volume mem host")
def zstd_behind_a_frame_to_skip(at):
    "an archive that begins with a frame to be skipped, as those of pzstd do, is unpacked"
    if not shutil.which("zstd"):
        raise Skipped("needs zstd(1)")
    plain_archive = f"{at.scratch}/plain.tar"
    with open(plain_archive, "wb") as file:
        file.write(archive(plain("file", b"content")))
    well(call("zstd", "-q", plain_archive))
    with open(f"{plain_archive}.zst", "rb") as file:
        run, goal = unpack(at, struct.pack("<III", 0x184D2A50, 4, 99) + file.read(), "skip.tar.zst")
    found = os.listdir(goal)
    return "" if run.code == 0 and found == ["file"] else f"{found}, {run}"


@on("volume mem host")
def acls_of_bsdtar(at):
    "the mask of an ACL that bsdtar packed is not narrowed to the permissions of the group"
    if not shutil.which("bsdtar"):
        raise Skipped("needs bsdtar(1)")
    # user::rw-, user:7:rwx, group::r--, mask::rwx, other::---
    entries = ((1, 6, -1), (2, 7, 7), (4, 4, -1), (16, 7, -1), (32, 0, -1))
    acl = struct.pack("<I", 2) + b"".join(struct.pack("<HHi", *entry) for entry in entries)
    name, packed = "system.posix_acl_access", f"{at.scratch}/made.tar"
    tree = f"{at.dir}/tree"
    os.makedirs(f"{tree}/dir")
    with open(f"{tree}/file", "w") as file:
        file.write("content")
    try:
        for member in ("dir", "file"):
            os.setxattr(f"{tree}/{member}", name, acl)
    except OSError:
        raise Skipped("no ACLs here")
    well(call("bsdtar", "--format=pax", "--acls", "-cf", packed, "-C", tree, "dir", "file"))
    with open(packed, "rb") as file:
        run, goal = unpack(at, file.read(), "acls.tar")
    if run.code != 0:
        return str(run)
    found = {member: os.getxattr(f"{goal}/{member}", name) for member in ("dir", "file")}
    wrong = [f"{member} has {value.hex()} for {acl.hex()}" for member, value in found.items() if value != acl]
    return ", ".join(wrong)


@on("volume mem host")
def packs_what_tar_unpacks(at):
    "what pack writes is what tar unpacks: contents, modes, links, times"
    tree, back = f"{at.dir}/tree", f"{at.scratch}/back"
    os.makedirs(f"{tree}/dir")
    os.mkdir(back)
    with open(f"{tree}/dir/file", "wb") as file:
        file.write(bytes(range(256)) * 300)
    os.chmod(f"{tree}/dir/file", 0o640)
    os.link(f"{tree}/dir/file", f"{tree}/link")
    os.symlink("dir/file", f"{tree}/symlink")
    os.utime(f"{tree}/dir/file", ns=(10**18 + 5, 10**18 + 7))
    for how in ("tar", "tar.gz", "tar.xz", "tar.zst"):
        packed = f"{at.scratch}/a.{how}"
        run = holdfast("pack", "-o", packed, tree)
        if run.code != 0:
            return f"{how}: {run}"
        if how == "tar.zst" and not shutil.which("zstd"):
            continue
        run = call("tar", "-xpf", packed, "-C", back)
        if run.code != 0:
            return f"{how}: tar: {run}"
        one, two = os.stat(f"{back}/dir/file"), os.stat(f"{back}/link")
        right = one.st_ino == two.st_ino and one.st_mode & 0o7777 == 0o640 and one.st_mtime_ns == 10**18 + 7
        with open(f"{back}/symlink", "rb") as file:
            right &= file.read() == bytes(range(256)) * 300
        if not right:
            return f"{how}: other attributes or bytes"
        shutil.rmtree(f"{back}/dir")
        os.unlink(f"{back}/link")
        os.unlink(f"{back}/symlink")
    return ""
