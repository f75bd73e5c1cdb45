"""A server with the incident in it: the first requests of each bucket of lengths compile and tune, unless it prepares.

    python examples/serving/server.py [--prepare none|buckets|PLAN.json] [--guard warn|raise|count] [--record RUN]
    curl -d 512 localhost:8000/generate        # a prompt of 512 tokens
    curl localhost:8000/metrics
    python examples/serving/traffic.py         # 200 requests, most of them short

`--prepare none` is what rolled out: nothing is warm, and a long context is rare, so its bucket is still cold after an
hour. `buckets` runs one request of each hot bucket, and a rare one, before the server says that it is ready; a plan
(`tprof plan RUN -o PLAN.json`, made from a recording of the former) does so without searching. Needs an NVIDIA GPU,
torch and triton; with `--stub` it compiles as ever and computes nothing, without a GPU.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import itertools
import json
import signal
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import prometheus_client
import torch
from model import Model
from tprof_kernels import attention_forward, matmul_jit, tuned

import tprof
from tprof.metrics import Prometheus

HOT = (512, 4096, 16384)  # one length of each bucket that is served often: short, medium, long
RARE = 40  # in no bucket of attention: the conservative config serves it
RESERVED_BYTES = 2 << 30  # what the longest prompt takes
Answer = tuple[str, bytes]  # status, body


class Server:
    """HTTP by hand: POST /generate (a length), GET /metrics, GET /healthz. One thread owns the device.

    Args:
        model: called with a length.
    """

    def __init__(self, model: Model) -> None:
        self._model, self._ids = model, itertools.count()
        self._device = ThreadPoolExecutor(1, "device")

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, one request."""
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            fields = dict(line.lower().split(": ", 1) for line in head[1:] if ": " in line)
            body = await reader.readexactly(int(fields.get("content-length", "0")))
            status, answer = await self._route(head[0].rpartition(" ")[0], body)
            writer.write(f"HTTP/1.1 {status}\r\nContent-Length: {len(answer)}\r\nConnection: close\r\n\r\n".encode())
            writer.write(answer)
            await writer.drain()
        writer.close()

    async def _route(self, what: str, body: bytes) -> Answer:
        if what == "POST /generate" and body.isdigit() and int(body):
            return await self._generate(int(body))
        if what == "GET /metrics":
            return "200 OK", prometheus_client.generate_latest()
        known = what == "GET /healthz"
        return ("200 OK", b"ready\n") if known else ("404 Not Found", b"POST a length to /generate\n")

    async def _generate(self, length: int) -> Answer:
        """The request is tprof's unit of latency: it covers the wait for the device, which `serve` does not."""
        request, began = tprof.request("generate", id=next(self._ids)).start(), time.perf_counter()
        try:
            await asyncio.get_running_loop().run_in_executor(self._device, self._run, request, length)
        except tprof.RefusedError as refused:
            request.end(refused)
            return "503 Service Unavailable", f"{refused}\n".encode()
        request.end()
        answer = {"length": length, "first_token_ms": round((time.perf_counter() - began) * 1e3, 3)}
        return "200 OK", json.dumps(answer).encode() + b"\n"

    def _run(self, request: tprof.request, length: int) -> None:
        with request.serve(), tprof.annotate("prefill"):
            self._model(length)


def prepare(model: Model, how: str) -> None:
    """Take the cold start out of the requests: nothing, one request per hot bucket, or a plan.

    A plan prepares kernels. What torch imports when one of its operators is first called (seconds), only a call does;
    and memory that torch has asked the driver for once, no first request of a longer bucket waits for.
    """
    if model.device == "cuda":
        torch.empty(RESERVED_BYTES, dtype=torch.uint8, device="cuda")
    if how not in {"none", "buckets"}:
        print(tprof.warmup(how), file=sys.stderr)
    for length in {"none": (), "buckets": (*HOT, RARE)}.get(how, (RARE,)):
        model(length)


async def serve(port: int, server: Server) -> None:
    """Until SIGTERM or SIGINT."""
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    async with await asyncio.start_server(server.handle, "127.0.0.1", port) as listening:
        print(f"ready on port {listening.sockets[0].getsockname()[1]}", flush=True)
        await stop.wait()


def run(options: argparse.Namespace, device: str) -> None:
    """Start, prepare, say that start-up is over, serve."""
    Prometheus(
        buckets=[attention_forward.BUCKETS, matmul_jit.BUCKETS],
        sample_every=options.sample_every,
        served=[tuned.decisions],
    )
    tprof.guard(options.guard)
    model = Model(device)
    prepare(model, options.prepare)
    tprof.ready()
    asyncio.run(serve(options.port, Server(model)))


def main() -> None:
    """Read the arguments."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", type=int, default=8000, help="0: any")
    parser.add_argument("--prepare", default="none", help="none, buckets, or the file of a plan")
    parser.add_argument("--guard", choices=("warn", "raise", "count"), default="warn")
    parser.add_argument("--sample-every", type=int, default=100, help="time one launch in so many on the device")
    parser.add_argument("--record", metavar="RUN", help="record into a run directory")
    parser.add_argument("--stub", action="store_true", help="compile for an H100 without a GPU, and launch nothing")
    options = parser.parse_args()
    with contextlib.ExitStack() as stack:
        if options.stub:
            from tprof.testing.stub import stub_driver  # noqa: PLC0415 - a test's tool

            stack.enter_context(stub_driver(cost_ns=lambda *_: 1e9))  # a timing needs no second launch
        if options.record:
            stack.enter_context(tprof.trace(options.record))
        run(options, "cpu" if options.stub else "cuda")


if __name__ == "__main__":
    main()
