"""Call sequences as a profiler would record them: launches, event records, synchronizations, on host and device.

Two dialects: `torch` (torch.profiler: calls of one thread, no creation or destruction of events) and `nsight`. Every
launch says what it is for, so that a test can ask whether the product finds that out.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from tprof.align import align
from tprof.model import Trace, codes, table

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Dialect = Literal["torch", "nsight"]
DIALECTS: tuple[Dialect, ...] = ("torch", "nsight")
_FILL = "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<{0}>>(int, FillFunctor<{0}>)"


@dataclass(frozen=True)
class Op:
    """Something that can be launched: what a trace shows of it on the device."""

    name: str
    kind: str = "kernel"
    registers: int = 64
    grid: int = 256
    bytes: int | None = None
    ns: int = 12_000


FLUSH = Op(_FILL.format("int"), grid=65_536, registers=16, ns=57_000)
FLOAT_FILL = Op(_FILL.format("float"), grid=4_096, registers=16, ns=6_000)
PLAIN_FILL = Op("fill_kernel", grid=4_096, registers=16, ns=6_000)
SMALL_MEMSET = Op("Memset (Device)", kind="memset", bytes=4_096, ns=1_000)
LARGE_MEMSET = Op("Memset (Device)", kind="memset", bytes=64 << 20, ns=30_000)
SMALL_INT_FILL = Op(_FILL.format("int"), grid=1, registers=16, ns=1_500)
FILLS = {
    "float": FLOAT_FILL,
    "plain": PLAIN_FILL,
    "memset": SMALL_MEMSET,
    "large-memset": LARGE_MEMSET,
    "int-counter": SMALL_INT_FILL,
}
WORK, TUNING = "work", "tuning"


def triton(name: str = "matmul", registers: int = 128, grid: int = 128, ns: int = 12_000) -> Op:
    return Op(name, registers=registers, grid=grid, ns=ns)


def kernels(count: int) -> tuple[Op, ...]:
    """The distinct kernels of a step."""
    return tuple(Op(f"void layer_{i}_kernel<float>(float*)", registers=32 + i) for i in range(count))


@dataclass
class Recording:
    """Calls of one thread. `now` is the host's clock, `free` when each stream is done."""

    dialect: Dialect = "torch"
    now: int = 1_000_000
    free: dict[int, int] = field(default_factory=dict)
    # start, end, kind, name, correlation
    calls: list[tuple[int, int, str, str, int]] = field(default_factory=list)
    # start, end, stream, op, correlation, what for
    device: list[tuple[int, int, int, Op, int, str]] = field(default_factory=list)

    def call(self, name: str, ns: int = 4_000, kind: str = "runtime") -> int:
        self.calls.append((self.now, self.now + ns, kind, name, len(self.calls) + 1))
        self.now += ns + 3_000
        return len(self.calls)

    def launch(self, *ops: Op, why: str = WORK, stream: int = 7) -> None:
        for op in ops:
            begun = self.now
            if op.kind == "memset":
                number = self.call("cudaMemsetAsync")
            elif op.name.isidentifier() and not op.name.startswith("fill"):
                number = self.call("cuLaunchKernelEx", kind="driver")
            else:
                number = self.call("cudaLaunchKernel")
            self._run(op, begun, number, why, stream)

    def graph(self, *ops: Op, stream: int = 7) -> None:
        begun = self.now
        number = self.call("cudaGraphLaunch")
        for op in ops:
            self._run(op, begun, number, WORK, stream)

    def _run(self, op: Op, begun: int, number: int, why: str, stream: int) -> None:
        start = max(begun + 5_000, self.free.get(stream, 0))
        self.free[stream] = start + op.ns
        self.device.append((start, start + op.ns, stream, op, number, why))

    def record(self) -> None:
        if self.dialect == "nsight":
            self.call("cudaEventCreateWithFlags", 1_000)
        self.call("cudaEventRecordWithFlags", 2_000)

    def sync(self) -> None:
        self.call("cudaDeviceSynchronize", max(max(self.free.values(), default=0) - self.now, 0) + 3_000)

    def read_times(self, pairs: int) -> None:
        for _ in range(2 * pairs):
            self.call("cudaEventQuery", 400)
        if self.dialect == "nsight":
            for _ in range(2 * pairs):
                self.call("cudaEventDestroy", 400)

    def pause(self, ns: int) -> None:
        self.now += ns

    # ---- what is recorded

    def without_records(self, share: float, seed: int) -> Recording:
        """The same with a share of the event records lost at random."""
        chance = random.Random(seed)
        kept = [c for c in self.calls if "EventRecord" not in c[3] or chance.random() >= share]
        return Recording(self.dialect, self.now, self.free, kept, self.device)

    def trace(self) -> Trace:
        calls, device = self.calls, self.device
        return Trace(
            host=table(
                "host",
                {
                    "start_ns": [c[0] for c in calls],
                    "end_ns": [c[1] for c in calls],
                    "thread": 0,
                    "pid": 1,
                    "tid": 1,
                    "kind": [c[2] for c in calls],
                    "name": [c[3] for c in calls],
                    "correlation": [c[4] for c in calls],
                },
                len(calls),
            ),
            device=table(
                "device",
                {
                    "start_ns": [d[0] for d in device],
                    "end_ns": [d[1] for d in device],
                    "device": 0,
                    "pid": 1,
                    "context": 1,
                    "stream": [d[2] for d in device],
                    "kind": [d[3].kind for d in device],
                    "name": [d[3].name for d in device],
                    "correlation": [d[4] for d in device],
                    "registers": [d[3].registers for d in device],
                    "shared_bytes": [0] * len(device),
                    "bytes": [d[3].bytes for d in device],
                    "grid": [[d[3].grid, 1, 1] if d[3].kind == "kernel" else None for d in device],
                    "block": [[128, 1, 1] if d[3].kind == "kernel" else None for d in device],
                },
                len(device),
            ),
            processes=table("processes", {"host": [""], "pid": [1]}),
            threads=table("threads", {"host": [""], "pid": [1], "tid": [1]}),
            devices=table("devices", {"host": [""], "ordinal": [0], "source": [0]}),
            sources=table(
                "sources", {"path": ["synthetic"], "format": [self.dialect], "rows_read": [0], "rows_dropped": [0]}
            ),
        )

    def wrong(self) -> list[tuple[str, str, str]]:
        """Device events whose purpose was not found out: (name, what it is for, what was found)."""
        trace = align(self.trace())
        code, names = codes(trace.device, "purpose")
        return [
            (d[3].name, d[5], names[c]) for d, c in zip(self.device, code.tolist(), strict=True) if d[5] != names[c]
        ]


# ---- benchmark loops as the libraries write them


def do_bench(r: Recording, unit: Sequence[Op], repetitions: int, warmup: int = 8, flush: Op = FLUSH) -> None:
    """Triton's: a first call, an estimate of five, a warm-up, the repetitions."""
    r.launch(*unit, why=TUNING)
    r.sync()
    r.record()
    for _ in range(5):
        r.launch(flush, *unit, why=TUNING)
    r.record()
    r.sync()
    r.read_times(1)
    for _ in range(warmup):
        r.launch(*unit, why=TUNING)
    _pairs(r, unit, repetitions, flush)


def inductor_bench(r: Recording, unit: Sequence[Op], repetitions: int, flush: Op = FLUSH) -> None:
    """Inductor's: a first call, an estimate of five pairs, a hundred flushes as warm-up, the repetitions."""
    r.launch(*unit, why=TUNING)
    r.sync()
    _pairs(r, unit, 5, flush)
    r.launch(*[flush] * 100, why=TUNING)
    _pairs(r, unit, repetitions, flush)


def _pairs(r: Recording, unit: Sequence[Op], count: int, flush: Op) -> None:
    for _ in range(count):
        r.launch(flush, why=TUNING)
        r.record()
        r.launch(*unit, why=TUNING)
        r.record()
    r.sync()
    r.read_times(count)


def timed_steps(
    r: Recording, step: Callable[[], None], count: int, after: Callable[[], None] | None = None, sync_every: int = 0
) -> None:
    """A user's loop: each step between two event records, something after it, a synchronization now and then."""
    for i in range(count):
        r.record()
        step()
        r.record()
        if after:
            after()
        if sync_every and (i + 1) % sync_every == 0:
            r.sync()
            r.read_times(sync_every)
    r.sync()
