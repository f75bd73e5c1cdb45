"""Cuts the sample traces from the full recordings of one cold start.

    python sample_traces/cut.py FOLDER [-o sample_traces] [--repetitions 100]

FOLDER holds one torch.profiler trace (`*.pt.trace.json.gz`) and one Nsight Systems export (`*.sqlite.gz`). All requests
stay, with every event around them. What goes: of each benchmark loop the repetitions after the first `--repetitions`,
host and device rows together. What stays keeps its bytes (torch) or its columns (Nsight). Input decides the output.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
import shutil
import sqlite3
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

FILL = "FillFunctor<int>"  # the benchmark loop's L2 flush
REPETITION = "a*Fa*Ea*Ka*E"  # flush, record, kernel, record; `a` is any call in between


class Call(NamedTuple):
    """One device API call of the launching thread."""

    name: str
    correlation: int
    kernel: str  # what it launched, or ""


def symbol(call: Call) -> str:
    """The call's part in a benchmark loop, as one letter."""
    if call.kernel:
        return "F" if FILL in call.kernel else "K"
    if "Synchronize" in call.name:
        return "x"
    if call.name == "INVALID":  # what Kineto calls cudaEventElapsedTime
        return "I"
    letters = {"cudaEventRecord": "E", "cudaEventQuery": "Q", "cudaEventDestroy": "D"}
    return next((letter for name, letter in letters.items() if call.name.startswith(name)), "a")


def surplus(calls: list[Call], keep: int) -> set[int]:
    """Correlation ids of all repetitions after the first `keep` of every loop, with the queries that read them."""
    text = "".join(map(symbol, calls))
    loop = rf"(?P<runs>(?:{REPETITION}){{{keep + 1},}})a*x(?P<queries>(?:QQI?)+)(?P<destroys>(?:DD)*)"
    positions: list[int] = []
    for found in re.finditer(loop, text):
        repetitions = list(re.finditer(REPETITION, found["runs"]))
        many = len(repetitions)
        positions += range(found.start() + repetitions[keep].start(), found.end("runs"))
        for part in ("queries", "destroys"):
            size = len(found[part]) // many
            positions += range(found.start(part), found.start(part) + (many - keep) * size)
    return {calls[i].correlation for i in positions}


# ---- torch.profiler


def split_events(text: str) -> tuple[str, list[str], str]:
    """Header, the texts of the events, and trailer of a Kineto file, byte for byte."""
    head, body = text.split('"traceEvents": [\n', 1)
    events, tail = body.rsplit("\n  }\n  ]", 1)
    blocks = (events + "\n  }").split("\n  },\n")
    closed = [block + "\n  }" for block in blocks[:-1]]
    return head + '"traceEvents": [\n', [*closed, blocks[-1]], "\n  ]" + tail


def torch_calls(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows of device API calls in order of their begin."""
    return sorted((e for e in events if e.get("cat") in {"cuda_runtime", "cuda_driver"}), key=lambda e: e["ts"])


def torch_lost(events: list[dict[str, Any]], keep: int) -> Iterator[bool]:
    """Whether each event goes: rows of a surplus call, its flow arrows, its kernel and the operators around it."""
    kernels = {e["args"]["correlation"]: e["name"] for e in events if e.get("cat") == "kernel"}
    rows = torch_calls(events)
    calls = [Call(e["name"], e["args"]["correlation"], kernels.get(e["args"]["correlation"], "")) for e in rows]
    lost = surplus(calls, keep)
    # the flush is `aten::fill_` inside `aten::zero_`, whose ids follow each other
    fills = {e["args"]["External id"] for e in rows if e["args"]["correlation"] in lost and "External id" in e["args"]}
    operators = fills | {i - 1 for i in fills}
    for event in events:
        args = event.get("args", {})
        if event.get("cat") == "cpu_op":
            yield event["name"] in {"aten::zero_", "aten::fill_"} and args["External id"] in operators
        elif event.get("cat") == "ac2g":
            yield event["id"] in lost
        else:
            yield args.get("correlation") in lost


def cut_torch(source: Path, target: Path, keep: int) -> None:
    """Write the shorter Kineto file."""
    head, texts, tail = split_events(gzip.decompress(source.read_bytes()).decode())
    lost = torch_lost([json.loads(text) for text in texts], keep)
    kept = [text for text, gone in zip(texts, lost, strict=True) if not gone]
    compress((head + ",\n".join(kept) + tail).encode(), target)


# ---- Nsight Systems

# Rows of these tables go with their call.
BY_CORRELATION = (
    "CUPTI_ACTIVITY_KIND_RUNTIME",
    "CUPTI_ACTIVITY_KIND_KERNEL",
    "CUPTI_ACTIVITY_KIND_MEMCPY",
    "CUPTI_ACTIVITY_KIND_CUDA_EVENT",
    "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION",
)
WHOLE = (
    "TARGET_INFO_SESSION_START_TIME",
    "TARGET_INFO_GPU",
    "TARGET_INFO_CUDA_DEVICE",
    "TARGET_INFO_CUDA_CONTEXT_INFO",
    "TARGET_INFO_CUDA_STREAM",
    "ANALYSIS_DETAILS",
    "PROCESSES",
    "NVTX_EVENTS",
    "ENUM_NSYS_EVENT_TYPE",
    "ENUM_NSYS_EVENT_CLASS",
    "ENUM_CUDA_MEMCPY_OPER",
    "ENUM_CUDA_MEM_KIND",
    "ENUM_CUPTI_SYNC_TYPE",
)
# Of a hundred thousand operating-system calls: what starts and awaits a compiler, and whatever took a millisecond.
THREADS = "globalTid IN (SELECT globalTid FROM CUPTI_ACTIVITY_KIND_RUNTIME)"
SPAWNS = "SELECT id FROM full.StringIds WHERE value IN ('posix_spawn', 'waitpid', 'wait4', 'fork', 'vfork', 'pipe2')"
OSRT = f'{THREADS} AND ("end" - start >= 1000000 OR nameId IN ({SPAWNS}))'
EXPORT = "name NOT IN ('EXPORT_HOST', 'EXPORT_USER')"


def nsight_calls(db: sqlite3.Connection) -> list[Call]:
    """Device API calls in order of their begin."""
    query = """SELECT n.value, r.correlationId, ifnull(k.value, '') FROM full.CUPTI_ACTIVITY_KIND_RUNTIME r
        JOIN full.StringIds n ON n.id = r.nameId
        LEFT JOIN full.CUPTI_ACTIVITY_KIND_KERNEL d USING (correlationId)
        LEFT JOIN full.StringIds k ON k.id = d.demangledName ORDER BY r.start"""
    return [Call(*row) for row in db.execute(query)]


def copy_table(db: sqlite3.Connection, name: str, where: str = "true") -> None:
    """The rows of one table that fulfil a condition, in their order."""
    db.execute(db.execute("SELECT sql FROM full.sqlite_master WHERE name = ?", (name,)).fetchone()[0])
    db.execute(f"INSERT INTO main.{name} SELECT * FROM full.{name} WHERE {where} ORDER BY rowid")


def used_strings(db: sqlite3.Connection) -> str:
    """A condition: the string is named by some column of a copied table."""
    tables = [name for (name,) in db.execute("SELECT name FROM main.sqlite_master WHERE type = 'table'")]
    columns = [(table, row[1]) for table in tables for row in db.execute(f"PRAGMA main.table_info({table})")]
    ends = ("Id", "Name")  # nameId, textId, demangledName ...
    parts = [f"SELECT {column} FROM main.{table}" for table, column in columns if column.endswith(ends)]
    return f"id IN ({' UNION '.join(parts)})"


def fill_nsight(db: sqlite3.Connection, keep: int) -> None:
    """Copy what stays from the attached database `full`."""
    db.execute("CREATE TEMP TABLE lost (id INTEGER PRIMARY KEY)")
    db.executemany("INSERT INTO lost VALUES (?)", ((i,) for i in sorted(surplus(nsight_calls(db), keep))))
    for name in BY_CORRELATION:
        copy_table(db, name, "correlationId NOT IN (SELECT id FROM lost)")
    for name in WHOLE:
        copy_table(db, name)
    copy_table(db, "OSRT_API", OSRT)
    copy_table(db, "PROFILER_OVERHEAD", THREADS)
    copy_table(db, "ThreadNames", THREADS)
    copy_table(db, "META_DATA_EXPORT", EXPORT)
    copy_table(db, "StringIds", used_strings(db))


def cut_nsight(source: Path, target: Path, keep: int) -> None:
    """Write the shorter SQLite export."""
    with tempfile.TemporaryDirectory() as folder:
        full, short = Path(folder, "full.sqlite"), Path(folder, "short.sqlite")
        with gzip.open(source) as packed, full.open("wb") as plain:
            shutil.copyfileobj(packed, plain)
        db = sqlite3.connect(short, isolation_level=None)
        db.execute("ATTACH ? AS full", (str(full),))
        db.execute("BEGIN")
        fill_nsight(db, keep)
        db.execute("COMMIT")
        db.execute("VACUUM")
        db.close()
        compress(short.read_bytes(), target)


def compress(data: bytes, target: Path) -> None:
    """Write gzip without a name or a time, so that the same data gives the same file."""
    target.write_bytes(gzip.compress(data, 9, mtime=0))


def only(paths: Iterable[Path]) -> Path:
    """The one path that is there."""
    (path,) = paths
    return path


def main() -> None:
    """Read the arguments, cut both recordings and print their sizes."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path, help="where the full recordings are")
    parser.add_argument("-o", "--output", type=Path, default=Path(__file__).parent)
    parser.add_argument("--repetitions", type=int, default=100, help="repetitions that stay of each benchmark loop")
    options = parser.parse_args()
    torch, nsight = options.output / "h200-torch.json.gz", options.output / "h200-nsight.sqlite.gz"
    cut_torch(only(options.folder.glob("*.pt.trace.json.gz")), torch, options.repetitions)
    cut_nsight(only(options.folder.glob("*.sqlite.gz")), nsight, options.repetitions)
    for path in (torch, nsight):
        print(f"{path.stat().st_size:>9,} bytes  {path}")


if __name__ == "__main__":
    main()
