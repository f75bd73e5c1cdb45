"""What recording adds on a real GPU: to a warm launch, to a model's step, to a first request; beside other profilers.

    python benchmarks/gpu/overhead.py [--blocks 7] [--launches 200] [-o FILE]
    nsys profile -t cuda,nvtx ... python benchmarks/gpu/overhead.py --within "Nsight Systems" [-o FILE]

Wall time of the launching thread per call; blocks with and without recording alternate; medians, with the first and
third quartile. The device is synchronized between blocks, and a block is short enough not to fill the launch queue.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

import torch
import triton

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "examples")]
import serve  # noqa: E402 - the line above finds it

import tprof  # noqa: E402

GOAL_NS, GOAL_SHARE = 2000, 0.10


def main() -> None:
    """Print and write one row per kind of call and profiler."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--blocks", type=int, default=7)
    parser.add_argument("--launches", type=int, default=200)
    parser.add_argument("--within", default="", help="the profiler that this process was started under")
    parser.add_argument("-o", "--output", type=Path)
    args = parser.parse_args()
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as scratch:
        for found in measurements(args, Path(scratch)):
            rows.append(found)
            print(
                f"{found['call']:22} {found['beside'] or 'alone':15} off {found['off_ns'][1] / 1e3:9.2f} us  "
                f"on {found['on_ns'][1] / 1e3:9.2f} us  adds {found['added_ns'] / 1e3:+7.2f} us = "
                f"{found['added_share']:+.1%}",
                flush=True,
            )
            if args.output:
                args.output.write_text(json.dumps(rows, indent=1))


def measurements(args: argparse.Namespace, scratch: Path) -> Iterator[dict[str, Any]]:
    """One row after the other: alone, beside torch.profiler, then a first request: processes of up to 30 s each."""
    made = list(calls(args.launches))
    for beside in (args.within,) if args.within else ("", "torch.profiler"):
        for name, call, each in made:
            yield measured(name, call, each, beside, scratch, args.blocks)
    if not args.within:
        yield first_request(scratch)


def calls(launches: int) -> Iterator[tuple[str, Callable[[], Any], int]]:
    """Name, call, and how often a block calls it."""
    service = serve.Service()
    x = torch.randn(512, serve.WIDTH, device="cuda", dtype=torch.bfloat16)
    out = torch.empty_like(x)
    grid = lambda meta: (triton.cdiv(512, meta["BM"]), triton.cdiv(serve.WIDTH, meta["BN"]))  # noqa: E731
    service(x)
    config = serve.CONFIGS[0].all_kwargs()
    plain = serve.matmul.fn[grid({"BM": config["BM"], "BN": config["BN"]})]
    yield "plain launch", lambda: plain(x, service.weight, out, 512, serve.WIDTH, serve.WIDTH, **config), launches
    yield (
        "autotuned launch",
        lambda: serve.matmul[grid](x, service.weight, out, 512, serve.WIDTH, serve.WIDTH),
        launches,
    )
    with torch.no_grad():
        service.block(x)
    yield "torch.compile'd layer", torch.no_grad()(lambda: service.block(x)), launches
    yield "request of the service", lambda: service(x), 20


def measured(
    name: str, call: Callable[[], Any], each: int, profiler: str, scratch: Path, blocks: int
) -> dict[str, Any]:
    """Ns per call without and with recording, in alternating blocks under one profiler."""
    off: list[float] = []
    on: list[float] = []
    with profiled(profiler):
        for block in range(blocks):
            off.append(timed(call, each))
            with tprof.trace(scratch / f"{name}-{profiler}-{block}".replace(" ", "-").replace("'", "")):
                on.append(timed(call, each))
    return row(name, profiler, off, on)


def row(name: str, profiler: str, off: list[float], on: list[float]) -> dict[str, Any]:
    """Quartiles of both, and the difference of the medians."""
    added = statistics.median(on) - statistics.median(off)
    share = added / statistics.median(off)
    return {
        "call": name, "beside": profiler, "off_ns": quartiles(off), "on_ns": quartiles(on), "blocks": len(off),
        "added_ns": added, "added_share": share, "within_goal": added <= GOAL_NS and share <= GOAL_SHARE,
    }  # fmt: skip


def quartiles(values: list[float]) -> list[float]:
    """First quartile, median, third quartile."""
    return statistics.quantiles(values, n=4, method="inclusive")


@contextlib.contextmanager
def profiled(profiler: str) -> Iterator[None]:
    """Under torch.profiler where it is asked for."""
    if profiler != "torch.profiler":
        yield
        return
    activities = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
    with torch.profiler.profile(activities=activities):
        yield


def timed(call: Callable[[], Any], each: int) -> float:
    """Ns per call, from a device that has nothing to do."""
    call()  # what is new to a recording is written at its first launch
    torch.cuda.synchronize()
    begin = time.perf_counter_ns()
    for _ in range(each):
        call()
    took = (time.perf_counter_ns() - begin) / each
    torch.cuda.synchronize()
    return took


def first_request(scratch: Path, repeats: int = 8) -> dict[str, Any]:
    """A cold service's first request, in processes of their own with empty caches, recorded and not, in turns.

    They differ by a second from one to the next: `first_request.py --again` tells smaller differences.
    """
    off: list[float] = []
    on: list[float] = []
    for repeat in range(repeats):
        turns = ((False, off), (True, on))
        for record, into in turns if repeat % 2 else turns[::-1]:
            home = scratch / f"first-{repeat}-{record}"
            command = [sys.executable, str(ROOT / "benchmarks/gpu/first_request.py"), str(home)]
            command += ["--record"] if record else []
            done = subprocess.run(command, check=True, capture_output=True)  # noqa: S603 - our own script
            into.append(float(done.stdout.split()[-1]))
    return row("first request", "", off, on)


if __name__ == "__main__":
    main()
