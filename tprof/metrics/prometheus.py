"""Prometheus metrics: compile, tuning and kernel time apart, by kernel and declared bucket, before and after ready."""

from __future__ import annotations

import math
import threading
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from prometheus_client import REGISTRY, CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import CounterMetricFamily

from tprof.buckets import OTHER, BucketSet, label, values_of
from tprof.metrics.samples import Samples
from tprof.record import api, clock, decisions, describe, listen, spans, startup

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from tprof.record.spans import Span
    from tprof.record.threads import ThreadState

SECONDS: Final = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100)
KERNEL_SECONDS: Final = tuple(step * 10.0**power for power in range(-6, 0) for step in (1, 2, 5))
KERNEL: Final = ("kernel", "bucket")
MAX_KERNELS: Final = 500  # values of the label `kernel`; further kernels share OTHER_KERNELS
NO_BUCKET, UNKNOWN, OTHER_KERNELS = "none", "unknown", "other"
WAIT_NS: Final = 1_000_000_000  # what was cold for a launch is followed by it at once; later it was for none
EVENTS: Final = {"load": "module_load", "autotune": "search", "candidate": "candidate", "graph_compile": "graph_phase"}

_Value = tuple[Counter | Histogram, dict[str, str], float]  # metric, further labels, by how much


class Prometheus(listen.Listener):
    """Metrics of this process from now on, with or without a recording. Labels are bounded: never a raw shape.

    `docs/metrics.md` lists the metrics.

    Args:
        registry: where they are registered; prometheus_client's own by default.
        buckets: what the label `bucket` names, as `set.bucket`.
        sample_every: time one launch in so many on the device; 0: none.
        served: further counters of what served a call, by (kernel, bucket, choice), such as
            `tprof_kernels.tuned.decisions`; those of `tprof.bucketed` are always there.

    Raises:
        ValueError: the registry has such metrics already.
    """

    def __init__(
        self,
        registry: CollectorRegistry = REGISTRY,
        *,
        buckets: Sequence[BucketSet] = (),
        sample_every: int = 0,
        served: Sequence[Mapping[tuple[str, str | None, Any], int]] = (),
    ) -> None:
        self._registry, self._buckets, self._served = registry, buckets, [decisions.counts, *served]
        self._samples = Samples(sample_every) if sample_every else None
        self._kernels: set[str] = set()
        self._pending: list[_Entry] = []  # that wait for the launch which tells their bucket
        self._lock = threading.Lock()
        registry.register(self)  # first, so that a scrape settles what waits before it reads the others
        self._metrics = _Metrics(registry)
        api.watch(self)
        if self._samples is not None:
            listen.hear_launches(self)
        if listen.ready_ns:
            self.ready(listen.ready_ns)

    def close(self) -> None:
        """Hear no more, and leave the registry."""
        api.unwatch(self)
        for metric in (self, *vars(self._metrics).values()):
            self._registry.unregister(metric)

    # ---- what happens

    def ready(self, t_ns: int) -> None:
        """Start-up is over."""
        if (started := startup.started_ns()) is not None:
            self._metrics.time_to_ready.set((t_ns - started) / 1e9)

    def ended(self, span: Span, t_ns: int, attrs: dict[str, Any], error: str) -> None:  # noqa: ARG002 - as it is told
        """Something cold is over: it counts once its bucket is known."""
        if (phase := spans.phase_of(span)) is not None:
            kernel = self._kernel(spans.about(span))
            for metric, labels, value in self._values(span, phase, t_ns):
                self._settle(_Entry(span.state, kernel, metric, labels, value), t_ns)

    def _values(self, span: Span, phase: str, t_ns: int) -> Iterator[_Value]:
        when, event = {"ready": "after" if listen.ready_ns else "before"}, _event(span)
        yield self._metrics.cold_seconds, {"phase": phase, **when}, span.own_ns / 1e9
        if event:
            yield self._metrics.cold_events, {"event": event, **when}, 1
        if event == "compile":
            yield self._metrics.compile_seconds, {}, (t_ns - span.began_ns) / 1e9
        elif event == "search":
            yield self._metrics.autotune_seconds, {}, span.phases["autotune"] / 1e9

    def launching(self, state: ThreadState, kernel: Any, args: tuple[Any, ...]) -> None:
        """A launch tells the bucket of what was cold for it, and may be timed."""
        timed = self._samples is not None and self._samples.due(state)
        if not timed and not self._pending:
            return
        function = describe.function_name(kernel)
        name, bucket = self._kernel(function), label(self._buckets, function, values_of(describe.named(kernel, args)))
        self._take(lambda entry: entry.state is state and entry.kernel == name, bucket or NO_BUCKET)
        if timed and self._samples is not None:
            self._samples.take(state, name, bucket or NO_BUCKET)

    # ---- a scrape

    def collect(self) -> Iterator[CounterMetricFamily]:
        """What a scrape of the registry asks first."""
        t_ns = clock.now()
        self._take(lambda entry: entry.is_late(t_ns), UNKNOWN)
        for kernel, bucket, seconds in self._samples.finished() if self._samples else ():
            self._metrics.kernel_seconds.labels(kernel, bucket).observe(seconds)
        (family,) = self.describe()
        for counts in self._served:
            for (kernel, served_bucket, choice), calls in list(counts.items()):
                family.add_metric((self._kernel(kernel), served_bucket or OTHER, choice), calls)
        yield family

    def describe(self) -> list[CounterMetricFamily]:
        """What `collect` gives, for the registry to know its name."""
        return [CounterMetricFamily("tprof_decisions", "Calls by what served them", labels=(*KERNEL, "choice"))]

    # ---- entries

    def _kernel(self, name: str) -> str:
        if name not in self._kernels and len(self._kernels) >= MAX_KERNELS:
            return OTHER_KERNELS
        self._kernels.add(name)
        return name

    def _settle(self, entry: _Entry, t_ns: int) -> None:
        """Count what no declared bucket is about at once; the rest waits for its launch."""
        if any(buckets.covers(entry.kernel) for buckets in self._buckets):
            with self._lock:
                self._pending.append(entry)
                listen.hear_launches(self)
            self._take(lambda entry: entry.is_late(t_ns), UNKNOWN)
        else:
            entry.settle(NO_BUCKET)

    def _take(self, which: Callable[[_Entry], bool], bucket: str) -> None:
        with self._lock:
            taken = [entry for entry in self._pending if which(entry)]
            self._pending = [entry for entry in self._pending if not which(entry)]
            if not self._pending and self._samples is None:
                listen.skip_launches(self)
        for entry in taken:
            entry.settle(bucket)


class _Entry(NamedTuple):
    """An observation whose bucket is not known yet."""

    state: ThreadState
    kernel: str
    metric: Counter | Histogram
    labels: dict[str, str]
    value: float

    def is_late(self, t_ns: int) -> bool:
        """Whether its thread has long left all that was cold, without the launch."""
        return not self.state.stack and self.state.cold_ns < t_ns - WAIT_NS

    def settle(self, bucket: str) -> None:
        metric = self.metric.labels(kernel=self.kernel, bucket=bucket, **self.labels)
        metric.observe(self.value) if isinstance(metric, Histogram) else metric.inc(self.value)


def _event(span: Span) -> str | None:
    if span.kind == "jit":
        return "disk_hit" if span.hit else "compile"
    return EVENTS.get(span.kind)


class _Metrics:
    """The metrics, registered."""

    def __init__(self, registry: CollectorRegistry) -> None:
        labels = (*KERNEL, "ready")
        self.cold_seconds = Counter(
            "tprof_cold_seconds", "Thread time in cold phases, each moment once", ("phase", *labels), registry=registry
        )
        self.cold_events = Counter(
            "tprof_cold_events", "Compiles, disk hits, module loads, searches", ("event", *labels), registry=registry
        )
        self.compile_seconds = Histogram(
            "tprof_compile_seconds", "Compiling one variant", KERNEL, buckets=SECONDS, registry=registry
        )
        self.autotune_seconds = Histogram(
            "tprof_autotune_seconds", "One search, its compiles left out", KERNEL, buckets=SECONDS, registry=registry
        )
        self.kernel_seconds = Histogram(
            "tprof_kernel_seconds", "Device time of sampled launches", KERNEL, buckets=KERNEL_SECONDS, registry=registry
        )
        self.time_to_ready = Gauge("tprof_time_to_ready_seconds", "From process start to ready", registry=registry)
        self.time_to_ready.set(math.nan)  # not known yet
