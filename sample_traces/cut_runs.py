"""Makes the small, scrubbed sample runs beside this file from what `record.py` recorded.

    python sample_traces/cut_runs.py FOLDER [-o sample_traces]

Of each run goes what says something of the machine (`tprof scrub`), journals in which nothing happened, and of Nsight's
export the tables that tprof does not read and the operating-system calls of less than a millisecond, but for those
that start a process. No other event is cut, and the rest is gzipped.
"""

from __future__ import annotations

import argparse
import gzip
import shutil
import sqlite3
import tempfile
from pathlib import Path

from tprof.scrub import scrub
from tprof.scrub.words import Words

LIMIT = 1_000_000  # bytes of a sample
# Tables of an export that a reading needs; `tprof summary` is the same without the others.
TABLES = (
    "CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_MEMCPY", "CUPTI_ACTIVITY_KIND_MEMSET",
    "CUPTI_ACTIVITY_KIND_RUNTIME", "CUPTI_ACTIVITY_KIND_GRAPH_TRACE", "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION",
    "CUDA_GRAPH_NODE_EVENTS", "NVTX_EVENTS", "OSRT_API", "PROFILER_OVERHEAD", "StringIds", "ThreadNames", "PROCESSES",
    "TARGET_INFO_GPU", "TARGET_INFO_SESSION_START_TIME", "META_DATA_EXPORT",
)  # fmt: skip

SPAWNS = "SELECT id FROM StringIds WHERE value LIKE 'posix_spawn%' OR value IN ('vfork', 'execve', 'waitpid', 'wait4')"
SHORT = f'"end" - start < 1000000 AND nameId NOT IN ({SPAWNS})'


def main() -> None:
    """Cut every run of the folder."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("-o", "--output", type=Path, default=Path(__file__).parent)
    args = parser.parse_args()
    args.output.mkdir(parents=True, exist_ok=True)
    for run in sorted(path.parent for path in args.folder.glob("*/run.json")):
        out = args.output / run.name
        shutil.rmtree(out, ignore_errors=True)
        scrub(run, out, Words())
        cut(out)
        size = sum(path.stat().st_size for path in out.iterdir())
        print(f"{run.name:15} {size / 1e6:5.2f} MB" + (" too large" if size > LIMIT else ""))


def cut(run: Path) -> None:
    """Leave out what says nothing, and pack what is left."""
    for journal in run.glob("process-*.jsonl"):
        if '"type":"begin"' not in journal.read_text(encoding="utf-8"):
            for file in (journal, journal.with_suffix(".launches"), run / f"{journal.stem}.torch.json.gz"):
                file.unlink(missing_ok=True)
    for file in [*run.glob("process-*"), *run.glob("*.sqlite*")]:
        data = file.read_bytes()
        data = gzip.decompress(data) if file.suffix == ".gz" else data
        data = smaller(data) if ".sqlite" in file.name else data
        file.unlink()
        file.with_name(file.name.removesuffix(".gz") + ".gz").write_bytes(gzip.compress(data, 9, mtime=0))


def smaller(database: bytes) -> bytes:
    """An export with the tables of TABLES only."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "export.sqlite"
        path.write_bytes(database)
        with sqlite3.connect(path) as connection:
            names = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
            for (name,) in names:
                if name not in TABLES:
                    connection.execute(f'DROP TABLE "{name}"')
            connection.execute(f"DELETE FROM OSRT_API WHERE {SHORT}")
        connection.execute("VACUUM")
        connection.close()
        return path.read_bytes()


if __name__ == "__main__":
    main()
