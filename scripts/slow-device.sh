#!/usr/bin/env bash
# A slow device delays only those who need it, through a mount: a volume on a device whose calls
# take as long as is asked for. And two others of the kind that need a mount: a daemon without
# memory for a further thread, a set-user-id program that is overwritten.
#
#   scripts/slow-device.sh [--transport auto|uring|dev]
#
# Prints what it saw; exits 0 only if all of it is right. Needs root.
set -euo pipefail
cd "$(dirname "$0")/.."
transport=auto
case "${1:-}" in
    "") ;;
    --transport) transport=$2 ;;
    *) sed -n '2,8s/^# \{0,1\}//p' "$0"; exit 2 ;;
esac
[ "$(id -u)" = 0 ] || { echo "slow-device: needs root"; exit 1; }
cargo build --quiet --release -p holdfast-testkit --bin slow_mount
work=$(mktemp -d "${TMPDIR:-/tmp}/holdfast-slow.XXXXXX")
mkdir "$work/mnt"
mkfifo "$work/orders"
chmod 755 "$work" "$work/mnt"
cargo_target=${CARGO_TARGET_DIR:-target}
"$cargo_target/release/slow_mount" "$work/mnt" --transport "$transport" <"$work/orders" >"$work/said" &
daemon=$!
exec 7>"$work/orders"
end() {
    umount -f "$work/mnt" 2>/dev/null || true
    exec 7>&-
    wait "$daemon" 2>/dev/null || true
    rm -r "$work"
}
trap end EXIT
for _ in $(seq 600); do
    grep -q ready "$work/said" && break
    kill -0 "$daemon" || { echo "slow-device: the daemon did not start"; exit 1; }
    sleep 0.1
done
cat "$work/said"
python3 - "$work/mnt" "$daemon" 7 <<'PYTHON'
import os, resource, stat, subprocess, sys, threading, time

mnt, daemon, orders = sys.argv[1], int(sys.argv[2]), os.fdopen(int(sys.argv[3]), "w", closefd=False)
wrong = []

def order(text):
    orders.write(text + "\n")
    orders.flush()
    time.sleep(0.2)

def say(right, text):
    print(("right  " if right else "WRONG  ") + text)
    if not right:
        wrong.append(text)

def path(name):
    return os.path.join(mnt, name)

def read(name):
    with open(path(name), "rb") as file:
        return file.read()

# A stat in memory that the kernel does not answer by itself: an extended attribute is always asked for.
def ask():
    try:
        os.getxattr(path("known"), "user.none")
    except OSError:
        pass

def longest(work, seconds, pause=0.002):
    took, until = [], time.monotonic() + seconds
    while time.monotonic() < until:
        begun = time.monotonic()
        work()
        took.append(time.monotonic() - begun)
        time.sleep(pause)
    return sorted(took)

open(path("known"), "w").close()
os.mkdir(path("d"))
read("cold0")
ask()

# One read of the device takes 4 s, and a commit comes half a second later.
order("read 4000")
reader = threading.Thread(target=read, args=("cold1",))
reader.start()
time.sleep(0.3)
order("read 0")
begun = time.monotonic()
syncer = threading.Thread(target=lambda: os.fsync(os.open(path("known"), os.O_RDONLY)))
syncer.start()
time.sleep(0.1)
serial = iter(range(10**9))
def create(): open(path(f"d/new{next(serial)}"), "w").close()
def write():
    with open(path("d/written"), "ab", buffering=0) as file: file.write(b"x" * 100)
def chmod(): os.chmod(path("known"), 0o600 | next(serial) % 8)
cold = iter(range(2, 100))
works = [("a request for what is in memory", ask), ("a create", create), ("a write", write),
         ("a chmod", chmod), ("a cached read", lambda: read("cold0")),
         ("a cold read of other blocks", lambda: read(f"cold{next(cold)}"))]
for name, work in works:
    took = longest(work, 0.4, 0.01)[-1]
    say(took < 0.25, f"beside a read that takes 4 s, {name} took at most {took * 1000:.1f} ms")
say(reader.is_alive(), "that read was under way all the time")
reader.join(); syncer.join()
say(time.monotonic() - begun < 8, "it ended, and the fsync after it")

# Cold reads of one file by several threads, 5 ms each; writes to a page of it beside a read of 4 s.
large = os.open(path("large"), os.O_RDWR)
os.posix_fadvise(large, 0, 0, os.POSIX_FADV_RANDOM)
os.pread(large, 4096, 0)
# Pages far from each other, so that nothing is read ahead.
cold_pages = iter(range(100, 16000, 3))
def read_cold(count):
    for _ in range(count): os.pread(large, 4096, next(cold_pages) * 4096)
order("read 5")
for threads in [8, 16]:
    each = 100
    work = [threading.Thread(target=read_cold, args=(each,)) for _ in range(threads)]
    begun = time.monotonic()
    for thread in work: thread.start()
    for thread in work: thread.join()
    took, ideal = time.monotonic() - begun, each * 0.005
    say(took < 2 * ideal, f"{threads * each} cold reads of one file by {threads} threads took {took:.2f} s, {ideal:.2f} s at best")
order("read 4000")
reader = threading.Thread(target=read_cold, args=(1,))
reader.start()
time.sleep(0.3)
took = longest(lambda: os.pwrite(large, b"x", 0), 3)
say(reader.is_alive(), "a cold read of that file was under way all the time")
most = took[len(took) * 99 // 100] * 1000
say(most < 5, f"meanwhile 99 % of {len(took)} writes to a page of it in memory took less than {most:.2f} ms")
order("read 0")
reader.join()
os.close(large)

# 64 fsyncs at once, a flush takes 200 ms.
order("flush 200")
over = False
def sync_on(number):
    with open(path(f"d/synced{number}"), "wb", buffering=0) as file:
        while not over:
            file.write(b"y")
            os.fsync(file.fileno())
threads = [threading.Thread(target=sync_on, args=(number,)) for number in range(64)]
for thread in threads: thread.start()
time.sleep(1)
# From a process of its own: 64 threads of this one hold the interpreter up.
probe = """
import os, sys, time
took, until = [], time.monotonic() + 5
while time.monotonic() < until:
    begun = time.monotonic()
    try: os.getxattr(sys.argv[1], "user.none")
    except OSError: pass
    took.append(time.monotonic() - begun)
    time.sleep(0.002)
took.sort()
print(took[len(took) // 2] * 1000, took[len(took) * 99 // 100] * 1000, len(took))
"""
half, most, count = map(float, subprocess.check_output([sys.executable, "-c", probe, path("known")]).split())
over = True
for thread in threads: thread.join()
order("flush 0")
say(most < 5, f"beside 64 fsyncs, {count:.0f} requests for what is in memory: median {half:.2f} ms, 99 % below {most:.2f} ms")

# A program that lends its owner's identity, overwritten by a user who may, and run at once.
ran_as_root = 0
for how in ["write", "fallocate", "copy_file_range"]:
    program = path("d/program-" + how)
    with open("/usr/bin/id", "rb") as source, open(program, "wb") as file: file.write(source.read())
    os.chmod(program, 0o4777)
    os.chmod(path("d"), 0o777)
    script = f"""
import os, subprocess
os.setgroups([]); os.setgid(65534); os.setuid(65534)
name = {program!r}
subprocess.run([name, "-u"], stdout=subprocess.DEVNULL)
file = os.open(name, os.O_RDWR)
if {how!r} == "write":
    first = os.pread(file, 1, 0); os.pwrite(file, first, 0)
elif {how!r} == "fallocate":
    os.posix_fallocate(file, os.fstat(file).st_size, 4096)
else:
    other = os.open("/usr/bin/id", os.O_RDONLY)
    own = os.open(name, os.O_RDONLY)
    os.copy_file_range(own, file, 512, 0, os.fstat(file).st_size)
os.close(file)
print(subprocess.run([name, "-u"], capture_output=True, text=True).stdout.strip())
"""
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    uid = ran.stdout.strip()
    say(uid == "65534", f"a set-user-id program overwritten by {how} ran as user {uid or ran.stderr.strip()[-80:]!r}")

# No memory for a further thread, and 64 processes that write and wait for the device.
with open(f"/proc/{daemon}/statm") as statm: pages = int(statm.read().split()[0])
resource.prlimit(daemon, resource.RLIMIT_AS, (pages * 4096 + (8 << 20), resource.RLIM_INFINITY))
order("flush 20")
busy = """
import os, sys
with open(sys.argv[1], "wb", buffering=0) as file:
    for _ in range(20):
        file.write(b"z" * 512)
        os.fsync(file.fileno())
"""
children = [subprocess.Popen([sys.executable, "-c", busy, path(f"d/busy{n}")], stderr=subprocess.DEVNULL) for n in range(64)]
until = time.monotonic() + 120
while any(child.poll() is None for child in children) and time.monotonic() < until: time.sleep(0.1)
hung = sum(child.poll() is None for child in children)
failed = sum(child.poll() not in (0, None) for child in children)
say(hung == 0, f"a daemon at its limit of memory: of 64 processes {64 - hung - failed} succeeded, {failed} were told an error, {hung} hang")
for child in children: child.kill()
print(f"{len(wrong)} wrong")
sys.exit(bool(wrong))
PYTHON
