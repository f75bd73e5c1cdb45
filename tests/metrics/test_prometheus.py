"""What a Prometheus client scrapes: it parses, adds up, and names kernels and declared buckets only."""

from __future__ import annotations

import math
import subprocess
import sys

import pytest

import tprof
from tprof.buckets import BucketSet
from tprof.record import decisions

prometheus_client = pytest.importorskip("prometheus_client")

BUCKETS = BucketSet.of("sizes", ("add", "pick"), small={"n": "..1024"}, large={"n": "4096..", "x[0]": "1024"})


@pytest.fixture
def metrics():
    """Start them: `metrics(**options)` gives a scrape, {(sample, labels): value}."""
    from prometheus_client import parser

    from tprof.metrics import Prometheus

    open_ = []

    def start(**options):
        registry = prometheus_client.CollectorRegistry()
        open_.append(Prometheus(registry, **options))

        def scrape():
            text = prometheus_client.generate_latest(registry).decode()
            found = [sample for family in parser.text_string_to_metric_families(text) for sample in family.samples]
            return {(s.name, frozenset(s.labels.items())): s.value for s in found}

        return scrape

    yield start
    for one in open_:
        one.close()


def _sum(scraped, name, **labels):
    return sum(v for (sample, has), v in scraped.items() if sample == name and labels.items() <= dict(has).items())


def test_compile_and_tuning_are_apart_by_kernel_bucket_and_ready(metrics, add, pick):
    scrape = metrics(buckets=[BUCKETS])
    assert math.isnan(_sum(scrape(), "tprof_time_to_ready_seconds"))
    add(1024)
    tprof.ready()
    add(1000)
    add(1000)
    pick(4096)
    pick(2000)  # in no bucket
    found = scrape()
    events = {
        (has["event"], has["kernel"], has["bucket"], has["ready"]): value
        for (name, labels), value in found.items()
        if name == "tprof_cold_events_total" and (has := dict(labels))
    }
    assert events == {
        ("compile", "add", "sizes.small", "before"): 1, ("module_load", "add", "sizes.small", "before"): 1,
        ("compile", "add", "sizes.small", "after"): 1, ("module_load", "add", "sizes.small", "after"): 1,
        ("compile", "pick", "sizes.large", "after"): 2, ("module_load", "pick", "sizes.large", "after"): 2,
        ("candidate", "pick", "sizes.large", "after"): 2, ("search", "pick", "sizes.large", "after"): 1,
        ("candidate", "pick", "sizes.other", "after"): 2, ("search", "pick", "sizes.other", "after"): 1,
    }  # fmt: skip
    assert _sum(found, "tprof_compile_seconds_count", kernel="pick") == 2
    assert _sum(found, "tprof_autotune_seconds_count", kernel="pick", bucket="sizes.large") == 1
    tuning = _sum(found, "tprof_cold_seconds_total", kernel="pick", phase="autotune")
    assert _sum(found, "tprof_autotune_seconds_sum") == pytest.approx(tuning)
    assert 0 < tuning < _sum(found, "tprof_compile_seconds_sum")
    assert _sum(found, "tprof_time_to_ready_seconds") > 0


def test_every_moment_counts_once(metrics, pick, tmp_path):
    scrape = metrics()
    with tprof.trace(tmp_path / "run", nvtx=False):
        pick(1024)
    cold = tprof.load(tmp_path / "run").cold().to_dict()["cold"]
    recorded = sum(ns for key, ns in cold.items() if key.endswith("_ns") and key != "tuning_device_ns")
    assert _sum(scrape(), "tprof_cold_seconds_total", bucket="none") * 1e9 == pytest.approx(recorded, rel=0.02)


def test_what_no_launch_followed_has_no_bucket(metrics, kernels, monkeypatch):
    import torch

    from tprof.metrics import prometheus

    scrape = metrics(buckets=[BUCKETS])
    x = torch.ones(1024)
    kernels.add.run(x, x, x, 1024, B=128, grid=(8,), warmup=True)
    kernels.forget(kernels.add)
    kernels.add.run(x, x, x, 1024, B=128, grid=(8,), warmup=True)
    assert _sum(scrape(), "tprof_cold_events_total") == 0  # a launch may still come
    monkeypatch.setattr(prometheus, "WAIT_NS", 0)
    found = scrape()
    assert _sum(found, "tprof_cold_events_total", event="compile", bucket="unknown") == 1
    assert _sum(found, "tprof_cold_events_total", event="disk_hit", bucket="unknown") == 1
    assert _sum(found, "tprof_cold_seconds_total", phase="compile") > _sum(
        found, "tprof_cold_seconds_total", phase="cache"
    )


def test_kernels_past_the_limit_share_a_label(metrics, monkeypatch, add, pick):
    from tprof.metrics import prometheus

    monkeypatch.setattr(prometheus, "MAX_KERNELS", 1)
    scrape = metrics()
    add(1024)
    pick(1024)
    assert {dict(has).get("kernel") for name, has in scrape() if name == "tprof_cold_events_total"} == {"add", "other"}


def test_one_launch_in_many_is_timed_on_the_device(metrics, tmp_path, add, pick):
    scrape = metrics(buckets=[BUCKETS], sample_every=4)
    for _ in range(40):
        add(1024)
    with tprof.trace(tmp_path / "run", nvtx=False):
        for _ in range(40):
            add(1024)
    found = scrape()
    assert _sum(found, "tprof_kernel_seconds_count", kernel="add", bucket="sizes.small") == 20
    assert 0 < _sum(found, "tprof_kernel_seconds_sum") < 1
    pick(1024)  # one launch, besides those of the search
    assert _sum(scrape(), "tprof_kernel_seconds_count", kernel="pick") <= 1


def test_decisions_are_counted(metrics, monkeypatch):
    monkeypatch.setattr(decisions, "counts", type(decisions.counts)({("attend", "long", "pinned"): 3}))
    scrape = metrics(served=[{("matmul", None, "conservative"): 2}])
    found = {tuple(sorted(dict(has).values())): v for (name, has), v in scrape().items() if "decisions" in name}
    assert found == {("attend", "long", "pinned"): 3, ("conservative", "matmul", "other"): 2}


def test_a_registry_has_them_once():
    from tprof.metrics import Prometheus

    registry = prometheus_client.CollectorRegistry()
    first = Prometheus(registry)
    with pytest.raises(ValueError, match="Duplicated"):
        Prometheus(registry)
    first.close()
    Prometheus(registry).close()
    assert prometheus_client.generate_latest(registry) == b""


def test_importing_them_is_light(root):
    heavy = {"numpy", "pandas", "pyarrow", "torch", "triton"}
    code = f"import sys, tprof.metrics.prometheus; print(*sorted({heavy!r} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
