"""The long run: `python tests/fuzz/run.py --inputs 40000 torch sqlite run arrow plan bundle` (docs/trust.md).

Input number N of a target is made from N alone, so a failure needs no file: `--from N --inputs 1` shows it again. Each
target runs in a child with bounded memory, whose parent ends it when one input takes too long and goes on behind it.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import shutil
import subprocess
import sys
import time
import traceback
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

HERE = Path(__file__).resolve().parent
SECONDS, STARTING = 20, 300  # for one input, and for the first, which may compile the scanner
BYTES = 1 << 30  # of memory beyond what the imports take
SHOWN = 3  # failures of one kind whose numbers are kept


def one(target: str, number: int, folder: Path) -> None:
    """Make and check one input.

    Raises:
        Exception: whatever a broken property raises.
    """
    from fuzz.targets import TARGETS

    rng = random.Random(f"{target}:{number}")
    folder.mkdir()
    try:
        TARGETS[target].check(TARGETS[target].make(rng, folder), rng)
    finally:
        shutil.rmtree(folder)


def child(target: str, first: int, count: int, log: Path) -> None:
    """Run inputs one after another; the log says which one is being tried, and what failed."""
    from fuzz.targets import TARGETS  # noqa: F401  imported before memory is bounded

    used = int(Path("/proc/self/statm").read_text().split()[5]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_DATA, (used + BYTES, used + BYTES))
    with TemporaryDirectory(dir="/dev/shm") as top, log.open("a", encoding="utf-8") as out:
        for number in range(first, first + count):
            os.utime(log)
            out.write(f"{number}\n") if number % 50 == 0 else None
            out.flush()
            log.with_suffix(".at").write_text(str(number))
            try:
                one(target, number, Path(top, "x"))
            except Exception as error:  # noqa: BLE001  that is what is looked for
                last = traceback.extract_tb(error.__traceback__)[-1]
                place = f"{type(error).__name__} {Path(last.filename).name}:{last.lineno} {last.name}: {error}"[:300]
                out.write(json.dumps({"input": number, "problem": place}) + "\n")


def watched(target: str, first: int, count: int, log: Path) -> None:
    """A child for every stretch of inputs that none of them ends."""
    last, at = first + count, log.with_suffix(".at")
    while first < last:
        at.write_text(str(first))
        process = subprocess.Popen([sys.executable, __file__, "--child", str(log), "--from", str(first),
                                    "--inputs", str(last - first), target])  # fmt: skip
        while process.poll() is None:
            time.sleep(0.5)
            limit = SECONDS if at.read_text() != str(first) else STARTING
            if time.time() - at.stat().st_mtime > limit:
                process.kill()
        if process.returncode == 0:
            return
        number = int(at.read_text())
        with log.open("a", encoding="utf-8") as out:
            out.write(json.dumps({"input": number, "problem": f"ended with {process.returncode}"}) + "\n")
        first = number + 1


def failures(log: Path) -> Counter[str]:
    """Problems by kind, with the first numbers of each printed."""
    found: dict[str, list[int]] = {}
    for line in log.read_text(encoding="utf-8").splitlines():
        if line.startswith("{"):
            said = json.loads(line)
            found.setdefault(said["problem"][:110], []).append(said["input"])
    for problem, numbers in sorted(found.items(), key=lambda item: -len(item[1])):
        sys.stdout.write(f"  {len(numbers):6} x {problem}   e.g. {numbers[:SHOWN]}\n")
    return Counter({problem: len(numbers) for problem, numbers in found.items()})


def main() -> int:
    """Run what was asked for; 1 where a property failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("targets", nargs="+")
    parser.add_argument("--from", type=int, default=0, dest="first")
    parser.add_argument("--inputs", type=int, default=1000)
    parser.add_argument("--child", type=Path)
    said = parser.parse_args()
    os.environ["TPROF_CACHE"] = "0"
    sys.path[:0] = [str(HERE.parent), str(HERE.parents[1])]
    if said.child:
        child(said.targets[0], said.first, said.inputs, said.child)
        return 0
    bad = 0
    for target in said.targets:
        with TemporaryDirectory() as folder:
            log, began = Path(folder, "log"), time.monotonic()
            log.touch()
            watched(target, said.first, said.inputs, log)
            sys.stdout.write(f"{target}: {said.inputs:,} inputs in {time.monotonic() - began:.0f} s\n")
            sys.stdout.flush()
            bad += failures(log).total()
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
