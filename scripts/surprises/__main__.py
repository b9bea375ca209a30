"""Runs the checks on all targets and prints a table: see surprises.sh.

Arguments: the working folder, which has the mount points `volume`, `mem`, `host` and `tmpfs` and the
directory `below/dir`, which is mounted at `host`; the transport; words that names of checks contain,
if not all are to run. The last target, tmpfs, is the reference, which is shown and not judged.
"""

import signal
import sys
import time

import programs  # noqa: F401  each of these registers its checks
import promises  # noqa: F401
import archives  # noqa: F401
import shared  # noqa: F401
import options  # noqa: F401
import command  # noqa: F401
from harness import ALL, CHECKS, Started, Target


def row(number, check, targets, work, transport):
    """Runs a check on its targets side by side: gives what each showed."""
    started = {}
    try:
        for name in targets:
            target = Target(name, f"{work}/{name}", work, transport, f"{work}/below/dir")
            target.prepare(number)
            started[name] = Started(check, target)
        return {name: one.result() for name, one in started.items()}
    finally:
        for one in started.values():
            one.stop()
            one.target.reset()


def word(seen):
    if seen is None:
        return "-"
    return "right" if not seen else "skipped" if seen.startswith("skipped") else "WRONG"


def main(work, transport, *wanted):
    names, wrong, skipped = ALL.split(), 0, 0
    print(f"{'':38}" + "".join(f"{name:9}" for name in names))
    for number, (check, targets) in enumerate(CHECKS):
        if wanted and not any(part in check.__name__ for part in wanted):
            continue
        begun = time.monotonic()
        seen = row(number, check, targets, work, transport)
        words = "".join(f"{word(seen.get(name)):9}" for name in names)
        print(f"{check.__name__:38}{words}{time.monotonic() - begun:5.1f} s", flush=True)
        told = {name: text for name, text in seen.items() if text}
        for name, text in told.items():
            print(f"    {name}: {text}")
        if any(word(text) == "WRONG" for text in told.values()):
            print(f"    right is: {check.__doc__}", flush=True)
        skipped += any(word(text) == "skipped" for text in told.values())
        wrong += sum(word(text) == "WRONG" for name, text in told.items() if name != names[-1])
    print(f"{wrong} wrong, {skipped} checks skipped in part or whole")
    return 1 if wrong else 0


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    sys.exit(main(*sys.argv[1:]))
