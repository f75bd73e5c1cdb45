"""What recording adds to the first request of `examples/serve.py` with empty caches.

    python benchmarks/gpu/first_request.py FOLDER [--record]   prints its wall time in ns; each in a process of its own
    python benchmarks/gpu/first_request.py FOLDER --again 12   its Triton kernels, so often in one process

Processes that do the same differ by a second. `--again` compiles and tunes the kernels anew within one process, from
empty caches, recorded and not in turns, so that what is left of the difference is the recorder's.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import os
import statistics
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "examples")]


def main() -> None:
    """Serve one request and print what it took; or the same kernels again and again, and what recording added."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--again", type=int, default=0)
    args = parser.parse_args()
    os.environ |= {"TRITON_CACHE_DIR": str(args.folder / "triton"), "TORCHINDUCTOR_CACHE_DIR": str(args.folder / "ind")}
    if args.again:
        again(args.folder, args.again)
    else:
        print(first(args.folder, record=args.record))


def first(folder: Path, *, record: bool) -> int:
    """Wall time in ns of a process's first request."""
    serve, torch, tprof = _imported()
    with tprof.trace(folder / "run") if record else contextlib.nullcontext():
        service = serve.Service()
        x = torch.randn(512, serve.WIDTH, device="cuda", dtype=torch.bfloat16)
        torch.cuda.synchronize()
        begin = time.perf_counter_ns()
        service(x)
        torch.cuda.synchronize()
        return time.perf_counter_ns() - begin


def again(folder: Path, times: int) -> None:
    """Print the wall time in s of a request whose compiled layer is warm and whose Triton kernels are cold."""
    serve, torch, tprof = _imported()
    service, x = serve.Service(), torch.randn(512, serve.WIDTH, device="cuda", dtype=torch.bfloat16)
    service(x)
    took: dict[bool, list[float]] = {False: [], True: []}
    for i in range(times):
        for record in (False, True) if i % 2 else (True, False):
            forget()
            os.environ["TRITON_CACHE_DIR"] = str(folder / f"triton-{i}-{record}")
            with tprof.trace(folder / f"run-{i}") if record else contextlib.nullcontext():
                begin = time.perf_counter_ns()
                service(x)
                took[record].append((time.perf_counter_ns() - begin) / 1e9)
    added = [on - off for off, on in zip(took[False], took[True], strict=True)]
    for name, values in (("not recorded", took[False]), ("recorded", took[True]), ("added, in pairs", added)):
        quartiles = " to ".join(f"{q:.2f}" for q in statistics.quantiles(values, n=4, method="inclusive")[::2])
        print(f"{name:16} median {statistics.median(values):+.2f} s, half of them from {quartiles} s, of {times}")


def forget() -> None:
    """Every function of Triton and every tuner in this process forgets what it has compiled and chosen."""
    from triton.runtime.autotuner import Autotuner  # noqa: PLC0415 - the caches are chosen before it is imported
    from triton.runtime.jit import JITFunction  # noqa: PLC0415

    for found in gc.get_objects():
        if type(found) is JITFunction:
            found.device_caches.clear()
        elif type(found) is Autotuner:
            found.cache.clear()


def _imported() -> tuple:  # type: ignore[type-arg]
    """The service, torch and tprof: imported once the caches are chosen."""
    import serve  # noqa: PLC0415
    import torch  # noqa: PLC0415

    import tprof  # noqa: PLC0415

    return serve, torch, tprof


if __name__ == "__main__":
    main()
