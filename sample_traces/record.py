"""Records the sample runs with tprof itself, on a machine with an NVIDIA GPU (two for `ranks`) and Nsight Systems.

    python sample_traces/record.py FOLDER [--only NAME ...]

Each becomes a run directory FOLDER/<name>. `cut_runs.py` makes the small, scrubbed ones beside this file from them.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SERVE = [sys.executable, "examples/serve.py"]
RANKS = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "examples/ranks.py"]
GPU, NSYS = ["--torch-profiler", "gpu"], ["--nsys"]
# name: how it is recorded, what runs, and whether the disk caches of the run before it are kept
RUNS: dict[str, tuple[list[str], list[str], bool]] = {
    "cold-torch": (GPU, SERVE, False),
    "warm-torch": (GPU, SERVE, True),
    "cold-nsight": (NSYS, SERVE, False),
    "warm-nsight": (NSYS, SERVE, True),
    "graphs-torch": (GPU, [sys.executable, "examples/graphs.py"], False),
    "graphs-nsight": (NSYS, [sys.executable, "examples/graphs.py"], False),
    "two-processes": (GPU, [*SERVE, "--processes", "2", "--lengths", "512,777,512"], False),
    "ranks": (GPU, [*RANKS, "{caches}"], False),
}


def main() -> None:
    """Record each, and say how it went."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", nargs="*", choices=list(RUNS), default=list(RUNS))
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    caches = args.folder / "caches"
    for name in args.only:
        how, command, keep = RUNS[name]
        if not keep:
            shutil.rmtree(caches, ignore_errors=True)
        if name == "ranks":
            warm_one_rank(caches)
        record(args.folder / name, how, [word.format(caches=caches) for word in command], caches)


def warm_one_rank(caches: Path) -> None:
    """Fill the caches of both ranks, then empty the second's."""
    subprocess.run([*RANKS, str(caches), "--steps", "1"], cwd=ROOT, env=environment(caches), check=True)  # noqa: S603 - ours
    shutil.rmtree(caches / "rank1")


def record(run: Path, how: list[str], command: list[str], caches: Path) -> None:
    """One run; short benchmark loops keep the sample small."""
    shutil.rmtree(run, ignore_errors=True)
    begin = time.monotonic()
    whole = [sys.executable, "-m", "tprof", "record", *how, "-o", str(run), "--", *command]
    done = subprocess.run(whole, cwd=ROOT, env=environment(caches), check=False)  # noqa: S603 - ours
    size = sum(path.stat().st_size for path in run.rglob("*")) / 1e6
    print(f"{run.name:15} status {done.returncode}  {time.monotonic() - begin:5.1f} s  {size:6.1f} MB", flush=True)


def environment(caches: Path) -> dict[str, str]:
    """Caches of their own, and the checkout's packages."""
    path = [str(ROOT), str(ROOT / "kernels"), os.environ.get("PYTHONPATH", "")]
    return os.environ | {
        "TRITON_CACHE_DIR": str(caches / "triton"),
        "TORCHINDUCTOR_CACHE_DIR": str(caches / "inductor"),
        "TRITON_BENCHMARK_MS": "8",  # of each candidate: a sample has to be small
        "TPROF_KERNELS_TUNE": "0",
        "PYTHONPATH": os.pathsep.join(filter(None, path)),
    }


if __name__ == "__main__":
    main()
