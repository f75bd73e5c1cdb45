"""The coverage-guided run: `pip install atheris`, then `python tests/fuzz/guided.py torch -runs=50000 -seed=1`.

libFuzzer changes bytes and keeps what reaches new code of tprof. What must hold is what `targets` says of the same
format as far as it is read. Inputs that fail are written to the current folder (`crash-…`).
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import atheris

HERE = Path(__file__).resolve().parent
os.environ.update(TPROF_CACHE="0", TPROF_SCANNER="off")
sys.path[:0] = [str(HERE.parent), str(HERE.parents[1])]

with atheris.instrument_imports(include=["tprof.read", "tprof.align", "tprof.prepare", "tprof.scrub"]):
    from fuzz import mutate, seeds
    from fuzz.targets import agree_sqlite, agree_torch, check_plan, reading

    import tprof

FOLDER = TemporaryDirectory(dir="/dev/shm")
TOP = Path(FOLDER.name)


def _file(name: str, data: bytes) -> Path:
    path = TOP / name
    path.write_bytes(data)
    return path


def torch(data: bytes) -> None:
    """A document, packed or not."""
    agree_torch(_file("x.json", data), Random(len(data)))


def sqlite(data: bytes) -> None:
    """A database."""
    agree_sqlite(_file("x.sqlite", data), Random(len(data)))


def journal(data: bytes) -> None:
    """A run directory of one journal and sound launches."""
    run = TOP / "run"
    run.mkdir(exist_ok=True)
    (run / "process-1.jsonl").write_bytes(data)
    (run / "process-1.launches").write_bytes(next(v for k, v in seeds.run(1).items() if k.endswith(".launches")))
    reading(run, tprof.load)


def launches(data: bytes) -> None:
    """A run directory of one launch file and a sound journal."""
    run = TOP / "run"
    run.mkdir(exist_ok=True)
    (run / "process-1.jsonl").write_bytes(next(v for k, v in seeds.run(1).items() if k.endswith(".jsonl")))
    (run / "process-1.launches").write_bytes(data)
    reading(run, tprof.load)


def plan(data: bytes) -> None:
    """A plan."""
    check_plan(_file("plan.json", data), Random(0))


def _seeds() -> dict[str, list[bytes]]:
    runs = [seeds.run(n) for n in range(3)]
    return {
        "torch": [mutate.dumps(Random(n), seeds.torch(n)) for n in range(8)],
        "sqlite": [seeds.sqlite(0)],
        "journal": [v for files in runs for k, v in files.items() if k.endswith(".jsonl")],
        "launches": [v for files in runs for k, v in files.items() if k.endswith(".launches")],
        "plan": [mutate.dumps(Random(n), seeds.plan()) for n in range(5)],
    }


def main() -> None:
    """Run what the first argument names; the others are libFuzzer's."""
    name = sys.argv.pop(1)
    corpus = TOP / "corpus"
    corpus.mkdir()
    for number, content in enumerate(_seeds()[name]):
        (corpus / str(number)).write_bytes(content)
    tests = {"torch": torch, "sqlite": sqlite, "journal": journal, "launches": launches, "plan": plan}
    atheris.Setup([*sys.argv, "-timeout=20", "-rss_limit_mb=2048", "-print_final_stats=1", str(corpus)], tests[name])
    atheris.Fuzz()


if __name__ == "__main__":
    main()
