"""The samples are found, small, and still say what the full recordings say."""

from __future__ import annotations

import gzip
import json
import sqlite3
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

import tprof
from tprof.errors import TprofError
from tprof.samples import sample_paths

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="module")
def torch_events(sample_traces: Path) -> list[dict]:
    return json.loads(gzip.decompress((sample_traces / "h200-torch.json.gz").read_bytes()))["traceEvents"]


@pytest.fixture(scope="module")
def nsight(sample_traces: Path, tmp_path_factory: pytest.TempPathFactory) -> sqlite3.Connection:
    plain = tmp_path_factory.mktemp("nsight") / "sample.sqlite"
    plain.write_bytes(gzip.decompress((sample_traces / "h200-nsight.sqlite.gz").read_bytes()))
    db = sqlite3.connect(plain)
    yield db
    db.close()


RUNS = ["cold-nsight", "cold-torch", "graphs-nsight", "graphs-torch"]
MORE = ["h200-nsight", "h200-torch", "ranks", "two-processes", "warm-nsight", "warm-torch"]


def test_a_checkout_finds_them() -> None:
    assert list(sample_paths()) == RUNS + MORE


def test_an_installed_package_finds_its_own(tmp_path: Path) -> None:
    package = tmp_path / "tprof"
    (package / "samples").mkdir(parents=True)
    (package / "samples" / "x-torch.json.gz").touch()
    assert sample_paths(package) == {"x-torch": package / "samples" / "x-torch.json.gz"}


def test_none_at_all_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(TprofError, match="no sample traces are installed; reinstall"):
        sample_paths(tmp_path / "tprof")


def test_they_are_small() -> None:
    files = [[*path.iterdir()] if path.is_dir() else [path] for path in sample_paths().values()]
    sizes = [sum(file.stat().st_size for file in each) for each in files]
    assert max(sizes) <= 1_000_000
    assert sum(sizes) <= 6_000_000


def test_torch_keeps_the_evidence(torch_events: list[dict]) -> None:
    names = [event["name"] for event in torch_events]
    assert sum(name.startswith("request#") for name in names) == 2 * 8  # on the host and on the device
    assert names.count("Lazy Function Loading") == 23
    assert sum(name.startswith("dynamo_data") for name in names) == 3
    assert sum(name.startswith("## Call CompiledFxGraph") for name in names) == 2 * 8


def test_torch_rows_go_together(torch_events: list[dict]) -> None:
    calls = {e["args"]["correlation"] for e in torch_events if e.get("cat") in {"cuda_runtime", "cuda_driver"}}
    device = {e["args"]["correlation"] for e in torch_events if e.get("cat") in {"kernel", "gpu_memcpy"}}
    assert device <= calls
    assert {e["id"] for e in torch_events if e.get("cat") == "ac2g"} <= calls
    flushes = sum(e.get("cat") == "kernel" and "FillFunctor<int>" in e["name"] for e in torch_events)
    fills = sum(e["name"] == "aten::fill_" and e["args"]["Input type"][:1] == ["int"] for e in torch_events)
    assert fills == flushes


def test_nsight_keeps_the_evidence(nsight: sqlite3.Connection) -> None:
    count = "SELECT count(*) FROM {} JOIN StringIds ON id = nameId WHERE value LIKE ?"
    runtime, osrt = count.format("CUPTI_ACTIVITY_KIND_RUNTIME"), count.format("OSRT_API")
    assert nsight.execute(runtime, ("cuModuleLoad%",)).fetchone() == (13 + 3,)
    assert nsight.execute(osrt, ("posix_spawn",)).fetchone() == (16,)
    assert nsight.execute("SELECT count(*) FROM NVTX_EVENTS WHERE text LIKE 'request#%'").fetchone() == (8,)


def test_nsight_rows_go_together(nsight: sqlite3.Connection) -> None:
    calls = "SELECT correlationId FROM CUPTI_ACTIVITY_KIND_RUNTIME"
    for table in ("KERNEL", "MEMCPY", "CUDA_EVENT"):
        orphans = f"SELECT count(*) FROM CUPTI_ACTIVITY_KIND_{table} WHERE correlationId NOT IN ({calls})"
        assert nsight.execute(orphans).fetchone() == (0,)


def test_nsight_tells_nothing_of_the_machine(nsight: sqlite3.Connection) -> None:
    tables = {name for (name,) in nsight.execute("SELECT name FROM sqlite_master")}
    assert not tables & {"TARGET_INFO_SYSTEM_ENV", "META_DATA_CAPTURE", "ProcessStreams"}
    tids = "SELECT globalTid FROM {}"
    where = ("PROFILER_OVERHEAD", "OSRT_API", "NVTX_EVENTS", "CUPTI_ACTIVITY_KIND_RUNTIME", "ThreadNames")
    threads = nsight.execute(" UNION ".join(tids.format(table) for table in where)).fetchall()
    assert len(threads) == 1
    assert nsight.execute("SELECT count(*) FROM META_DATA_EXPORT WHERE name LIKE '%USER%'").fetchone() == (0,)


@pytest.mark.parametrize("name", ["h200-torch", "h200-nsight"])
def test_only_the_device_time_of_tuning_is_shorter(name: str, traces: Path) -> None:
    pattern = {"h200-torch": "torch*.json.gz", "h200-nsight": "nsight*.sqlite.gz"}[name]
    (full,) = (traces / "h200-cold-start").glob(pattern)
    whole, short = (tprof.load(path).summary().to_dict() for path in (full, sample_paths()[name]))
    for before, after in zip(whole["requests"], short["requests"], strict=True):
        assert before["phases"] == after["phases"]
        assert before["cold_tax_ns"] == after["cold_tax_ns"]
        assert _not_tuning(before["device_by_purpose"]) == _not_tuning(after["device_by_purpose"])
    assert whole["cold"] | {"tuning_device_ns": 0} == short["cold"] | {"tuning_device_ns": 0}
    assert 5 < whole["cold"]["tuning_device_ns"] / short["cold"]["tuning_device_ns"] < 9


def _not_tuning(device: dict[str, int]) -> dict[str, int]:
    return {purpose: ns for purpose, ns in device.items() if purpose != "tuning"}


def _dump(packed: bytes, folder: Path) -> list[str]:
    plain = folder / "dump.sqlite"
    plain.write_bytes(packed)
    db = sqlite3.connect(plain)
    try:
        return list(db.iterdump())
    finally:
        db.close()


def test_cutting_again_gives_the_same(root: Path, traces: Path, tmp_path: Path) -> None:
    script = root / "sample_traces" / "cut.py"
    command = [sys.executable, script, traces / "h200-cold-start", "-o", tmp_path]
    subprocess.run(command, check=True, capture_output=True)
    kept, fresh = (
        {p.name.split(".", 1)[0]: gzip.decompress(p.read_bytes()) for p in d.glob("*.gz")}
        for d in (root / "sample_traces", tmp_path)
    )
    assert fresh["h200-torch"] == kept["h200-torch"]
    # a database's header names the SQLite library that wrote it: compare the rows
    assert _dump(fresh["h200-nsight"], tmp_path) == _dump(kept["h200-nsight"], tmp_path)
