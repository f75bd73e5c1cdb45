"""How long reading and answering takes against what people use instead, and what memory; writes docs/benchmarks.md.

    python benchmarks/reading.py [FILES] [--large] [--rounds N] [--hta PYTHON] [--write FILE]

`--large` adds traces of 1.5 GB and 10 million rows. HTA is measured where `--hta` names a Python that has it, `nsys
stats` where nsys is installed. Every measurement is a process of its own, and methods take turns, so that other work on
the machine hits all of them. The clock suffers from other work, the processor's time hardly: ratios are given of both.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from generate import nsight_export, torch_trace

HERE = Path(__file__).resolve().parent
LIMIT_SECONDS = 600
LIMIT_BYTES = 4 << 30
TPROF = [sys.executable, "-m", "tprof"]


@dataclass
class Measured:
    """One method on one file; `whole` counts the process with its imports."""

    method: str
    command: list[str]
    whole: bool = False
    environment: dict[str, str] = field(default_factory=dict)
    limited: bool = False
    rounds: list[dict[str, float]] = field(default_factory=list)
    failed: str = ""

    def run(self) -> None:
        """Measure once."""
        if self.failed:
            return
        limits = ["prlimit", f"--data={LIMIT_BYTES}"] if self.limited else []
        start, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
        try:
            done = subprocess.run(  # noqa: S603  our own commands
                [*limits, *self.command], env=os.environ | self.environment, capture_output=True, text=True,
                timeout=LIMIT_SECONDS, check=True,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            self.failed = f"did not finish in {LIMIT_SECONDS} s"
        except subprocess.CalledProcessError as error:
            self.failed = f"failed: {(error.stderr.strip().splitlines() or ['?'])[-1][:80]}"
        else:
            used = resource.getrusage(resource.RUSAGE_CHILDREN)
            cpu = used.ru_utime + used.ru_stime - before.ru_utime - before.ru_stime
            whole = {"clock": time.perf_counter() - start, "cpu": cpu}
            inner = (
                {}
                if self.command[0] in ("nsys", "tprof") or "-m" in self.command
                else json.loads(done.stdout.splitlines()[-1])
            )
            self.rounds.append({**inner, **whole} if self.whole else {**whole, **inner})

    def median(self, key: str) -> float:
        """Median over the rounds."""
        return statistics.median(r[key] for r in self.rounds)

    def spread(self, key: str, digits: int = 2) -> str:
        """Median, least and largest."""
        values = sorted(r[key] for r in self.rounds)
        return f"{self.median(key):.{digits}f} ({values[0]:.{digits}f}-{values[-1]:.{digits}f})"


def inner(method: str, path: Path, python: str = sys.executable, **more: object) -> Measured:
    """A method of methods.py."""
    return Measured(method, [python, str(HERE / "methods.py"), method, str(path)], **more)  # type: ignore[arg-type]


@dataclass
class Question:
    """A row of the report: tprof against peers on one file."""

    title: str
    path: Path
    ours: list[Measured]
    peers: list[Measured]
    goals: dict[str, float]
    rounds: int

    def measure(self) -> None:
        """All rounds, the methods in turn."""
        for n in range(self.rounds):
            for measured in (*self.ours, *self.peers):
                print(f"{self.title}: {measured.method}, round {n + 1}", file=sys.stderr)
                measured.run()

    def rows(self) -> list[str]:
        """Lines of the table."""
        lines = []
        for measured in (*self.peers, *self.ours):
            if measured.failed:
                lines.append(f"| {measured.method} | {measured.failed} | | | |")
                continue
            memory = measured.median("bytes") if "bytes" in measured.rounds[0] else None
            told = "" if memory is None else f"{memory / 1e6:,.0f} MB = {memory / self.path.stat().st_size:.2f}"
            cells = (measured.method, measured.spread("clock"), measured.spread("cpu"), told, self.against(measured))
            lines.append(f"| {' | '.join(cells)} |")
        return lines

    def against(self, measured: Measured) -> str:
        """How many times as fast as each peer, by the clock and by the processor's time."""
        if measured in self.peers:
            return ""
        parts = []
        for peer in self.peers:
            if peer.failed:
                continue
            clock, cpu = (peer.median(k) / measured.median(k) for k in ("clock", "cpu"))
            goal = self.goals.get(peer.method)
            aimed = f" (goal {goal:g})" if goal and measured is self.ours[0] else ""
            parts.append(f"{peer.method}: {clock:.1f}, cpu {cpu:.1f}{aimed}")
        return "; ".join(parts)


def torch_question(path: Path, options: argparse.Namespace, *, large: bool) -> Question:
    """Parsing and a summary of a torch.profiler trace."""
    off = {"TPROF_CACHE": "0"}
    ours = [
        inner(m, path, environment=off, whole=large, limited=large)
        for m in ("summary", "summary_decoder", "low_memory")
    ]
    peers = [inner("json_pandas", path, whole=large)]
    peers += [inner("hta", path, options.hta, whole=large)] if options.hta else []
    title = f"torch.profiler JSON, {path.stat().st_size / 1e6:,.0f} MB: parse and summary"
    return Question(title, path, ours, peers, {"json_pandas": 15, "hta": 40}, 1 if large else options.rounds)


def opening_question(path: Path, options: argparse.Namespace, folder: Path) -> Question:
    """Opening for the second time, imports included."""
    kept = {"TPROF_CACHE_DIR": str(folder)}
    inner("opening", path, environment=kept).run()
    again = inner("opening", path, environment=kept, whole=True)
    return Question(f"Second opening of {path.stat().st_size / 1e6:,.0f} MB, imports included (goal 0.6 s)", path,
                    [again], [], {}, options.rounds)  # fmt: skip


def nsight_questions(path: Path, rows: str, options: argparse.Namespace, goal: float) -> list[Question]:
    """The join, and kernels by name against `nsys stats`."""
    size = f"Nsight SQLite, {rows} rows"
    found = [
        Question(f"{size}: kernels, runtime and NVTX joined", path, [inner("joined", path)],
                 [inner("sqlite_pandas", path)], {"sqlite_pandas": 8}, options.rounds),
    ]  # fmt: skip
    if shutil.which("nsys"):
        ours = Measured("tprof kernels", [*TPROF, "kernels", str(path), "--no-cache", "-f", "csv"], whole=True)
        command = ["nsys", "stats", "--report", "gpukernsum", "--format", "csv", str(path)]
        peers = [Measured("nsys stats", command, whole=True)]
        title = f"{size}: kernels by name, imports included"
        found.append(Question(title, path, [ours], peers, {"nsys stats": goal}, options.rounds))
    return found


def report(questions: list[Question]) -> str:
    """The page."""
    head = (
        f"Written by `make bench`: Python {platform.python_version()}, {os.cpu_count()} processors, load "
        f"{os.getloadavg()[1]:.1f} while it ran. Seconds are medians, with the least and the largest. A ratio says how "
        "many times as fast as the peer. Memory is the growth of anonymous pages after imports, in bytes and per "
        "byte of the file. Every method of a table ran in the same session, in turns."
    )
    lines = ["# Benchmarks: reading and answering", "", head]
    for question in questions:
        lines += ["", f"## {question.title}", "", "| method | clock, s | processor, s | memory | times as fast as |",
                  "|---|---|---|---|---|", *question.rows()]  # fmt: skip
    return "\n".join(lines) + "\n"


def sources(folder: Path, options: argparse.Namespace) -> list[Path]:
    """The files that were named, else generated ones."""
    if options.files:
        return [path.resolve() for path in options.files]
    found = []
    for events, rows in ((580_000, 1_000_000), (5_700_000, 10_000_000))[: 1 + options.large]:
        found += [folder / f"{events}.json", folder / f"{rows}.sqlite"]
        torch_trace(found[-2], events)
        nsight_export(found[-1], rows)
    time.sleep(3)  # what has just changed is not kept in the cache
    return found


def questions(path: Path, options: argparse.Namespace, folder: Path) -> list[Question]:
    """What is asked of a file."""
    size = path.stat().st_size
    if path.suffix == ".sqlite":
        large = size > 300e6
        return nsight_questions(path, f"{size / 58e6:.0f} million", options, 2.5 if large else 1)
    large = size > 1e9
    return [torch_question(path, options, large=large), opening_question(path, options, folder / "cache")]


def main() -> None:
    """Make the files, measure, write."""
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed package is compiled
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "files", type=Path, nargs="*", help="torch.profiler JSON and Nsight .sqlite; default: generated"
    )
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--hta", default="")
    parser.add_argument("--write", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        asked = [q for path in sources(folder, options) for q in questions(path, options, folder)]
        for question in asked:
            question.measure()
        page = report(asked)
    print(page)
    if options.write:
        options.write.write_text(page)


if __name__ == "__main__":
    main()
