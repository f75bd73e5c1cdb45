"""Requests for server.py, one after the other: most are short, few are long. Prints the latency of each bucket.

python examples/serving/traffic.py [--url http://127.0.0.1:8000] [--requests 200] [--seed 0]
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import urllib.request

MIX = {"short": (70, 128, 1024), "medium": (24, 1025, 8192), "long": (4, 8193, 32768), "rare": (2, 1, 127)}


def draw(requests: int, seed: int) -> list[tuple[str, int]]:
    """(bucket, length) of each request: bucket by weight, length uniform within it."""
    chance = random.Random(seed)  # noqa: S311 - traffic, no secret
    buckets = chance.choices(list(MIX), [weight for weight, *_ in MIX.values()], k=requests)
    return [(bucket, chance.randint(*MIX[bucket][1:])) for bucket in buckets]


def ask(url: str, length: int) -> float:
    """Time to first token of one request, ms."""
    with urllib.request.urlopen(f"{url}/generate", data=str(length).encode(), timeout=600) as answer:  # noqa: S310 - the user's own server
        return float(json.load(answer)["first_token_ms"])


def p99(ms: list[float]) -> float:
    """The least latency that 99 % do not exceed."""
    return sorted(ms)[-(-99 * len(ms) // 100) - 1]


def main() -> None:
    """Send them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", default="http://127.0.0.1:8000")
    parser.add_argument("--requests", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    took: dict[str, list[float]] = {}
    for bucket, length in draw(options.requests, options.seed):
        took.setdefault(bucket, []).append(ask(options.url, length))
    print(f"{'bucket':8}{'requests':>9}{'first ms':>12}{'median ms':>12}{'worst ms':>12}")
    for bucket, ms in took.items():
        print(f"{bucket:8}{len(ms):9}{ms[0]:12.1f}{statistics.median(ms):12.1f}{max(ms):12.1f}")
    every = [ms for bucket in took.values() for ms in bucket]
    print(f"P99 of all {len(every)}: {p99(every):.1f} ms")


if __name__ == "__main__":
    main()
