"""The incident on a GPU, end to end: examples/serving with nothing warm, with a warm disk cache, and with a plan.

    python benchmarks/gpu/serving.py OUT [--requests 200] [--stub]

Each way is a server of its own that records itself; the same requests are sent to each, one after the other, and then
rare lengths that no bucket of attention holds, each several times. Prints a table, and writes OUT/serving.json. Needs
an NVIDIA GPU, torch, triton, prometheus-client; some 2 minutes on an H200.
`--stub` tries the script without a GPU.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

ROOT = Path(__file__).resolve().parents[2]
SERVING = ROOT / "examples" / "serving"
sys.path[:0] = [str(ROOT), str(SERVING)]
import traffic  # noqa: E402 - the line above finds it

from tprof.cli import main as tprof  # noqa: E402 - as above

WAYS = {"nothing": "none", "disk": "none", "plan": "plan"}  # way -> how the server prepares
RARE, AGAIN = (100, 24, 61, 70_000), 5  # lengths in no bucket of attention, and how often each is asked for again


def serve(way: str, out: Path, requests: list[tuple[str, int]], *, stub: bool) -> dict[str, Any]:
    """One server; its latencies in ms by bucket, in order, and what its metrics said at the end."""
    plan, run = out / "plan.json", out / f"run-{way}"
    prepare = str(plan) if WAYS[way] == "plan" else "none"
    command = [sys.executable, str(SERVING / "server.py"), "--port", "0", "--record", str(run), "--prepare", prepare]
    paths = [str(ROOT), str(ROOT / "kernels"), *filter(None, [os.environ.get("PYTHONPATH")])]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "TRITON_CACHE_DIR": str(out / "cache")}
    begun = time.monotonic()
    with (out / f"{way}.log").open("w") as log:
        server = subprocess.Popen(  # noqa: S603 - our own script
            [*command, *(["--stub"] if stub else [])], env=env, stdout=subprocess.PIPE, stderr=log, text=True
        )
    try:
        line = server.stdout.readline() if server.stdout else ""
        url = f"http://127.0.0.1:{line.rpartition(' ')[2].strip()}"
        found: dict[str, Any] = {"start_s": time.monotonic() - begun, "ms": {}}
        for bucket, length in requests:
            found["ms"].setdefault(bucket, []).append(traffic.ask(url, length))
        found["rare_ms"] = {length: [traffic.ask(url, length) for _ in range(1 + AGAIN)] for length in RARE}
        with urllib.request.urlopen(f"{url}/metrics") as answer:  # noqa: S310 - our own server
            found["metrics"] = scraped(answer.read().decode())
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait(60)
    return {**found, "gate": tprof(["check", str(run), "--max-cold-after-ready", "0"])}


def scraped(text: str) -> dict[str, float]:
    """Cold events after ready, thread time in cold phases after ready, and the mean of the timed launches."""
    samples = [s for family in text_string_to_metric_families(text) for s in family.samples]
    after = [s for s in samples if s.labels.get("ready") == "after"]
    total = {
        name: sum(s.value for s in samples if s.name == f"tprof_kernel_seconds_{name}") for name in ("sum", "count")
    }
    return {
        "events_after_ready": sum(s.value for s in after if s.name == "tprof_cold_events_total"),
        "cold_s_after_ready": sum(s.value for s in after if s.name == "tprof_cold_seconds_total"),
        "timed_launches": total["count"],
        "mean_launch_us": 1e6 * total["sum"] / total["count"] if total["count"] else float("nan"),
    }


def show(found: dict[str, dict[str, Any]]) -> None:
    """One line per way and bucket."""
    print(f"{'way':9}{'bucket':8}{'first ms':>11}{'median ms':>11}{'worst ms':>11}")
    for way, one in found.items():
        for bucket, ms in one["ms"].items():
            print(f"{way:9}{bucket:8}{ms[0]:11.1f}{statistics.median(ms):11.1f}{max(ms):11.1f}")
        for length, (first, *again) in one["rare_ms"].items():
            warm = statistics.median(again)
            times = f"rare, first {first / warm:.2f}x its median"
            print(f"{way:9}{length:<8}{first:11.1f}{warm:11.1f}{max(again):11.1f}  {times}")
        p99 = traffic.p99([ms for bucket in one["ms"].values() for ms in bucket])
        said = ", ".join(f"{name} {value:.4g}" for name, value in one["metrics"].items())
        print(f"{way:9}P99 {p99:.1f} ms; started in {one['start_s']:.1f} s; gate {one['gate']}; {said}")


def main() -> None:
    """Serve every way, and make the plan out of the first."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--requests", type=int, default=200)
    parser.add_argument("--stub", action="store_true")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    requests, found = traffic.draw(options.requests, seed=0), {}
    for way, how in WAYS.items():
        if how == "plan":
            tprof(["plan", str(options.out / "run-nothing"), "-o", str(options.out / "plan.json")])
        found[way] = serve(way, options.out, requests, stub=options.stub)
    show(found)
    (options.out / "serving.json").write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
